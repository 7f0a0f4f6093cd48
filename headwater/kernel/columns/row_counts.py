"""The one-way index (OA2): from a whole row to the number of its occurrences.

    table[slot] = place + 1      0: empty
    counts[place]                of rows[place]; 0: the row is gone, but keeps its slot until many are gone

Deletion is lazy, as in section 3.4 of the paper: once more than half of the rows are gone, they are dropped together.
Counts may be negative within a delta, since its removed rows may be counted before its added ones.

A window loses its oldest rows first. As long as that is so, rows are taken from a queue and not looked up.
"""

from __future__ import annotations

import numpy as np

from headwater.kernel.columns.delta import Delta
from headwater.kernel.columns.delta_run import DeltaRun, Signs
from headwater.kernel.columns.ring_index import (
    PREFETCH_DISTANCE,
    Ints,
    Links,
    as_contiguous,
    first_slot,
    has_same_key,
    hash_row,
)
from headwater.kernel.columns.row_ids import ArrivalQueue, enlarge, grow_capacity
from headwater.terms.compiled_code import compiled
from headwater.terms.ids.prefetching import prefetch
from headwater.values.query_guard import check_rows

_SMALLEST_TABLE = 16
_STRETCH = 8192
"""After so many changes of a run, rows that are gone may be dropped."""
_NO_PLACES: Ints = np.empty(0, dtype=np.int64)
_NO_QUEUE = np.empty(0, dtype=np.int32), -1, -1


@compiled(inline="always")
def _find_slot(table, rows, key, values, i, slot):  # type: ignore[no-untyped-def]
    """The slot of a row, searched from some slot on, or the empty slot where it belongs."""
    while table[slot] != 0 and not has_same_key(rows, np.int64(table[slot]) - 1, key, values, i, key):
        slot += 1
        if slot == table.shape[0]:
            slot = np.int64(0)
    return slot


@compiled(inline="always")
def _find_first_slots(table, key, values, slots):  # type: ignore[no-untyped-def]
    """Where the search for each row begins (`slots`)."""
    for i in range(values.shape[0]):
        slots[i] = first_slot(hash_row(values, i, key), table.shape[0])


@compiled(inline="always")
def _prefetch_next(table, rows, counts, slots, i):  # type: ignore[no-untyped-def]
    """Prefetch what the search for later rows begins with; a slot below zero is not searched."""
    if i + 2 * PREFETCH_DISTANCE < slots.shape[0]:
        if slots[i + 2 * PREFETCH_DISTANCE] >= 0:
            prefetch(table, slots[i + 2 * PREFETCH_DISTANCE])
        slot = slots[i + PREFETCH_DISTANCE]
        next_place = np.int64(table[slot]) - 1 if slot >= 0 else np.int64(-1)
        if next_place >= 0:
            prefetch(rows, next_place)
            prefetch(counts, next_place)


@compiled
def _change(table, rows, counts, top, key, values, by, slots, crossed):  # type: ignore[no-untyped-def]
    """Count rows up or down; gives the new top, and the number of rows whose count crossed zero (`crossed`).

    `slots` is room for the slots at which the searches begin, which are prefetched. It holds the places of the rows
    afterwards.
    """
    n = 0
    _find_first_slots(table, key, values, slots)
    for i in range(values.shape[0]):
        _prefetch_next(table, rows, counts, slots, i)
        slot = _find_slot(table, rows, key, values, i, slots[i])
        if table[slot] == 0:
            for c in range(key.shape[0]):
                rows[top, c] = values[i, c]
            counts[top] = 0
            top += 1
            table[slot] = top
        place = np.int64(table[slot]) - 1
        slots[i] = place
        before = counts[place]
        counts[place] = before + by
        if (before <= 0) != (before + by <= 0):
            crossed[n] = place
            n += 1
    return top, n


