"""The one-way index (OA2): from a whole row to how often it is there.

    table[slot] = number + 1      0: empty
    counts[number]                of rows[number]; 0: the row is gone, but keeps its slot until enough of them do

Deletion is lazy, as in section 3.4 of the paper: once more than half of the rows are gone, all of those are dropped
together. Counts may go below zero within a difference, since rows that come and go at once may go first.

What a window loses are the rows that came first. As long as that is so, they are not looked up but taken in turn.
"""

from __future__ import annotations

import numpy as np

from headwater.kernel.columns.prefetching import prefetch
from headwater.kernel.columns.ring_index import Ints, Links, first_slot, hashed, same
from headwater.kernel.columns.row_numbers import Queue, enlarged, grown
from headwater.terms.compiled_code import compiled

_SMALLEST = 16
_AHEAD = 8
"""How many steps ahead memory is asked for."""
_NO_NUMBERS: Ints = np.empty(0, dtype=np.int64)


@compiled(inline="always")
def _slot_of(table, rows, key, values, i, slot):  # type: ignore[no-untyped-def]
    """The slot of a row whose search begins at some slot, or the empty one where it belongs."""
    while table[slot] != 0 and not same(rows, np.int64(table[slot]) - 1, key, values, i, key):
        slot += 1
        if slot == table.shape[0]:
            slot = np.int64(0)
    return slot


@compiled
def _change(table, rows, counts, top, key, values, by, slots, crossed):  # type: ignore[no-untyped-def]
    """Count rows up or down; gives the new top, and how many rows came into being (by > 0) or ceased to be.

    `slots` is room for the slots at which each search begins: the memory of later ones is asked for in time. The
    numbers of the rows stand there afterwards.
    """
    n = 0
    size = values.shape[0]
    for i in range(size):
        slots[i] = first_slot(hashed(values, i, key), table.shape[0])
    for i in range(size):
        if i + 2 * _AHEAD < size:
            prefetch(table, slots[i + 2 * _AHEAD])
            following = np.int64(table[slots[i + _AHEAD]]) - 1
            if following >= 0:
                prefetch(rows, following)
                prefetch(counts, following)
        slot = _slot_of(table, rows, key, values, i, slots[i])
        if table[slot] == 0:
            for c in range(key.shape[0]):
                rows[top, c] = values[i, c]
            counts[top] = 0
            top += 1
            table[slot] = top
        number = np.int64(table[slot]) - 1
        slots[i] = number
        before = counts[number]
        counts[number] = before + by
        if (before <= 0) != (before + by <= 0):
            crossed[n] = number
            n += 1
    return top, n


@compiled
def _count_down(counts, numbers, crossed):  # type: ignore[no-untyped-def]
    """Count rows down; gives how many ceased to be."""
    n = 0
    for i in range(numbers.shape[0]):
        counts[numbers[i]] -= 1
        if counts[numbers[i]] == 0:
            crossed[n] = numbers[i]
            n += 1
    return n


@compiled
def _placed(table, rows, key, top):  # type: ignore[no-untyped-def]
    """Give every row a slot; all rows differ."""
    size = table.shape[0]
    for number in range(top):
        slot = first_slot(hashed(rows, number, key), size)
        while table[slot] != 0:
            slot += 1
            if slot == size:
                slot = np.int64(0)
        table[slot] = number + 1


class RowCounts:
    """A bag of rows, each different row once with its count."""

    def __init__(self, width: int) -> None:
        self.rows: Ints = np.empty((_SMALLEST, width), dtype=np.int64)
        self.counts: Ints = np.empty(_SMALLEST, dtype=np.int64)
        self.top = 0
        self._changes = 0
        self._table: Links = np.zeros(_SMALLEST, dtype=np.int32)
        self._key: Links = np.arange(width, dtype=np.int32)
        self._queue: Queue | None = Queue()
        """The numbers of the rows in the order in which they came, as long as they leave in it."""

    def change(self, values: Ints, by: int) -> Ints:
        """Count rows up (by 1) or down (by -1); gives the numbers of those that came into being or ceased to be.

        The numbers hold until `compact`.
        """
        n = values.shape[0]
        if not n:
            return _NO_NUMBERS
        self._changes += n
        values = np.require(values, np.int64, ("C", "W"))
        if by < 0 and self._queue is not None:
            oldest = self._queue.taken(self.rows, values)
            if oldest is not None:
                crossed = np.empty(n, dtype=np.int64)
                return crossed[: _count_down(self.counts, oldest, crossed)]
            self._queue = None
        self._make_room(n)
        numbers, crossed = np.empty((2, n), dtype=np.int64)
        self.top, found = _change(
            self._table, self.rows, self.counts, self.top, self._key, values, by, numbers, crossed
        )
        if self._queue is not None:
            self._queue.append(numbers)
        return crossed[:found]

    def bag(self) -> Ints:
        """All rows, each as often as it is there, in the order of the ids so that it does not depend on the past."""
        present = np.flatnonzero(self.counts[: self.top] > 0)
        rows = self.rows[present]
        if rows.shape[1]:
            order = np.lexsort(rows.T[::-1])
            present, rows = present[order], rows[order]
        repeated: Ints = np.repeat(rows, self.counts[present], axis=0)
        return repeated

    def ids(self) -> Ints:
        """The values of all rows there are, each once."""
        found: Ints = self.rows[: self.top][self.counts[: self.top] != 0]
        return found

    def present(self) -> Ints:
        """Each row that is there, once."""
        return self.rows[np.flatnonzero(self.counts[: self.top] > 0)]

    def compact(self) -> None:
        """Drop the rows that are gone, if they are more than half; they are counted only when there may be so many."""
        if self._changes * 2 < self.top or self.top <= _SMALLEST:
            return
        self._changes = 0
        present = np.flatnonzero(self.counts[: self.top])
        if present.shape[0] * 2 < self.top:
            self.top = present.shape[0]
            capacity = grown(self.top, self.top)
            self.rows = enlarged(self.rows[present], capacity)
            self.counts = enlarged(self.counts[present], capacity)
            self._place(2 * capacity)
            if self._queue is not None:
                self._queue.renumber(present)

    def _make_room(self, more: int) -> None:
        needed = self.top + more
        if needed > self.rows.shape[0]:
            capacity = grown(needed, self.top)
            self.rows = enlarged(self.rows, capacity)
            self.counts = enlarged(self.counts, capacity)
        if needed * 4 > self._table.shape[0] * 3:
            self._place(2 * self.rows.shape[0])

    def _place(self, size: int) -> None:
        self._table = np.zeros(size, dtype=np.int32)
        _placed(self._table, self.rows, self._key, self.top)

    @property
    def takes_in_turn(self) -> bool:
        """Whether rows have left in the order in which they came until now."""
        return self._queue is not None

    @property
    def nbytes(self) -> int:
        queue = 0 if self._queue is None else self._queue.nbytes
        return self.rows.nbytes + self.counts.nbytes + self._table.nbytes + queue
