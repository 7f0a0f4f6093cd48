"""Conjunctions evaluated on sorted columns: each pattern in turn looks up what is bound already.

    bindings ⋈ pattern:   for each binding of ?s the range of ?s in the column of subjects, by binary search
                          (or of ?o in the column of objects), then the values beside it

The pattern with the fewest matches comes first, then always one that shares a variable and multiplies least. A pattern
whose predicate is a variable is matched predicate by predicate. Where a condition leaves a variable a few terms only,
these come before all patterns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from headwater.algebra.scope import mentioned
from headwater.datasets.mapped_files import Ints
from headwater.datasets.statement_columns import Pairs, Place, united
from headwater.datasets.views.conjunctions import Conjunction, Part, Pattern
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.expressions.compiled_expressions import CompiledExpression
from headwater.terms.ids.term_texts import Kinds

_MANY = 4096
"""From so many keys on it pays to look them up in their order."""


class Statements(Protocol):
    """What is asked of data sets."""

    def pairs(self, place: Place) -> Pairs: ...

    def reversed_pairs(self, place: Place) -> Pairs: ...

    def places(self) -> set[Place]: ...

    def text_of(self, number: int) -> bytes | None: ...

    def kinds_of(self, ids: Ints) -> Kinds: ...


def solutions(conjunction: Conjunction, data: Statements) -> Ints:
    """All solutions, a row for each, in no order."""
    columns, size = extended({}, 1, conjunction, data)
    rows = np.empty((size, len(conjunction.variables)), dtype=np.int64)
    for place, name in enumerate(conjunction.variables):
        rows[:, place] = columns[name]
    return rows


def extended(
    start: dict[str, Ints], size: int, conjunction: Conjunction, data: Statements
) -> tuple[dict[str, Ints], int]:
    """The bindings of `start`, so many, each with every solution that goes with it: columns, and how many."""
    matching = _Matching(conjunction, data, start, size)
    return matching.columns(), matching.size


class _Matching:
    def __init__(self, conjunction: Conjunction, data: Statements, start: dict[str, Ints], size: int) -> None:
        self._conjunction = conjunction
        self._data = data
        self._places = data.places()
        self._columns = dict(start)
        self.size = size
        self._conditions = list(conjunction.conditions)
        self._vocabulary = Vocabulary(data.text_of, data.kinds_of)
        if not start:
            self._begin_with_the_fewest()

    def _begin_with_the_fewest(self) -> None:
        """Bind a variable that can only be one of a few terms, so that they are looked up."""
        found = self._conjunction.fewest
        if found is not None:
            # The data may not have them, and other conditions may want to read them.
            ids = dict.fromkeys(map(self._vocabulary.id_of, found[1]))
            self._columns[found[0]] = np.array(list(ids), dtype=np.int64)
            self.size = len(ids)

    def columns(self) -> dict[str, Ints]:
        left = list(self._conjunction.patterns)
        self._filter()
        while left and self.size:
            pattern = min(left, key=self._cost)
            left.remove(pattern)
            self._join(pattern)
            self._filter()
        nothing = np.empty(0, dtype=np.int64)
        return self._columns if self.size else dict.fromkeys([*self._columns, *self._conjunction.variables], nothing)

    def _cost(self, pattern: Pattern) -> tuple[bool, float]:
        """How many matches a binding has, about; a pattern that shares nothing comes last."""
        known = {name for name in pattern.variables if name in self._columns}
        total = 0.0
        for place in self._places_of(pattern):
            subjects, objects = self._data.pairs(place), self._data.reversed_pairs(place)
            matches = float(subjects[0].shape[0])
            if self._is_known(pattern.subject, known):
                matches = min(matches, _ranges(subjects[0]))
            if self._is_known(pattern.object, known):
                matches = min(matches, _ranges(objects[0]))
            total += matches
        return bool(self._columns) and not known, total

    def _is_known(self, part: Part, known: set[str]) -> bool:
        return isinstance(part, int) or part in known

    def _places_of(self, pattern: Pattern) -> list[Place]:
        """The groups in which a pattern may have matches."""
        if isinstance(pattern.predicate, int):
            wanted = ((graph, pattern.predicate) for graph in pattern.graphs)
            return [place for place in wanted if place in self._places]
        return sorted(place for place in self._places if place[0] in pattern.graphs)

    def _join(self, pattern: Pattern) -> None:
        """Go on with all bindings that a pattern leaves, and what it binds besides."""
        by_predicate: dict[int, list[Place]] = {}
        for place in self._places_of(pattern):
            by_predicate.setdefault(place[1], []).append(place)
        parts = [self._matched(pattern, predicate, places) for predicate, places in by_predicate.items()]
        before = self._columns
        which = np.concatenate([np.empty(0, np.int64), *(which for which, _ in parts)])
        self._columns = {name: column[which] for name, column in before.items()}
        for name in pattern.variables:
            if name not in before:
                columns = [found[name] for _, found in parts]
                self._columns[name] = np.concatenate([np.empty(0, np.int64), *columns])
        self.size = which.shape[0]

    def _matched(self, pattern: Pattern, predicate: int, places: Sequence[Place]) -> tuple[Ints, dict[str, Ints]]:
        """For each match the number of its binding, and the values of the variables of the pattern."""
        subject, object_ = self._values(pattern.subject), self._values(pattern.object)
        by_object = subject is None and object_ is not None
        pairs = united([self._data.reversed_pairs(p) if by_object else self._data.pairs(p) for p in places])
        keys, others = (object_, subject) if by_object else (subject, object_)
        which, first, second = _looked_up(pairs, keys, self.size)
        keep = np.ones(which.shape[0], dtype=np.bool_)
        if others is not None:
            keep &= second == (others if others.shape[0] == 1 and self.size != 1 else others[which])
        bound_predicate = self._values(pattern.predicate)
        if bound_predicate is not None and isinstance(pattern.predicate, str):
            keep &= bound_predicate[which] == predicate
        s, o = (second, first) if by_object else (first, second)
        found: dict[str, Ints] = {}
        for part, values in (
            (pattern.subject, s),
            (pattern.predicate, np.full(which.shape[0], predicate)),
            (pattern.object, o),
        ):
            if isinstance(part, str):
                if part in found:
                    keep &= found[part] == values
                else:
                    found[part] = values
        if keep.all():
            return which, found
        return which[keep], {name: values[keep] for name, values in found.items()}

    def _values(self, part: Part) -> Ints | None:
        """The values of a part in all bindings, one where it is a constant; None where it is free."""
        return np.array([part], dtype=np.int64) if isinstance(part, int) else self._columns.get(part)

    def _filter(self) -> None:
        """Apply every condition whose variables are bound."""
        ready = [c for c in self._conditions if {v.value for v in mentioned(c)} <= self._columns.keys()]
        for condition in ready:
            self._conditions.remove(condition)
            if not self.size:
                continue
            names = tuple(sorted({v.value for v in mentioned(condition)}))
            table = np.empty((self.size, len(names)), dtype=np.int64)
            for place, name in enumerate(names):
                table[:, place] = self._columns[name]
            test = CompiledExpression(condition, names, self._vocabulary, base=self._conjunction.base)
            keep = test.test_rows(table)
            self._columns = {name: column[keep] for name, column in self._columns.items()}
            self.size = int(keep.sum())


def _ranges(column: Ints) -> float:
    """How many rows have one value, about, in a sorted column; a few values are looked at."""
    size = column.shape[0]
    if size < 2:
        return float(size)
    sample = column[:: max(1, size // 64)]
    low = np.searchsorted(column, sample, side="left")
    high = np.searchsorted(column, sample, side="right")
    return float(np.mean(high - low))


def _looked_up(pairs: Pairs, keys: Ints | None, size: int) -> tuple[Ints, Ints, Ints]:
    """For each binding the pairs whose first is its key, or all pairs: number of the binding, first and second."""
    first, second = pairs
    if keys is None:
        which = np.repeat(np.arange(size), first.shape[0])
        return which, np.tile(first, size), np.tile(second, size)
    low, high = _bounds(first, keys)
    if keys.shape[0] == 1 and size != 1:
        low, high = np.repeat(low, size), np.repeat(high, size)
    counts = high - low
    which = np.repeat(np.arange(size), counts)
    ends = np.cumsum(counts)
    at = np.arange(which.shape[0]) - np.repeat(ends - counts, counts) + np.repeat(low, counts)
    return which, first[at], second[at]


def _bounds(column: Ints, keys: Ints) -> tuple[Ints, Ints]:
    """Where each key begins and ends in a sorted column."""
    if keys.shape[0] < _MANY:
        return np.searchsorted(column, keys, side="left"), np.searchsorted(column, keys, side="right")
    values, places = np.unique(keys, return_inverse=True)
    low = np.searchsorted(column, values, side="left")
    return low[places], np.searchsorted(column, values, side="right")[places]