@compiled(inline="always")
def _find_place(table, rows, counts, top, key, values, i, slot):  # type: ignore[no-untyped-def]
    """The place of a row, searched from some slot on; it is the top if the row is new."""
    slot = _find_slot(table, rows, key, values, i, slot)
    if table[slot] == 0:
        for c in range(key.shape[0]):
            rows[top, c] = values[i, c]
        counts[top] = 0
        table[slot] = top + 1
    return np.int64(table[slot]) - 1


@compiled
def _find_places(table, rows, counts, top, key, values, places):  # type: ignore[no-untyped-def]
    """The place of each row (`places`, at first room for slots); gives the new top."""
    _find_first_slots(table, key, values, places)
    for i in range(values.shape[0]):
        _prefetch_next(table, rows, counts, places, i)
        places[i] = _find_place(table, rows, counts, top, key, values, i, places[i])
        top = max(top, places[i] + 1)
    return top


@compiled
def _list_bags(table, rows, counts, top, key, values, signs, ticks, low, high, ends, listed):  # type: ignore[no-untyped-def]
    """Count rows up or down and list the bag after each tick from `low` to `high` (`listed`); gives the new top.

    `ends` gets where the bag of each tick ends.
    """
    width = key.shape[0]
    n, i, begin = 0, 0, 0
    for tick in range(low, high):
        is_changed = tick == low
        while i < values.shape[0] and ticks[i] == tick:
            slot = first_slot(hash_row(values, i, key), table.shape[0])
            place = _find_place(table, rows, counts, top, key, values, i, slot)
            top = max(top, place + 1)
            counts[place] += signs[i]
            is_changed = True
            i += 1
        first = n
        if is_changed:
            for place in range(top):
                if n + counts[place] > listed.shape[0]:
                    raise AssertionError("a bag has more rows than were added to it")
                for _ in range(counts[place]):
                    for c in range(width):
                        listed[n, c] = rows[place, c]
                    n += 1
        else:
            # The bag of the tick before once more.
            if n + first - begin > listed.shape[0]:
                raise AssertionError("a bag has more rows than were added to it")
            for place in range(begin, first):
                for c in range(width):
                    listed[n, c] = listed[place, c]
                n += 1
        begin = first
        ends[tick] = n
    return top


@compiled
def _change_in_turn(  # type: ignore[no-untyped-def]
    table, rows, counts, top, key, values, signs, slots, crossed, queue, begin, end
):
    """Count rows up or down, one after the other; gives the new top, and how many changes crossed zero (`crossed`).

    `slots` is room for the slots at which the searches begin. `queue` has the places of rows in order of arrival from
    `begin` to `end`; what is left of it is given, too. A `begin` below zero says that rows do not leave in that order.
    """
    n = 0
    for i in range(values.shape[0]):
        is_searched = signs[i] > 0 or begin < 0
        slots[i] = first_slot(hash_row(values, i, key), table.shape[0]) if is_searched else -1
    for i in range(values.shape[0]):
        _prefetch_next(table, rows, counts, slots, i)
        if signs[i] < 0 and begin >= 0:
            if begin < end and has_same_key(rows, np.int64(queue[begin]), key, values, i, key):
                place = np.int64(queue[begin])
                begin += 1
            else:
                begin = np.int64(-1)
        if signs[i] > 0 or begin < 0:
            slot = slots[i] if slots[i] >= 0 else first_slot(hash_row(values, i, key), table.shape[0])
            place = _find_place(table, rows, counts, top, key, values, i, slot)
            top = max(top, place + 1)
            if begin >= 0:
                queue[end] = place
                end += 1
        before = counts[place]
        counts[place] = before + signs[i]
        if (before <= 0) != (counts[place] <= 0):
            crossed[n] = i
            n += 1
    return top, n, begin, end


@compiled
def _count_down(counts, places, crossed):  # type: ignore[no-untyped-def]
    """Count rows down; gives the number of those that are gone (`crossed`)."""
    n = 0
    for i in range(places.shape[0]):
        counts[places[i]] -= 1
        if counts[places[i]] == 0:
            crossed[n] = places[i]
            n += 1
    return n


