"""The loop over the lines of a text, compiled: each line becomes a row, or is left to the parser.

A line whose every byte is understood gives ids and spans. Of a line that no pattern wants, only the time and the graph
are kept, because they say where elements begin and end. A line with anything wrong or unusual gets an empty row and an
entry in `unsure`.

Functions that take arrays have to be inlined by numba itself: a call would count references to each of them, which
takes longer than to read the line.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from headwater.terms.compiled_code import compiled
from headwater.terms.ids.inline_layout import NO_TERM
from headwater.terms.scanning.ascii_bytes import (
    CARRIAGE_RETURN,
    DOT,
    FORM_FEED,
    LESS_THAN,
    LINE_FEED,
    NUMBER_SIGN,
    QUOTE,
    SPACE,
    TAB,
    VERTICAL_TAB,
)
from headwater.terms.scanning.byte_hashes import hash_and_check_of
from headwater.terms.scanning.escapes import scan_rewritten_literal
from headwater.terms.scanning.iri_ends import UNSURE_END, iri_end
from headwater.terms.scanning.memory import BLOCK, byte_at, count_bits, line_feeds, lowest_bit
from headwater.terms.scanning.pattern_tables import find_mark, has_predicate
from headwater.terms.scanning.term_ends import node_end, scan_term, skip_blanks
from headwater.terms.scanning.texts import is_same_text
from headwater.terms.scanning.times import NO_TIME, scan_timestamp

UNSURE_LINE = 128
"""The mark of a line that the parser shall read. Marks are otherwise those of `pattern_tables`; 0 is a line that no
pattern wants."""

BAD_LINE = 64
"""The mark of a line that the parser refused."""

_LONGEST_STAMP = 40
_ZERO = np.uint64(0)


class LineRows(NamedTuple):
    """One row per line that means something, as arrays that compiled code fills."""

    times: Any
    graphs: Any
    positions: Any
    """The offset of the line."""
    triples: Any
    """(n, 3): subject, predicate, object."""
    spans: Any
    """(n, 3, 2) int32: offset and length of the canonical texts of the triple."""
    graph_spans: Any
    """(n, 2) int32: the same of the graph name."""
    marks: Any
    checks: Any
    """(n, 3) uint32: the checks of the triple's texts (`terms.ids.text_hash`); of no meaning where the id is inline."""
    graph_checks: Any
    """(n,) uint16: bits of the graph name's check; names are compared with those of the line before alone."""

    @classmethod
    def empty(cls, count: int, has_spans: bool, has_checks: bool) -> LineRows:
        """Room for some rows; memory is taken only as it is filled."""
        with_text = count if has_spans else 0
        with_check = count if has_checks else 0
        return cls(
            times=np.empty(count, dtype=np.int64),
            graphs=np.empty(count, dtype=np.int64),
            positions=np.empty(count, dtype=np.int64),
            triples=np.empty((count, 3), dtype=np.int64),
            spans=np.empty((with_text, 3, 2), dtype=np.int32),
            graph_spans=np.empty((with_text, 2), dtype=np.int32),
            marks=np.empty(count, dtype=np.uint8),
            checks=np.empty((with_check, 3), dtype=np.uint32),
            graph_checks=np.empty(count, dtype=np.uint16),
        )


@compiled(nogil=True)
def count_lines(start, end):  # type: ignore[no-untyped-def]
    """How many line feeds stand between two addresses."""
    lines = np.int64(0)
    at = start
    while at + BLOCK <= end:
        lines += count_bits(line_feeds(at))
        at += BLOCK
    while at < end:
        lines += byte_at(at) == LINE_FEED
        at += 1
    return lines


@compiled
def _line_end(at):  # type: ignore[no-untyped-def]
    """The address of the next line feed; there is one behind the text."""
    found = line_feeds(at)
    while found == _ZERO:
        at += BLOCK
        found = line_feeds(at)
    return at + lowest_bit(found)


@compiled
def _meaningless_end(start, is_timed):  # type: ignore[no-untyped-def]
    """The end of a line that is a comment or blank; `UNSURE_END` where it is neither, or has to be looked at."""
    at = start
    found = byte_at(at)
    if found == NUMBER_SIGN:
        if is_timed:
            return _line_end(at)
        while found != CARRIAGE_RETURN and found != LINE_FEED:
            at += 1
            found = byte_at(at)
        while byte_at(at) == CARRIAGE_RETURN:
            at += 1
    else:
        while found in (SPACE, TAB, CARRIAGE_RETURN) or (is_timed and (found in (VERTICAL_TAB, FORM_FEED))):
            at += 1
            found = byte_at(at)
    return at if byte_at(at) == LINE_FEED else np.int64(UNSURE_END)


