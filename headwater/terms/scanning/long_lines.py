"""Lines that are too long to be read: they are found without a look at each byte, and hidden from the scanner.

A line that is longer than the limit has half of the limit in one of the blocks of that size. So a text is fine if each
block has a line feed, and most searches end at the first line of their block.
"""

from __future__ import annotations

from typing import NamedTuple

from headwater.terms.scanning.ascii_bytes import LINE_FEED, NUMBER_SIGN
from headwater.terms.scanning.padded_text import Bytes, PaddedText
from headwater.terms.text_lines import LONGEST_LINE, LONGEST_SHOWN, LongLine, line_to_text, long_line_reason

_FIRST_SEARCH = 1 << 12


class HiddenLine(NamedTuple):
    """A line that was made a comment: where it is, how many lines are before it, and what a report says."""

    start: int
    number: int
    reason: str
    text: str


def hide_long_lines(text: PaddedText, first: int = 0, longest: int = LONGEST_LINE) -> list[HiddenLine]:
    """Make comments of the lines that are too long; gives them for the report. The first line begins at `first`."""
    content = text.content
    hidden: list[HiddenLine] = []
    block = max(1, longest // 2)
    searched = 0
    while searched + block < text.length:
        if _find_line_feed(content, searched, searched + block) >= 0:
            searched += block
            continue
        start = max(first, _find_line_start(content, searched))
        end = _find_line_feed(content, searched, text.length)
        end = text.length if end < 0 else end
        if end - start > longest + 1 and content[start] != NUMBER_SIGN:
            line = LongLine.of(content[start : start + LONGEST_SHOWN].tobytes(), end - start)
            number = int((content[:start] == LINE_FEED).sum())
            hidden.append(HiddenLine(start, number, long_line_reason(end - start), line_to_text(line)))
            content[start] = NUMBER_SIGN
        searched = end + 1
    return hidden


def _find_line_feed(content: Bytes, start: int, end: int) -> int:
    size = _FIRST_SEARCH
    while start < end:
        stop = min(start + size, end)
        found = (content[start:stop] == LINE_FEED).nonzero()[0]
        if len(found):
            return start + int(found[0])
        start, size = stop, min(size * 2, 1 << 20)
    return -1


def _find_line_start(content: Bytes, end: int) -> int:
    size = 1 << 16
    while end > 0:
        start = max(0, end - size)
        found = (content[start:end] == LINE_FEED).nonzero()[0]
        if len(found):
            return start + int(found[-1]) + 1
        end = start
    return 0