@compiled
def _assign_slots(table, rows, key, top):  # type: ignore[no-untyped-def]
    """Give each of some different rows a slot."""
    size = table.shape[0]
    for place in range(top):
        slot = first_slot(hash_row(rows, place, key), size)
        while table[slot] != 0:
            slot += 1
            if slot == size:
                slot = np.int64(0)
        table[slot] = place + 1


class RowCounts:
    """A bag of rows: each different row once, with its count."""

    def __init__(self, width: int) -> None:
        self.rows: Ints = np.empty((_SMALLEST_TABLE, width), dtype=np.int64)
        self.counts: Ints = np.empty(_SMALLEST_TABLE, dtype=np.int64)
        self.top = 0
        self._changes = 0
        self._table: Links = np.zeros(_SMALLEST_TABLE, dtype=np.int32)
        self._key: Links = np.arange(width, dtype=np.int32)
        self._queue: ArrivalQueue | None = ArrivalQueue()
        """The places of the rows in order of arrival; None once rows left in another order."""

    def change(self, values: Ints, by: int) -> Ints:
        """Count rows up (by 1) or down (by -1); gives the places of those that came into the bag or left it.

        The places are valid until `compact`.
        """
        n = values.shape[0]
        if not n:
            return _NO_PLACES
        self._changes += n
        values = as_contiguous(values)
        if by < 0 and self._queue is not None:
            oldest = self._queue.take_first(self.rows, values)
            if oldest is not None:
                crossed = np.empty(n, dtype=np.int64)
                return crossed[: _count_down(self.counts, oldest, crossed)]
            self._queue = None
        self._make_room(n)
        places, crossed = np.empty((2, n), dtype=np.int64)
        self.top, crossed_count = _change(
            self._table, self.rows, self.counts, self.top, self._key, values, by, places, crossed
        )
        if self._queue is not None:
            self._queue.append(places)
        return crossed[:crossed_count]

    def change_in_turn(self, values: Ints, signs: Signs) -> Ints:
        """Count rows up or down, one after the other; gives which changes let a row come into the bag or leave it."""
        crossed: list[Ints] = [_NO_PLACES]
        for low in range(0, values.shape[0], _STRETCH):
            some = np.require(values[low : low + _STRETCH], np.int64, ("C", "W"))
            self.compact()
            self._changes += some.shape[0]
            self._make_room(some.shape[0])
            slots, places = np.empty((2, some.shape[0]), dtype=np.int64)
            queue, begin, end = _NO_QUEUE if self._queue is None else self._queue.with_room(some.shape[0])
            self.top, crossed_count, begin, end = _change_in_turn(
                self._table, self.rows, self.counts, self.top, self._key, some, signs[low : low + _STRETCH], slots,
                places, queue, begin, end,
            )  # fmt: skip
            if begin < 0:
                self._queue = None
            elif self._queue is not None:
                self._queue.set_fields(begin, end)
            crossed.append(places[:crossed_count] + low)
        return np.concatenate(crossed)

    def find_places(self, values: Ints) -> tuple[Ints, int]:
        """The place of each row, with the count 0 where it is new, and the first place of a new row.

        Their counts are then changed by the caller. The places are valid until `compact`.
        """
        self._queue = None
        n, first_new = values.shape[0], self.top
        self._changes += n
        self._make_room(n)
        places = np.empty(n, dtype=np.int64)
        self.top = _find_places(
            self._table, self.rows, self.counts, self.top, self._key, np.require(values, np.int64, ("C", "W")), places
        )
        return places, first_new

    def list_bags(self, run: DeltaRun, tick_count: int) -> tuple[Ints, Ints]:
        """The bag after each tick of a run: where the rows of each tick begin (and last, where they end), and the rows.

        The rows of a tick are in any order.
        """
        self._queue = None
        bags: list[Ints] = []
        offsets = np.zeros(tick_count + 1, dtype=np.int64)
        ends = offsets[1:]
        starts = run.ticks.searchsorted(np.arange(tick_count + 1)).tolist()
        changes = np.bincount(run.ticks, weights=run.signs, minlength=tick_count)
        sizes = changes.cumsum() + self.counts[: self.top].sum()
        check_rows(int(sizes.sum()), self.rows.shape[1])
        low = 0
        while low < tick_count:
            self.compact()
            # Rows that are gone cost a look at each tick: after as many changes as there are rows they may be dropped.
            limit, high = starts[low] + max(self.top, _SMALLEST_TABLE), low + 1
            while high < tick_count and starts[high + 1] <= limit:
                high += 1
            some = slice(starts[low], starts[high])
            self._changes += some.stop - some.start
            self._make_room(some.stop - some.start)
            values = np.require(run.rows[some], np.int64, ("C", "W"))
            listed = np.empty((int(sizes[low:high].sum()), self.rows.shape[1]), dtype=np.int64)
            self.top = _list_bags(
                self._table, self.rows, self.counts, self.top, self._key, values, run.signs[some], run.ticks[some],
                low, high, ends, listed,
            )  # fmt: skip
            ends[low:high] += offsets[low]
            bags.append(listed)
            low = high
        return offsets, np.concatenate(bags)

    def bag(self) -> Ints:
        """All rows, each as often as it occurs, sorted by ids so that the order does not depend on the history."""
        present = np.flatnonzero(self.counts[: self.top] > 0)
        rows = self.rows[present]
        if rows.shape[1]:
            order = np.lexsort(rows.T[::-1])
            present, rows = present[order], rows[order]
        repeated: Ints = np.repeat(rows, self.counts[present], axis=0)
        return repeated

    def ids(self) -> Ints:
        """The values of all different rows."""
        rows: Ints = self.rows[: self.top][self.counts[: self.top] != 0]
        return rows

    def distinct_rows(self) -> Ints:
        """Each row of the bag once."""
        return self.rows[np.flatnonzero(self.counts[: self.top] > 0)]

    def compact(self) -> None:
        """Drop the rows that are gone, if they are more than half. They are counted only after enough changes."""
        if self._changes * 2 < self.top or self.top <= _SMALLEST_TABLE:
            return
        self._changes = 0
        present = np.flatnonzero(self.counts[: self.top])
        if present.shape[0] * 2 < self.top:
            self.top = present.shape[0]
            capacity = grow_capacity(self.top, self.top)
            self.rows = enlarge(self.rows[present], capacity)
            self.counts = enlarge(self.counts[present], capacity)
            self._rebuild_table(2 * capacity)
            if self._queue is not None:
                self._queue.renumber(present)

    def _make_room(self, more: int) -> None:
        needed = self.top + more
        if needed > self.rows.shape[0]:
            capacity = grow_capacity(needed, self.top)
            self.rows = enlarge(self.rows, capacity)
            self.counts = enlarge(self.counts, capacity)
        if needed * 4 > self._table.shape[0] * 3:
            self._rebuild_table(2 * self.rows.shape[0])

    def _rebuild_table(self, size: int) -> None:
        self._table = np.zeros(size, dtype=np.int32)
        _assign_slots(self._table, self.rows, self._key, self.top)

    @property
    def nbytes(self) -> int:
        queue = 0 if self._queue is None else self._queue.nbytes
        return self.rows.nbytes + self.counts.nbytes + self._table.nbytes + queue


def bag_difference(after: Ints, before: Ints) -> Delta:
    """The smallest delta that turns one bag into another."""
    counts = RowCounts(after.shape[1])
    counts.change(after, 1)
    counts.change(before, -1)
    change = counts.counts[: counts.top]
    rows = counts.rows[: counts.top]
    return Delta(np.repeat(rows, np.maximum(change, 0), axis=0), np.repeat(rows, np.maximum(-change, 0), axis=0))