@compiled
def _stamp_end(start):  # type: ignore[no-untyped-def]
    """The address of the tab behind a timestamp."""
    at = start
    while byte_at(at) > TAB and at - start < _LONGEST_STAMP:
        at += 1
    return at if byte_at(at) == TAB else np.int64(UNSURE_END)


@compiled
def _first_terms(start):  # type: ignore[no-untyped-def]
    """Subject and predicate of a statement: where the predicate ends, and address and length of both.

    The end is `UNSURE_END` where the parser shall read the line.
    """
    nothing = (np.int64(0), np.int64(0))
    subject = skip_blanks(start)
    subject_end = node_end(subject)
    if subject_end == UNSURE_END:
        return subject_end, nothing, nothing
    predicate = skip_blanks(subject_end)
    end = iri_end(predicate) if byte_at(predicate) == LESS_THAN else np.int64(UNSURE_END)
    return end, (subject, subject_end - subject), (predicate, end - predicate)


@compiled
def _other_terms(start, wanted, has_graphs, spare):  # type: ignore[no-untyped-def]
    """Object and graph name of a statement: where the line ends, and address, length, id and check of both.

    A literal that is not canonical is written to the address `spare`. The end is `UNSURE_END` where the parser shall
    read the line.
    """
    unsure = np.int64(UNSURE_END)
    nothing = (np.int64(0), np.int64(0), np.int64(NO_TERM), np.uint32(0))
    value = skip_blanks(start)
    value_end, value_id, value_length, value_check = scan_term(value, wanted)
    if value_end == UNSURE_END:
        if byte_at(value) != QUOTE:
            return unsure, nothing, nothing
        value_end, value_id, value_length, value_check = scan_rewritten_literal(value, spare, wanted)
        if value_end == UNSURE_END:
            return unsure, nothing, nothing
        value = spare
    dot = skip_blanks(value_end)
    graph = nothing
    if byte_at(dot) != DOT:
        graph_end = node_end(dot) if has_graphs else unsure
        if graph_end == UNSURE_END:
            return unsure, nothing, nothing
        graph_id, graph_check = hash_and_check_of(dot, graph_end - dot)
        graph = (dot, graph_end - dot, graph_id, graph_check)
        dot = skip_blanks(graph_end)
        if byte_at(dot) != DOT:
            return unsure, nothing, nothing
    end = skip_blanks(dot + 1)
    if byte_at(end) == NUMBER_SIGN:
        while byte_at(end) != CARRIAGE_RETURN and byte_at(end) != LINE_FEED:
            end += 1
    while byte_at(end) == CARRIAGE_RETURN:
        end += 1
    return end if byte_at(end) == LINE_FEED else unsure, (value, value_length, value_id, value_check), graph


