"""Real-time mode with a real broker: answers in the topic and in callbacks, a worker that dies, and the way back."""

from __future__ import annotations

import json
import logging
import threading
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import headwater as hw
from tests.sources.kafka_broker import Broker, put, taken
from tests.sources.realtime.realtime_story import RealtimeStory
from tests.sources.realtime.realtime_victim import QUERIES, TEMPLATE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_answers_are_there_when_a_worker_dies(kafka_spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    story = RealtimeStory(kafka_spark, broker, tmp_path, takes_answers=True)
    story.start()
    try:
        story.write(3)
        story.wait_for_all()
        before = story.expected()
        assert story.kill_at("step", group=False), story.log()
        story.write(6)
        story.wait_for_all()
        assert story.expected().keys() > before.keys()
        story.wait_for_callbacks()
    finally:
        story.end()
    keys = story.callbacks()
    # One process took them all, so none came twice, and those of a query came in the order of time.
    assert sorted(keys) == sorted(story.expected())
    times = [int(key.split("|")[1]) for key in keys if key.startswith("totals|")]
    assert times == sorted(times)


@pytest.mark.slow
def test_queries_come_and_go(kafka_spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    story = RealtimeStory(kafka_spark, broker, tmp_path)
    story.start()
    try:
        story.write(6)
        story.wait_for_all()
        begun = story.ticks().stop
        story.change("register")
        story.write(6)
        recent = story.expected_of_recent()
        # What it sees at its first tick is what the windows of the others hold.
        wanted = {key: rows for key, rows in recent.items() if int(key.split("|")[1]) >= begun * 1_000_000}
        found = story.wait_for(story.expected().keys() | wanted.keys())
        assert {key: found[key] for key in story.expected()} == story.expected()
        assert {key: rows for key, rows in found.items() if key.startswith("recent|")}.items() <= recent.items()
        dropped = story.ticks().stop
        story.change("highest")
        story.write(6)
        expected = {
            key: rows
            for key, rows in story.expected().items()
            if key.startswith("totals|") or int(key.split("|")[1]) < dropped * 1_000_000
        }
        found = story.wait_for(expected.keys() | story.expected_of_recent().keys() - recent.keys())
        story.end()
        found = story.answers()
        assert {key: rows for key, rows in found.items() if not key.startswith("recent|")} == expected
        assert {key: rows for key, rows in found.items() if key.startswith("recent|")}.items() <= (
            story.expected_of_recent().items()
        )
    finally:
        story.end()


def test_a_session_without_the_settings_has_micro_batches(
    kafka_spark: SparkSession, broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    name = uuid.uuid4().hex[:8]
    source, target = f"in-{name}", f"out-{name}"
    records = [json.dumps({"id": "a", "at": at, "v": 1}).encode() for at in (500, 1500, 2500)]
    put(kafka_spark, broker.servers, target, [b"{}"])
    put(kafka_spark, broker.servers, source, records)
    engine = hw.Engine(kafka_spark, shards=1)
    engine.stream("http://ex/s", hw.kafka(broker.servers, source, template=TEMPLATE))
    engine.register(QUERIES[0])
    timer = threading.Timer(120, engine.stop)
    timer.start()
    try:
        with caplog.at_level(logging.WARNING, "headwater"):
            sinks = [hw.KafkaSink(broker.servers, target)]
            engine.run(
                realtime=True, sinks=sinks, on_answer=lambda one: engine.stop() if one.time == 2_000_000 else None
            )
    finally:
        timer.cancel()
    (warning,) = [one.getMessage() for one in caplog.records if "real-time mode" in one.getMessage()]
    assert "so the run has micro-batches: the session was started without spark.python.udf.pipelined.enabled" in warning
    keys = {bytes(one.key).decode() for one in taken(kafka_spark, broker.servers, target) if one.key is not None}
    assert {"totals|1000000|0", "totals|2000000|0"} <= keys
