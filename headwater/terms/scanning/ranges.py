"""Scanning a byte range of a file: any cut of a file into ranges gives the same elements.

A range owns the elements that begin in it (`headwater.terms.tnq`); so the reading goes on behind the range's end until
its last element has surely ended.
"""

from __future__ import annotations

from io import FileIO
from pathlib import Path

from headwater.terms.scanning.formats import LineFormat
from headwater.terms.scanning.padded_text import PaddedText
from headwater.terms.scanning.pattern_tables import ScanPatterns
from headwater.terms.scanning.scanned_columns import ScannedColumns
from headwater.terms.scanning.scanner import scan
from headwater.terms.text_lines import count_lines_before, seek_line
from headwater.terms.tnq import find_key_before

LOOK_AHEAD = 1 << 16
"""How many bytes behind a range are read at first; eight times as many each time that they are not enough."""

_MOST_AHEAD = 1 << 28
"""Beyond this a file is read line by line, which keeps no long line in memory."""


def scan_range(
    path: Path,
    start: int = 0,
    end: int | None = None,
    format: LineFormat = LineFormat.TNQ,
    *,
    source: str | None = None,
    limit: int | None = None,
    after_end: bool = False,
    patterns: ScanPatterns | None = None,
    texts: str = "spog",
) -> ScannedColumns:
    """The elements of a file that begin in the bytes from `start` to before `end`; to the end of the file if None.

    `limit` is the known size of the file: nothing behind it is read, and a line that it cuts is read as it is.
    `after_end`: the file ended at `start` when it was read before. The element before `start` was given out then, and
    what follows begins a new one.
    """
    with FileIO(path) as stream:
        size = stream.seek(0, 2) if limit is None else min(limit, stream.seek(0, 2))
        stop = size if end is None else min(end, size)
        offset = _first_line(path, start, stop)
        if offset >= stop:
            return scan(b"", format)
        is_timed = format is LineFormat.TNQ
        continues = find_key_before(path, offset) if is_timed and not after_end else None
        ahead = LOOK_AHEAD
        while True:
            behind = size if end is None else min(stop + ahead, size)
            if ahead > _MOST_AHEAD:
                raise ValueError(f"{path} has a line that is too long to be scanned")
            stream.seek(offset)
            text = PaddedText.read(stream, behind - offset)
            if behind < size:
                text = _whole_lines(text)
            scanned = scan(
                text,
                format,
                source=str(path) if source is None else source,
                first_position=offset,
                first_line=lambda: count_lines_before(path, offset) + 1,
                end=end,
                continues=continues,
                patterns=patterns,
                texts=texts,
            )
            is_cut = text.length <= stop - offset or (scanned.is_open and is_timed)
            if behind == size or not is_cut:
                return scanned
            ahead *= 8


def _first_line(path: Path, start: int, stop: int) -> int:
    with open(path, "rb") as stream:
        return seek_line(stream, start, stop)


def _whole_lines(text: PaddedText) -> PaddedText:
    """The text without what stands behind its last line feed."""
    content = text.content
    block = 1 << 12
    end = text.length
    while end > 0:
        start = max(0, end - block)
        feeds = (content[start:end] == ord("\n")).nonzero()[0]
        if len(feeds):
            return PaddedText(text.array, start + int(feeds[-1]) + 1)
        end = start
    return PaddedText(text.array, 0)
