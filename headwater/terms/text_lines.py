"""Lines of a byte stream with their byte offsets, and files cut into ranges of lines.

Line formats are read in parallel by byte range: a range *owns* the lines whose first byte lies in it,
wherever they end. The byte offset of a line is its position in the stream, so it does not matter who read
which range. A line ends with a line feed; carriage returns before it belong to the line end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from itertools import takewhile
from pathlib import Path
from typing import IO, TypeAlias

Lines: TypeAlias = bytes | Iterable[bytes]
"""A whole text, or its lines with their ends (a file opened for reading bytes is such an iterable)."""

OffsetLine: TypeAlias = tuple[int, int, bytes]
"""Byte offset, how many lines were read before, and the line without its end."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SCAN_BYTES = 1 << 20


class LineNumbers:
    """Line numbers of a file for lines that were counted from some later place, such as a range's start.

    Where `first` is a function it is called only when a line number is needed, for a report: to count the
    lines before a range means to read them.
    """

    def __init__(self, first: int | Callable[[], int] = 1) -> None:
        self._first = first

    def number(self, count: int) -> int:
        """The number of the line that stands `count` lines behind the first one read."""
        if not isinstance(self._first, int):
            self._first = self._first()
        return self._first + count


def offset_lines(lines: Lines, first_position: int = 0) -> Iterator[OffsetLine]:
    """The lines with their offsets; the mark that some editors put before UTF-8 text is left out."""
    offset = first_position
    for count, raw in enumerate(BytesIO(lines) if isinstance(lines, bytes) else lines):
        line = raw.rstrip(b"\r\n")
        if offset == 0 and line.startswith(_BYTE_ORDER_MARK):
            line = line[len(_BYTE_ORDER_MARK) :]
        yield offset, count, line
        offset += len(raw)


def lines_before(lines: Iterable[OffsetLine], end: int | None) -> Iterator[OffsetLine]:
    """Those lines that begin before the byte `end`; all where it is None."""
    return iter(lines) if end is None else takewhile(lambda line: line[0] < end, lines)


def line_to_text(line: bytes) -> str:
    """The line as text for a report; bytes that are not UTF-8 appear as escapes."""
    return line.decode("utf-8", "backslashreplace")


def seek_line(stream: IO[bytes], start: int) -> int:
    """Move to the first line that begins at the byte `start` or behind it; gives its offset."""
    if start <= 0:
        stream.seek(0)
        return 0
    stream.seek(start - 1)
    stream.readline()
    return stream.tell()


def count_lines_before(path: Path, end: int) -> int:
    """How many lines end before the byte `end`."""
    total = 0
    with open(path, "rb") as stream:
        while end > 0 and (block := stream.read(min(end, _SCAN_BYTES))):
            total += block.count(b"\n")
            end -= len(block)
    return total


def lines_backwards(path: Path, end: int) -> Iterator[bytes]:
    """The lines before the byte `end`, where a line must begin; the last one first, without their ends."""
    with open(path, "rb") as stream:
        unread = end - 1
        first_part = b""
        while unread > 0:
            start = max(0, unread - _SCAN_BYTES)
            stream.seek(start)
            first_part, *whole = (stream.read(unread - start) + first_part).split(b"\n")
            yield from (line.rstrip(b"\r") for line in reversed(whole))
            unread = start
        if end > 0:
            yield first_part.removeprefix(_BYTE_ORDER_MARK).rstrip(b"\r")


def byte_ranges(length: int, size: int) -> list[tuple[int, int]]:
    """The ranges of about `size` bytes that together cover `length` bytes."""
    if size <= 0:
        raise ValueError(f"a range needs a size of at least one byte, not {size}")
    return [(start, min(start + size, length)) for start in range(0, length, size)]
