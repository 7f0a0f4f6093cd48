"""What Spark has written in the checkpoint of a streaming query: its logs of offsets and commits, and its state store.

offsets/7     how far batch 7 reads, a line for each source; in micro-batches it is there before the batch begins
commits/7     batch 7 is not run again
state         the state of the stateful step behind each batch
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.execution.window_log import LogSegment
from headwater.running.checkpoints import CheckpointError, report_checkpoint_damage
from headwater.spark.spark_settings import STATEFUL_SETTINGS, set_for_a_while

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

TopicOffsets = Mapping[str, Mapping[str, int]]
"""By topic and partition, the offset of the record that comes next."""


def last_commit(logs: Path) -> int:
    """The last batch that Spark will not run again; -1 before the first."""
    return _last_number(logs / "commits")


def last_planned(logs: Path) -> int:
    """The last batch whose offsets are logged; -1 before the first."""
    return _last_number(logs / "offsets")


def check_commits(logs: Path) -> None:
    """Refuse logs of Spark that lack commits: a batch is planned when the one before it was committed."""
    if last_planned(logs) > last_commit(logs) + 1:
        raise CheckpointError(
            f"the checkpoint has no {logs / 'commits' / str(last_planned(logs) - 1)}, although Spark has planned the "
            "next batch: put that file back, or use another folder and begin anew"
        )


def _last_number(folder: Path) -> int:
    found = (int(path.name) for path in folder.glob("[0-9]*") if path.name.isdigit())
    return max(found, default=-1) if folder.is_dir() else -1


def read_source_lines(logs: Path, batch: int) -> list[str]:
    """How far a batch reads, a line of JSON for each source of its query, in their order."""
    path = logs / "offsets" / str(batch)
    with report_checkpoint_damage(path):
        # A version, the settings of the batch, then the sources.
        return path.read_text("utf-8").splitlines()[2:]


def read_topic_offsets(logs: Path, batch: int, sources: int, first: int) -> list[TopicOffsets]:
    """How far a batch reads the topics of so many sources of Kafka, of which this one is the first among all."""
    lines = read_source_lines(logs, batch)[first:]
    with report_checkpoint_damage(logs / "offsets" / str(batch)):
        found: list[TopicOffsets] = [json.loads(line) for line in lines]
        is_known = all(isinstance(one, dict) and all(isinstance(some, dict) for some in one.values()) for one in found)
        if len(found) != sources or not is_known:
            raise ValueError(f"it has no offsets of {sources} sources of Kafka")
    return found


def read_shard_state(spark: SparkSession, logs: Path, batch: int, key: int) -> tuple[bytes, list[LogSegment]]:
    """The state of a shard behind a batch: that of its program, and the segments of its window log in their order."""
    with set_for_a_while(spark, STATEFUL_SETTINGS):
        summaries = [bytes(row.value.summary) for row in _read_state(spark, logs, batch, "summary", key)]
        if len(summaries) != 1:
            raise CheckpointError(
                f"the checkpoint {logs} has no state of shard {key} behind batch {batch}: it is damaged; use another "
                "folder, or delete this one to begin anew"
            )
        rows = _read_state(spark, logs, batch, "segments", key)
        segments = [_to_segment(bytes(row.user_map_value.segment)) for row in rows]
    return summaries[0], sorted(segments, key=lambda one: one.number)


def _read_state(spark: SparkSession, logs: Path, batch: int, name: str, key: int) -> Iterator[Row]:
    """The rows of a variable of the stateful step."""
    options = {"path": str(logs), "batchId": str(batch), "stateVarName": name}
    reader = spark.read.format("statestore").options(**options)
    return reader.load().where(f"key.shard = {key}").toLocalIterator()


def _to_segment(data: bytes) -> LogSegment:
    from headwater.spark.stateful_step import segment_from_bytes

    return segment_from_bytes(data)
