"""How often each value occurs in each group: for GROUP_CONCAT, and in front of aggregates of DISTINCT values.

    + (g a) (g a)   →   + (g a)        − (g a)   →   nothing        − (g a)   →   − (g a)

State: the values of each group with their counts.
"""

from __future__ import annotations

import sys

import numpy as np

from headwater.kernel.columns.delta import UNBOUND
from headwater.kernel.columns.delta_run import Signs
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.row_counts import RowCounts
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.terms.model import Term
from headwater.values.aggregates import aggregate, group_concat


class BagAccumulator:
    """The bag of values of each group."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._groups: dict[int, dict[int, int]] = {}

    def grow(self, capacity: int) -> None:
        """Nothing to do: groups need no room before they have values."""

    def change(self, groups: Ints, ids: Ints, sign: int) -> None:
        """Add values to groups (sign 1), or remove them (sign -1)."""
        for group_id, value in zip(groups.tolist(), ids.tolist(), strict=True):
            counts = self._groups.setdefault(group_id, {})
            after = counts.get(value, 0) + sign
            if after:
                counts[value] = after
            else:
                del counts[value]
                if not counts:
                    del self._groups[group_id]

    def concatenate(self, groups: Ints, *, distinct: bool, separator: str | None) -> Ints:
        """GROUP_CONCAT of some groups."""
        between = " " if separator is None else separator
        return np.array([self._concatenate(n, distinct, between) for n in groups.tolist()], dtype=np.int64)

    def aggregate(self, groups: Ints, function: str, *, distinct: bool) -> Ints:
        """An aggregate of some groups that is computed from all values of a group."""
        found = (aggregate(function, self._values(group, distinct)) for group in groups.tolist())
        return np.array([UNBOUND if one is None else self._vocabulary.id_of(one) for one in found], dtype=np.int64)

    def _values(self, group_id: int, distinct: bool) -> dict[Term | None, int]:
        return {
            self._vocabulary.term_of(value): 1 if distinct else times
            for value, times in self._groups.get(group_id, {}).items()
        }

    def _concatenate(self, group_id: int, distinct: bool, separator: str) -> int:
        values = self._values(group_id, distinct)
        return UNBOUND if None in values else self._vocabulary.id_of(group_concat(values, separator))

    def ids(self) -> Ints:
        """Every value that some group holds."""
        return np.array([value for counts in self._groups.values() for value in counts], dtype=np.int64)

    @property
    def nbytes(self) -> int:
        return sum(sys.getsizeof(counts) + 32 * len(counts) for counts in self._groups.values())


class DistinctGate:
    """Passes a value of a group on when its first occurrence is added and when its last is removed."""

    def __init__(self, width: int) -> None:
        self._width = 1 + width
        self._counts = RowCounts(self._width)

    def filter_changes(self, groups: Ints, values: Ints, sign: int) -> tuple[Ints, Ints]:
        """The groups and values that pass. Values are ids, or whole rows of ids."""
        self._counts.compact()
        rows = np.empty((groups.shape[0], self._width), dtype=np.int64)
        rows[:, 0] = groups
        rows[:, 1:] = values if values.ndim == 2 else values[:, None]
        changed = self._counts.change(rows, sign)
        changed_rows = self._counts.rows[changed]
        changed_values = changed_rows[:, 1] if values.ndim == 1 else changed_rows[:, 1:]
        return np.ascontiguousarray(changed_rows[:, 0]), np.ascontiguousarray(changed_values)

    def filter_signs(self, groups: Ints, values: Ints, signs: Signs) -> Signs:
        """The signs of changes that are made one after the other, 0 for those that do not pass."""
        passing = np.zeros_like(signs)
        crossed = self._counts.change_in_turn(np.column_stack((groups, values)), signs)
        passing[crossed] = signs[crossed]
        return passing

    @property
    def nbytes(self) -> int:
        return self._counts.nbytes
