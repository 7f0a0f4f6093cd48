"""The counts of a run, query by query: in the API, as JSON, on the command line and in Spark's own progress."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

import headwater as hw
from headwater.cli import app
from headwater.execution.late_queries import NOT_YET
from headwater.running.counting import BatchMeasure, RunCounts
from headwater.running.evaluation import BatchOutcome
from headwater.running.progress import QueryProgress
from headwater.terms.model import SECOND
from tests.engine.programs import SENSORS, SLIDING, sensor_lines, with_city, with_queries, write, write_city

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UNKEYED = """
PREFIX : <http://ex/>
REGISTER QUERY paths AS SELECT ?s ?v FROM STREAM <http://ex/sensors> [RANGE 20s STEP 5s] WHERE { ?s :value+ ?v }
"""


def check_queries(progress: hw.Progress) -> None:
    sliding, joined, hot_count = (progress.queries[name] for name in ("sliding", "joined", "hot-count"))
    assert sliding.streams == (SENSORS,)
    assert (sliding.late, sliding.bad) == (progress.late, progress.bad)
    assert joined.elements == progress.elements > sliding.elements > 0
    assert sum(query.ticks for query in progress.queries.values()) == progress.ticks
    assert sliding.rows > sliding.ticks > 0
    assert sliding.answered is not None and hot_count.ticks > 0
    assert 0 < sum(query.seconds for query in progress.queries.values()) <= progress.steps["evaluate"]
    assert {"read", "evaluate", "deliver"} <= progress.steps.keys()
    (join,) = joined.choices
    assert sum(sum(one["chosen"]) for one in join["inputs"]) > 0
    assert not hot_count.choices


def test_each_query_has_its_counts(tmp_path: Path) -> None:
    engine = with_queries(with_city(hw.Engine(in_process=True, batch_bytes=900), write_city(tmp_path)))
    during: list[hw.Progress] = []
    summary = engine.run(on_progress=during.append)
    check_queries(summary)
    sliding = engine.queries[1].progress
    assert sliding == summary.queries["sliding"]
    assert (sliding.evaluator, sliding.reason, sliding.shards) == ("kernel", None, 1)
    middle = during[len(during) // 2].queries["sliding"]
    assert middle.watermark is not None and middle.answered is not None and middle.lag is not None
    assert middle.answered < middle.watermark and 0 <= middle.lag <= 5 * SECOND
    assert 0 < middle.state_rows <= 21 and (middle.state_bytes or 0) > 24 * middle.state_rows
    assert middle.is_complete
    held = [progress.state_rows for progress in during]
    first = next(place for place, rows in enumerate(held) if rows)
    assert all(held[first:-1]), "in the middle of a batch the counts are those before it"


def test_the_reference_says_why_it_is_there(tmp_path: Path) -> None:
    engine = hw.Engine(in_process=True, checkpoint=tmp_path / "checkpoint")
    engine.stream(SENSORS, write(tmp_path / "a.tnq", sensor_lines(40)))
    query = engine.register(UNKEYED)
    summary = engine.run(drain=False)
    assert query.progress.evaluator == "reference"
    assert "path" in (query.progress.reason or "")
    assert query.progress.state_rows > 0 and query.progress.state_bytes is None
    assert summary.state_rows >= query.progress.state_rows and summary.state_bytes > 0
    assert summary.steps["save"] > 0


def test_each_stream_has_its_own_counts(tmp_path: Path) -> None:
    engine = hw.Engine(in_process=True)
    engine.stream(SENSORS, write(tmp_path / "a.tnq", sensor_lines(40)))
    engine.register(SLIDING)
    summary = engine.run()
    assert list(summary.streams) == [SENSORS]
    counts = summary.streams[SENSORS]
    assert (counts.elements, counts.bad, counts.late) == (summary.elements, summary.bad, summary.late)
    assert counts.bad > 0 and counts.late > 0
    assert counts.watermark == summary.watermarks[SENSORS]


def test_as_json() -> None:
    query = QueryProgress(answered=5, complete_from=NOT_YET, lag=3)
    progress = hw.Progress(elements=3, watermarks={"a": None}, steps={"read": 0.12345678}, queries={"q": query})
    found = json.loads(progress.to_json())
    assert (found["elements"], found["watermarks"], found["steps"]) == (3, {"a": None}, {"read": 0.123457})
    assert found["queries"]["q"]["complete_from"] is None
    assert found["queries"]["q"]["complete"] is False
    assert found["queries"]["q"]["lag"] == 3


def test_on_the_command_line(tmp_path: Path) -> None:
    write(tmp_path / "a.tnq", sensor_lines(40))
    (tmp_path / "q.rq").write_text(SLIDING)
    file = tmp_path / "progress.jsonl"
    arguments = ["--stream", f"{SENSORS}={tmp_path / 'a.tnq'}", "--in-process", "--progress-json", str(file)]
    result = CliRunner().invoke(app, ["run", str(tmp_path / "q.rq"), *arguments])
    assert result.exit_code == 0, result.output
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) == lines[-1]["batches"] + 1
    assert lines[-1]["stopped"] is False and lines[-1]["queries"]["sliding"]["ticks"] > 0


def test_on_spark_and_in_sparks_own_progress(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql.streaming.listener import StreamingQueryListener

    shards = 2
    heard: list[dict[str, Any]] = []
    has_ended = threading.Event()

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None: ...

        def onQueryIdle(self, event: Any) -> None: ...

        def onQueryTerminated(self, event: Any) -> None:
            has_ended.set()

        def onQueryProgress(self, event: Any) -> None:
            metrics = event.progress.observedMetrics.get("headwater")
            if metrics is not None:
                heard.append(metrics.asDict())

    listener = Listener()
    spark.streams.addListener(listener)
    try:
        engine = hw.Engine(spark, shards=shards, batch_bytes=1500)
        engine.stream(SENSORS, write(tmp_path / "a.tnq", sensor_lines(60)))
        query = engine.register(SLIDING)
        summary = engine.run()
        assert has_ended.wait(30)
    finally:
        spark.streams.removeListener(listener)
    assert query.progress.shards == shards
    assert query.progress.ticks == summary.ticks > 0
    assert query.progress.elements == summary.elements
    assert summary.state_bytes > 0 and summary.steps["save"] > 0
    assert len(heard) == summary.batches > 2
    assert sum(one["elements"] or 0 for one in heard) == summary.elements
    assert sum(one["late"] or 0 for one in heard) == summary.late
    assert sum(one["bad"] or 0 for one in heard) == summary.bad > 0
    details = [json.loads(text) for one in heard for text in one["shards"]]
    assert len(details) == shards * summary.batches
    assert sum(one["queries"]["sliding"]["seconds"] for one in details) == pytest.approx(
        query.progress.seconds, abs=1e-3
    )


def test_progress_says_how_much_the_largest_shard_has() -> None:
    shards = [BatchMeasure({}, triples=one, largest=one) for one in (10, 70, 20)]
    batch = shards[0].merge(shards[1]).merge(BatchMeasure.from_plain(shards[2].to_plain()))
    counts = RunCounts()
    assert counts.progress.largest_shard == 1.0
    counts.count(BatchOutcome(measure=batch), {})
    assert counts.progress.largest_shard == 0.7
    even = BatchMeasure({}, triples=25, largest=25)
    counts.count(BatchOutcome(measure=even.merge(even).merge(even).merge(even)), {})
    assert counts.progress.largest_shard == 95 / 200
    assert json.loads(counts.progress.to_json())["largest_shard"] == 0.475
    counts.count(BatchOutcome(), {})
    assert counts.progress.largest_shard == 95 / 200


def test_in_process_one_shard_has_everything(tmp_path: Path) -> None:
    engine = with_queries(with_city(hw.Engine(in_process=True, batch_bytes=900), write_city(tmp_path)))
    assert engine.run().largest_shard == 1.0
