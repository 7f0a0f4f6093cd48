"""A run that is killed with SIGKILL and started again from its checkpoint gives what a run without failure gives.

The run is a process of its own, Spark and all, and is killed as a whole. Each batch has its own file, so a file that is
written twice must not differ, and no answer may stand in two.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.spark.killing import PART_POINTS, POINTS
from tests.spark.stories import RANDOM_KILLS, Story, after_batch, shard_of


@pytest.mark.slow
def test_a_run_that_is_killed_loses_and_doubles_nothing(tmp_path: Path) -> None:
    # The reference starts faster.
    story = Story(tmp_path, evaluator="reference", batch_bytes=2200)
    # The worst place: the answers are out, and nobody has noted it.
    assert story.killed_at("after-write"), story.log()
    assert story.in_files("out")
    assert story.run(), story.log()
    story.check()


@pytest.mark.slow
def test_workers_that_write_their_answers_lose_and_double_nothing(tmp_path: Path) -> None:
    story = Story(tmp_path, evaluator="reference", batch_bytes=2200, parts=True)
    assert story.killed_at("commit-between"), story.log()
    assert len({shard_of(path) for path in (tmp_path / "out").rglob("*.jsonl")}) == 2
    assert story.run(), story.log()
    story.check()
    # What the worker that was killed left has no name, and the next run has removed it.
    assert not list((tmp_path / "out").rglob(".*"))


@pytest.mark.soak
def test_kills_at_each_named_point_where_workers_write(tmp_path: Path) -> None:
    story = Story(tmp_path, batch_bytes=220, parts=True)
    for point in (*PART_POINTS, *POINTS):
        if point not in ("before-write", "after-write"):
            assert story.killed_at(point), f"{point}: {story.log()}"
    assert story.run(), story.log()
    story.check()


@pytest.mark.soak
def test_kills_at_each_named_point(tmp_path: Path) -> None:
    story = Story(tmp_path, batch_bytes=220)
    for point in POINTS:
        assert story.killed_at(point), f"{point}: {story.log()}"
    assert story.run(), story.log()
    story.check()


@pytest.mark.soak
def test_kills_at_random_moments(tmp_path: Path) -> None:
    generator = random.Random()
    story = Story(tmp_path, batch_bytes=150)
    for number in range(RANDOM_KILLS):
        kill = (generator.randint(0, 2), generator.uniform(0, 2))
        assert not story.run(after_batch(*kill)), f"it was done before kill {number}: give it more to read"
    assert story.run(), story.log()
    story.check()
