"""Row numbers that are given, given back, and given again: the smallest tables hold the rows that are there at once."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from headwater.kernel.columns.ring_index import MOST_ROWS, Ints, Links
from headwater.terms.compiled_code import compiled


@compiled
def _give(free, count, top, numbers):  # type: ignore[no-untyped-def]
    for i in range(numbers.shape[0]):
        if i < count:
            numbers[i] = free[count - 1 - i]
        else:
            numbers[i] = top + i - count


@compiled
def _are_same(rows, numbers, values):  # type: ignore[no-untyped-def]
    for i in range(numbers.shape[0]):
        for column in range(values.shape[1]):
            if rows[numbers[i], column] != values[i, column]:
                return False
    return True


class Numbering:
    """Numbers below `top`, of which some are free."""

    def __init__(self) -> None:
        self.top = 0
        self._free: Links = np.empty(0, dtype=np.int32)
        self._free_count = 0

    @property
    def size(self) -> int:
        """How many numbers are in use."""
        return self.top - self._free_count

    def give(self, n: int) -> Ints:
        """So many numbers, those given back first."""
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
        numbers = np.empty(n, dtype=np.int64)
        _give(self._free, free, top, numbers)
        return numbers

    def give_back(self, numbers: Ints) -> None:
        end = self._free_count + numbers.shape[0]
        if end > self._free.shape[0]:
            self._free = enlarged(self._free, grown(end, self._free_count))
        self._free[self._free_count : end] = numbers
        self._free_count = end

    def clear(self) -> None:
        """Take all numbers back."""
        self.top = self._free_count = 0

    def live(self) -> Ints:
        """The numbers in use, in ascending order."""
        if not self._free_count:
            return np.arange(self.top)
        alive = np.ones(self.top, dtype=np.bool_)
        alive[self._free[: self._free_count]] = False
        return np.flatnonzero(alive)

    @property
    def nbytes(self) -> int:
        return self._free.nbytes


class Queue:
    """Numbers in the order in which they came."""

    def __init__(self) -> None:
        self._numbers: Links = np.empty(0, dtype=np.int32)
        self._begin = 0
        self._end = 0

    def append(self, numbers: Ints) -> None:
        """They come last."""
        end = self._end + numbers.shape[0]
        if end > self._numbers.shape[0]:
            # Those that went leave room; it is used once it is as much as what is there.
            waiting = self._numbers[self._begin : self._end]
            end -= self._begin
            if 2 * end > self._numbers.shape[0]:
                self._numbers = np.empty(grown(end, 2 * waiting.shape[0]), dtype=np.int32)
            self._numbers[: waiting.shape[0]] = waiting.copy()
            self._begin, self._end = 0, waiting.shape[0]
        self._numbers[self._end : end] = numbers
        self._end = end

    def taken(self, rows: Ints, values: Ints) -> Ints | None:
        """The numbers that came first, which are gone now, if their rows are these; None if they are not."""
        end = self._begin + values.shape[0]
        if end > self._end:
            return None
        numbers: Ints = self._numbers[self._begin : end].astype(np.int64)
        if not _are_same(rows, numbers, values):
            return None
        self._begin = end
        return numbers

    def renumber(self, kept: Ints) -> None:
        """The numbers that are kept, in ascending order, are 0, 1, 2, … from now on."""
        after = np.empty(int(kept[-1]) + 1 if kept.shape[0] else 0, dtype=np.int32)
        after[kept] = np.arange(kept.shape[0])
        self._numbers = after[self._numbers[self._begin : self._end]]
        self._begin, self._end = 0, self._numbers.shape[0]

    def clear(self) -> None:
        """All are gone."""
        self._begin = self._end = 0

    @property
    def nbytes(self) -> int:
        return self._numbers.nbytes


def grown(needed: int, before: int) -> int:
    """A capacity for what is needed, and for half as much again as there was."""
    return max(needed, 16, before + before // 2)


Table = TypeVar("Table", Ints, Links, npt.NDArray[np.uint8])


def enlarged(table: Table, capacity: int) -> Table:
    """The same rows with room for more."""
    larger = np.empty((capacity, *table.shape[1:]), dtype=table.dtype)
    larger[: table.shape[0]] = table
    return larger
