"""Conjunctions evaluated on sorted columns by index joins: each pattern in turn looks up what is bound already.

    bindings ⋈ pattern:   for each binding of ?s the range of ?s in the column of subjects, by binary search
                          (or of ?o in the column of objects), then the values beside it

The pattern with the fewest matches comes first, then always one that shares a variable and has the fewest matches for a
binding. A pattern whose predicate is a variable is matched predicate by predicate. If a condition leaves only a few
terms to a variable, these are bound before all patterns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from headwater.algebra.scope import expression_variables
from headwater.datasets.mapped_files import Ints
from headwater.datasets.statement_columns import GroupKey, Pairs, unite_pairs
from headwater.datasets.views.conjunctions import ColumnPattern, Conjunction, PatternTerm
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.expressions.compiled_expressions import CompiledExpression
from headwater.terms.ids.term_texts import TermKinds

_MANY = 4096
"""From this many keys on it pays to sort them before they are looked up."""


class ColumnReader(Protocol):
    """Reads the sorted columns of data sets."""

    def pairs_by_subject(self, key: GroupKey) -> Pairs: ...

    def pairs_by_object(self, key: GroupKey) -> Pairs: ...

    def group_keys(self) -> set[GroupKey]: ...

    def text_of(self, term_id: int) -> bytes | None: ...

    def kinds_of(self, ids: Ints) -> TermKinds: ...


def evaluate_conjunction(conjunction: Conjunction, data: ColumnReader) -> Ints:
    """All solutions, one row each, in no order."""
    columns, size = extend_bindings({}, 1, conjunction, data)
    rows = np.empty((size, len(conjunction.variables)), dtype=np.int64)
    for index, name in enumerate(conjunction.variables):
        rows[:, index] = columns[name]
    return rows


def extend_bindings(
    start: dict[str, Ints], size: int, conjunction: Conjunction, data: ColumnReader
) -> tuple[dict[str, Ints], int]:
    """Join `size` bindings, given as columns, with the solutions of a conjunction; gives columns and their size."""
    bindings = _BindingTable(conjunction, data, start, size)
    return bindings.join_tables(), bindings.size


class _BindingTable:
    """Bindings as columns, which are joined with one pattern after the other."""

    def __init__(self, conjunction: Conjunction, data: ColumnReader, start: dict[str, Ints], size: int) -> None:
        self._conjunction = conjunction
        self._data = data
        self._group_keys = data.group_keys()
        self._columns = dict(start)
        self.size = size
        self._conditions = list(conjunction.conditions)
        self._vocabulary = Vocabulary(data.text_of, data.kinds_of)
        if not start:
            self._bind_listed_terms()

    def _bind_listed_terms(self) -> None:
        """Bind the variable to which a condition leaves the fewest terms, so that these are looked up."""
        shortest = self._conjunction.shortest_list
        if shortest is not None:
            # The vocabulary has to know the terms: other conditions may read them, and the data may not have them.
            ids = dict.fromkeys(map(self._vocabulary.id_of, shortest[1]))
            self._columns[shortest[0]] = np.array(list(ids), dtype=np.int64)
            self.size = len(ids)

    def join_tables(self) -> dict[str, Ints]:
        """Join all patterns, and apply each condition as soon as its variables are bound."""
        left = list(self._conjunction.patterns)
        self._filter()
        while left and self.size:
            pattern = min(left, key=self._cost)
            left.remove(pattern)
            self._join(pattern)
            self._filter()
        nothing = np.empty(0, dtype=np.int64)
        return self._columns if self.size else dict.fromkeys([*self._columns, *self._conjunction.variables], nothing)

    def _cost(self, pattern: ColumnPattern) -> tuple[bool, float]:
        """The matches of a binding, estimated; a pattern that shares no variable comes last."""
        known = {name for name in pattern.variables if name in self._columns}
        total = 0.0
        for key in self._group_keys_of(pattern):
            subjects, objects = self._data.pairs_by_subject(key), self._data.pairs_by_object(key)
            matches = float(subjects[0].shape[0])
            if self._is_known(pattern.subject, known):
                matches = min(matches, _mean_range_size(subjects[0]))
            if self._is_known(pattern.object, known):
                matches = min(matches, _mean_range_size(objects[0]))
            total += matches
        return bool(self._columns) and not known, total

    def _is_known(self, term: PatternTerm, known: set[str]) -> bool:
        return isinstance(term, int) or term in known

    def _group_keys_of(self, pattern: ColumnPattern) -> list[GroupKey]:
        """The groups in which a pattern may have matches."""
        if isinstance(pattern.predicate, int):
            wanted = ((graph, pattern.predicate) for graph in pattern.graphs)
            return [key for key in wanted if key in self._group_keys]
        return sorted(key for key in self._group_keys if key[0] in pattern.graphs)

    def _join(self, pattern: ColumnPattern) -> None:
        """Join the bindings with the matches of a pattern."""
        by_predicate: dict[int, list[GroupKey]] = {}
        for key in self._group_keys_of(pattern):
            by_predicate.setdefault(key[1], []).append(key)
        matches = [self._match_predicate(pattern, predicate, keys) for predicate, keys in by_predicate.items()]
        before = self._columns
        which = np.concatenate([np.empty(0, np.int64), *(which for which, _ in matches)])
        self._columns = {name: column[which] for name, column in before.items()}
        for name in pattern.variables:
            if name not in before:
                columns = [values[name] for _, values in matches]
                self._columns[name] = np.concatenate([np.empty(0, np.int64), *columns])
        self.size = which.shape[0]

    def _match_predicate(
        self, pattern: ColumnPattern, predicate: int, groups: Sequence[GroupKey]
    ) -> tuple[Ints, dict[str, Ints]]:
        """For each match the index of its binding, and the values of the variables of the pattern."""
        subject, object_ = self._values_of(pattern.subject), self._values_of(pattern.object)
        by_object = subject is None and object_ is not None
        read_pairs = self._data.pairs_by_object if by_object else self._data.pairs_by_subject
        pairs = unite_pairs([read_pairs(group) for group in groups])
        keys, others = (object_, subject) if by_object else (subject, object_)
        which, first, second = _look_up(pairs, keys, self.size)
        keep = np.ones(which.shape[0], dtype=np.bool_)
        if others is not None:
            keep &= second == (others if others.shape[0] == 1 and self.size != 1 else others[which])
        bound_predicate = self._values_of(pattern.predicate)
        if bound_predicate is not None and isinstance(pattern.predicate, str):
            keep &= bound_predicate[which] == predicate
        s, o = (second, first) if by_object else (first, second)
        by_variable: dict[str, Ints] = {}
        for term, values in (
            (pattern.subject, s),
            (pattern.predicate, np.full(which.shape[0], predicate)),
            (pattern.object, o),
        ):
            if isinstance(term, str):
                if term in by_variable:
                    keep &= by_variable[term] == values
                else:
                    by_variable[term] = values
        if keep.all():
            return which, by_variable
        return which[keep], {name: values[keep] for name, values in by_variable.items()}

    def _values_of(self, term: PatternTerm) -> Ints | None:
        """The values of a term in all bindings, one value if it is a constant; None if it is not bound."""
        return np.array([term], dtype=np.int64) if isinstance(term, int) else self._columns.get(term)

    def _filter(self) -> None:
        """Apply every condition whose variables are all bound."""
        ready = [c for c in self._conditions if {v.value for v in expression_variables(c)} <= self._columns.keys()]
        for condition in ready:
            self._conditions.remove(condition)
            if not self.size:
                continue
            names = tuple(sorted({v.value for v in expression_variables(condition)}))
            table = np.empty((self.size, len(names)), dtype=np.int64)
            for index, name in enumerate(names):
                table[:, index] = self._columns[name]
            test = CompiledExpression(condition, names, self._vocabulary, base=self._conjunction.base)
            keep = test.test_rows(table)
            self._columns = {name: column[keep] for name, column in self._columns.items()}
            self.size = int(keep.sum())


def _mean_range_size(column: Ints) -> float:
    """How many rows of a sorted column have the same value, estimated from a sample."""
    size = column.shape[0]
    if size < 2:
        return float(size)
    sample = column[:: max(1, size // 64)]
    low = np.searchsorted(column, sample, side="left")
    high = np.searchsorted(column, sample, side="right")
    return float(np.mean(high - low))


def _look_up(pairs: Pairs, keys: Ints | None, size: int) -> tuple[Ints, Ints, Ints]:
    """Join bindings with pairs whose first is their key, or with all pairs: index of the binding, first and second."""
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
    rows = np.arange(which.shape[0]) - np.repeat(ends - counts, counts) + np.repeat(low, counts)
    return which, first[rows], second[rows]


def _bounds(column: Ints, keys: Ints) -> tuple[Ints, Ints]:
    """Where each key begins and ends in a sorted column."""
    if keys.shape[0] < _MANY:
        return np.searchsorted(column, keys, side="left"), np.searchsorted(column, keys, side="right")
    values, inverse = np.unique(keys, return_inverse=True)
    low = np.searchsorted(column, values, side="left")
    return low[inverse], np.searchsorted(column, values, side="right")[inverse]
