"""A run goes on with the checkpoint of the other mode, with a real broker: nothing is read twice or left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.spark.spark_logs import last_commit
from headwater.terms.durable_files import remove_files
from tests.sources.kafka_broker import Broker
from tests.sources.realtime.realtime_story import RealtimeStory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_run_changes_its_mode_and_back(kafka_spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    story, checkpoint = RealtimeStory(kafka_spark, broker, tmp_path), tmp_path / "checkpoint"
    names = []
    try:
        for is_real_time in (False, True, False):
            story.is_real_time = is_real_time
            story.start()
            story.write(4)
            # Windows span ten seconds, so that those of each mode hold what was read in the one before.
            story.wait_for_all()
            story.end()
            record = json.loads((checkpoint / "headwater.json").read_text())
            assert record["runner"] == ("in real-time mode" if is_real_time else "on Spark")
            assert (checkpoint / "realtime").exists() == is_real_time
            assert (checkpoint / "spark").exists() != is_real_time
            names.append(record["run"])
            if len(names) == 1:
                # As if it had been killed between delivering a batch and committing it.
                commits = checkpoint / "spark" / "commits"
                last = last_commit(checkpoint / "spark")
                remove_files(commits / str(last), commits / f".{last}.crc")
    finally:
        story.end()
    assert story.starts == 3, story.log()
    # Batches are counted anew in each mode, and name files together with the run.
    assert len(set(names)) == 3
