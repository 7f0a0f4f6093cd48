"""The spool: what a receiver received, on disk as timed N-Quads, before anything else reads it.

A spool is a folder of `.tnq` files that the ordinary file source follows, so from receipt on replay and exactly-once
are those of files. A file is closed after some size or time, and removed when all of it was read, the batch that read
it was committed, and it has reached an age.

Beside the files is a mark, as long as every element was stamped when it arrived: the instant before which everything
that was stamped is in the files. Whoever reads the spool, in whatever process, takes it for a heartbeat.

A message that could not be read is a line of its own that no reader takes for a statement, with the reason and the
message inside: it comes out as a `BadElement` at its place, and is counted and kept like any other.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.sources.files import FileSource
from headwater.sources.offsets import ItemOffset, Offset
from headwater.sources.source import ItemRange, Source, SourceError, SourceItem
from headwater.terms.arguments import make_folder
from headwater.terms.durable_files import append_durably, lock_file, replace_file, sync_folder
from headwater.terms.model import BadElement, Element
from headwater.terms.text_lines import shorten_text
from headwater.terms.timestamps import format_time

if TYPE_CHECKING:
    from headwater.terms.scanning.pattern_tables import ScanPatterns
    from headwater.terms.scanning.scanned_columns import ScannedColumns

FILE_BYTES = 64 << 20
FILE_SECONDS = 3600.0
KEEP_SECONDS = 3600.0
_UNREADABLE = "unreadable "
_MARK = ".settled"
_MARK_DIGITS = 20
_CLOSED = ".closed"
"""The file that says that the stream has ended behind what is there."""
_SPOOLED = 1000
"""How many characters of a message that cannot be read are kept: six bytes each in JSON, at most."""


class Spool:
    """The writer of a spool folder; there is one at a time.

    With `is_durable`, what was appended is on disk; a folder that is removed after the run has no need of it.
    """

    def __init__(
        self,
        folder: Path,
        *,
        file_bytes: int = FILE_BYTES,
        file_seconds: float = FILE_SECONDS,
        is_durable: bool = True,
    ) -> None:
        self.folder = folder
        self._is_durable = is_durable
        self._file_bytes = file_bytes
        self._file_seconds = file_seconds
        make_folder("a spool", folder)
        try:
            self._lock = lock_file(folder / ".lock")
        except BlockingIOError:
            raise SourceError(
                f"another run writes into the spool {folder}: stop it, or give this one another spool"
            ) from None
        self._truncate_incomplete_lines()
        (folder / _CLOSED).unlink(missing_ok=True)
        self._file: int | None = None
        self._name = ""
        self._size = 0
        self._opened = 0.0

    def _truncate_incomplete_lines(self) -> None:
        """Remove a last line without an end, which a killed writer left: it was never acknowledged."""
        for path in self.folder.glob("*.tnq"):
            size = path.stat().st_size
            complete = FileSource((str(path),)).complete_size(SourceItem(str(path), size))
            if complete < size:
                os.truncate(path, complete)

    def append(self, elements: Iterable[Element | BadElement]) -> tuple[str, int]:
        """Write good and bad elements; gives the file in which they stand, and the place behind them."""
        lines: list[str] = []
        for one in elements:
            if isinstance(one, Element):
                lines.extend(element_lines(one))
            else:
                lines.append(unreadable_line(one))
        return self.append_bytes("".join(lines).encode("utf-8", "surrogatepass"))

    def append_bytes(self, data: bytes) -> tuple[str, int]:
        """Write whole lines of timed N-Quads; gives the file in which they stand, and the place behind them."""
        if data:
            append_durably(self._open_current_file(), data, self.folder, is_forced=self._is_durable)
            self._size += len(data)
        return self._name, self._size

    @property
    def current(self) -> tuple[str, int]:
        """The file that is appended to, and where the next bytes go."""
        return self._name, self._size

    def abandon_file(self) -> None:
        """Append to another file from now on: the current one ends with what could not be written whole."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
            self._truncate_incomplete_lines()

    def end_stream(self) -> None:
        """Note that nothing follows: a run that has read everything ends the stream."""
        replace_file(self.folder / _CLOSED, b"")

    def _open_current_file(self) -> int:
        """The descriptor of the file to append to; a full or old file is closed and a new one begun."""
        is_full = self._size >= self._file_bytes or time.monotonic() - self._opened > self._file_seconds
        if self._file is not None and is_full:
            os.close(self._file)
            self._file = None
        if self._file is None:
            newest = max((int(path.stem) for path in self.folder.glob("*.tnq") if path.stem.isdigit()), default=0)
            path = self.folder / f"{max(time.time_ns(), newest + 1):020d}.tnq"
            self._name = str(path)
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
            sync_folder(self.folder)
            self._size, self._opened = 0, time.monotonic()
        return self._file

    def mark_settled(self, instant: int | None) -> None:
        """Write that everything stamped before an instant is on disk; None: elements have times of their own.

        It is not forced to disk: a mark that is too old holds, too.
        """
        path = self.folder / _MARK
        if instant is None:
            path.unlink(missing_ok=True)
            return
        # Of one size and in one call, so that a reader never sees a part of it.
        mark = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            os.pwrite(mark, f"{instant:0{_MARK_DIGITS}d}".encode(), 0)
        finally:
            os.close(mark)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
        os.close(self._lock)


