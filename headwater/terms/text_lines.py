"""Lines of a byte stream with their byte offsets, and files cut into ranges of lines.

Line formats are read in parallel by byte range: a range *owns* the lines whose first byte lies in it,
wherever they end. The byte offset of a line is its position in the stream, so it does not matter who read
which range. A line ends with a line feed; carriage returns before it belong to the line end.

A line longer than the limit is not kept in memory: readers get its beginning and its length (`LongLine`) and report it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from itertools import takewhile
from pathlib import Path
from typing import IO, TypeAlias

from headwater.terms.checking.input_limits import LARGEST_TERM

Lines: TypeAlias = bytes | Iterable[bytes]
"""A whole text, or its lines with their ends (a file opened for reading bytes is such an iterable)."""

OffsetLine: TypeAlias = tuple[int, int, bytes]
"""Byte offset, how many lines were read before, and the line without its end."""

LONGEST_LINE = LARGEST_TERM
"""Bytes of a line without its end."""
LONGEST_SHOWN = 8192
"""How many bytes of a text a report shows; a longer one is cut, and its length is given."""
_LONGEST_WORD = 100
_LONGEST_MESSAGE = 800
_LONG_WORD = re.compile(rf"\S{{{_LONGEST_WORD + 1},}}")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SCAN_BYTES = 1 << 20
_FIRST_BYTES_BACKWARDS = 1 << 12
"""Who reads backwards mostly wants one line."""


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


class LongLine(bytes):
    """The beginning of a line that is longer than the limit."""

    length: int

    @classmethod
    def of(cls, beginning: bytes, length: int) -> LongLine:
        # Not blank: a blank line means nothing, and would be passed over in silence.
        line = cls(beginning.lstrip()[:LONGEST_SHOWN] or b"?")
        line.length = length
        return line

    @property
    def reason(self) -> str:
        """Why the line is not read."""
        return long_line_reason(self.length)


def long_line_reason(length: int) -> str:
    """Why a line of such a length is not read."""
    return f"the line has {length:,} bytes, and {LONGEST_LINE:,} are the limit"


def _raw_lines(lines: Lines) -> Iterator[tuple[bytes, int]]:
    """The lines with their ends and their lengths; of a line that is too long its beginning."""
    if isinstance(lines, bytes):
        lines = BytesIO(lines)
    readline = getattr(lines, "readline", None)
    if readline is None:
        for raw in lines:
            yield (raw if len(raw) <= LONGEST_LINE + 2 else LongLine.of(raw, len(raw.rstrip(b"\r\n")))), len(raw)
        return
    while raw := readline(LONGEST_LINE + 2):
        length = len(raw)
        if length <= LONGEST_LINE + 1 or raw.endswith(b"\n"):
            yield raw, length
            continue
        beginning, end = raw, raw
        while not end.endswith(b"\n") and (end := readline(_SCAN_BYTES)):
            length += len(end)
        yield LongLine.of(beginning, length - end.endswith(b"\n")), length


def offset_lines(lines: Lines, first_position: int = 0) -> Iterator[OffsetLine]:
    """The lines with their offsets; the mark that some editors put before UTF-8 text is left out."""
    offset = first_position
    for count, (raw, length) in enumerate(_raw_lines(lines)):
        line = raw if isinstance(raw, LongLine) else raw.rstrip(b"\r\n")
        if offset == 0 and line.startswith(_BYTE_ORDER_MARK):
            line = line[len(_BYTE_ORDER_MARK) :]
        yield offset, count, line
        offset += length


def lines_before(lines: Iterable[OffsetLine], end: int | None) -> Iterator[OffsetLine]:
    """Those lines that begin before the byte `end`; all where it is None."""
    return iter(lines) if end is None else takewhile(lambda line: line[0] < end, lines)


def line_to_text(line: bytes) -> str:
    """The line as text for a report; bytes that are not UTF-8 appear as escapes, and a long one is cut."""
    length = line.length if isinstance(line, LongLine) else len(line)
    text = line[:LONGEST_SHOWN].decode("utf-8", "backslashreplace")
    return text if length <= LONGEST_SHOWN else text + _cut_mark(length, "bytes")


def shorten_text(text: str, longest: int = LONGEST_SHOWN) -> str:
    """A text for a report; of a long one the beginning and the length."""
    # What was cut before is a little longer, and has its mark already.
    return text if len(text) <= longest + 64 else text[:longest] + _cut_mark(len(text), "characters")


def shorten_message(message: str) -> str:
    """A message for a person: of a long word, such as a token of a query, the beginning; of a long text both ends."""
    message = _LONG_WORD.sub(lambda match: match[0][:_LONGEST_WORD] + "…", message)
    if len(message) <= _LONGEST_MESSAGE:
        return message
    half = _LONGEST_MESSAGE // 2 - 2
    return f"{message[:half]} … {message[-half:]}"


def _cut_mark(length: int, unit: str) -> str:
    return f"… ({length:,} {unit})"


def seek_line(stream: IO[bytes], start: int, end: int | None = None) -> int:
    """Move to the first line that begins at the byte `start` or behind it; gives its offset.

    If none begins before `end`, the search ends about there: a long line is not read again by each of its ranges.
    """
    if start <= 0:
        stream.seek(0)
        return 0
    stream.seek(start - 1)
    while (part := stream.readline(_SCAN_BYTES)) and not part.endswith(b"\n"):
        if end is not None and stream.tell() >= end:
            break
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
        block = _FIRST_BYTES_BACKWARDS
        # The end of a line whose beginning was not read yet: its parts, the last one first, and their length.
        parts: list[bytes] = []
        length = 0
        while unread > 0:
            start = max(0, unread - block)
            block = _SCAN_BYTES
            stream.seek(start)
            first, *whole = stream.read(unread - start).split(b"\n")
            if whole:
                last = whole.pop()
                yield _join_parts([*parts, last], length + len(last))
                yield from (line.rstrip(b"\r") for line in reversed(whole))
                parts, length = [], 0
            length += len(first)
            # Of a line that is too long, only the beginning is needed.
            parts = [*(parts if length <= LONGEST_LINE else ()), first]
            unread = start
        if end > 0:
            yield _join_parts(parts, length).removeprefix(_BYTE_ORDER_MARK)


def _join_parts(parts: list[bytes], length: int) -> bytes:
    """A line from its parts, the last one first."""
    if length > LONGEST_LINE + 1:
        return LongLine.of(parts[-1], length)
    return b"".join(reversed(parts)).rstrip(b"\r")


def byte_ranges(length: int, size: int) -> list[tuple[int, int]]:
    """The ranges of about `size` bytes that together cover `length` bytes."""
    if size <= 0:
        raise ValueError(f"a range needs a size of at least one byte, not {size}")
    return [(start, min(start + size, length)) for start in range(0, length, size)]
