"""Answers that workers write: the same as those that the driver writes, and none of them goes through the driver."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import headwater as hw
from headwater.running.evaluation import BatchOutcome
from headwater.spark import stateful_step as stateful
from tests.engine.programs import ANY, SENSORS, SLIDING, TUMBLING, sensor_lines, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST = """
PREFIX : <http://ex/>
REGISTER QUERY first AS
SELECT ?sensor ?value FROM STREAM <http://ex/sensors> [RANGE 10s TUMBLING]
WHERE { ?sensor :value ?value } ORDER BY DESC(?value) ?sensor LIMIT 3
"""
SEEN = """
PREFIX : <http://ex/>
REGISTER QUERY seen AS
SELECT DISTINCT ?sensor FROM STREAM <http://ex/sensors> [RANGE 10s TUMBLING] WHERE { ?sensor :value ?value }
"""
ALL = """
PREFIX : <http://ex/>
REGISTER QUERY all AS
SELECT (SUM(?value) AS ?sum) FROM STREAM <http://ex/sensors> [RANGE 10s TUMBLING] WHERE { ?sensor :value ?value }
"""
QUERIES = (SLIDING, TUMBLING, FIRST, SEEN, ALL, ANY)
IN_PARTS = {"sliding", "tumbling", "seen"}


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("stream") / "in.tnq", sensor_lines(90))


@pytest.fixture
def at_driver(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The queries of the answers that come to the driver."""
    seen: list[str] = []
    kept = stateful.rows_to_outcome

    def rows_to_outcome(*given: Any) -> BatchOutcome:
        outcome = kept(*given)
        seen.extend(outcome.answers.by_query())
        return outcome

    monkeypatch.setattr(stateful, "rows_to_outcome", rows_to_outcome)
    return seen


def make_engine(spark: SparkSession, stream: Path, shards: int, **more: Any) -> hw.Engine:
    engine = hw.Engine(spark, shards=shards, batch_bytes=2500, **more)
    engine.stream(SENSORS, hw.files(stream))
    for text in QUERIES:
        engine.register(text)
    return engine


def files_in(folder: Path) -> dict[str, bytes]:
    """The content of each file by query and number of batch, whatever the run."""
    return {
        f"{path.parent.name}/{path.name.partition('-')[2]}": path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_one_shard_writes_the_files_that_the_driver_would(
    spark: SparkSession, stream: Path, tmp_path: Path, at_driver: list[str]
) -> None:
    def sinks(name: str) -> list[hw.FileSink]:
        return [hw.FileSink(tmp_path / name / format, format=format) for format in ("json", "csv", "nquads")]

    summary = make_engine(spark, stream, 1).run(sinks=sinks("workers"))
    assert at_driver == []
    answers: list[hw.Answer] = []
    expected = make_engine(spark, stream, 1).run(sinks=sinks("driver"), on_answer=answers.append)
    assert set(at_driver) == {"sliding", "tumbling", "first", "seen", "all", "any"}
    for format in ("json", "csv", "nquads"):
        written = files_in(tmp_path / "workers" / format)
        assert len(written) > 6 and written == files_in(tmp_path / "driver" / format)
    assert summary.batches > 2 and summary.ticks == expected.ticks == len(answers)
    assert {name: (one.ticks, one.rows) for name, one in summary.queries.items()} == {
        name: (one.ticks, one.rows) for name, one in expected.queries.items()
    }


def rows_in(folder: Path) -> dict[tuple[str, int], list[str]]:
    """The rows of each answer, those of all parts together."""
    found: dict[tuple[str, int], list[str]] = {}
    for path in sorted(folder.rglob("*.jsonl")):
        for line in path.read_text().splitlines():
            answer = json.loads(line)
            rows = answer["results"]["bindings"] if "results" in answer else [answer["boolean"]]
            texts = [json.dumps(row, sort_keys=True) for row in rows]
            found.setdefault((path.parent.name, answer["time_us"]), []).extend(texts)
    return {key: rows if key[0] == "first" else sorted(rows) for key, rows in found.items()}


def test_parts_of_shards_are_the_answers(
    spark: SparkSession, stream: Path, tmp_path: Path, at_driver: list[str]
) -> None:
    summary = make_engine(spark, stream, 3).run(sinks=[hw.FileSink(tmp_path / "parts", parts=True)])
    assert set(at_driver) == {"first", "all", "any"}
    answers: list[hw.Answer] = []
    expected = hw.Engine(in_process=True)
    expected.stream(SENSORS, hw.files(stream))
    for text in QUERIES:
        expected.register(text)
    counts = expected.run(sinks=[hw.FileSink(tmp_path / "whole")], on_answer=answers.append)
    assert rows_in(tmp_path / "parts") == rows_in(tmp_path / "whole")
    assert summary.ticks == counts.ticks
    assert {name: one.rows for name, one in summary.queries.items()} == {
        name: one.rows for name, one in counts.queries.items()
    }
    for folder in (tmp_path / "parts").iterdir():
        endings = {path.name.rpartition("-")[2] for path in folder.iterdir()}
        assert (endings == {"0.jsonl", "1.jsonl", "2.jsonl"}) is (folder.name in IN_PARTS)


def test_parts_are_written_by_workers_where_a_callback_takes_answers_too(
    spark: SparkSession, stream: Path, tmp_path: Path
) -> None:
    answers: list[hw.Answer] = []
    engine = make_engine(spark, stream, 2)
    engine.run(sinks=[hw.FileSink(tmp_path / "parts", format="parquet", parts=True)], on_answer=answers.append)
    tables = [pq.read_table(path) for path in (tmp_path / "parts" / "sliding").glob("*.parquet")]
    whole = [one for one in answers if one.query == "sliding"]
    assert {one.part for one in whole} == {0}
    assert sum(table.num_rows for table in tables) == sum(len(one.rows) for one in whole)
    assert {part for table in tables for part in table["part"].to_pylist()} == {0, 1}


def test_an_iterator_that_is_opened_later_gets_answers(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    write(folder / "1.tnq", sensor_lines(40))
    engine = hw.Engine(spark, shards=1)
    engine.stream(SENSORS, hw.files(folder))
    query = engine.register(TUMBLING)
    engine.start(sinks=[hw.FileSink(tmp_path / "out")])
    try:
        end = time.monotonic() + 60
        while not list((tmp_path / "out").rglob("*.jsonl")) and time.monotonic() < end:
            time.sleep(0.1)
        answers = query.answers()
        timer = threading.Timer(60, engine.stop)
        timer.start()
        write(folder / "2.tnq", sensor_lines(90)[40:])
        assert next(iter(answers)).query == "tumbling"
        timer.cancel()
    finally:
        engine.stop()
        engine.wait(60)
