"""The files of the answer log: where the answers of a query stand, and how they are read.

    QUERY/floor                      the newest id that is not kept any more
    QUERY/ERA-BATCH.log              records from this batch on

A record has the answers of one batch: a line with era, batch, how many answers, how many bytes and their checksum, then
a line of JSON for each answer. Records are in the order of their ids. Another process may read while one writes: a
record that is not complete is not there yet, and what is removed at the end comes again with the same ids.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from headwater.server.answers.event_ids import BEGINNING, EventId
from headwater.sinks.file_sink import file_name

FLOOR = "floor"
ENDING = ".log"
ANY_PLACE = 10**15 - 1
"""Stands behind all answers of a batch. A floor has it as long as nothing that was logged has gone."""
_LONGEST_HEAD = 200


@dataclass(frozen=True, slots=True)
class LogRecord:
    """The answers of one batch, as lines of JSON without their line feeds."""

    era: int
    batch: int
    lines: tuple[bytes, ...]

    @property
    def first(self) -> EventId:
        return EventId(self.era, self.batch, 0)

    @property
    def last(self) -> EventId:
        return EventId(self.era, self.batch, len(self.lines) - 1)

    def to_bytes(self) -> bytes:
        """The record as it stands in a file."""
        body = b"".join(line + b"\n" for line in self.lines)
        head = f"#{self.era} {self.batch} {len(self.lines)} {len(body)} {zlib.crc32(body)}\n"
        return head.encode() + body


@dataclass(frozen=True, slots=True)
class LogPlace:
    """A place between two records: a file, and how many of its bytes stand before."""

    file: str = ""
    offset: int = 0


def log_folder(folder: Path, query: str) -> Path:
    """Where the answers of a query are logged."""
    return folder / file_name(query)


def segment_name(era: int, batch: int) -> str:
    """The name of the file that begins with a batch; names sort as their batches do."""
    return f"{era:015d}-{batch:015d}{ENDING}"


def list_segments(folder: Path) -> list[str]:
    """The files of a log, the oldest first."""
    try:
        return sorted(path.name for path in folder.iterdir() if path.name.endswith(ENDING) and path.name[0] != ".")
    except FileNotFoundError:
        return []


def read_floor(folder: Path) -> EventId | None:
    """The newest id that is not kept; None where nothing was logged yet."""
    try:
        return EventId.parse((folder / FLOOR).read_text("ascii"))
    except FileNotFoundError:
        return None


def read_segment(path: Path, offset: int = 0) -> Iterator[tuple[LogRecord, int]]:
    """The complete records behind an offset, each with the offset of its end."""
    with open(path, "rb") as stream:
        stream.seek(offset)
        while True:
            head = stream.readline(_LONGEST_HEAD)
            record = None
            if head.startswith(b"#") and head.endswith(b"\n"):
                try:
                    era, batch, count, size, check = map(int, head[1:].split())
                except ValueError:
                    return
                body = stream.read(size)
                lines = tuple(body.split(b"\n")[:-1])
                if len(body) == size and len(lines) == count and zlib.crc32(body) == check:
                    record = LogRecord(era, batch, lines)
            if record is None:
                return
            offset += len(head) + size
            yield record, offset


class LogReader:
    """Reads the log of one query, from wherever a subscriber is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def is_kept(self, after: EventId) -> bool:
        """Whether everything behind an id is in the log."""
        floor = read_floor(self.folder)
        if after.answer == BEGINNING:
            return floor is None or floor.place == ANY_PLACE
        return floor is None or after.answer >= floor

    def read_after(self, after: EventId | None) -> Iterator[tuple[LogRecord, LogPlace]]:
        """The records that have an answer behind an id, all of them without one, and the place behind each."""
        names = list_segments(self.folder)
        if after is not None:
            mark = segment_name(after.era, after.batch)
            first = max((place for place, name in enumerate(names) if name <= mark), default=0)
            names = names[first:]
        for name in names:
            try:
                for record, end in read_segment(self.folder / name):
                    if after is None or record.last > after.answer:
                        yield record, LogPlace(name, end)
            except FileNotFoundError:
                # It has become too old meanwhile.
                continue

    def read_from(self, place: LogPlace) -> Iterator[tuple[LogRecord, LogPlace]]:
        """The records behind a place; those of the whole log where the place is not there any more."""
        names = list_segments(self.folder)
        if place.file not in names or (self.folder / place.file).stat().st_size < place.offset:
            yield from self.read_after(None)
            return
        for name in names[names.index(place.file) :]:
            try:
                for record, end in read_segment(self.folder / name, place.offset if name == place.file else 0):
                    yield record, LogPlace(name, end)
            except FileNotFoundError:
                continue

    def last_record(self) -> tuple[LogRecord, LogPlace] | None:
        """The newest record and the place behind it; None where nothing is logged."""
        for name in reversed(list_segments(self.folder)):
            found: tuple[LogRecord, LogPlace] | None = None
            for record, end in read_segment(self.folder / name):
                found = record, LogPlace(name, end)
            if found is not None:
                return found
        return None

    def find(self, wanted: EventId) -> bytes | None:
        """The answer with an id; None where it is not in the log."""
        names = [name for name in list_segments(self.folder) if name <= segment_name(wanted.era, wanted.batch)]
        for record, _ in read_segment(self.folder / names[-1]) if names else ():
            if (record.era, record.batch) == (wanted.era, wanted.batch):
                return record.lines[wanted.place] if wanted.place < len(record.lines) else None
        return None
