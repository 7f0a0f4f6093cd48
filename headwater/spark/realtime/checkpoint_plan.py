"""What a run in real-time mode writes down before its first batch, because no batch may find it otherwise.

`plan.json` has the partitions of each topic, the version of the linked data, the delay and the number of shards: with
the offsets of records they determine every answer. And it has the names of the runs, so that it is known who wrote the
snapshot of a batch.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from headwater.running.checkpoints import CheckpointError, report_checkpoint_damage
from headwater.spark.realtime.shard_worker import RunNames
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

    def begin_run(self, folder: Path) -> CheckpointPlan:
        """The plan with a new run behind those before, durably in the folder; an older plan must be the same.

        A run begins with the first batch that Spark has not committed.
        """
        last = last_commit(folder / SPARK_LOGS)
        known = self._read(folder)
        runs: tuple[tuple[str, int], ...] = ()
        version = self.version
        if known is not None and last >= 0:
            known._check(self, folder)
            version = known.version
            runs = ((known.names.of(last), known.first_of(last)),)
        begun = replace(self, version=version, runs=(*runs, (uuid.uuid4().hex[:12], last + 1)))
        with report_checkpoint_damage(folder):
            create_folder(folder)
            replace_file(folder / _FILE, json.dumps(asdict(begun), indent=2).encode() + b"\n")
        return begun

    def first_of(self, batch: int) -> int:
        """The first batch of the run that logged a batch."""
        return [first for _, first in self.runs if first <= batch][-1]

    @classmethod
    def _read(cls, folder: Path) -> CheckpointPlan | None:
        path = folder / _FILE
        if not path.exists():
            return None
        with report_checkpoint_damage(path):
            found = json.loads(path.read_text("utf-8"))
            runs = tuple((name, first) for name, first in found.pop("runs"))
            return cls(**{**found, "version": tuple(found["version"]), "runs": runs})

    def _check(self, now: CheckpointPlan, folder: Path) -> None:
        """Refuse to go on where answers that were given could become others."""
        for name, before, after in (
            ("the partitions of the topics", self.topics, now.topics),
            ("the delay", self.delay, now.delay),
            ("max_ahead", self.max_ahead, now.max_ahead),
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


def last_commit(logs: Path) -> int:
    """The last batch that Spark will not run again; -1 before the first."""
    committed = logs / "commits"
    found = (int(path.name) for path in committed.glob("[0-9]*") if path.name.isdigit())
    return max(found, default=-1) if committed.is_dir() else -1
