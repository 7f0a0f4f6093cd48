"""Where the elements of a stream come from: files, or a list in memory.

    files("tollgates/*.tnq")                       one or many files, in the order of their names
    files("observations/", template="row.tpl")     a folder, growing if the run follows it
    memory([(0, [triple]), (1_000_000, [triple])]) for notebooks and tests; times in microseconds

A source is a description that can be sent to other processes; it opens nothing before it is read. Names are ordered
as people order them (`part-9` before `part-10`), the files of the first pattern before those of the second.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from headwater.sources.following.file_identity import files_beside, find_file
from headwater.sources.item_ranges import (
    can_read_lines,
    elements_at,
    find_batch_end,
    line_numbers,
    read_item_range,
    scan_item_range,
)
from headwater.sources.read_faults import report_read_faults
from headwater.sources.source import ItemRange, SourceError, SourceItem
from headwater.terms.arguments import check_elements, check_path
from headwater.terms.element_files import ElementReader, element_reader
from headwater.terms.model import BadElement, Element, Triple
from headwater.terms.rdf_documents import file_ending, is_compressed
from headwater.terms.template import RowTemplate

if TYPE_CHECKING:
    from headwater.terms.scanning.pattern_tables import ScanPatterns
    from headwater.terms.scanning.scanned_columns import ScannedColumns

STREAM_ENDINGS = (".tnq", ".nq", ".trig", ".jsonl", ".jsonld", ".csv", ".json", ".ndjson")
"""What is taken from a folder; other files, and those whose name begins with `.` or `_`, are passed over."""

_ELEMENT_WEIGHT = 256
"""An element in memory counts as so many bytes where work is divided by bytes."""

TimedTriples: TypeAlias = Element | tuple[int, Iterable[Triple]]


@dataclass(frozen=True, slots=True)
class FileSource:
    """Stream files named by patterns and folders. Relative names are relative to `base`."""

    patterns: tuple[str, ...]
    template: RowTemplate | None = None
    base: str = ""

    def check(self) -> None:
        for pattern in self.patterns:
            names = self._matching_names(pattern)
            if not names:
                raise SourceError(self._missing_message(pattern))
            for name in names:
                self._check_file(name)

    def _check_file(self, name: str) -> None:
        self._reader(name)
        if not os.access(self._path(name), os.R_OK):
            raise SourceError(f"{name} cannot be read: ask for the right to read it")

    def _missing_message(self, pattern: str) -> str:
        path = self._path(pattern)
        if os.path.isdir(path):
            return (
                f"the folder {pattern} holds no stream file; "
                f"expected files that end in {', '.join(STREAM_ENDINGS)} (.gz may follow), "
                "or follow the folder to wait for them"
            )
        if glob.has_magic(pattern):
            return f"no file matches {pattern} (looked from {self.base or os.getcwd()}): check the pattern"
        return f"there is no file or folder {pattern} (looked from {self.base or os.getcwd()}): check the path"

    def list_items(self) -> list[SourceItem]:
        items: list[SourceItem] = []
        for name in dict.fromkeys(name for pattern in self.patterns for name in self._matching_names(pattern)):
            path = self._path(name)
            with suppress(OSError), report_read_faults(path):
                items.append(_item_of(name, path, os.stat(path)))
        return items

    def list_columns(self, most: int) -> frozenset[str]:
        """The columns of the JSON rows among the first bytes of each file."""
        found: set[str] = set()
        for item in self.list_items() if self.template is not None else ():
            with suppress(OSError, ValueError), report_read_faults(item.path):
                found |= self._reader(item.name, item.path).list_columns(most)
        return frozenset(found)

    def items_beside(self, name: str) -> list[SourceItem]:
        beside: list[SourceItem] = []
        for entry in files_beside(self._path(name)):
            # A file that gets another name stays compressed as it was, or its bytes are others.
            if is_compressed(entry.name) == is_compressed(name):
                with suppress(OSError), report_read_faults(entry.path):
                    beside.append(_item_of(name, entry.path, entry.stat()))
        return beside

    def needs_whole_read(self, item: SourceItem) -> bool:
        try:
            with report_read_faults(item.path):
                return not can_read_lines(self._reader(item.name, item.path), item.size)
        except (OSError, ValueError):
            return True

    def complete_size(self, item: SourceItem) -> int:
        end, path = item.size, item.path or self._path(item.name)
        with report_read_faults(path), open(path, "rb") as stream:
            while end > 0:
                start = max(0, end - (1 << 16))
                stream.seek(start)
                newline = stream.read(end - start).rfind(b"\n")
                if newline >= 0:
                    return start + newline + 1
                end = start
        return 0

    def find_batch_end(self, item: SourceItem, wanted: int, end: int) -> int:
        path = item.path or self._path(item.name)
        try:
            with report_read_faults(path):
                return find_batch_end(self._reader(item.name, path), wanted, end)
        except (OSError, ValueError):
            # Whoever reads the batch says what is wrong.
            return wanted

    def read(self, item_range: ItemRange) -> Iterator[Element | BadElement]:
        if item_range.is_gone:
            reason = "the file was replaced or removed before it was read to its end, and is not beside its old place"
            yield BadElement(f"{reason}: what stood behind byte {item_range.start} is lost", "", item_range.name)
            return
        path = find_file(self._path(item_range.name), item_range.identity)
        if path is None:
            reason = "the file was replaced or cut after it was seen, and is not beside its old place"
            lost = f"{reason}: bytes {item_range.start} to {item_range.end} are lost"
            yield BadElement(lost, "", item_range.name, (item_range.start,))
            return
        try:
            with report_read_faults(path):
                yield from read_item_range(self._reader(item_range.name, path), item_range)
        except (OSError, ValueError) as error:
            yield BadElement(f"the file cannot be read: {error}", "", item_range.name, (item_range.start,))

    def scan(self, item_range: ItemRange, patterns: ScanPatterns | None) -> ScannedColumns | None:
        path = None if item_range.is_gone else find_file(self._path(item_range.name), item_range.identity)
        if path is None:
            return None
        try:
            with report_read_faults(path):
                return scan_item_range(self._reader(item_range.name, path), item_range, patterns)
        except (OSError, ValueError):
            return None

    def text_at(self, name: str, position: tuple[int, ...]) -> str | None:
        with report_read_faults(self._path(name)):
            for element in elements_at(self._reader(name), position[0]):
                if isinstance(element, Element) and element.position == position:
                    return "\n".join(f"{triple} ." for triple in element.triples)
        return None

    def line_numbers(self, name: str, positions: Sequence[tuple[int, ...]]) -> list[int | None]:
        try:
            with report_read_faults(self._path(name)):
                return line_numbers(self._reader(name), positions)
        except (OSError, ValueError):
            return [None] * len(positions)

    def _path(self, name: str) -> str:
        return os.path.join(self.base, name)

    def _reader(self, name: str, path: str = "") -> ElementReader:
        """The reader of a file, whose format its name says, wherever it is now."""
        reader = element_reader(self._path(name), template=self.template, source=name)
        return replace(reader, path=Path(path)) if path else reader

    def _matching_names(self, pattern: str) -> list[str]:
        path = self._path(pattern)
        if os.path.isdir(path):
            names = [os.path.join(pattern, name) for name in os.listdir(path) if _is_stream_file(name)]
        elif glob.has_magic(pattern):
            names = glob.glob(pattern, root_dir=self.base or None, recursive=True)
        else:
            names = [pattern]
        return sorted((name for name in names if os.path.isfile(self._path(name))), key=natural_order)


def _item_of(name: str, path: str, status: os.stat_result) -> SourceItem:
    return SourceItem(name, status.st_size, path, status.st_ino, max(status.st_mtime_ns, status.st_ctime_ns))


def _is_stream_file(name: str) -> bool:
    return not name.startswith((".", "_")) and file_ending(name) in STREAM_ENDINGS


def natural_order(name: str) -> tuple[list[tuple[int, str]], str]:
    """A sort key by which numbers inside names count as numbers."""
    parts = re.split(r"([0-9]+)", name)
    return [(int(part), "") if i % 2 else (0, part) for i, part in enumerate(parts)], name


@dataclass(frozen=True, slots=True)
class MemorySource:
    """Elements in memory, in the order of their arrival."""

    elements: tuple[Element, ...]

    def check(self) -> None:
        return

    def list_items(self) -> list[SourceItem]:
        return [SourceItem("memory", len(self.elements) * _ELEMENT_WEIGHT)]

    def items_beside(self, name: str) -> list[SourceItem]:
        return []

    def needs_whole_read(self, item: SourceItem) -> bool:
        return False

    def complete_size(self, item: SourceItem) -> int:
        return item.size

    def find_batch_end(self, item: SourceItem, wanted: int, end: int) -> int:
        return wanted

    def read(self, item_range: ItemRange) -> Iterator[Element | BadElement]:
        first, end = -(-item_range.start // _ELEMENT_WEIGHT), -(-item_range.end // _ELEMENT_WEIGHT)
        return iter(self.elements[first:end])

    def scan(self, item_range: ItemRange, patterns: ScanPatterns | None) -> ScannedColumns | None:
        return None

    def text_at(self, name: str, position: tuple[int, ...]) -> str | None:
        return None

    def line_numbers(self, name: str, positions: Sequence[tuple[int, ...]]) -> list[int | None]:
        return [None] * len(positions)


def files(pattern: str | Path, *patterns: str | Path, template: RowTemplate | str | Path | None = None) -> FileSource:
    """A stream in files: paths, glob patterns (`**` goes through all sub-folders) or folders.

    CSV and JSON rows need a `template`, compiled or as the path of its file. A file that grows is read on from where it
    was, if its format is one of lines; others (`.trig`, `.nq`, `.gz`) should be written elsewhere and moved in whole.
    Files may be rotated, by a rename or by a copy in the same folder: the rest of the old one is read, and the new one.
    """
    if template is not None and not isinstance(template, RowTemplate):
        template = RowTemplate.load(template)
    for one in (pattern, *patterns):
        check_path("a pattern of files", one)
    return FileSource((str(pattern), *map(str, patterns)), template, os.getcwd())


def memory(elements: Iterable[TimedTriples]) -> MemorySource:
    """A stream in memory: `Element`s, or pairs of a time in microseconds and triples, as they arrive.

    All of it is taken now: an iterator is read to its end before anything is answered. `push` takes elements while a
    run is at work.
    """
    listed = check_elements("memory", elements)
    return MemorySource(tuple(replace(element, position=(index,)) for index, element in enumerate(listed)))
