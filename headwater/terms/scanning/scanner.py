"""The columnar scanner: N-Triples, N-Quads and `.tnq` bytes to columns of 64-bit ids.

Compiled code reads the lines (`lines`). Those that it is not sure of go to the parser (`parsed_lines`), so that the
result is always that of the line-by-line readers. Then lines become elements (`groups`).

>>> scanned = scan(b'1000\\t<http://ex/s1> <http://ex/value> "21.5"^^<http://www.w3.org/2001/XMLSchema#double> .')
>>> scanned.times.tolist(), scanned.triples.shape
([1000000], (1, 3))
>>> [text for _, text in scanned.texts().items()]
[b'<http://ex/s1>', b'<http://ex/value>']
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
from pyoxigraph import DefaultGraph

from headwater.terms.ids.inline_layout import NO_TERM
from headwater.terms.ids.term_ids import term_text
from headwater.terms.ids.term_key import choose_key
from headwater.terms.ids.text_hash import hash_and_check
from headwater.terms.model import BadElement
from headwater.terms.scanning.escapes import ROOM
from headwater.terms.scanning.formats import LineFormat
from headwater.terms.scanning.groups import ElementGroups, group_lines
from headwater.terms.scanning.lines import LineRows, count_lines, read_lines
from headwater.terms.scanning.long_lines import HiddenLine, hide_long_lines
from headwater.terms.scanning.padded_text import Bytes, PaddedText
from headwater.terms.scanning.parsed_lines import LineContent, RefusedLine, read_lines_by_parser
from headwater.terms.scanning.pattern_tables import KEPT, ScanPatterns, mark_of
from headwater.terms.scanning.resolving import fill_parsed_rows
from headwater.terms.scanning.scanned_columns import ScannedColumns
from headwater.terms.text_lines import LineNumbers
from headwater.terms.tnq import ElementKey

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NO_END = (1 << 63) - 1
_NO_PATTERNS = ScanPatterns([])
_NO_BREAKS = np.zeros(0, dtype=np.int64)


def scan(
    data: bytes | bytearray | memoryview | Bytes | PaddedText,
    format: LineFormat = LineFormat.TNQ,
    *,
    source: str = "",
    first_position: int = 0,
    first_line: int | Callable[[], int] = 1,
    end: int | None = None,
    continues: ElementKey | None = None,
    patterns: ScanPatterns | None = None,
    texts: str = "spog",
    has_checks: bool = True,
    breaks: npt.NDArray[np.int64] = _NO_BREAKS,
) -> ScannedColumns:
    """The triples of a text that begins with the first byte of a line.

    `source`, `first_position`, `first_line`, `end` and `continues` are those of `headwater.terms.tnq.read_tnq`: the
    elements that begin before the byte `end` are given, and those lines at the beginning left out that belong to an
    element before. In N-Triples and N-Quads the lines that begin before `end` are given.

    `texts` says whose texts are collected: of subjects, predicates, objects, graph names. With `patterns`, only triples
    that match one are kept, and each pattern has its own `texts` of `spo`, so that here only `g` has a meaning. Who
    keeps all texts needs no checks of them (`has_checks`). No element goes on across an offset in `breaks`.
    """
    choose_key()
    text = data if isinstance(data, PaddedText) else PaddedText.of(data)
    stop = _NO_END if end is None else end - first_position
    if format is not LineFormat.TNQ:
        text, stop, continues = _lines_before(text, stop), _NO_END, None
    has_graph_texts = "g" in texts
    everything = mark_of(texts.replace("g", "")) if patterns is None else 0
    table = _NO_PATTERNS.table if patterns is None else patterns.table
    has_spans = has_graph_texts or everything > KEPT or bool((table.marks > KEPT).any())
    address = text.address
    room = int(count_lines(address, address + text.length)) + 1
    rows = LineRows.empty(room, has_spans, has_checks)
    unsure = np.empty((room, 3), dtype=np.int64)
    has_mark = first_position == 0 and text.content[:3].tobytes() == _BYTE_ORDER_MARK
    is_timed = format is LineFormat.TNQ
    has_graphs = format is not LineFormat.N_TRIPLES
    first = len(_BYTE_ORDER_MARK) if has_mark else 0
    hidden = hide_long_lines(text, first)
    spare = PaddedText.empty(text.length + ROOM)
    count, unsure_count, lines, spare_length = read_lines(
        address, text.length, first, stop, is_timed, has_graphs, table, everything, rows, unsure, spare.address
    )
    rewritten = spare.content[:spare_length].tobytes()
    bad: tuple[BadElement, ...] = ()
    if unsure_count:
        places, numbers, ends = unsure[:unsure_count].T.tolist()
        starts = rows.positions[places].tolist()
        contents = _parse_unsure_lines(text, starts, ends, first, format)
        bad = _report_bad_lines(starts, numbers, contents, stop, source, first_position, LineNumbers(first_line))
        rows, count, rewritten = fill_parsed_rows(rows, count, places, contents, patterns, everything, rewritten)
    if hidden:
        long_lines = _report_long_lines(hidden, stop, source, first_position, LineNumbers(first_line))
        bad = tuple(sorted((*bad, *long_lines), key=lambda one: one.position))
    has_key, key_time, key_graph, key_check = _split_key(continues)
    groups = ElementGroups.empty(count)
    kept, elements, is_open = group_lines(rows, count, stop, has_key, key_time, key_graph, key_check, breaks, groups)
    return ScannedColumns(
        triples=rows.triples[:kept],
        marks=rows.marks[:kept],
        spans=rows.spans[:kept],
        checks=rows.checks[:kept],
        element_times=groups.times[:elements],
        element_graphs=groups.graphs[:elements],
        element_graph_spans=groups.graph_spans[:elements],
        element_positions=groups.positions[:elements] + first_position,
        element_sizes=groups.sizes[:elements],
        element_rows=np.append(groups.first_rows[:elements], kept),
        bad=bad,
        lines=lines,
        parsed_lines=unsure_count,
        is_open=is_open and end is not None,
        has_graph_texts=has_graph_texts,
        text=text,
        rewritten=PaddedText.of(rewritten),
    )


def _split_key(continues: ElementKey | None) -> tuple[bool, int, int, np.uint16]:
    """Whether there is a key, its time, and id and check of its graph name."""
    if continues is None:
        return False, 0, 0, np.uint16(0)
    time, graph = continues
    if isinstance(graph, DefaultGraph):
        return True, time, NO_TERM, np.uint16(0)
    term_id, check = hash_and_check(term_text(graph).encode())
    return True, time, term_id, np.uint16(check & 0xFFFF)


def _lines_before(text: PaddedText, stop: int) -> PaddedText:
    """The lines of a text that begin before an offset."""
    if stop >= text.length:
        return text
    line_ends = np.flatnonzero(text.content[max(stop - 1, 0) :] == ord("\n")) if stop > 0 else np.array([-1])
    return PaddedText(text.array, max(stop - 1, 0) + int(line_ends[0]) + 1) if len(line_ends) else text


def _parse_unsure_lines(
    text: PaddedText, starts: Sequence[int], ends: Sequence[int], first: int, format: LineFormat
) -> list[LineContent]:
    content = text.content
    lines = [content[start or first : end].tobytes() for start, end in zip(starts, ends, strict=True)]
    return list(read_lines_by_parser(lines, format))


def _report_long_lines(
    hidden: Sequence[HiddenLine], stop: int, source: str, first_position: int, numbers: LineNumbers
) -> Iterator[BadElement]:
    for line in hidden:
        if line.start < stop:
            number = numbers.number(line.number)
            yield BadElement(line.reason, line.text, source, (first_position + line.start,), number)


def _report_bad_lines(
    starts: Sequence[int],
    counts: Sequence[int],
    contents: Sequence[LineContent],
    stop: int,
    source: str,
    first_position: int,
    numbers: LineNumbers,
) -> tuple[BadElement, ...]:
    return tuple(
        BadElement(content.reason, content.text, source, (first_position + start,), numbers.number(count))
        for start, count, content in zip(starts, counts, contents, strict=True)
        if isinstance(content, RefusedLine) and start < stop
    )
