"""The same on Spark: answers, counts, dead letters, restarts, growing folders, streaming DataFrames."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import headwater as hw
from headwater.execution.answers import Answer
from headwater.running.checkpoints import CHECKPOINT_FORMAT
from headwater.terms.ids.inline_layout import ID_FORMAT
from headwater.terms.ids.term_key import term_key
from tests.engine.programs import (
    HOT,
    HOT_COUNT,
    QUERIES,
    SENSORS,
    SLIDING,
    TUMBLING,
    by_query,
    integer,
    sensor_lines,
    with_city,
    with_queries,
    write,
    write_city,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STATIC_ONLY = "SELECT ?room ?floor WHERE { ?room <http://ex/floor> ?floor }"


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_city(tmp_path_factory.mktemp("city"))


def run_city(engine: hw.Engine, folder: Path) -> tuple[list[Answer], hw.RunSummary]:
    answers: list[Answer] = []
    with_queries(with_city(engine, folder), (*QUERIES, STATIC_ONLY))
    return answers, engine.run(on_answer=answers.append)


def of_one_query(spark: SparkSession) -> dict[str, str | None]:
    """The settings that a streaming query takes at its start and its session must not keep."""
    names = ("spark.sql.shuffle.partitions", "spark.sql.execution.arrow.maxBytesPerBatch")
    return {name: spark.conf.getAll.get(name) for name in names}


def letters(folder: Path) -> list[str]:
    return sorted(line for file in folder.iterdir() for line in file.read_text().splitlines())


def test_spark_gives_the_answers_of_the_runner_in_process(spark: SparkSession, city: Path, tmp_path: Path) -> None:
    expected, counts = run_city(hw.Engine(in_process=True, dead_letters=tmp_path / "expected"), city)
    assert len(by_query(expected)) == len(QUERIES) + 1
    settings = of_one_query(spark)
    for name, size in (("large", None), ("small", 2500)):
        answers, summary = run_city(hw.Engine(spark, dead_letters=tmp_path / name, batch_bytes=size), city)
        assert by_query(answers) == by_query(expected)
        assert (summary.elements, summary.late, summary.bad, summary.ticks) == (
            counts.elements,
            counts.late,
            counts.bad,
            counts.ticks,
        )
        assert summary.watermarks == counts.watermarks
        assert letters(tmp_path / name) == letters(tmp_path / "expected")
        assert len(letters(tmp_path / name)) == summary.late + summary.bad == 19
    assert summary.batches > 2
    assert of_one_query(spark) == settings


def test_a_given_session_is_one_of_several_and_keeps_its_settings(spark: SparkSession, tmp_path: Path) -> None:
    given = spark.newSession()
    own = {
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.execution.arrow.maxBytesPerBatch": "1000000",
        "spark.sql.streaming.noDataMicroBatches.enabled": "true",
        "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state."
        "HDFSBackedStateStoreProvider",
    }
    for name, value in own.items():
        given.conf.set(name, value)
    file = write(tmp_path / "a.tnq", sensor_lines(30))
    for session in (spark, given):
        engine = hw.Engine(session)
        engine.stream(SENSORS, file)
        engine.register(TUMBLING)
        assert engine.run().ticks
    assert {name: given.conf.get(name) for name in own} == own


def test_a_checkpoint_continues_after_an_orderly_end_and_after_a_failure(spark: SparkSession, tmp_path: Path) -> None:
    lines = sensor_lines(60)
    expected: list[Answer] = []
    whole = hw.Engine(in_process=True)
    whole.stream(SENSORS, write(tmp_path / "all" / "a.tnq", lines))
    with_queries(whole, (SLIDING, HOT, HOT_COUNT)).run(on_answer=expected.append)

    def engine() -> hw.Engine:
        made = hw.Engine(spark, checkpoint=tmp_path / "checkpoint", dead_letters=tmp_path / "letters", batch_bytes=2000)
        made.stream(SENSORS, tmp_path / "parts")
        return with_queries(made, (SLIDING, HOT, HOT_COUNT))

    answers: list[Answer] = []
    write(tmp_path / "parts" / "1.tnq", lines[:25])
    first = engine().run(drain=False, on_answer=answers.append)
    assert answers

    write(tmp_path / "parts" / "2.tnq", lines[25:])
    failed: list[Answer] = []

    def fail(answer: Answer) -> None:
        failed.append(answer)
        if len(failed) == 3:
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="disk is full"):
        engine().run(on_answer=fail)
    last = engine().run(on_answer=answers.append)
    assert by_query(answers) == by_query(expected)
    assert failed == [answer for answer in answers if answer in failed]
    assert first.bad + last.bad == 6
    assert len(letters(tmp_path / "letters")) == 6 + first.late + last.late

    again: list[Answer] = []
    assert engine().run(on_answer=again.append).batches == 0
    assert again == []


def test_a_growing_folder_is_followed_until_stopped(spark: SparkSession, tmp_path: Path) -> None:
    lines = [f"{ms}\t<http://ex/s> <http://ex/value> {integer(100 + ms)} ." for ms in range(0, 60_000, 1000)]
    write(tmp_path / "a.tnq", lines[:20])
    engine = hw.Engine(spark)
    engine.stream(SENSORS, tmp_path)
    engine.register(TUMBLING)
    answers: list[Answer] = []
    seen: list[int] = []

    def grow(progress: hw.Progress) -> None:
        seen.append(progress.elements)
        if progress.elements == 20:
            write(tmp_path / "a.tnq", lines[20:40], append=True)
            write(tmp_path / "b.tnq", lines[40:])
        elif progress.elements == 60:
            engine.stop()

    timer = threading.Timer(90, engine.stop)
    timer.start()
    try:
        summary = engine.run(follow=True, on_answer=answers.append, on_progress=grow, trigger_seconds=0.1)
    finally:
        timer.cancel()
    assert summary.stopped
    assert (summary.elements, summary.late) == (60, 0)
    assert seen[0] == 20
    assert [answer.time // 1_000_000 for answer in answers] == [0, 10, 20, 30, 40, 50]
    assert [len(answer.rows) for answer in answers] == [1, 10, 10, 10, 10, 10]


def test_a_query_is_a_streaming_dataframe(spark: SparkSession, tmp_path: Path) -> None:
    lines = [f"{ms}\t<http://ex/s> <http://ex/value> {integer(ms)} ." for ms in (-5000, 0, 3000)]
    engine = hw.Engine(spark)
    engine.stream(SENSORS, write(tmp_path / "a.tnq", lines))
    query = engine.register(
        "SELECT ?time ?missing FROM STREAM <http://ex/sensors> [RANGE 5s STEP 5s] "
        "WHERE { ?s <http://ex/value> ?time OPTIONAL { ?s <http://ex/missing> ?missing } }"
    )
    frame = query.to_dataframe()
    assert frame.isStreaming
    assert frame.columns == ["time", "time_", "missing"]
    written = (
        frame.writeStream.format("memory")
        .queryName("answers")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    try:
        written.awaitTermination(120)
    finally:
        written.stop()
    rows = spark.sql("SELECT CAST(time AS long) AS second, time_, missing FROM answers ORDER BY 1, 2").collect()
    assert [tuple(row) for row in rows] == [(-5, "-5000", None), (0, "0", None), (5, "3000", None)]
    assert engine.register(HOT).to_dataframe(terms=True).columns == ["time", "subject", "predicate", "object"]
    missing = hw.Engine(spark)
    missing.stream(SENSORS, tmp_path / "absent")
    with pytest.raises(hw.SourceError):
        missing.register(TUMBLING).to_dataframe()


def test_a_dataframe_in_a_session_with_default_settings_has_one_part_of_state(
    spark: SparkSession, tmp_path: Path
) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "200")
    engine = hw.Engine(session)
    engine.stream(SENSORS, write(tmp_path / "a.tnq", sensor_lines(12)))
    frame = engine.register(TUMBLING).to_dataframe()
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    written = writer.trigger(availableNow=True).start()
    try:
        written.awaitTermination(120)
        progress = [one for one in written.recentProgress if one.stateOperators]
        assert {state.numShufflePartitions for one in progress for state in one.stateOperators} == {1}
    finally:
        written.stop()
    assert session.conf.get("spark.sql.shuffle.partitions") == "200"
    durable = hw.Engine(session, checkpoint=tmp_path / "other")
    durable.stream(SENSORS, tmp_path / "a.tnq")
    with pytest.raises(hw.StateError, match="checkpointLocation"):
        durable.register(TUMBLING).to_dataframe()


def test_strict_stops_with_the_place_and_the_reason(spark: SparkSession, tmp_path: Path) -> None:
    engine = hw.Engine(spark, strict=True)
    engine.stream(SENSORS, write(tmp_path / "a.tnq", [*sensor_lines(5), "oops"]))
    engine.register(TUMBLING)
    with pytest.raises(hw.StrictError, match=r"a\.tnq, line 7: no tab"):
        engine.run()
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    known = {"format": CHECKPOINT_FORMAT, "ids": ID_FORMAT, "key": term_key().hex(), "run": "r", "runner": "in process"}
    (checkpoint / "headwater.json").write_text(
        json.dumps({**known, "queries": {}, "shards": [], "routes": None, "records": []})
    )
    other = hw.Engine(spark, checkpoint=checkpoint)
    other.stream(SENSORS, tmp_path / "a.tnq")
    other.register(TUMBLING)
    with pytest.raises(hw.CheckpointError, match="in process"):
        other.run()


def test_jumps_in_time_and_collapsed_triples_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    """A row a day ahead is put aside in every shard alike, and what collapsed in the shards is added up."""
    lines = [f"{1000 * i}\t<http://ex/s{i % 5}> <http://ex/p> <http://ex/o> .\n" for i in range(40)]
    lines.insert(3, "86400000\t<http://ex/s0> <http://ex/p> <http://ex/ahead> .\n")
    (tmp_path / "s.tnq").write_text("".join(lines))
    found = []
    for engine in (
        hw.Engine(in_process=True, max_ahead="1h", dead_letters=tmp_path / "expected"),
        hw.Engine(spark, max_ahead="1h", dead_letters=tmp_path / "found", batch_bytes=500, shards=2),
    ):
        engine.stream("s", hw.files(tmp_path / "s.tnq"))
        query = engine.register(
            "SELECT ?s (COUNT(?o) AS ?n) FROM STREAM <s> [RANGE 10s STEP 5s] WHERE { ?s <http://ex/p> ?o } GROUP BY ?s"
        )
        summary = engine.run()
        assert [text for text in summary.warnings if "--content bag" in text]
        found.append((summary.ahead, summary.late, summary.bad, summary.ticks, query.progress.collapsed[0].count))
    assert found[0] == found[1]
    assert found[0][0] == 1
    assert found[0][-1] > 0
    assert letters(tmp_path / "found") == letters(tmp_path / "expected")