def read_mark(folder: str | Path) -> int | None:
    """What `Spool.mark_settled` wrote; None where there is no mark."""
    try:
        text = (Path(folder) / _MARK).read_text("ascii")
        return int(text) if len(text) == _MARK_DIGITS else None
    except (OSError, ValueError):
        return None


def element_lines(element: Element) -> Iterator[str]:
    """An element as timed N-Quads."""
    graph = element.graph
    name = "" if graph is None else f" {graph}" if graph.startswith("_:") else f" <{graph}>"
    for triple in element.triples:
        yield f"{format_time(element.time)}\t{triple}{name} .\n"


@dataclass(frozen=True, slots=True)
class SpoolSource:
    """A spool as the pipeline reads it; files that were read are kept for `keep_seconds` more."""

    folder: str
    keep_seconds: float = KEEP_SECONDS

    @property
    def _files(self) -> FileSource:
        """The files that hold the spooled elements."""
        return FileSource((self.folder,))

    @property
    def has_ended(self) -> bool:
        """Whether nothing follows what is there now."""
        return os.path.exists(os.path.join(self.folder, _CLOSED))

    def check(self) -> None:
        return

    def settled_before(self) -> int | None:
        return read_mark(self.folder)

    def list_items(self) -> list[SourceItem]:
        return self._files.list_items()

    def items_beside(self, name: str) -> list[SourceItem]:
        # Files of a spool keep their names.
        return []

    def needs_whole_read(self, item: SourceItem) -> bool:
        return False

    def complete_size(self, item: SourceItem) -> int:
        return self._files.complete_size(item)

    def find_batch_end(self, item: SourceItem, wanted: int, end: int) -> int:
        return self._files.find_batch_end(item, wanted, end)

    def read(self, item_range: ItemRange) -> Iterator[Element | BadElement]:
        for one in self._files.read(item_range):
            yield one if isinstance(one, Element) else _unpack_unreadable(one)

    def scan(self, item_range: ItemRange, patterns: ScanPatterns | None) -> ScannedColumns | None:
        scanned = self._files.scan(item_range, patterns)
        return None if scanned is None else replace(scanned, bad=tuple(map(_unpack_unreadable, scanned.bad)))

    def text_at(self, name: str, position: tuple[int, ...]) -> str | None:
        return self._files.text_at(name, position) if os.path.exists(name) else None

    def line_numbers(self, name: str, positions: Sequence[tuple[int, ...]]) -> list[int | None]:
        return self._files.line_numbers(name, positions)

    def remove_read_files(self, items: Sequence[ItemOffset]) -> None:
        """Remove the files that were read to their ends, except the newest, which may be written to."""
        read = {item.name: item.end for item in items}
        for item in self.list_items()[:-1]:
            try:
                if (
                    read.get(item.name, -1) >= item.size
                    and time.time() - os.stat(item.name).st_mtime > self.keep_seconds
                ):
                    os.unlink(item.name)
            except FileNotFoundError:
                continue


def ended_streams(sources: Mapping[str, Source]) -> set[str]:
    """The streams to which nothing is added any more."""
    return {stream for stream, source in sources.items() if isinstance(source, SpoolSource) and source.has_ended}


def release_read_items(sources: Mapping[str, Source], offset: Offset) -> None:
    """Let spools remove what no later batch reads again."""
    for stream, source in sources.items():
        if isinstance(source, SpoolSource):
            source.remove_read_files(offset.of(stream).items)


def unreadable_line(bad: BadElement) -> str:
    """A bad element as a line, short enough to be shown whole in a report."""
    found = json.dumps([bad.reason, shorten_text(bad.text, _SPOOLED), bad.source], ensure_ascii=False)
    return f"{_UNREADABLE}{found}\n"


def _unpack_unreadable(bad: BadElement) -> BadElement:
    """The bad element that a receiver wrote as a line of its own, with its reason and its text."""
    if not bad.text.startswith(_UNREADABLE):
        return bad
    try:
        reason, text, source = json.loads(bad.text.removeprefix(_UNREADABLE))
    except ValueError:
        return bad
    return replace(bad, reason=reason, text=text, source=source, line=None)
