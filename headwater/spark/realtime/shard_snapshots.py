"""The durable state of one shard in real-time mode: a snapshot for each long batch, which writes what has changed.

    0f3a-00000007.state    the state of the program and of the orders, and the names of the files below
    0f3a-00000007.log      the elements that batch 7 brought and that wait for their place, or that some window can show
    0f3a-00000006.log …

A snapshot is forced to disk before its task ends, so before Spark logs how far the batch has read. Whoever runs batch 8
begins with the snapshot of batch 7. Names begin with that of the run: a process of a run that was killed may still
write, and nobody reads what it wrote. Files are removed when two later batches do without them.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from headwater.execution.window_log import LogChanges, LogSegment, StreamKey
from headwater.running.checkpoints import FORMATS, CheckpointError, check_format, report_checkpoint_damage
from headwater.running.evaluation import BatchOutcome
from headwater.terms.durable_files import create_folder, remove_files, replace_file
from headwater.terms.packing import Plain, pack, unpack
from headwater.windows.element_sequences import concat_elements, sizes_of

WINDOWS = ""
"""The log of the windows; the elements that wait for their place have a log for each stream, under its name."""
SegmentName: TypeAlias = tuple[str, int]
"""A log, and the number of a segment in it."""


@dataclass
class _PendingLogs:
    """What the logs gained since the last snapshot."""

    added: dict[SegmentName, LogSegment] = field(default_factory=dict)

    def take(self, changes: LogChanges, log: str) -> list[SegmentName]:
        """Take changes; gives the segments that were removed and are in older files."""
        for segment in changes.added:
            self.added[log, segment.number] = segment
        names = ((log, number) for number in changes.removed)
        return [name for name in names if self.added.pop(name, None) is None]

    def merge_by_stream(self) -> Iterator[tuple[str, LogSegment, list[SegmentName]]]:
        """One segment of a log for each stream with all its added elements, and the segments that it replaces.

        Each step adds a segment, often with a single element: a snapshot would otherwise hold thousands of segments.
        """
        by_key: dict[tuple[str, StreamKey], list[LogSegment]] = {}
        for (log, _), segment in self.added.items():
            by_key.setdefault((log, segment.key), []).append(segment)
        for (log, key), some in by_key.items():
            elements = concat_elements(one.elements for one in some if one.elements is not None)
            newest = max(one.newest for one in some)
            merged = LogSegment(some[0].number, key, newest, elements, *sizes_of(elements))
            yield log, merged, [(log, one.number) for one in some]


class ShardSnapshots:
    """Writes and reads the snapshots of one shard in its folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pending = _PendingLogs()
        self._file_of: dict[SegmentName, str] = {}
        """The log file that has a segment."""
        self._alive: dict[str, int] = {}
        """By log file, how many of its segments some window can still show."""
        self._names: list[set[str]] = []
        """The files of the last two snapshots."""

    def note(self, changes: LogChanges, log: str = WINDOWS) -> None:
        """Take the changes of a log after a step."""
        for segment in self._pending.take(changes, log):
            name = self._file_of.pop(segment, None)
            if name is not None:
                self._alive[name] -= 1
                if not self._alive[name]:
                    del self._alive[name]

    def write(self, run: str, batch: int, content: Plain) -> int:
        """Write the snapshot of a batch, durably; `content` is what stands beside the log. Gives its size in bytes."""
        begin = f"{run}-{batch:08d}"
        size = 0
        with report_checkpoint_damage(self._folder):
            create_folder(self._folder)
            merged = list(self._pending.merge_by_stream())
            if merged:
                size += self._write_file(f"{begin}.log", [[log, segment.to_plain()] for log, segment, _ in merged])
                members = [name for *_, names in merged for name in names]
                self._file_of |= dict.fromkeys(members, f"{begin}.log")
                self._alive[f"{begin}.log"] = len(members)
            self._pending = _PendingLogs()
            before = sorted(self._names[-1]) if self._names else []
            size += self._write_file(f"{begin}.state", [sorted(self._alive), before, content])
            names = {*self._alive, f"{begin}.state"}
            if len(self._names) == 2:
                remove_files(*(self._folder / name for name in self._names[0] - self._names[1] - names))
            self._names = [*self._names[-1:], names]
        return size

    def write_whole(self, run: str, batch: int, content: Plain, segments: Sequence[LogSegment]) -> None:
        """Write the snapshot of a state that comes from elsewhere, with all segments of its window log, durably."""
        begin = f"{run}-{batch:08d}"
        with report_checkpoint_damage(self._folder):
            create_folder(self._folder)
            if segments:
                self._write_file(f"{begin}.log", [[WINDOWS, segment.to_plain()] for segment in segments])
            self._write_file(f"{begin}.state", [[f"{begin}.log"] if segments else [], [], content])

    def _write_file(self, name: str, content: Plain) -> int:
        data = pack(content)
        header = json.dumps({"formats": FORMATS, "crc32": zlib.crc32(data)}).encode()
        replace_file(self._folder / name, header + b"\n" + data)
        return len(data)

    def read(self, run: str, batch: int) -> tuple[Plain, dict[str, list[LogSegment]]]:
        """The snapshot of a batch: what stands beside the logs, and the segments of each log."""
        state = f"{run}-{batch:08d}.state"
        logs, before, content = self.read_state(state)
        segments: dict[str, list[LogSegment]] = {}
        for name in logs:
            some = [(log, LogSegment.from_plain(one)) for log, one in self._read_file(name)]
            self._file_of |= {(log, one.number): name for log, one in some}
            self._alive[name] = len(some)
            for log, one in some:
                segments.setdefault(log, []).append(one)
        self._names = [set(before), {*logs, state}]
        return content, segments

    def read_state(self, name: str) -> tuple[list[str], list[str], Plain]:
        """What a file of a state has: the names of its logs, the files of the snapshot before, and its content."""
        path = self._folder / name
        if not path.is_file():
            raise CheckpointError(
                f"the checkpoint has no {path}, although Spark has logged its batch: put that file back, or use "
                "another folder and begin anew"
            )
        logs, before, content = self._read_file(name)
        return logs, before, content

    def _read_file(self, name: str) -> Plain:
        path = self._folder / name
        with report_checkpoint_damage(path):
            header, _, data = path.read_bytes().partition(b"\n")
            fields = json.loads(header) if header.startswith(b"{") else {"formats": None}
            check_format(self._folder, fields["formats"])
            if zlib.crc32(data) != fields["crc32"]:
                raise ValueError("its content is not what was written")
            return unpack(data)


def remove_leftovers(folder: Path, run: str, batch: int) -> int:
    """Remove what attempts that were killed left in the folder of a shard; the snapshot of a batch stays whole."""
    state = f"{run}-{batch:08d}.state"
    logs, before, _ = ShardSnapshots(folder).read_state(state)
    kept = {*logs, *before, state}
    leftovers = [path for path in folder.iterdir() if path.name not in kept]
    remove_files(*leftovers)
    return len(leftovers)


def read_counts(folder: Path, run: str, batch: int) -> BatchOutcome:
    """The counts of a batch, which its snapshot has."""
    _, _, content = ShardSnapshots(folder).read_state(f"{run}-{batch:08d}.state")
    return BatchOutcome.from_plain(content[-1])
