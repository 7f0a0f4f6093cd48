"""What real-time mode has left for micro-batches, in their folder of the checkpoint, until their first batch is done.

    spark/handover/starts.json            where the first batch begins to read
    spark/handover/shard-0/…              the state of a shard, as a snapshot

Spark's state store and its logs begin anew. The first batch of a shard finds nothing in the store and takes the
snapshot; from then on the store has it all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headwater.execution.window_log import LogSegment
from headwater.running.checkpoints import report_checkpoint_damage
from headwater.sources.kafka import KafkaSource
from headwater.sources.offsets import Offset
from headwater.sources.records import RecordSource
from headwater.spark.realtime.shard_snapshots import WINDOWS, ShardSnapshots
from headwater.spark.spark_logs import TopicOffsets, last_commit
from headwater.terms.durable_files import create_folder, remove_files, replace_file

_FOLDER = "handover"
_STARTS = "starts.json"
_RUN = "handover"
"""The name under which the snapshots are written; there is one of each shard."""


@dataclass(frozen=True)
class Handover:
    """The folder of what was left, and where the first batch begins to read."""

    folder: Path
    starts: Mapping[str, TopicOffsets]
    """By stream, the offsets of its topics."""
    unread: Offset
    """How far the streams were read that real-time mode has not read."""

    @classmethod
    def read(cls, logs: Path) -> Handover | None:
        """What was left for micro-batches with these logs; None where there is nothing, or they have it."""
        # Workers may be in another folder.
        folder = logs.absolute() / _FOLDER
        path = folder / _STARTS
        if last_commit(logs) >= 0 or not path.exists():
            return None
        with report_checkpoint_damage(path):
            content = json.loads(path.read_text("utf-8"))
            return cls(folder, dict(content["topics"]), Offset.from_json(content["unread"]))

    def begin(self, stream: str, source: RecordSource) -> RecordSource:
        """The source of a stream as the first batch reads it."""
        return source.start_at(self.starts.get(stream)) if isinstance(source, KafkaSource) else source


def discard_handover(logs: Path) -> None:
    """Remove what was left, when the first batch is committed."""
    if (logs / _FOLDER).exists():
        remove_files(logs / _FOLDER)


def write_shard(logs: Path, key: int, state: bytes, segments: list[LogSegment]) -> None:
    """Leave the state of a shard, durably."""
    ShardSnapshots(logs / _FOLDER / f"shard-{key}").write_whole(_RUN, 0, [state], segments)


def write_starts(logs: Path, starts: Mapping[str, TopicOffsets], unread: Offset) -> None:
    """Leave where the first batch begins, durably; the shards must be there."""
    folder = logs / _FOLDER
    with report_checkpoint_damage(folder):
        create_folder(folder)
        content = {"topics": starts, "unread": unread.to_json()}
        replace_file(folder / _STARTS, json.dumps(content, indent=2).encode() + b"\n")


def read_handed_over(folder: Path, key: int) -> tuple[bytes, list[LogSegment]]:
    """The state of a shard that was left, and the segments of its window log."""
    (state,), logs = ShardSnapshots(folder / f"shard-{key}").read(_RUN, 0)
    return state, logs.get(WINDOWS, [])
