"""The state of a run in process, in its checkpoint folder: what is committed, and what is planned behind it.

    state           a line of JSON: the next batch, how far the streams were read, a checksum; then the program and its
                    window log as plain values (`terms.packing`), which run no code when they are read
    planned.jsonl   how far the next batch reads, and for each of its steps the last tick and the version of the data

A batch is planned on disk before any of it is delivered, and committed after all of it was. So a run that goes on after
a crash between the two delivers the same batch again: the same elements in the same steps over the same data, under the
same numbers, by which sinks replace what they have. A line of the plan counts when it was written to its end.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headwater.execution.static_data import Version
from headwater.running.checkpoints import FORMATS, STATE, CheckpointError, check_format, report_checkpoint_damage
from headwater.running.evaluation import Evaluation
from headwater.sources.offsets import Offset
from headwater.terms.durable_files import is_written_line, replacing_file, write_at_end

PLAN = "planned.jsonl"
_LONGEST_PLAN = 64 << 10
"""The file of plans is begun anew behind so many bytes."""


class SavedRun:
    """Loads, plans and commits the batches of a run.

    `planned` is the end of a batch that was planned before a crash; None where there is none, or it is committed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._plan_end = 0
        self._batch = 0
        self.planned: Offset | None = None
        self._planned_steps: list[tuple[int, Version]] = []

    def load(self, evaluation: Evaluation) -> tuple[int, Offset]:
        """Restore an evaluation; gives the next batch and how far the streams were read."""
        batch, offset, path = 0, Offset(), self._folder / STATE
        if path.exists():
            with report_checkpoint_damage(path):
                header, _, saved = path.read_bytes().partition(b"\n")
                fields: dict[str, Any] = json.loads(header) if header.startswith(b"{") else {"formats": None}
                check_format(self._folder, fields["formats"])
                if zlib.crc32(saved) != fields["crc32"]:
                    raise ValueError("its content is not what was written")
                evaluation.restore(saved)
                batch, offset = fields["batch"], Offset.from_json(fields["offset"])
        self._load_plan(batch)
        return batch, offset

    def _load_plan(self, batch: int) -> None:
        path = self._folder / PLAN
        if not path.exists():
            return
        with report_checkpoint_damage(path), open(path, "rb") as stream:
            for line in stream:
                if not is_written_line(line):
                    break
                self._plan_end += len(line)
                self._take_record(json.loads(line), batch)

    def _take_record(self, record: Mapping[str, Any], batch: int) -> None:
        if record["batch"] < batch:
            return
        if record["batch"] > batch:
            raise CheckpointError(
                f"the checkpoint {self._folder} has no {STATE} of batch {record['batch']}, which was planned after it: "
                "put that file back, or use another folder and begin anew"
            )
        if "offset" in record:
            self.planned = Offset.from_json(record["offset"])
        else:
            self._planned_steps.append((record["tick"], tuple(record["version"])))

    def plan_batch(self, batch: int, end: Offset) -> None:
        """Note on disk how far a batch reads, unless that was planned before a crash."""
        self._batch = batch
        if self.planned is None:
            if self._plan_end > _LONGEST_PLAN:
                self._plan_end = 0
            self._note({"batch": batch, "offset": end.to_json()})

    def take_planned_step(self) -> tuple[int, Version] | None:
        """The last tick and the version of the next step, where they were planned before a crash."""
        return self._planned_steps.pop(0) if self._planned_steps else None

    def plan_step(self, tick: int, version: Version) -> None:
        """Note on disk up to which tick a step of the batch goes, and which version of the data it sees."""
        self._note({"batch": self._batch, "tick": tick, "version": list(version)})

    def _note(self, record: Mapping[str, Any]) -> None:
        line = json.dumps(record).encode() + b"\n"
        path = self._folder / PLAN
        with report_checkpoint_damage(path):
            write_at_end(path, line, self._plan_end)
        self._plan_end += len(line)

    def commit(self, batch: int, offset: Offset, saved: bytes) -> None:
        """Note on disk that everything before a batch is delivered."""
        path = self._folder / STATE
        with report_checkpoint_damage(path), replacing_file(path) as stream:
            fields = {"formats": FORMATS, "batch": batch, "offset": offset.to_json(), "crc32": zlib.crc32(saved)}
            stream.write(json.dumps(fields).encode() + b"\n")
            stream.write(saved)
        self.planned = None
        self._planned_steps = []
