"""Kills in real-time mode: forty, at named points and at random, with two partitions and two shards.

No answer is lost, none is wrong, and all records of a key have one content. Records are written while the run goes on,
so every kill strikes between records that were answered and records that were not.
"""

from __future__ import annotations

from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.sources.kafka_broker import Broker
from tests.sources.realtime.realtime_story import RealtimeStory
from tests.sources.realtime.realtime_victim import DRIVER_POINTS, WORKER_POINTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KILLS = 40
_RANDOM_EVERY = 4
"""Every so many kills one strikes at no moment in particular."""
NAMED = (
    *((point, is_group) for point in WORKER_POINTS for is_group in (False, True)),
    *((point, True) for point in DRIVER_POINTS),
)
"""A worker is killed alone, or the whole run with it; with the driver the whole run."""
RANDOM = ("worker-0", "run", "worker-1")


@pytest.mark.soak
def test_forty_kills_lose_and_double_nothing(kafka_spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    story = RealtimeStory(kafka_spark, broker, tmp_path)
    named, unnamed = cycle(NAMED), cycle(RANDOM)
    story.start()
    try:
        story.wait_for_all()
        for number in range(KILLS):
            if number % _RANDOM_EVERY == _RANDOM_EVERY - 1:
                whom = next(unnamed)
                assert story.kill_at_random(whom), f"{whom}: {story.log()}"
            else:
                point, is_group = next(named)
                assert story.kill_at(point, group=is_group), f"{point}: {story.log()}"
            story.write(1)
        story.wait_for_all()
    finally:
        story.end()
    struck = [tuple(line.split()[:2]) for line in story.kills()]
    assert len(struck) >= KILLS
    wanted = {(point, "group" if is_group else "alone") for point, is_group in NAMED}
    assert set(struck) == wanted | {("random", whom) for whom in RANDOM}
