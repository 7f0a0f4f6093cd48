"""The first value of each group in any order of terms, while values come and go: heaps whose entries die with values.

Each different value of a group is in the heap once or more and in `counts` as often as it occurs. An entry whose value
has left is thrown away when it gets to the top, and all of them when they are more than the living ones. Among values
that are equal by the order the one with the smallest text wins, as in `headwater.values.aggregates`.

This is for values whose order needs their terms: SAMPLE, and in MIN and MAX whatever `extremes` has no key for.
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
class Heap:
    """One group."""

    counts: dict[int, int] = field(default_factory=dict)
    heap: list[OrderKey] = field(default_factory=list)
    """The order of a value, then the value."""


class Heaps:
    """The first value of each group. `passes_over_errors` as SAMPLE does; otherwise they win."""

    def __init__(self, vocabulary: Vocabulary, order_of: OrderOf, *, passes_over_errors: bool = False) -> None:
        self._vocabulary = vocabulary
        self._order_of = order_of
        self._passes_over_errors = passes_over_errors
        self._groups: dict[int, Heap] = {}

    def __contains__(self, number: int) -> bool:
        """Whether a group has values here."""
        return number in self._groups

    def grow(self, capacity: int) -> None:
        """Groups need no room before they have values."""

    def change(self, groups: Ints, ids: Ints, sign: int) -> None:
        """Add values to groups, or take them away."""
        all_groups, order_of = self._groups, self._order_of
        for number, value in zip(groups.tolist(), ids.tolist(), strict=True):
            group = all_groups.get(number)
            if group is None:
                group = all_groups[number] = Heap()
            counts = group.counts
            before = counts.get(value, 0)
            if before + sign:
                counts[value] = before + sign
                if not before and value != UNBOUND:
                    heappush(group.heap, (*order_of(value), value))
            else:
                del counts[value]
                if not counts:
                    del all_groups[number]

    def first(self, groups: Ints) -> Ints:
        """The first value of some groups."""
        return np.array([self.first_of(number) for number in groups.tolist()], dtype=np.int64)

    def has_errors(self, number: int) -> bool:
        """Whether a value of a group is an error."""
        group = self._groups.get(number)
        return group is not None and UNBOUND in group.counts

    def first_of(self, number: int) -> int:
        """The first value of a group, `UNBOUND` if there is none."""
        group = self._groups.get(number)
        if group is None or (UNBOUND in group.counts and not self._passes_over_errors):
            return UNBOUND
        counts, heap = group.counts, group.heap
        if len(heap) > 2 * len(counts) + 16:
            group.heap = heap = list({entry[-1]: entry for entry in heap if entry[-1] in counts}.values())
            heapify(heap)
        while heap and heap[0][-1] not in counts:
            heappop(heap)
        if not heap:
            return UNBOUND
        *best, value = heap[0]
        if len(heap) == 1 or list(min(heap[1:3])[:-1]) != best:
            return int(value)
        equal: set[int] = set()
        while heap and list(heap[0][:-1]) == best:
            equal.add(heappop(heap)[-1])
        equal &= counts.keys()
        for value in equal:
            heappush(heap, (*best, value))
        return min(equal, key=self._text)

    def best_of(self, values: list[int]) -> int:
        """The first of some values."""
        return min(values, key=lambda value: (self._order_of(value), self._text(value)))

    def _text(self, number: int) -> str:
        term = self._vocabulary.term_of(number)
        return "" if term is None else text_key(term)

    def ids(self) -> Ints:
        """Every value that some group holds."""
        return np.array([value for group in self._groups.values() for value in group.counts], dtype=np.int64)

    @property
    def nbytes(self) -> int:
        return sum(sys.getsizeof(g.counts) + 200 * len(g.heap) for g in self._groups.values())


def ascending(vocabulary: Vocabulary) -> OrderOf:
    """The order of MIN."""

    def order_of(number: int) -> OrderKey:
        if is_inline(number):
            value = _inline_value(number)
            if value is not None:
                return (NUMBERS, False, value)
        return _key(vocabulary, number)

    return order_of


def descending(vocabulary: Vocabulary) -> OrderOf:
    """The order of MAX."""
    upwards = ascending(vocabulary)

    def order_of(number: int) -> OrderKey:
        key = upwards(number)
        if key[0] == NUMBERS:
            return (-NUMBERS, -key[1], -key[2])
        return (-key[0], _Backwards(key))

    return order_of


def by_text(vocabulary: Vocabulary) -> OrderOf:
    """The order of SAMPLE."""

    def order_of(number: int) -> OrderKey:
        term = vocabulary.term_of(number)
        return ("" if term is None else text_key(term),)

    return order_of


def _inline_value(number: int) -> int | float | Fraction | None:
    kind = number >> VALUE_BITS & _KIND_MASK
    if kind <= InlineType.LONG:
        return (number & VALUE_MASK) - INTEGER_BIAS
    if kind > InlineType.DOUBLE_BITS_SCIENTIFIC:
        return None
    value = id_to_number(number)
    return Fraction(value) if isinstance(value, Decimal) else value


def _key(vocabulary: Vocabulary, number: int) -> OrderKey:
    term = vocabulary.term_of(number)
    assert term is not None, "errors have no place in the order"
    return order_key(term)


@total_ordering
class _Backwards:
    """A key that sorts the other way round."""

    __slots__ = ("key",)

    def __init__(self, key: OrderKey) -> None:
        self.key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Backwards) and self.key == other.key

    def __lt__(self, other: Any) -> bool:
        return bool(other.key < self.key)

    __hash__ = None  # type: ignore[assignment]
