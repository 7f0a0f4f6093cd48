"""Fills the rows of lines that the parser had to read, because the scanner was not sure of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from pyoxigraph import DefaultGraph

from headwater.terms.ids.inline_layout import NO_TERM
from headwater.terms.ids.term_ids import encode, term_text
from headwater.terms.ids.text_hash import hash_and_check
from headwater.terms.model import Term
from headwater.terms.scanning.lines import BAD_LINE, LineRows
from headwater.terms.scanning.parsed_lines import LineContent, RefusedLine
from headwater.terms.scanning.pattern_tables import ScanPatterns

_Entry: TypeAlias = tuple[int, int, int, int]
"""The id of a term, start and length of its text, and its check; a negative start: it is among the rewritten texts."""

_DEFAULT_GRAPH: _Entry = (NO_TERM, 0, 0, 0)


@dataclass(slots=True)
class _ParsedTerms:
    """Ids and texts of parsed terms; each text is kept once."""

    texts: list[bytes]
    size: int
    known: dict[Term, _Entry] = field(default_factory=dict)

    def add(self, term: Term) -> _Entry:
        found = self.known.get(term)
        if found is None:
            text = term_text(term).encode()
            found = self.known[term] = (encode(term), ~self.size, len(text), hash_and_check(text)[1])
            self.texts.append(text)
            self.size += len(text)
        return found


def fill_parsed_rows(
    rows: LineRows,
    count: int,
    places: Sequence[int],
    contents: Sequence[LineContent],
    patterns: ScanPatterns | None,
    mark: int,
    rewritten: bytes,
) -> tuple[LineRows, int, bytes]:
    """Fill the rows at some places with the contents of their lines.

    Gives the rows, their number, which grows where a line holds several statements, and the texts of the parsed terms
    behind those that were rewritten before.
    """
    repeats = np.ones(count, dtype=np.int64)
    for place, content in zip(places, contents, strict=True):
        if not isinstance(content, RefusedLine) and len(content) > 1:
            repeats[place] = len(content)
    targets = np.cumsum(repeats) - repeats
    if int(repeats.sum()) != count:
        rows, count = _repeat_rows(rows, count, repeats), int(repeats.sum())
    terms = _ParsedTerms([rewritten], len(rewritten))
    target_rows: list[int] = []
    times: list[int] = []
    entries: list[_Entry] = []
    for place, content in zip(places, contents, strict=True):
        row = int(targets[place])
        if isinstance(content, RefusedLine) or not content:
            rows.marks[row] = BAD_LINE
            continue
        for repeat, (time, triple, graph) in enumerate(content):
            target_rows.append(row + repeat)
            times.append(time)
            entries.extend(terms.add(term) for term in (triple.subject, triple.predicate, triple.object))
            entries.append(_DEFAULT_GRAPH if isinstance(graph, DefaultGraph) else terms.add(graph))
    found = np.array(entries, dtype=np.int64).reshape(len(target_rows), 4, 4)
    rows.times[target_rows] = times
    rows.triples[target_rows] = found[:, :3, 0]
    rows.graphs[target_rows] = found[:, 3, 0]
    rows.graph_checks[target_rows] = found[:, 3, 3].astype(np.uint16)
    if len(rows.checks):
        rows.checks[target_rows] = found[:, :3, 3]
    if len(rows.spans):
        rows.spans[target_rows] = found[:, :3, 1:3]
        rows.graph_spans[target_rows] = found[:, 3, 1:3]
    rows.marks[target_rows] = mark if patterns is None else patterns.mark_triples(rows.triples[target_rows])
    return rows, count, b"".join(terms.texts)


def _repeat_rows(rows: LineRows, count: int, repeats: np.ndarray[tuple[int], np.dtype[np.int64]]) -> LineRows:
    return LineRows(*(np.repeat(column[:count], repeats, axis=0) if len(column) else column for column in rows))
