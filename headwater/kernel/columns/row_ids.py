"""Row ids that are allocated, released and allocated again, so that tables are as small as the rows in use allow."""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from headwater.kernel.columns.array_addresses import address_of
from headwater.kernel.columns.ring_index import MOST_ROWS, Ints, Links
from headwater.terms.compiled_code import compiled
from headwater.values.process_memory import check_memory_for


@compiled
def _allocate(free, count, top, row_ids):  # type: ignore[no-untyped-def]
    for i in range(row_ids.shape[0]):
        if i < count:
            row_ids[i] = free[count - 1 - i]
        else:
            row_ids[i] = top + i - count


@compiled
def _has_values(rows, row_ids, values):  # type: ignore[no-untyped-def]
    for i in range(row_ids.shape[0]):
        for column in range(values.shape[1]):
            if rows[row_ids[i], column] != values[i, column]:
                return False
    return True


class RowIdAllocator:
    """Row ids below `top`, of which some are free."""

    def __init__(self) -> None:
        self.top = 0
        self._free: Links = np.empty(0, dtype=np.int32)
        self._free_count = 0

    @property
    def size(self) -> int:
        """How many row ids are in use."""
        return self.top - self._free_count

    def allocate(self, n: int) -> Ints:
        """Allocate `n` row ids; released ones are used first."""
        free, top = self._free_count, self.top
        if n > free:
            rows = top + n - free
            if rows >= MOST_ROWS:
                raise MemoryError(
                    f"{rows} rows in one window or result, of at most {MOST_ROWS}: make the window smaller"
                )
            self.top, self._free_count = rows, 0
        else:
            self._free_count = free - n
        row_ids = np.empty(n, dtype=np.int64)
        _allocate(self._free, free, top, row_ids)
        return row_ids

    def release(self, row_ids: Ints) -> None:
        """Free row ids."""
        end = self._free_count + row_ids.shape[0]
        if end > self._free.shape[0]:
            self._free = enlarge(self._free, grow_capacity(end, self._free_count))
        self._free[self._free_count : end] = row_ids
        self._free_count = end

    def reserve(self, allocated: int, released: int) -> int:
        """Make room for row ids that compiled code will release; gives how many rows there may be after `allocated`."""
        if self._free_count + released > self._free.shape[0]:
            self._free = enlarge(self._free, grow_capacity(self._free_count + released, self._free_count))
        rows = self.top + max(0, allocated - self._free_count)
        if rows >= MOST_ROWS:
            raise MemoryError(f"{rows} rows in one window or result, of at most {MOST_ROWS}: make the window smaller")
        return rows

    def fields(self) -> tuple[int, int, int]:
        """Where compiled code finds the free row ids, their number, and the top."""
        return address_of(self._free), self._free_count, self.top

    def set_fields(self, free_count: int, top: int) -> None:
        """Take over the numbers that compiled code has changed."""
        self._free_count, self.top = free_count, top

    def clear(self) -> None:
        """Free all row ids."""
        self.top = self._free_count = 0

    def live(self) -> Ints:
        """The row ids in use, in ascending order."""
        if not self._free_count:
            return np.arange(self.top)
        is_live = np.ones(self.top, dtype=np.bool_)
        is_live[self._free[: self._free_count]] = False
        return np.flatnonzero(is_live)

    @property
    def nbytes(self) -> int:
        return self._free.nbytes


class ArrivalQueue:
    """Row ids in order of arrival."""

    def __init__(self) -> None:
        self._row_ids: Links = np.empty(0, dtype=np.int32)
        self._begin = 0
        self._end = 0

    def append(self, row_ids: Ints) -> None:
        """Add row ids at the end."""
        self.reserve(row_ids.shape[0])
        end = self._end + row_ids.shape[0]
        self._row_ids[self._end : end] = row_ids
        self._end = end

    def reserve(self, more: int) -> None:
        """Make room for more row ids."""
        end = self._end + more
        if end > self._row_ids.shape[0]:
            # Row ids that were taken leave room, which is reused once it is at least half of the array.
            queued = self._row_ids[self._begin : self._end]
            end -= self._begin
            if 2 * end > self._row_ids.shape[0]:
                self._row_ids = np.empty(grow_capacity(end, 2 * queued.shape[0]), dtype=np.int32)
            self._row_ids[: queued.shape[0]] = queued.copy()
            self._begin, self._end = 0, queued.shape[0]

    @property
    def row_ids(self) -> Links:
        """The row ids, the oldest first."""
        return self._row_ids[self._begin : self._end]

    def fields(self) -> tuple[int, int, int]:
        """Where compiled code finds the row ids, the first place and the place behind the last."""
        return address_of(self._row_ids), self._begin, self._end

    def with_room(self, more: int) -> tuple[Links, int, int]:
        """The array with room for more row ids, the first place and the place behind the last."""
        self.reserve(more)
        return self._row_ids, self._begin, self._end

    def set_fields(self, begin: int, end: int) -> None:
        """Take over the places that compiled code has changed."""
        self._begin, self._end = begin, end

    def take_first(self, rows: Ints, values: Ints) -> Ints | None:
        """Take the first row ids if their rows have these values; None if they have others."""
        end = self._begin + values.shape[0]
        if end > self._end:
            return None
        row_ids: Ints = self._row_ids[self._begin : end].astype(np.int64)
        if not _has_values(rows, row_ids, values):
            return None
        self._begin = end
        return row_ids

    def renumber(self, kept_ids: Ints) -> None:
        """Replace the row ids `kept_ids`, which are ascending, by 0, 1, 2, …"""
        after = np.empty(int(kept_ids[-1]) + 1 if kept_ids.shape[0] else 0, dtype=np.int32)
        after[kept_ids] = np.arange(kept_ids.shape[0])
        self._row_ids = after[self._row_ids[self._begin : self._end]]
        self._begin, self._end = 0, self._row_ids.shape[0]

    def clear(self) -> None:
        """Remove all."""
        self._begin = self._end = 0

    @property
    def nbytes(self) -> int:
        return self._row_ids.nbytes


def grow_capacity(needed: int, before: int) -> int:
    """A capacity of at least `needed`, half as large again as before."""
    return max(needed, 16, before + before // 2)


Table = TypeVar("Table", Ints, Links, npt.NDArray[np.uint8])


def enlarge(table: Table, capacity: int) -> Table:
    """Copy a table into one with room for more rows; a `LimitError` where there is no memory for it."""
    check_memory_for(table.itemsize * capacity * math.prod(table.shape[1:]))
    larger = np.empty((capacity, *table.shape[1:]), dtype=table.dtype)
    larger[: table.shape[0]] = table
    return larger
