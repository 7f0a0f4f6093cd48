"""The first value of each group in any order of terms, while values come and go: heaps with lazy deletion.

    + c, a, b   →   a        − a   →   b        − b   →   c

`counts` has each value of a group with its number of occurrences, and the heap has each value at least once. An entry
whose value has no count is dropped when it is at the top, and all such entries are dropped when they outnumber the
others. Among values that are equal in the order the smallest text wins, as in `headwater.values.aggregates`.

This is for orders that need the terms: SAMPLE, and MIN and MAX of the values for which `extremes` has no key.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import total_ordering
from heapq import heapify, heappop, heappush
from typing import Any, TypeAlias

import numpy as np

from headwater.kernel.columns.delta import UNBOUND
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.terms.ids.inline_layout import INTEGER_BIAS, VALUE_BITS, VALUE_MASK, InlineType, id_to_number, is_inline
from headwater.values.term_order import NUMBERS, OrderKey, order_key, text_key

_KIND_MASK = 31

OrderOf: TypeAlias = Callable[[int], OrderKey]


@dataclass(slots=True)
class GroupHeap:
    """The values of one group."""

    counts: dict[int, int] = field(default_factory=dict)
    heap: list[OrderKey] = field(default_factory=list)
    """Tuples of the order key of a value, then the value."""


class HeapAccumulator:
    """The first value of each group. An error is the result, unless `ignores_errors`, as for SAMPLE."""

    def __init__(self, vocabulary: Vocabulary, order_of: OrderOf, *, ignores_errors: bool = False) -> None:
        self._vocabulary = vocabulary
        self._order_of = order_of
        self._ignores_errors = ignores_errors
        self._groups: dict[int, GroupHeap] = {}

    def __contains__(self, group_id: int) -> bool:
        """Whether a group has values."""
        return group_id in self._groups

    def grow(self, capacity: int) -> None:
        """Nothing to do: groups need no room before they have values."""

    def change(self, groups: Ints, ids: Ints, sign: int) -> None:
        """Add values to groups (sign 1), or remove them (sign -1)."""
        all_groups, order_of = self._groups, self._order_of
        for group_id, value in zip(groups.tolist(), ids.tolist(), strict=True):
            group = all_groups.get(group_id)
            if group is None:
                group = all_groups[group_id] = GroupHeap()
            counts = group.counts
            before = counts.get(value, 0)
            if before + sign:
                counts[value] = before + sign
                if not before and value != UNBOUND:
                    heappush(group.heap, (*order_of(value), value))
            else:
                del counts[value]
                if not counts:
                    del all_groups[group_id]

    def first_values(self, groups: Ints) -> Ints:
        """The first value of some groups."""
        return np.array([self.first_of(group_id) for group_id in groups.tolist()], dtype=np.int64)

    def has_errors(self, group_id: int) -> bool:
        """Whether a value of a group is an error."""
        group = self._groups.get(group_id)
        return group is not None and UNBOUND in group.counts

    def first_of(self, group_id: int) -> int:
        """The first value of a group, `UNBOUND` if there is none."""
        group = self._groups.get(group_id)
        if group is None or (UNBOUND in group.counts and not self._ignores_errors):
            return UNBOUND
        counts, heap = group.counts, group.heap
        if len(heap) > 2 * len(counts) + 16:
            group.heap = heap = list({entry[-1]: entry for entry in heap if entry[-1] in counts}.values())
            heapify(heap)
        while heap and heap[0][-1] not in counts:
            heappop(heap)
        if not heap:
            return UNBOUND
        *first_key, value = heap[0]
        if len(heap) == 1 or list(min(heap[1:3])[:-1]) != first_key:
            return int(value)
        equal: set[int] = set()
        while heap and list(heap[0][:-1]) == first_key:
            equal.add(heappop(heap)[-1])
        equal &= counts.keys()
        for value in equal:
            heappush(heap, (*first_key, value))
        return min(equal, key=self._text)

    def first_among(self, values: list[int]) -> int:
        """The first of some values, by order and then by text."""
        return min(values, key=lambda value: (self._order_of(value), self._text(value)))

    def _text(self, term_id: int) -> str:
        term = self._vocabulary.term_of(term_id)
        return "" if term is None else text_key(term)

    def ids(self) -> Ints:
        """Every value that some group holds."""
        return np.array([value for group in self._groups.values() for value in group.counts], dtype=np.int64)

    @property
    def nbytes(self) -> int:
        return sum(sys.getsizeof(g.counts) + 200 * len(g.heap) for g in self._groups.values())


def order_for_min(vocabulary: Vocabulary) -> OrderOf:
    """The order of MIN."""

    def order_of(term_id: int) -> OrderKey:
        if is_inline(term_id):
            value = _inline_value(term_id)
            if value is not None:
                return (NUMBERS, False, value)
        return _key(vocabulary, term_id)

    return order_of


def order_for_max(vocabulary: Vocabulary) -> OrderOf:
    """The order of MAX."""
    ascending = order_for_min(vocabulary)

    def order_of(term_id: int) -> OrderKey:
        key = ascending(term_id)
        if key[0] == NUMBERS:
            return (-NUMBERS, -key[1], -key[2])
        return (-key[0], _ReverseKey(key))

    return order_of


def order_for_sample(vocabulary: Vocabulary) -> OrderOf:
    """The order of SAMPLE."""

    def order_of(term_id: int) -> OrderKey:
        term = vocabulary.term_of(term_id)
        return ("" if term is None else text_key(term),)

    return order_of


def _inline_value(term_id: int) -> int | float | Fraction | None:
    kind = term_id >> VALUE_BITS & _KIND_MASK
    if kind <= InlineType.LONG:
        return (term_id & VALUE_MASK) - INTEGER_BIAS
    if kind > InlineType.DOUBLE_BITS_SCIENTIFIC:
        return None
    value = id_to_number(term_id)
    return Fraction(value) if isinstance(value, Decimal) else value


def _key(vocabulary: Vocabulary, term_id: int) -> OrderKey:
    term = vocabulary.term_of(term_id)
    assert term is not None, "errors have no place in the order"
    return order_key(term)


@total_ordering
class _ReverseKey:
    """A key that sorts in reverse."""

    __slots__ = ("key",)

    def __init__(self, key: OrderKey) -> None:
        self.key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ReverseKey) and self.key == other.key

    def __lt__(self, other: Any) -> bool:
        return bool(other.key < self.key)

    __hash__ = None  # type: ignore[assignment]
