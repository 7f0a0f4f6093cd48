"""MIN and MAX per group over values that come and go: counts of the different values, and a heap of those per group.

Numbers and date-times that are inside their ids have a key that grows with their place in SPARQL's order:

    numbers       the nearest double, whose bits are read as an integer that grows with it
    date-times    microseconds since 1970, without the last four bits, behind all numbers

A value enters the heap of its group when it comes for the first time, and leaves it when it is found at the top without
a count. Values with equal keys may differ by less than the key shows, or be the same number in another type or
spelling; their terms decide then, and the smallest text between equals, as in `headwater.values.aggregates`. Terms
without a key, and errors, are kept in `heaps`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headwater.kernel.aggregation import pairing_heaps as pairing
from headwater.kernel.aggregation.value_heaps import Heaps, OrderOf
from headwater.kernel.columns.delta import UNBOUND
from headwater.kernel.columns.ring_index import Ints, Links
from headwater.kernel.columns.row_counts import RowCounts
from headwater.kernel.columns.row_numbers import enlarged
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
"""By the highest six bits of an id, the first of which says that it is an inline one."""
_HAS_KEY[_INLINE + InlineType.INTEGER : _INLINE + InlineType.DOUBLE_BITS_SCIENTIFIC + 1] = True
_HAS_KEY[[_INLINE + kind for kind in _TIMES]] = True
_FIRST_TIME = int(InlineType.DATE_TIME)
_BEHIND_NUMBERS = np.int64((1 << 63) - (1 << 50))
_POSITIVE = np.int64((1 << 63) - 1)


@compiled
def _places(ids, doubles, times):  # type: ignore[no-untyped-def]
    """Of ids that have a key: the number as a double, or the place of a time, which is 0 for numbers."""
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
    """Keys that do not fall where the order of ids rises."""
    doubles = np.empty(ids.shape[0], dtype=np.float64)
    times = np.empty(ids.shape[0], dtype=np.int64)
    _places(ids, doubles, times)
    bits = doubles.view(np.int64)
    keys: Ints = np.where(times == 0, bits ^ (bits >> 63 & _POSITIVE), times)
    return keys


class Extremes:
    """The least value of each group, or the greatest. `order_of` is the order of all terms that says the same."""

    def __init__(self, vocabulary: Vocabulary, order_of: OrderOf, *, greatest: bool) -> None:
        self._others = Heaps(vocabulary, order_of)
        self._has_others: npt.NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self._greatest = greatest
        self._counts = RowCounts(2)
        self._roots: Links = np.empty(0, dtype=np.int32)
        self._keys: Ints = np.empty(0, dtype=np.int64)
        self._child: Links = np.empty(0, dtype=np.int32)
        self._sibling: Links = np.empty(0, dtype=np.int32)
        self._twin: Links = np.empty(0, dtype=np.int32)

    def grow(self, capacity: int) -> None:
        """Make room for groups."""
        before = self._roots.shape[0]
        self._roots = enlarged(self._roots, capacity)
        self._roots[before:] = pairing.NONE
        self._has_others = np.concatenate((self._has_others, np.zeros(capacity - before, dtype=np.bool_)))

    def change(self, groups: Ints, ids: Ints, sign: int) -> None:
        """Add values to groups, or take them away."""
        has_key = _HAS_KEY[ids >> VALUE_BITS & 63]
        if not has_key.all():
            self._change_others(groups[~has_key], ids[~has_key], sign)
            groups, ids = groups[has_key], ids[has_key]
        if not ids.shape[0]:
            return
        self._compact()
        crossed = self._counts.change(np.stack((groups, ids), axis=1), sign)
        if sign > 0 and crossed.shape[0]:
            self._enter(crossed)

    def _change_others(self, groups: Ints, ids: Ints, sign: int) -> None:
        self._others.change(groups, ids, sign)
        for group in groups.tolist():
            self._has_others[group] = group in self._others

    def _enter(self, nodes: Ints) -> None:
        """Put nodes into the heaps of their groups."""
        self._make_room()
        groups, ids = np.ascontiguousarray(self._counts.rows[nodes].T)
        keys = order_keys(ids)
        self._keys[nodes] = ~keys if self._greatest else keys
        pairing.enter(self._keys, self._child, self._sibling, self._twin, self._roots, groups, nodes)

    def _make_room(self) -> None:
        before, capacity = self._keys.shape[0], self._counts.rows.shape[0]
        if capacity <= before:
            return
        self._keys = enlarged(self._keys, capacity)
        self._child = enlarged(self._child, capacity)
        self._sibling = enlarged(self._sibling, capacity)
        self._twin = enlarged(self._twin, capacity)
        self._child[before:] = pairing.OUT

    def _compact(self) -> None:
        """Forget the values that are gone, once they are more than half; the heaps are made anew then."""
        before = self._counts.top
        self._counts.compact()
        if self._counts.top < before:
            self._keys = self._keys[:0]
            self._child, self._sibling, self._twin = self._child[:0], self._sibling[:0], self._twin[:0]
            self._roots[:] = pairing.NONE
            self._enter(np.arange(self._counts.top))

    def first(self, groups: Ints) -> Ints:
        """The first value of some groups."""
        nodes = np.empty(groups.shape[0], dtype=np.int64)
        tied = pairing.smallest(
            self._keys, self._child, self._sibling, self._twin, self._roots, self._counts.counts, groups, nodes
        )
        found: Ints = np.where(nodes >= 0, self._counts.rows[nodes, 1], UNBOUND)
        if tied:
            for i in np.flatnonzero((nodes >= 0) & (self._twin[nodes] >= 0)).tolist():
                found[i] = self._decided(int(nodes[i]))
        for i in np.flatnonzero(self._has_others[groups]).tolist():
            found[i] = self._among_others(int(groups[i]), int(found[i]))
        return found

    def _decided(self, node: int) -> int:
        """The first of the values whose key is that of a root."""
        equal = pairing.equals(self._sibling, self._twin, self._counts.counts, node)
        values: list[int] = self._counts.rows[equal, 1].tolist()
        return values[0] if len(values) == 1 else self._others.best_of(values)

    def _among_others(self, group: int, value: int) -> int:
        """The first of a value that has a key and the values of its group that have none."""
        if self._others.has_errors(group):
            return UNBOUND
        other = self._others.first_of(group)
        return other if value == UNBOUND else self._others.best_of([value, other])

    def ids(self) -> Ints:
        """The ids of terms that some group holds; those with a key are inside their ids."""
        return self._others.ids()

    @property
    def nbytes(self) -> int:
        links = self._roots.nbytes + self._child.nbytes + self._sibling.nbytes + self._twin.nbytes
        return self._counts.nbytes + self._others.nbytes + self._has_others.nbytes + self._keys.nbytes + links
