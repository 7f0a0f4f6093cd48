"""A run goes on with the checkpoint of the other mode, with a real broker: nothing is read twice or left out."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headwater.spark.realtime.kafka_admin import java_client_settings, java_of
from headwater.spark.spark_logs import last_commit
from headwater.terms.durable_files import remove_files
from tests.sources.kafka_broker import Broker
from tests.sources.realtime.realtime_story import RealtimeStory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def add_partition(spark: SparkSession, servers: str, topic: str) -> None:
    """Add a third partition to a topic, in which nothing is."""
    java = java_of(spark)
    more = java.java.util.HashMap()
    more.put(topic, java.org.apache.kafka.clients.admin.NewPartitions.increaseTo(3))
    admin = java.org.apache.kafka.clients.admin.Admin.create(
        java_client_settings(spark, {"kafka.bootstrap.servers": servers})
    )
    try:
        admin.createPartitions(more).all().get()
    finally:
        admin.close()


def wait_for_commit(logs: Path, batch: int) -> None:
    end = time.monotonic() + 60
    while last_commit(logs) < batch:
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_run_changes_its_mode_and_back(kafka_spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    story, checkpoint = RealtimeStory(kafka_spark, broker, tmp_path), tmp_path / "checkpoint"
    runs = []

    def answer_some() -> None:
        """Answer some records in two batches or more, and kill the run."""
        story.start()
        story.write(3)
        story.wait_for_all()
        logs = checkpoint / ("realtime/spark" if story.is_real_time else "spark")
        wait_for_commit(logs, 0)
        story.write(1)
        # Windows span ten seconds, so that those of a mode hold what was read in the one before.
        story.wait_for_all()
        story.end()
        record = json.loads((checkpoint / "headwater.json").read_text())
        assert record["runner"] == ("in real-time mode" if story.is_real_time else "on Spark")
        assert (checkpoint / "realtime").exists() == story.is_real_time
        assert (checkpoint / "spark").exists() != story.is_real_time
        runs.append(record["run"])

    try:
        story.is_real_time = False
        answer_some()
        # As if it had been killed between delivering a batch and committing it.
        logs = checkpoint / "spark"
        last = last_commit(logs)
        remove_files(logs / "commits" / str(last), logs / "commits" / f".{last}.crc")
        story.is_real_time = True
        # The last records of this run are behind its last commit: they are answered again in the next one.
        answer_some()
        # Real-time mode does not take it in; micro-batches read it from its beginning.
        add_partition(kafka_spark, broker.servers, story.source)
        story.is_real_time = False
        answer_some()
    finally:
        story.end()
    assert story.starts == 3, story.log()
    # Batches are counted anew in each mode, and name files together with the run.
    assert len(set(runs)) == 3


@pytest.mark.soak
def test_runs_that_are_killed_change_their_mode(kafka_spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    story, choose = RealtimeStory(kafka_spark, broker, tmp_path), random.Random(107)
    story.write(2)
    try:
        for number in range(12):
            story.is_real_time = number % 2 == 1
            story.start()
            # A run begins to answer after about ten seconds; some are killed before or while they switch.
            end = time.monotonic() + choose.uniform(6, 22)
            while time.monotonic() < end:
                story.write(1)
                time.sleep(0.5)
            story.end()
        for is_real_time in (True, False):
            story.is_real_time = is_real_time
            story.start()
            story.write(1)
            story.wait_for_all()
            story.end()
    finally:
        story.end()
    # None had to be started again.
    assert story.starts == 14, story.log()
