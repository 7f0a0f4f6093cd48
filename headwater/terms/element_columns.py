"""Elements as columns of ids: what a scanner reads, what travels between processes, what the kernel takes in.

    times      the time of each element
    starts     where each element's triples begin, and one more entry for the end of the last
    triples    subject, predicate and object of each triple, as ids
    positions  the position of each element in its source (`Element.position`), a row of integers each
    texts      the texts of hashed ids that an answer or an expression may need
    checks     the checks of the terms (`terms.ids.text_hash`), which tell different terms with one id apart
    graphs     the id of each element's graph name, `NO_TERM` where it has none; empty where no element has one, or no
               query reads names

A source may leave out triples that match no pattern of a query; the elements stay, with fewer triples or none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from headwater.terms.ids.distinct_ids import DistinctIds
from headwater.terms.ids.inline_layout import NO_TERM
from headwater.terms.ids.owner_table import Checks
from headwater.terms.ids.term_ids import decode_inline, encode_with_check, is_inline, term_text
from headwater.terms.ids.term_texts import (
    Ints,
    TermTexts,
    concat_texts,
    is_partition,
    select_texts,
    term_of_text,
    texts_from_plain,
    texts_of_mapping,
    texts_to_plain,
)
from headwater.terms.model import Element, Term, Triple
from headwater.terms.packing import Plain
from headwater.terms.statements import graph_label, graph_term

NO_GRAPHS: Ints = np.zeros(0, dtype=np.int64)
"""The graph names of elements that have none."""


@dataclass(frozen=True, slots=True)
class ElementColumns:
    """Elements of one stream in the order of their arrival."""

    times: Ints
    starts: Ints
    triples: Ints
    positions: Ints
    texts: tuple[TermTexts, ...] = ()
    is_whole: bool = True
    """Whether no triple was left out, and every hashed term has its text."""
    checks: Checks | None = None
    """None where the terms were compared already."""
    graphs: Ints = field(default_factory=lambda: NO_GRAPHS)

    def __len__(self) -> int:
        return int(self.times.shape[0])

    def to_plain(self) -> Plain:
        """The columns as plain values."""
        texts = list(map(texts_to_plain, self.texts))
        plain = [self.times, self.starts, self.triples, self.positions, texts, self.is_whole, self.checks]
        return [*plain, self.graphs]

    @classmethod
    def from_plain(cls, value: Plain) -> ElementColumns:
        """The columns that `to_plain` gave; a `ValueError` where they do not fit together."""
        times, starts, triples, positions, texts, is_whole, checks, graphs = value
        if any(column.dtype != np.int64 for column in (times, starts, triples, positions, graphs)):
            raise ValueError("columns of elements have other types")
        if times.ndim != 1 or triples.ndim != 2 or triples.shape[1] != 3 or positions.ndim != 2:
            raise ValueError("columns of elements have other shapes")
        if graphs.ndim != 1 or graphs.shape[0] not in (0, len(times)):
            raise ValueError("names of graphs do not fit to the elements")
        if positions.shape[0] != len(times) or not is_partition(starts, len(times), triples.shape[0]):
            raise ValueError("columns of elements do not fit together")
        if checks is not None and (checks.dtype != np.uint32 or checks.shape != triples.shape):
            raise ValueError("the checks of elements do not fit to their triples")
        tables = tuple(map(texts_from_plain, texts))
        return cls(times, starts, triples, positions, tables, bool(is_whole), checks, graphs)

    @classmethod
    def of(
        cls, elements: Sequence[Element], encode: Callable[[Term], tuple[int, int]] = encode_with_check
    ) -> ElementColumns:
        """The columns of elements, with the text of every hashed term; `encode` may be a function that caches ids."""
        pairs = {t: encode(t) for element in elements for triple in element.triples for t in triple}
        names = {graph_term(element.graph) for element in elements if element.graph is not None}
        cells = [pairs[t] for element in elements for triple in element.triples for t in triple]
        triples = np.array([term_id for term_id, _ in cells], dtype=np.int64).reshape(-1, 3)
        checks = np.array([check for _, check in cells], dtype=np.uint32).reshape(-1, 3)
        # Of terms that have one id, all but the first are in a table of their own, until one of them is refused.
        pairs.update((name, encode(name)) for name in names)
        tables: list[dict[int, bytes]] = [{}]
        for term, (term_id, _) in pairs.items():
            if not is_inline(term_id):
                table = next((one for one in tables if term_id not in one), None)
                if table is None:
                    tables.append(table := {})
                table[term_id] = term_text(term).encode()
        texts = tuple(texts_of_mapping(table) for table in tables if table)
        columns = replace(cls.without_texts(elements, triples, texts), checks=checks)
        return columns.with_graphs_of(elements, lambda name: pairs[name][0]) if names else columns

    @classmethod
    def without_texts(
        cls, elements: Sequence[Element], triples: Ints, texts: tuple[TermTexts, ...] = ()
    ) -> ElementColumns:
        """The columns of elements whose ids and texts are known to the caller."""
        if len(elements) == 1:
            (one,) = elements
            starts = np.array((0, len(one.triples)), dtype=np.int64)
            positions = np.array((one.position,), dtype=np.int64)
            return cls(np.array((one.time,), dtype=np.int64), starts, triples, positions, texts)
        times = np.array([element.time for element in elements], dtype=np.int64)
        sizes = [len(element.triples) for element in elements]
        starts = np.array([*accumulate(sizes, initial=0)], dtype=np.int64)
        given = [element.position for element in elements]
        width = max(map(len, given), default=0)
        if len(given) > 1:
            given = [position + (0,) * (width - len(position)) for position in given]
        positions = np.array(given, dtype=np.int64).reshape(len(given), width)
        return cls(times, starts, triples, positions, texts)

    def with_graphs_of(self, elements: Sequence[Element], encode: Callable[[Term], int]) -> ElementColumns:
        """The same columns with the graph names of the elements that they are made of; `encode` gives ids."""
        names = [NO_TERM if one.graph is None else encode(graph_term(one.graph)) for one in elements]
        return replace(self, graphs=np.array(names, dtype=np.int64))

    def elements(self) -> list[Element]:
        """The elements as objects. Every term must have its text."""
        terms = {term_id: term_of_text(text) for texts in self.texts for term_id, text in texts.items()}
        starts, times, positions = self.starts.tolist(), self.times.tolist(), self.positions.tolist()
        ids = self.triples.tolist()

        def term_of(term_id: int) -> Term:
            term = terms.get(term_id)
            if term is None:
                term = terms[term_id] = decode_inline(term_id)
            return term

        triples = [Triple(term_of(s), term_of(p), term_of(o)) for s, p, o in ids]  # type: ignore[arg-type]
        labels = [None if name == NO_TERM else graph_label(term_of(name)) for name in self.graphs.tolist()]
        labels = labels or [None] * len(times)
        return [
            Element(times[i], tuple(triples[starts[i] : starts[i + 1]]), labels[i], tuple(positions[i]))
            for i in range(len(times))
        ]

    def select(self, places: Ints | npt.NDArray[np.bool_]) -> ElementColumns:
        """Some of the elements, by their indexes or by a mask."""
        indexes = np.flatnonzero(places) if places.dtype == np.bool_ else places
        if indexes.shape[0] == len(self) and (places.dtype == np.bool_ or bool((np.diff(indexes) == 1).all())):
            return self
        counts = (self.starts[1:] - self.starts[:-1])[indexes]
        starts = np.zeros(indexes.shape[0] + 1, dtype=np.int64)
        np.cumsum(counts, out=starts[1:])
        within = np.arange(int(starts[-1])) - np.repeat(starts[:-1], counts)
        rows = np.repeat(self.starts[indexes], counts) + within
        return replace(
            self,
            times=self.times[indexes],
            starts=starts,
            triples=self.triples[rows],
            positions=self.positions[indexes],
            checks=None if self.checks is None else self.checks[rows],
            graphs=self.graphs[indexes] if self.graphs.shape[0] else self.graphs,
        )

    def select_triples(self, is_wanted: npt.NDArray[np.bool_]) -> ElementColumns:
        """All elements with some of their triples."""
        before = np.zeros(is_wanted.shape[0] + 1, dtype=np.int64)
        np.cumsum(is_wanted, out=before[1:])
        checks = None if self.checks is None else self.checks[is_wanted]
        return replace(self, starts=before[self.starts], triples=self.triples[is_wanted], checks=checks)

    def slice(self, low: int, high: int) -> ElementColumns:
        """The elements from `low` to before `high`, which share memory with these."""
        if low == 0 and high == len(self):
            return self
        begin, end = self.starts[low], self.starts[high]
        return replace(
            self,
            times=self.times[low:high],
            starts=self.starts[low : high + 1] - begin,
            triples=self.triples[begin:end],
            positions=self.positions[low:high],
            checks=None if self.checks is None else self.checks[begin:end],
            graphs=self.graphs[low:high],
        )

    def in_time_order(self) -> ElementColumns:
        """The same elements sorted by time, those of one instant in arrival order."""
        if len(self) < 2 or bool((self.times[1:] >= self.times[:-1]).all()):
            return self
        return self.select(np.argsort(self.times, kind="stable"))

    def split_into_triples(self) -> ElementColumns:
        """Each triple as an element of its own."""
        if self.times.shape[0] == 1 and self.triples.shape[0] == 1:
            return self
        counts = self.starts[1:] - self.starts[:-1]
        if bool((counts == 1).all()):
            return self
        return replace(
            self,
            times=np.repeat(self.times, counts),
            starts=np.arange(self.triples.shape[0] + 1),
            positions=np.repeat(self.positions, counts, axis=0),
            graphs=np.repeat(self.graphs, counts) if self.graphs.shape[0] else self.graphs,
        )

    def with_own_texts(self) -> ElementColumns:
        """The same elements with the texts of their own terms only, each once."""
        ids = np.concatenate((self.triples.ravel(), self.graphs)) if self.graphs.shape[0] else self.triples
        used = DistinctIds(ids, only_hashes=True)
        own = [selected for texts in self.texts if len(selected := select_texts(texts, used.take(texts.ids)))]
        return replace(self, texts=(concat_texts(own),) if own else ())

    def with_positions(self, positions: Ints) -> ElementColumns:
        return replace(self, positions=positions)

    @property
    def nbytes(self) -> int:
        arrays = (self.times, self.starts, self.triples, self.positions, self.checks, self.graphs)
        return sum(array.nbytes for array in arrays if array is not None) + sum(
            t.ids.nbytes + t.offsets.nbytes + t.blob.nbytes for t in self.texts
        )


def concat_columns(parts: Iterable[ElementColumns]) -> ElementColumns:
    """The elements of several columns, one after the other."""
    full = [part for part in parts if len(part)]
    if len(full) == 1:
        return full[0]
    if not full:
        return NO_ELEMENTS
    ends = np.cumsum([part.triples.shape[0] for part in full])
    starts = [part.starts[:-1] + end - part.triples.shape[0] for part, end in zip(full, ends, strict=True)]
    width = max(part.positions.shape[1] for part in full)
    texts = {id(one): one for part in full for one in part.texts}
    return ElementColumns(
        np.concatenate([part.times for part in full]),
        np.concatenate([*starts, ends[-1:]]),
        np.concatenate([part.triples for part in full]),
        np.concatenate([_widen_positions(part.positions, width) for part in full]),
        tuple(texts.values()),
        all(part.is_whole for part in full),
        _concat_checks(full),
        np.concatenate([_graphs_of(part) for part in full])
        if any(part.graphs.shape[0] for part in full)
        else NO_GRAPHS,
    )


def _concat_checks(parts: Sequence[ElementColumns]) -> Checks | None:
    checks = [part.checks for part in parts if part.checks is not None]
    return np.concatenate(checks) if len(checks) == len(parts) else None


def _graphs_of(columns: ElementColumns) -> Ints:
    """The graph names of elements, one for each."""
    return columns.graphs if columns.graphs.shape[0] else np.full(len(columns), NO_TERM, dtype=np.int64)


def _widen_positions(positions: Ints, width: int) -> Ints:
    if positions.shape[1] == width:
        return positions
    wide = np.zeros((positions.shape[0], width), dtype=np.int64)
    wide[:, : positions.shape[1]] = positions
    return wide


NO_ELEMENTS = ElementColumns(
    np.zeros(0, dtype=np.int64),
    np.zeros(1, dtype=np.int64),
    np.zeros((0, 3), dtype=np.int64),
    np.zeros((0, 0), dtype=np.int64),
)
