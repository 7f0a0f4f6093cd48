"""When Spark's batches begin, into how many shards they are cut, and what a query of Spark is started with."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

import headwater as hw
from headwater.running.resting import Rest
from headwater.sources.feed import Feed
from headwater.sources.offsets import Offset
from headwater.spark.shard_count import choose_shard_count
from headwater.spark.spark_settings import query_settings
from headwater.spark.spark_source import HeadwaterReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

S = "http://ex/s"
LINE = '1000\t<http://ex/x> <http://ex/p> "1" .\n'
ALL = ReadAllAvailable()
QUERY = "PREFIX : <http://ex/> SELECT (COUNT(?v) AS ?n) FROM STREAM :s [RANGE 2s STEP 1s] WHERE { ?x :p ?v }"


def make_reader(folder: Path, *, heartbeat_seconds: float = 0.0, wait: float | None = None) -> HeadwaterReader:
    feed = Feed({S: hw.files(folder / "*.tnq")}, live=[S], is_told=False)
    rest = None if wait is None else Rest(None, None, wait)
    return HeadwaterReader(feed, None, 1 << 20, 1 << 20, heartbeat_seconds, rest)


def heartbeat_of(offset: dict[str, Any]) -> object:
    return Offset.from_json(offset).of(S).heartbeat


def test_heartbeats_alone_make_no_batch_too_soon_but_go_with_elements(tmp_path: Path) -> None:
    (tmp_path / "s.tnq").touch()
    reader = make_reader(tmp_path, heartbeat_seconds=60.0)
    begin = reader.latestOffset(reader.initialOffset(), ALL)
    assert reader.latestOffset(begin, ALL) == begin
    (tmp_path / "s.tnq").write_text(LINE)
    after = reader.latestOffset(begin, ALL)
    assert after != begin
    assert heartbeat_of(after) != heartbeat_of(begin)
    assert reader.latestOffset(after, ALL) == after
    unhurried = make_reader(tmp_path)
    assert heartbeat_of(unhurried.latestOffset(after, ALL)) != heartbeat_of(after)


def test_planning_waits_a_little_for_something_to_read(tmp_path: Path) -> None:
    (tmp_path / "s.tnq").touch()
    reader = make_reader(tmp_path, heartbeat_seconds=60.0, wait=0.2)
    begin = reader.latestOffset(reader.initialOffset(), ALL)
    started = time.monotonic()
    assert reader.latestOffset(begin, ALL) == begin
    assert time.monotonic() - started >= 0.2
    (tmp_path / "s.tnq").write_text(LINE)
    reader = make_reader(tmp_path, heartbeat_seconds=60.0, wait=60.0)
    started = time.monotonic()
    assert reader.latestOffset(begin, ALL) != begin
    assert time.monotonic() - started < 30, "what is there is taken at once"


@pytest.mark.parametrize(
    ("master", "is_live", "size", "shards"),
    [
        ("local[8]", True, 10, 1),
        ("local[8]", True, 9 << 20, 8),
        ("local[8]", False, 10, 8),
        ("spark://host:7077", True, 10, 8),
        ("local-cluster[2,1,1024]", True, 10, 8),
    ],
)
def test_a_live_run_on_this_machine_has_one_shard_unless_much_waits(
    tmp_path: Path, master: str, is_live: bool, size: int, shards: int
) -> None:
    with (tmp_path / "s.tnq").open("wb") as stream:
        stream.truncate(size)
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(master=master, defaultParallelism=8))
    assert choose_shard_count(lambda: spark, {S: hw.files(tmp_path)}, is_live=is_live) == shards


def test_a_plan_of_the_users_is_adapted_and_ours_is_not() -> None:
    assert query_settings(2)["spark.sql.adaptive.enabled"] == "false"
    assert "spark.sql.adaptive.enabled" not in query_settings(2, adapts=True)


def test_a_followed_file_is_answered_without_a_trigger_and_goes_on_with_its_shards(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A run that reads what is there has made the checkpoint, in two shards; those that follow keep them."""
    path = tmp_path / "s.tnq"
    path.write_text(LINE)

    def run(**settings: Any) -> list[int]:
        engine = hw.Engine(spark, checkpoint=tmp_path / "checkpoint")
        engine.stream(S, path)
        engine.register(QUERY, name="counts")
        shards: list[int] = []

        def look(progress: hw.Progress) -> None:
            shards.append(progress.queries["counts"].shards)
            if settings.get("follow") and len(shards) == 1:
                with path.open("a") as stream:
                    stream.write(LINE.replace("1000", "9500"))
            elif settings.get("follow"):
                engine.stop()

        ticks: list[int] = []
        engine.run(on_answer=lambda answer: ticks.append(answer.time // 1_000_000), on_progress=look, **settings)
        return shards + ticks

    first = run(drain=False)
    with path.open("a") as stream:
        stream.write(LINE.replace("1000", "4000"))
    second = run(follow=True)
    assert second[0] == first[0], "a state is cut once"
    assert second[-1] == 9, "what was added while the run was at work is answered"
