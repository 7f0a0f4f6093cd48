"""Putting into their rows what the parser said of the lines that the scanner was not sure of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from pyoxigraph import DefaultGraph

from headwater.terms.ids.inline_layout import NO_TERM
from headwater.terms.ids.term_ids import encode, term_text
from headwater.terms.model import Term
from headwater.terms.scanning.lines import BAD_LINE, Rows
from headwater.terms.scanning.parsed_lines import LineContent, Refused
from headwater.terms.scanning.pattern_tables import Patterns

_Entry: TypeAlias = tuple[int, int, int]
"""The id of a term, and start and length of its text; a negative start says that it stands among the rewritten."""

_DEFAULT_GRAPH: _Entry = (NO_TERM, 0, 0)


@dataclass(slots=True)
class _Terms:
    """Ids and texts of parsed terms; each text is kept once."""

    texts: list[bytes]
    size: int
    known: dict[Term, _Entry] = field(default_factory=dict)

    def add(self, term: Term) -> _Entry:
        found = self.known.get(term)
        if found is None:
            text = term_text(term).encode()
            found = self.known[term] = (encode(term), ~self.size, len(text))
            self.texts.append(text)
            self.size += len(text)
        return found


def resolve(
    rows: Rows,
    count: int,
    places: Sequence[int],
    contents: Sequence[LineContent],
    patterns: Patterns | None,
    mark: int,
    rewritten: bytes,
) -> tuple[Rows, int, bytes]:
    """Fill the rows at some places with the contents of their lines.

    Gives the rows, their number, which grows where a line holds several statements, and the texts of the parsed terms
    behind those that were rewritten before.
    """
    repeats = np.ones(count, dtype=np.int64)
    for place, content in zip(places, contents, strict=True):
        if not isinstance(content, Refused) and len(content) > 1:
            repeats[place] = len(content)
    targets = np.cumsum(repeats) - repeats
    if int(repeats.sum()) != count:
        rows, count = _repeated(rows, count, repeats), int(repeats.sum())
    terms = _Terms([rewritten], len(rewritten))
    filled: list[int] = []
    times: list[int] = []
    entries: list[_Entry] = []
    for place, content in zip(places, contents, strict=True):
        row = int(targets[place])
        if isinstance(content, Refused) or not content:
            rows.marks[row] = BAD_LINE
            continue
        for number, (time, triple, graph) in enumerate(content):
            filled.append(row + number)
            times.append(time)
            entries.extend(terms.add(term) for term in (triple.subject, triple.predicate, triple.object))
            entries.append(_DEFAULT_GRAPH if isinstance(graph, DefaultGraph) else terms.add(graph))
    found = np.array(entries, dtype=np.int64).reshape(len(filled), 4, 3)
    rows.times[filled] = times
    rows.triples[filled] = found[:, :3, 0]
    rows.graphs[filled] = found[:, 3, 0]
    if len(rows.spans):
        rows.spans[filled] = found[:, :3, 1:]
        rows.graph_spans[filled] = found[:, 3, 1:]
    rows.marks[filled] = mark if patterns is None else patterns.marks(rows.triples[filled])
    return rows, count, b"".join(terms.texts)


def _repeated(rows: Rows, count: int, repeats: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Rows:
    return Rows(*(np.repeat(column[:count], repeats, axis=0) if len(column) else column for column in rows))
