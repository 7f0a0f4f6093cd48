"""What a run in real-time mode writes down before its first batch, because no batch may find it otherwise.

`plan.json` has the partitions of each topic, the version of the linked data, the delay and the number of shards: with
the offsets of records they determine every answer. And it has the names of the runs, so that it is known who wrote the
snapshot of a batch. Where a checkpoint was one of micro-batches before, the first of the runs is the one that has made
a snapshot of their state: that of batch -1.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from headwater.explain.notation import duration_text
from headwater.running.checkpoints import CheckpointError, report_checkpoint_damage
from headwater.spark.realtime.shard_worker import RunNames
from headwater.spark.spark_logs import TopicOffsets, last_commit
from headwater.terms.durable_files import create_folder, replace_file

_FILE = "plan.json"
SPARK_LOGS = "spark"
"""The folder of Spark's own logs of offsets and commits."""


@dataclass(frozen=True)
class CheckpointPlan:
    """What holds for all batches of a checkpoint; `runs` are the names of runs, each with its first batch."""

    topics: Mapping[str, Mapping[str, int]]
    """By stream, how many partitions its topics have."""
    version: tuple[int, ...]
    delay: int
    max_ahead: int | None
    shards: int
    runs: tuple[tuple[str, int], ...] = ()
    starts: Mapping[str, TopicOffsets] = field(default_factory=dict)
    """By stream, where the first batch begins to read, if micro-batches have read what comes before."""
    unread: Mapping[str, Any] = field(default_factory=dict)
    """How far micro-batches have read streams that real-time mode does not read, as JSON: they may read them again."""

    def begin_run(self, folder: Path) -> CheckpointPlan:
        """The plan with a new run behind those before, durably in the folder; an older plan must be the same.

        A run begins with the first batch that Spark has not committed.
        """
        last = last_commit(folder / SPARK_LOGS)
        known = self.read(folder)
        begun = self
        if known is not None and known.has_state(last):
            known._check(self, folder)
            runs = ((known.names.of(last), known.first_of(last)),)
            begun = replace(self, version=known.version, runs=runs, starts=known.starts, unread=known.unread)
        begun = replace(begun, runs=(*begun.runs, (uuid.uuid4().hex[:12], last + 1)))
        begun.write(folder)
        return begun

    def write(self, folder: Path) -> None:
        """Write the plan down, durably."""
        with report_checkpoint_damage(folder):
            create_folder(folder)
            replace_file(folder / _FILE, json.dumps(asdict(self), indent=2).encode() + b"\n")

    def has_state(self, batch: int) -> bool:
        """Whether there is a state behind a batch; -1 is that which micro-batches left, if there is one."""
        return bool(self.runs) and self.names.has_state(batch)

    def first_of(self, batch: int) -> int:
        """The first batch of the run that logged a batch."""
        return [first for _, first in self.runs if first <= batch][-1]

    @classmethod
    def read(cls, folder: Path) -> CheckpointPlan | None:
        """The plan in a folder, if there is one."""
        path = folder / _FILE
        if not path.exists():
            if last_commit(folder / SPARK_LOGS) >= 0:
                raise CheckpointError(
                    f"the checkpoint has no {path}, although Spark has committed batches: put that file back, or use "
                    "another folder and begin anew"
                )
            return None
        with report_checkpoint_damage(path):
            found = json.loads(path.read_text("utf-8"))
            runs = tuple((name, first) for name, first in found.pop("runs"))
            return cls(**{**found, "version": tuple(found["version"]), "runs": runs})

    def _check(self, now: CheckpointPlan, folder: Path) -> None:
        """Refuse to go on where answers that were given could become others."""
        for name, before, after in (
            ("the partitions of the topics", _list_partitions(self.topics), _list_partitions(now.topics)),
            ("the delay", duration_text(self.delay), duration_text(now.delay)),
            ("max_ahead", _limit_text(self.max_ahead), _limit_text(now.max_ahead)),
            ("the number of shards", self.shards, now.shards),
            ("the number of data sets", len(self.version), len(now.version)),
        ):
            if before != after:
                raise CheckpointError(
                    f"the checkpoint {folder} was begun in real-time mode, and {name} cannot change there (from "
                    f"{before} to {after}): change it back, or use another folder and begin anew"
                )

    @property
    def names(self) -> RunNames:
        """The names of the runs."""
        return RunNames(self.runs)


def _list_partitions(topics: Mapping[str, Mapping[str, int]]) -> str:
    """How many partitions the topics of each stream have, for people."""
    listed = sorted((topic, count) for counts in topics.values() for topic, count in counts.items())
    return ", ".join(f"{topic}: {count}" for topic, count in listed)


def _limit_text(limit: int | None) -> str:
    return "none" if limit is None else duration_text(limit)
