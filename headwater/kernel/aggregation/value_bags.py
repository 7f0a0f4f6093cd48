"""Per group, how often each value occurs: for GROUP_CONCAT, and in front of whatever is asked for DISTINCT values."""

from __future__ import annotations

import sys

import numpy as np

from headwater.kernel.columns.delta import UNBOUND
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.row_counts import RowCounts
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.terms.model import Term
from headwater.values.aggregates import group_concat


class Bags:
    """The multiset of values of each group."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._groups: dict[int, dict[int, int]] = {}

    def grow(self, capacity: int) -> None:
        """Groups need no room before they have values."""

    def change(self, groups: Ints, ids: Ints, sign: int) -> None:
        """Add values to groups, or take them away."""
        for number, value in zip(groups.tolist(), ids.tolist(), strict=True):
            counts = self._groups.setdefault(number, {})
            after = counts.get(value, 0) + sign
            if after:
                counts[value] = after
            else:
                del counts[value]
                if not counts:
                    del self._groups[number]

    def joined(self, groups: Ints, *, distinct: bool, separator: str | None) -> Ints:
        """GROUP_CONCAT of some groups."""
        between = " " if separator is None else separator
        return np.array([self._joined(n, distinct, between) for n in groups.tolist()], dtype=np.int64)

    def _joined(self, number: int, distinct: bool, separator: str) -> int:
        values: dict[Term | None, int] = {
            self._vocabulary.term_of(value): 1 if distinct else times
            for value, times in self._groups.get(number, {}).items()
        }
        return UNBOUND if None in values else self._vocabulary.id_of(group_concat(values, separator))

    def ids(self) -> Ints:
        """Every value that some group holds."""
        return np.array([value for counts in self._groups.values() for value in counts], dtype=np.int64)

    @property
    def nbytes(self) -> int:
        return sum(sys.getsizeof(counts) + 32 * len(counts) for counts in self._groups.values())


class Gate:
    """Lets a value of a group pass when it comes for the first time and when it goes for the last time."""

    def __init__(self, width: int) -> None:
        self._counts = RowCounts(1 + width)

    def pass_on(self, groups: Ints, values: Ints, sign: int) -> tuple[Ints, Ints]:
        """The groups and values that pass. Values are ids, or whole rows of them."""
        self._counts.compact()
        crossed = self._counts.change(np.column_stack((groups, values)), sign)
        passing = self._counts.rows[crossed]
        chosen = passing[:, 1] if values.ndim == 1 else passing[:, 1:]
        return np.ascontiguousarray(passing[:, 0]), np.ascontiguousarray(chosen)

    @property
    def nbytes(self) -> int:
        return self._counts.nbytes
