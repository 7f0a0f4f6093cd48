"""Kills in real-time mode: forty, at named points and at random, with two partitions and two shards.

No answer is lost, none is wrong, and all records of a key have one content. Records are written while the run goes on,
so every kill strikes between records that were answered and records that were not.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.sources.kafka_broker import Broker
from tests.sources.realtime.realtime_story import RealtimeStory
from tests.sources.realtime.realtime_victim import DRIVER_POINTS, WORKER_POINTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KILLS = 40
_DRIVER_EVERY = 4


@pytest.mark.soak
def test_forty_kills_lose_and_double_nothing(kafka_spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    story = RealtimeStory(kafka_spark, broker, tmp_path)
    story.start()
    try:
        story.wait_for_all()
        points = [*WORKER_POINTS, *DRIVER_POINTS]
        for number in range(KILLS):
            group = number % _DRIVER_EVERY == 0
            if number % 3 == 2:
                story.kill_worker(number % 2)
            else:
                point = points[number % len(points)]
                assert story.kill_at(point, group=group or point in DRIVER_POINTS), f"{point}: {story.log()}"
            story.write(1)
        while len(story.kills()) < KILLS:
            story.kill_worker(0)
            story.wait_for_all()
        story.wait_for_all()
    finally:
        story.end()
    assert len(story.kills()) >= KILLS
