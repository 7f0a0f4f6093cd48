"""MIN and MAX by group over values that come and go: counts of the different values, and a heap of these per group.

    min(R + v) = min(min(R), v)         min(R − v): the next value of the heap that still has a count

Numbers and date-times that are inside their ids have an integer key that follows SPARQL's order:

    numbers       the nearest double, whose bits are read as an integer that grows with it
    date-times    microseconds since 1970, without the last four bits, behind all numbers

A value is inserted into the heap of its group when its count leaves 0, and removed when it is the root without a count.
Values with equal keys may differ by less than the key shows, or be one number in two types or lexical forms. Their
terms decide then, and between equal values the smallest text, as in `headwater.values.aggregates`.
State: the counts, the heaps, and in a `HeapAccumulator` the terms without a key and the errors.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from headwater.kernel.aggregation import pairing_heaps
from headwater.kernel.aggregation.value_heaps import HeapAccumulator, OrderOf
from headwater.kernel.columns.delta import UNBOUND, Mask
from headwater.kernel.columns.delta_run import Signs
from headwater.kernel.columns.ring_index import Ints, Links
from headwater.kernel.columns.row_counts import RowCounts
from headwater.kernel.columns.row_ids import enlarge
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.terms.compiled_code import compiled
from headwater.terms.ids.compiled_decoding import (
    VALUE_CLASSES,
    type_of_id,
    value_of_id,
    value_to_double,
    value_to_instant,
)
from headwater.terms.ids.inline_layout import VALUE_BITS, InlineType

_INLINE = 32
_TIMES = (InlineType.DATE_TIME, InlineType.DATE_TIME_UTC, InlineType.DATE_TIME_OFFSET)
_HAS_KEY = np.zeros(64, dtype=np.bool_)
"""By the highest six bits of an id: the inline bit, then the inline type."""
_HAS_KEY[_INLINE + InlineType.INTEGER : _INLINE + InlineType.DOUBLE_BITS_SCIENTIFIC + 1] = True
_HAS_KEY[[_INLINE + kind for kind in _TIMES]] = True
_FIRST_TIME = int(InlineType.DATE_TIME)
_BEHIND_NUMBERS = np.int64((1 << 63) - (1 << 50))
_POSITIVE = np.int64((1 << 63) - 1)


@compiled
def _read_values(ids, doubles, times):  # type: ignore[no-untyped-def]
    """Of ids that have a key: the number as a double, or the key of a time, which is 0 for numbers."""
    for i in range(ids.shape[0]):
        kind = type_of_id(ids[i])
        value = value_of_id(ids[i])
        times[i] = 0
        doubles[i] = 0.0
        if kind < _FIRST_TIME:
            doubles[i] = value_to_double(VALUE_CLASSES[kind], value)
            continue
        times[i] = _BEHIND_NUMBERS + (value_to_instant(VALUE_CLASSES[kind], value) >> 4)


def order_keys(ids: Ints) -> Ints:
    """Integer keys of ids: a greater value never has a smaller key."""
    doubles = np.empty(ids.shape[0], dtype=np.float64)
    times = np.empty(ids.shape[0], dtype=np.int64)
    _read_values(ids, doubles, times)
    bits = doubles.view(np.int64)
    keys: Ints = np.where(times == 0, bits ^ (bits >> 63 & _POSITIVE), times)
    return keys


class ExtremeAccumulator:
    """MIN or MAX of each group. `order_of` is the same order for terms that have no key."""

    def __init__(self, vocabulary: Vocabulary, order_of: OrderOf, *, is_max: bool) -> None:
        self._term_heaps = HeapAccumulator(vocabulary, order_of)
        self._has_terms: npt.NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self._is_max = is_max
        self._counts = RowCounts(2)
        self._roots: Links = np.empty(0, dtype=np.int32)
        self._keys: Ints = np.empty(0, dtype=np.int64)
        self._child: Links = np.empty(0, dtype=np.int32)
        self._sibling: Links = np.empty(0, dtype=np.int32)
        self._first_equal: Links = np.empty(0, dtype=np.int32)

    def grow(self, capacity: int) -> None:
        """Make room for groups."""
        before = self._roots.shape[0]
        self._roots = enlarge(self._roots, capacity)
        self._roots[before:] = pairing_heaps.NONE
        self._has_terms = np.concatenate((self._has_terms, np.zeros(capacity - before, dtype=np.bool_)))

    def change(self, groups: Ints, ids: Ints, sign: int) -> None:
        """Add values to groups (sign 1), or remove them (sign -1)."""
        has_key = _HAS_KEY[ids >> VALUE_BITS & 63]
        if not has_key.all():
            self._change_terms(groups[~has_key], ids[~has_key], sign)
            groups, ids = groups[has_key], ids[has_key]
        if not ids.shape[0]:
            return
        self._compact()
        changed = self._counts.change(np.stack((groups, ids), axis=1), sign)
        if sign > 0 and changed.shape[0]:
            self._insert_nodes(changed)

    def can_change_in_turn(self, ids: Ints) -> bool:
        return not self._has_terms.any() and bool(_HAS_KEY[ids >> VALUE_BITS & 63].all())

    def change_in_turn(
        self, groups: Ints, ids: Ints, signs: Signs, is_end: Mask, functions: Collection[str]
    ) -> Mapping[str, Ints]:
        (function,) = functions
        self._compact()
        nodes, first_new = self._counts.find_places(np.stack((groups, ids), axis=1))
        self._make_room()
        new_nodes = np.arange(first_new, self._counts.top)
        new_keys = order_keys(np.ascontiguousarray(self._counts.rows[new_nodes, 1]))
        self._keys[new_nodes] = ~new_keys if self._is_max else new_keys
        minima = np.empty(int(is_end.sum()), dtype=np.int64)
        tied_nodes, tied_places = pairing_heaps.follow_minima(
            self._keys, self._child, self._sibling, self._first_equal, self._roots, self._counts.counts, groups, nodes,
            signs, is_end, minima,
        )  # fmt: skip
        values: Ints = np.where(minima >= 0, self._counts.rows[minima, 1], UNBOUND)
        places, starts = np.unique(tied_places, return_index=True)
        bounds = pairwise([*starts.tolist(), tied_nodes.shape[0]])
        for place, (low, high) in zip(places.tolist(), bounds, strict=True):
            values[place] = self._first_among(tied_nodes[low:high])
        return {function: values}

    def _change_terms(self, groups: Ints, ids: Ints, sign: int) -> None:
        self._term_heaps.change(groups, ids, sign)
        for group in groups.tolist():
            self._has_terms[group] = group in self._term_heaps

    def _insert_nodes(self, nodes: Ints) -> None:
        """Insert nodes into the heaps of their groups."""
        self._make_room()
        groups, ids = np.ascontiguousarray(self._counts.rows[nodes].T)
        keys = order_keys(ids)
        self._keys[nodes] = ~keys if self._is_max else keys
        pairing_heaps.insert_nodes(
            self._keys, self._child, self._sibling, self._first_equal, self._roots, groups, nodes
        )

    def _make_room(self) -> None:
        before, capacity = self._keys.shape[0], self._counts.rows.shape[0]
        if capacity <= before:
            return
        self._keys = enlarge(self._keys, capacity)
        self._child = enlarge(self._child, capacity)
        self._sibling = enlarge(self._sibling, capacity)
        self._first_equal = enlarge(self._first_equal, capacity)
        self._child[before:] = pairing_heaps.OUT

    def _compact(self) -> None:
        """Forget the values without a count, once they are more than half, and build the heaps again."""
        before = self._counts.top
        self._counts.compact()
        if self._counts.top < before:
            self._keys = self._keys[:0]
            self._child, self._sibling, self._first_equal = self._child[:0], self._sibling[:0], self._first_equal[:0]
            self._roots[:] = pairing_heaps.NONE
            self._insert_nodes(np.arange(self._counts.top))

    def first_values(self, groups: Ints) -> Ints:
        """The MIN or MAX of some groups; `UNBOUND` where there is no value, or an error."""
        nodes = np.empty(groups.shape[0], dtype=np.int64)
        ties = pairing_heaps.find_minima(
            self._keys, self._child, self._sibling, self._first_equal, self._roots, self._counts.counts, groups, nodes
        )
        values: Ints = np.where(nodes >= 0, self._counts.rows[nodes, 1], UNBOUND)
        if ties:
            for i in np.flatnonzero((nodes >= 0) & (self._first_equal[nodes] >= 0)).tolist():
                values[i] = self._first_of_equal(int(nodes[i]))
        for i in np.flatnonzero(self._has_terms[groups]).tolist():
            values[i] = self._first_with_others(int(groups[i]), int(values[i]))
        return values

    def _first_of_equal(self, node: int) -> int:
        """The first of the values whose key equals that of a root."""
        equal = pairing_heaps.find_equal_nodes(self._sibling, self._first_equal, self._counts.counts, node)
        return self._first_among(equal)

    def _first_among(self, nodes: Ints) -> int:
        values: list[int] = self._counts.rows[nodes, 1].tolist()
        return values[0] if len(values) == 1 else self._term_heaps.first_among(values)

    def _first_with_others(self, group: int, value: int) -> int:
        """The first of a value with a key and the values of its group without one."""
        if self._term_heaps.has_errors(group):
            return UNBOUND
        other = self._term_heaps.first_of(group)
        return other if value == UNBOUND else self._term_heaps.first_among([value, other])

    def ids(self) -> Ints:
        """The ids of terms that some group holds; values with a key are inline and need no term."""
        return self._term_heaps.ids()

    @property
    def nbytes(self) -> int:
        links = self._roots.nbytes + self._child.nbytes + self._sibling.nbytes + self._first_equal.nbytes
        return self._counts.nbytes + self._term_heaps.nbytes + self._has_terms.nbytes + self._keys.nbytes + links
