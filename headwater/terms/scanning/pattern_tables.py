"""Which triples are wanted, and the texts of which of their terms.

A pattern has an id or `ANY` in each place, and the places whose text is needed: those of variables that can reach an
answer or an expression. A triple is kept if it matches at least one pattern.

    patterns = Patterns([Pattern(predicate=encode(temperature), texts="o"), Pattern(predicate=encode(kind))])

However many patterns there are, a triple costs a look for its predicate and, if that occurs, one look for each way in
which patterns leave places open (at most eight): patterns are kept in a hash table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from headwater.terms.compiled_code import compiled

ANY = -1
"""Stands for a variable; it is no term's id."""

KEPT = 8
"""Bit of a mark: the triple is wanted. The lower bits say whose text is: 1 subject, 2 predicate, 4 object."""

_PLACES = "spo"
_ODD = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)


@dataclass(frozen=True, slots=True)
class ScanPattern:
    """A triple pattern of ids, and the places (of `spo`) whose text is needed."""

    subject: int = ANY
    predicate: int = ANY
    object: int = ANY
    texts: str = _PLACES


class PatternTable(NamedTuple):
    """Patterns as compiled code reads them."""

    ids: Any
    """(n, 3) int64: the ids of each different pattern."""
    marks: Any
    """(n,) uint8: the mark that a triple gets from a pattern."""
    bound: Any
    """uint8: the different sets of places that patterns bind, as bits."""
    slots: Any
    """int32: an open hash table of indexes into `ids`, each plus one; 0 where a slot is free."""
    predicates: Any
    """int64: an open hash table of the predicates, `ANY` where a slot is free; empty where a pattern leaves it open."""


class ScanPatterns:
    """Patterns with the hash table in which compiled code looks them up."""

    def __init__(self, patterns: Iterable[ScanPattern], *, has_graphs: bool = False) -> None:
        self.has_graphs = has_graphs
        """Whether the names of graphs are wanted."""
        marks: dict[tuple[int, int, int], int] = {}
        for pattern in patterns:
            ids = (pattern.subject, pattern.predicate, pattern.object)
            marks[ids] = marks.get(ids, 0) | mark_of(pattern.texts)
        self.table = _build_table(marks)

    def __len__(self) -> int:
        return len(self.table.marks)

    def mark_triples(self, triples: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        """The mark of each row of ids; 0 where no pattern matches."""
        marks = np.zeros(len(triples), dtype=np.uint8)
        _mark_triples(self.table, np.ascontiguousarray(triples), marks)
        return marks


def mark_of(texts: str) -> int:
    """The mark of a triple that is kept, with the texts of some places."""
    unknown = set(texts) - set(_PLACES)
    if unknown:
        raise ValueError(f"{texts!r}: the places of a triple are s, p and o")
    return KEPT | sum(1 << place for place, name in enumerate(_PLACES) if name in texts)


def _build_table(marks: dict[tuple[int, int, int], int]) -> PatternTable:
    ids = np.array(list(marks), dtype=np.int64).reshape(len(marks), 3)
    size = 4
    while size < 2 * len(marks) + 2:
        size *= 2
    slots = np.zeros(size, dtype=np.int32)
    predicates = np.full(0 if (ids[:, 1] == ANY).any() else size, ANY, dtype=np.int64)
    bound = np.unique((ids != ANY) @ np.array([1, 2, 4])).astype(np.uint8)
    if marks:  # no patterns need no compiled code: importing the scanner makes such a table
        _fill_table(ids, slots, predicates)
    return PatternTable(ids, np.array(list(marks.values()), dtype=np.uint8), bound, slots, predicates)


@compiled
def _mix_bits(value):  # type: ignore[no-untyped-def]
    x = np.uint64(value)
    x ^= x >> _HALF
    x *= _ODD
    x ^= x >> _HALF
    return x


@compiled
def _slot_of(subject, predicate, object_, size):  # type: ignore[no-untyped-def]
    bits = _mix_bits(_mix_bits(_mix_bits(np.uint64(subject)) ^ np.uint64(predicate)) ^ np.uint64(object_))
    return np.int64(bits >> _HALF) & (size - 1)


@compiled
def _fill_table(ids, slots, predicates):  # type: ignore[no-untyped-def]
    size = slots.shape[0]
    for pattern in range(ids.shape[0]):
        slot = _slot_of(ids[pattern, 0], ids[pattern, 1], ids[pattern, 2], size)
        while slots[slot] != 0:
            slot = (slot + 1) & (size - 1)
        slots[slot] = pattern + 1
        if predicates.shape[0] > 0:
            predicate = ids[pattern, 1]
            slot = np.int64(_mix_bits(predicate) >> _HALF) & (size - 1)
            while predicates[slot] != ANY and predicates[slot] != predicate:
                slot = (slot + 1) & (size - 1)
            predicates[slot] = predicate


@compiled(inline="always")
def has_predicate(predicates, predicate):  # type: ignore[no-untyped-def]
    """Whether some pattern may match a triple with this predicate."""
    size = predicates.shape[0]
    is_possible = size == 0
    if size > 0:
        slot = np.int64(_mix_bits(predicate) >> _HALF) & (size - 1)
        while predicates[slot] != ANY and predicates[slot] != predicate:
            slot = (slot + 1) & (size - 1)
        is_possible = predicates[slot] == predicate
    return is_possible


@compiled(inline="always")
def find_mark(ids, marks, bound, slots, subject, predicate, object_):  # type: ignore[no-untyped-def]
    """The marks of all patterns that match a triple; 0 if none does."""
    size = slots.shape[0]
    mark = 0
    for way in range(bound.shape[0]):
        s = subject if bound[way] & 1 else np.int64(ANY)
        p = predicate if bound[way] & 2 else np.int64(ANY)
        o = object_ if bound[way] & 4 else np.int64(ANY)
        slot = _slot_of(s, p, o, size)
        while slots[slot] != 0:
            pattern = slots[slot] - 1
            if ids[pattern, 0] == s and ids[pattern, 1] == p and ids[pattern, 2] == o:
                mark |= marks[pattern]
                break
            slot = (slot + 1) & (size - 1)
    return mark


@compiled
def _mark_triples(table, triples, found):  # type: ignore[no-untyped-def]
    ids, marks, bound, slots, predicates = table
    for row in range(triples.shape[0]):
        subject, predicate, object_ = triples[row, 0], triples[row, 1], triples[row, 2]
        if has_predicate(predicates, predicate):
            found[row] = find_mark(ids, marks, bound, slots, subject, predicate, object_)
