"""Scanned columns as elements of Python objects."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.terms.ids.inline_layout import NO_TERM, is_inline
from headwater.terms.ids.term_ids import decode_inline
from headwater.terms.model import BadElement, Element, Term, Triple
from headwater.terms.scanning.scanned_columns import ScannedColumns
from headwater.terms.statements import graph_label


def scanned_elements(scanned: ScannedColumns) -> Iterator[Element | BadElement]:
    """The elements and the bad lines in the order of their positions; all texts must have been collected.

    An element has those of its triples that a pattern wants.
    """
    hashed = scanned.texts().terms()

    def term_of(term_id: int) -> Term:
        return decode_inline(term_id) if is_inline(term_id) else hashed[term_id]

    triples = [_make_triple(*map(term_of, row)) for row in scanned.triples.tolist()]
    bounds = scanned.element_rows.tolist()
    found: list[Element | BadElement] = [*scanned.bad]
    for number, (time, graph, position) in enumerate(
        zip(
            scanned.element_times.tolist(),
            scanned.element_graphs.tolist(),
            scanned.element_positions.tolist(),
            strict=True,
        )
    ):
        name = None if graph == NO_TERM else graph_label(term_of(graph))
        rows = tuple(triples[bounds[number] : bounds[number + 1]])
        found.append(Element(time, rows, name, (position,)))
    found.sort(key=lambda item: item.position)
    return iter(found)


def _make_triple(subject: Term, predicate: Term, object: Term) -> Triple:
    return Triple(subject, predicate, object)  # type: ignore[arg-type]
