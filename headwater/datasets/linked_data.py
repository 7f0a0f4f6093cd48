"""All data sets of a program as one: what the evaluators ask, whatever it comes from.

A statement that several data sets have is there once. All of them are at some version; together these are the version
that answers name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from pyoxigraph import DefaultGraph

from headwater.datasets.changes import IdQuad, Overlay
from headwater.datasets.columns import Pairs, Place
from headwater.datasets.dataset import DataSet, id_or_none
from headwater.datasets.errors import DataSetError
from headwater.terms.exact import stored_quad
from headwater.terms.ids import decode_inline
from headwater.terms.inline_layout import NO_TERM, is_inline
from headwater.terms.model import NamedNode, Quad, Term
from headwater.terms.term_texts import term_of_text

_REMEMBERED_TERMS = 1 << 16


class LinkedData:
    """Data sets, each at a version."""

    def __init__(self, datasets: Sequence[DataSet]) -> None:
        self.datasets = tuple(datasets)
        self._terms: dict[int, Term] = {}

    @property
    def version(self) -> tuple[int, ...]:
        """The versions of the data sets, in their order."""
        return tuple(one.version for one in self.datasets)

    @property
    def states(self) -> list[Overlay]:
        return [one.state for one in self.datasets]

    def named_graphs(self) -> Iterator[NamedNode]:
        """The names of all graphs."""
        return iter(dict.fromkeys(graph for one in self.datasets for graph in one.named_graphs()))

    def quads_for_pattern(self, subject: Any, predicate: Any, object: Any, graph_name: Any = None, /) -> Iterator[Quad]:
        """The statements that match, as a store would give them; None stands for anything."""
        wanted = [id_or_none(term) for term in (subject, predicate, object, graph_name)]
        return (stored_quad(self._quad(quad)) for quad in self.id_quads(*wanted))

    def quads(self) -> Iterator[Quad]:
        """All statements as they were written."""
        return map(self._quad, self.id_quads(None, None, None, None))

    def id_quads(
        self, subject: int | None, predicate: int | None, object: int | None, graph: int | None
    ) -> Iterator[IdQuad]:
        """The statements that match, each once."""
        if len(self.datasets) == 1:
            return self.datasets[0].id_quads(subject, predicate, object, graph)
        found = (quad for one in self.datasets for quad in one.id_quads(subject, predicate, object, graph))
        return iter(dict.fromkeys(found))

    def _quad(self, quad: IdQuad) -> Quad:
        graph, s, p, o = quad
        name: Any = DefaultGraph() if graph == NO_TERM else self.term_of(graph)
        subject: Any = self.term_of(s)
        predicate: Any = self.term_of(p)
        return Quad(subject, predicate, self.term_of(o), name)

    def term_of(self, number: int) -> Term:
        """The term of an id that stands in the data."""
        known = self._terms.get(number)
        if known is not None:
            return known
        if is_inline(number):
            return decode_inline(number)
        text = self.text_of(number)
        if text is None:
            raise DataSetError(f"a data set is damaged: it has no term {number}; load its files again")
        if len(self._terms) >= _REMEMBERED_TERMS:
            self._terms.clear()
        term = self._terms[number] = term_of_text(text)
        return term

    def text_of(self, number: int) -> bytes | None:
        """The text of a hashed id, None where no data set has it."""
        for state in self.states:
            text = state.text_of(number)
            if text is not None:
                return text
        return None

    def places(self) -> set[Place]:
        """The graphs and predicates that may have statements."""
        return {place for state in self.states for place in state.places()}

    def pairs(self, place: Place) -> Pairs:
        """Subjects and objects of a predicate in a graph, in the order of the subjects."""
        return _united([state.pairs(place) for state in self.states])

    def reversed_pairs(self, place: Place) -> Pairs:
        """Objects and subjects of a predicate in a graph, in the order of the objects."""
        return _united([state.reversed_pairs(place) for state in self.states])


def _united(parts: Sequence[Pairs]) -> Pairs:
    full = [part for part in parts if part[0].shape[0]]
    if len(full) == 1:
        return full[0]
    if not full:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    first, second = (np.concatenate(columns) for columns in zip(*full, strict=True))
    order = np.lexsort((second, first))
    first, second = first[order], second[order]
    is_new = np.ones(first.shape[0], dtype=np.bool_)
    is_new[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    return first[is_new], second[is_new]