@compiled(nogil=True)
def read_lines(base, length, first, end, is_timed, has_graphs, table, everything, rows, unsure, spare):  # type: ignore[no-untyped-def]
    """Read the lines of a text from the offset `first` on.

    `everything` is the mark of every triple where there are no patterns, 0 where there are. Lines at `end` or behind it
    are read while they may belong to the element before. Canonical texts of literals that are written otherwise go to
    the address `spare`. Gives the number of rows, of entries in `unsure` (row, line, offset of the line's end), of
    lines, and of bytes at `spare`.
    """
    times, graphs, positions, triples, spans, graph_spans, marks, checks, graph_checks = rows
    pattern_ids, pattern_marks, bound, slots, predicates = table
    finish = base + length
    spare_end = spare
    has_spans = spans.shape[0] > 0
    has_checks = checks.shape[0] > 0
    at = base + first
    position = np.int64(0)
    row = 0
    unsure_count = 0
    line = 0
    stamp = base
    stamp_length = np.int64(0)
    time = np.int64(0)
    # Subjects and predicates are often those of the line before, and are then not hashed again.
    known_subject = known_predicate = (base, np.int64(0))
    subject_id = predicate_id = np.int64(0)
    subject_check = predicate_check = np.uint32(0)
    while at < finish:
        start = at
        if byte_at(start) <= NUMBER_SIGN:
            at = _meaningless_end(start, is_timed)
            if at != UNSURE_END:
                at += 1
                position = at - base
                line += 1
                continue
        sure = True
        if is_timed and not (stamp_length > 0 and is_same_text(start, stamp, stamp_length)):
            tab = _stamp_end(start)
            time = scan_timestamp(start, tab) if tab != UNSURE_END else np.int64(NO_TIME)
            sure = time != NO_TIME
            stamp = start
            stamp_length = tab + 1 - start if sure else np.int64(0)
        at = np.int64(UNSURE_END)
        positions[row] = position
        if sure:
            predicate_end, subject, predicate = _first_terms(start + stamp_length)
            if predicate_end != UNSURE_END:
                if not _is_known(predicate, known_predicate):
                    known_predicate = predicate
                    predicate_id, predicate_check = hash_and_check_of(*predicate)
                wanted = everything != 0 or has_predicate(predicates, predicate_id)
                at, object_, graph = _other_terms(predicate_end, wanted, has_graphs, spare_end)
                if at != UNSURE_END:
                    times[row] = time
                    graphs[row] = graph[2]
                    graph_checks[row] = np.uint16(graph[3])
                    mark = everything
                    if wanted:
                        if not _is_known(subject, known_subject):
                            known_subject = subject
                            subject_id, subject_check = hash_and_check_of(*subject)
                        if everything == 0:
                            object_id = object_[2]
                            mark = find_mark(
                                pattern_ids, pattern_marks, bound, slots, subject_id, predicate_id, object_id
                            )
                        _write_ids(triples, row, subject_id, predicate_id, object_[2])
                        if has_checks and mark:
                            _write_checks(checks, row, subject_check, predicate_check, object_)
                    marks[row] = mark
                    if has_spans:
                        graph_spans[row, 0] = graph[0] - base if graph[1] else 0
                        graph_spans[row, 1] = graph[1]
                        if mark:
                            _write_spans(spans, row, base, subject, predicate, object_)
                            if object_[0] == spare_end:
                                spans[row, 2, 0] = ~(spare_end - spare)
                                spare_end += object_[1]
        if at == UNSURE_END:
            at = _line_end(start)
            marks[row] = UNSURE_LINE
            unsure[unsure_count, 0] = row
            unsure[unsure_count, 1] = line
            unsure[unsure_count, 2] = at - base
            unsure_count += 1
        row += 1
        line += 1
        if (
            position >= end
            and marks[row - 1] != UNSURE_LINE
            and (row == 1 or _is_new_key(times, graphs, graph_checks, marks, row - 1))
        ):
            break
        at += 1
        position = at - base
    return row, unsure_count, line, spare_end - spare


@compiled
def _is_known(term, known):  # type: ignore[no-untyped-def]
    """Whether two terms, given by address and length, are equal."""
    return term[1] == known[1] and is_same_text(term[0], known[0], term[1])


@compiled(inline="always")
def _write_ids(triples, row, subject, predicate, object_):  # type: ignore[no-untyped-def]
    triples[row, 0] = subject
    triples[row, 1] = predicate
    triples[row, 2] = object_


@compiled(inline="always")
def _write_checks(checks, row, subject_check, predicate_check, object_):  # type: ignore[no-untyped-def]
    checks[row, 0] = subject_check
    checks[row, 1] = predicate_check
    checks[row, 2] = object_[3]


@compiled(inline="always")
def _write_spans(spans, row, base, subject, predicate, object_):  # type: ignore[no-untyped-def]
    spans[row, 0, 0] = subject[0] - base
    spans[row, 0, 1] = subject[1]
    spans[row, 1, 0] = predicate[0] - base
    spans[row, 1, 1] = predicate[1]
    spans[row, 2, 0] = object_[0] - base
    spans[row, 2, 1] = object_[1]


@compiled(inline="always")
def _is_new_key(times, graphs, graph_checks, marks, row):  # type: ignore[no-untyped-def]
    """Whether the element of the row before has surely ended."""
    is_same_graph = graphs[row] == graphs[row - 1] and graph_checks[row] == graph_checks[row - 1]
    return marks[row - 1] != UNSURE_LINE and (times[row] != times[row - 1] or not is_same_graph)
