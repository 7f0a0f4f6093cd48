"""Per group, how often each value occurs: for GROUP_CONCAT, and in front of whatever is asked for DISTINCT values."""

from __future__ import annotations

import sys
from collections.abc import Hashable

import numpy as np

from headwater.kernel.delta import UNBOUND
from headwater.kernel.index import Ints
from headwater.kernel.vocabulary import Vocabulary
from headwater.reference.aggregates import group_concat
from headwater.terms.model import Term


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

    def __init__(self) -> None:
        self._counts: dict[tuple[int, Hashable], int] = {}

    def pass_on(self, groups: Ints, values: Ints, sign: int) -> tuple[Ints, Ints]:
        """The groups and values that pass. Values are ids, or whole rows of them."""
        counts = self._counts
        hashable = values.tolist() if values.ndim == 1 else list(map(tuple, values.tolist()))
        passing: list[int] = []
        for i, pair in enumerate(zip(groups.tolist(), hashable, strict=True)):
            before = counts.get(pair, 0)
            after = before + sign
            if after:
                counts[pair] = after
            else:
                del counts[pair]
            if not (before and after):
                passing.append(i)
        return groups[passing], values[passing]

    @property
    def nbytes(self) -> int:
        return sys.getsizeof(self._counts) + 120 * len(self._counts)
