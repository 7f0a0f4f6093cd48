"""A broker that goes away in real-time mode: it is killed and started again, or does not answer for a while.

The run outlives it. No answer is lost, none is wrong, all records of a key have one content, and the process has taken
every answer once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.sources.kafka_broker import Broker
from tests.sources.realtime.realtime_story import RealtimeStory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHORT_SECONDS = 4.0
LONG_SECONDS = 40.0
"""Longer than a client of Kafka waits for an answer, so that requests are sent again."""


@pytest.fixture
def own_broker(kafka_spark: SparkSession, tmp_path: Path) -> Iterator[Broker]:
    """A broker that no other test uses."""
    folder = tmp_path / "kafka"
    folder.mkdir()
    made = Broker(folder)
    made.start()
    yield made
    made.kill()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_broker_that_goes_away_costs_no_answer(kafka_spark: SparkSession, own_broker: Broker, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    story = RealtimeStory(kafka_spark, own_broker, folder, takes_answers=True)
    story.start()
    try:
        story.wait_for_all()
        for is_frozen, seconds in ((False, SHORT_SECONDS), (True, SHORT_SECONDS), (True, LONG_SECONDS), (False, 20.0)):
            # Records that were written, and that nobody may have read or answered yet.
            story.write(3)
            if is_frozen:
                own_broker.freeze()
                time.sleep(seconds)
                own_broker.thaw()
            else:
                own_broker.kill()
                time.sleep(seconds)
                own_broker.start()
            story.write(3)
            story.wait_for_all()
        story.wait_for_callbacks()
    finally:
        story.end()
    assert story.starts == 1, story.log()
    assert sorted(story.callbacks()) == sorted(story.expected())
