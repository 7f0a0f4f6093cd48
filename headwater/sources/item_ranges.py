"""Reading a range of a stream file that may be growing.

A timed N-Quads element can consist of several lines. Where a range ends inside a file, the element at the border is
read by the range in which it begins. Where it ends because the file did, more lines of the last element may be
appended later. The element is given out as it is, and later lines make an element of their own with the same time. A
window holds the same triples either way. So a batch ends between two elements, or where the file does
(`find_batch_end`): of an element that is still being written, a range that ends in its midst would read what is there,
and the next range would leave the rest to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING

from headwater.sources.source import ItemRange
from headwater.terms.element_files import ElementReader, StreamFormat
from headwater.terms.model import BadElement, Element
from headwater.terms.rdf_documents import is_compressed
from headwater.terms.text_lines import LONGEST_LINE, count_lines_before, line_to_text, seek_line
from headwater.terms.tnq import find_key_before, find_next_element, read_tnq

if TYPE_CHECKING:
    from headwater.terms.scanning.pattern_tables import ScanPatterns
    from headwater.terms.scanning.scanned_columns import ScannedColumns


def read_item_range(reader: ElementReader, item_range: ItemRange) -> Iterator[Element | BadElement]:
    """The elements that begin in a range of a file."""
    if item_range.is_whole:
        if item_range.start == 0:
            yield from reader.read()
        else:
            reason = (
                "the file changed after it was read, and its format can only be read as a whole; "
                "write such files elsewhere and move them in when they are complete"
            )
            yield BadElement(reason, "", reader.source, (item_range.end,))
        return
    if item_range.end < item_range.start:
        reason = (
            f"the file was cut from {item_range.start} to {item_range.end} bytes after it was read; "
            "what is appended from here on is read"
        )
        yield BadElement(reason, "", reader.source, (item_range.end,))
        return
    if item_range.is_after_end:
        yield from _appended_rest_of_line(reader, item_range.start)
    if reader.format is StreamFormat.TNQ and (item_range.is_after_end or item_range.limit is not None):
        yield from _read_timed_lines(reader, item_range)
    else:
        yield from reader.read_range(item_range.start, item_range.end)


def scan_item_range(
    reader: ElementReader, item_range: ItemRange, patterns: ScanPatterns | None
) -> ScannedColumns | None:
    """The elements that begin in a range of timed lines, as columns; None for other formats and ranges."""
    is_plain = reader.format is StreamFormat.TNQ and not is_compressed(reader.path)
    if (
        not is_plain
        or item_range.is_whole
        or item_range.end < item_range.start
        or (item_range.is_after_end and _appended_rest_of_line(reader, item_range.start))
    ):
        return None
    # Whoever only plans what is to be read does without the scanner, and starts sooner.
    from headwater.terms.scanning.ranges import scan_range

    return scan_range(
        reader.path,
        item_range.start,
        item_range.end,
        source=reader.source,
        limit=item_range.limit,
        after_end=item_range.is_after_end,
        patterns=patterns,
        texts="spog" if patterns is None or patterns.has_graphs else "spo",
    )


def find_batch_end(reader: ElementReader, wanted: int, end: int) -> int:
    """The byte at which a batch ends that is to end at `wanted`, in an item with complete lines up to `end`.

    A batch does not end within an element, whose other lines may still be written: it goes on to the end of that.
    """
    if reader.format is not StreamFormat.TNQ or is_compressed(reader.path):
        return wanted
    with open(reader.path, "rb") as stream:
        offset = seek_line(stream, wanted, end)
        key = find_key_before(reader.path, offset) if offset < end else None
        if offset >= end:
            return end
        if key is None:
            return wanted
        place = find_next_element(_lines_until(stream, offset, end), offset, key)
    if place is None:
        return end
    return wanted if place == offset else place


def elements_at(reader: ElementReader, start: int) -> Iterator[Element | BadElement]:
    """What begins at a byte at which an element begins, also where the lines before it have its time and graph."""
    yield from read_item_range(reader, ItemRange(reader.source, start, start + 1, is_after_end=start > 0))


def _read_timed_lines(reader: ElementReader, item_range: ItemRange) -> Iterator[Element | BadElement]:
    with open(reader.path, "rb") as stream:
        offset = seek_line(stream, item_range.start, item_range.end)
        if offset >= item_range.end:
            return
        yield from read_tnq(
            stream if item_range.limit is None else _lines_until(stream, offset, item_range.limit),
            reader.source,
            offset,
            lambda: count_lines_before(reader.path, offset) + 1,
            end=item_range.end,
            continues=None if item_range.is_after_end else find_key_before(reader.path, offset),
        )


def _lines_until(stream: IO[bytes], offset: int, end: int) -> Iterator[bytes]:
    while offset < end and (raw := stream.readline(end - offset)):
        yield raw
        offset += len(raw)


def _appended_rest_of_line(reader: ElementReader, start: int) -> list[BadElement]:
    """What was appended to a last line that had no end when it was read: a bad element, as its beginning was read."""
    with open(reader.path, "rb") as stream:
        stream.seek(start - 1)
        if stream.read(1) == b"\n":
            return []
        rest = stream.readline(LONGEST_LINE)
    if not rest.strip():
        return []
    reason = "the rest of a line of which the beginning was read before; append whole lines"
    line = count_lines_before(reader.path, start) + 1
    return [BadElement(reason, line_to_text(rest.rstrip(b"\r\n")), reader.source, (start,), line)]


def can_read_lines(reader: ElementReader, size: int) -> bool:
    """Whether a file can be read in ranges that are divided between lines."""
    return size < 2 or len(reader.split_ranges((size + 1) // 2)) > 1


def line_numbers(reader: ElementReader, positions: Sequence[tuple[int, ...]]) -> list[int | None]:
    """The numbers of the lines at positions in a file; None where positions are not bytes."""
    size = reader.path.stat().st_size
    by_bytes = can_read_lines(reader, size) or reader.format is StreamFormat.N_QUADS
    if is_compressed(reader.path) or not by_bytes:
        return [None] * len(positions)
    numbers: dict[int, int] = {}
    with open(reader.path, "rb") as stream:
        offset, lines = 0, 1
        for target in sorted({position[0] for position in positions if position}):
            while offset < target and (block := stream.read(min(target - offset, 1 << 20))):
                offset += len(block)
                lines += block.count(b"\n")
            numbers[target] = lines
    return [numbers[position[0]] if position else None for position in positions]
