"""A full count window with an index on its first column, whose rows are replaced and whose keys are probed.

A row is replaced where a count window that is full gets another row: the oldest one leaves the window and its index,
the new one enters both. There are three ways to do that with many rows, and to probe many keys:

- `loop`: one at a time inside compiled code, as joins do over a run of ticks
- `calls`: one at a time, each with its own calls from Python, as where every element is answered at once
- `batches`: many at once
"""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.kernel_feeding import draw_values, pairs
from benchmarks.reporting import seconds
from headwater.kernel.columns.array_addresses import links_at
from headwater.kernel.columns.ordered_index import OrderedIndex
from headwater.kernel.columns.relation import Relation
from headwater.kernel.columns.ring_index import Ints, RingIndex, ring_size
from headwater.kernel.joins.relation_tables import (
    LINKS,
    RelationTables,
    add_row,
    free_row_id,
    probe_index,
    remove_from_indexes,
    rows_of,
    take_oldest_row,
)
from headwater.terms.compiled_code import compiled

WAYS = ("loop", "calls", "batches")
BATCH = 1000
_STRETCH = 8192
"""After so many rows a loop makes room for more, as joins do."""
_KEY = (0,)
_NUMBERS = np.int64(1) << 60
"""Keys from here on are order keys of numbers, so that an ordered index can have them."""


@compiled
def _replace_rows(relations, indexes, keys, values, expired, arrived, count):  # type: ignore[no-untyped-def]
    """Replace the oldest rows one after the other; rows are in `values`, two numbers each."""
    rows = rows_of(relations, 0)
    for i in range(count):
        row = take_oldest_row(relations, 0, rows, values, 2 * (expired + i))
        if row < 0:
            raise AssertionError("the oldest row has other values")
        remove_from_indexes(relations, indexes, keys, 0, rows, row)
        free_row_id(relations, 0, row)
        add_row(relations, indexes, keys, 0, rows, values, 2 * (arrived + i))


@compiled
def _probe_ring_index(relations, indexes, keys, probes, whole, probe):  # type: ignore[no-untyped-def]
    """Find the ring of each key; gives how many keys have one."""
    found = 0
    for i in range(probes.shape[0]):
        probe[0, 0] = probes[i]
        found += ring_size(probe_index(relations, indexes, keys, 0, probe, whole)) > 0
    return found


@compiled
def _probe_ordered_index(relations, indexes, keys, probes, whole, probe):  # type: ignore[no-untyped-def]
    """Find the highest node of each key in the tree; gives how many keys have one."""
    rows = rows_of(relations, 0)
    links = links_at(indexes[0, LINKS], rows.shape[0] + 1, 2)
    found = 0
    for i in range(probes.shape[0]):
        at = np.int64(links[0, 0])
        while at != 0:
            value = rows[at - 1, 0]
            if value == probes[i]:
                found += 1
                break
            at = np.int64(links[at, 0 if probes[i] < value else 1])
    return found


def draw_rows(random: np.random.Generator, count: int, keys: int) -> Ints:
    """Rows of a key, one of so many, and a number."""
    domain = _NUMBERS + random.integers(0, 1 << 59, keys)
    return pairs(draw_values(random, domain, count), np.arange(count))


class IndexedWindow:
    """A window over the first `size` of some rows. Times are in seconds per row, or per key."""

    def __init__(self, rows: Ints, size: int, *, is_ordered: bool = False) -> None:
        self._rows = rows
        self._size = size
        self._begin = 0
        self._relation = Relation(2)
        self._relation.add(rows[:size])
        self._index: RingIndex | OrderedIndex
        self._index = self._relation.ordered_index(_KEY) if is_ordered else self._relation.index(_KEY)
        # The first rows that are replaced have the tables grow; that is not part of what happens to the others.
        self._replace_in_loop(1)

    @staticmethod
    def rows_for(size: int, replaced: int, calls: int) -> int:
        """How many rows are enough to replace so many in each way."""
        return size + 2 * replaced + calls + 1

    @property
    def content(self) -> Ints:
        return self._rows[self._begin : self._begin + self._size]

    def replace(self, way: str, count: int) -> float:
        """Replace the oldest rows."""
        if way == "loop":
            taken = seconds(partial(self._replace_in_loop, count))
        else:
            batch = min(BATCH, self._size) if way == "batches" else 1
            taken = seconds(partial(self._replace_in_batches, count, batch))
        return taken / count

    def _replace_in_loop(self, count: int) -> None:
        end = self._begin + count
        while self._begin < end:
            stretch = min(_STRETCH, end - self._begin)
            self._relation.reserve(stretch, stretch)
            tables = RelationTables([self._relation])
            values, arrived = self._rows.ravel(), self._begin + self._size
            _replace_rows(tables.relations, tables.indexes, tables.keys, values, self._begin, arrived, stretch)
            tables.store()
            self._begin += stretch

    def _replace_in_batches(self, count: int, batch: int) -> None:
        end = self._begin + count
        while self._begin < end:
            size = min(batch, end - self._begin)
            arrived = self._begin + self._size
            self._relation.take(self._rows[self._begin : self._begin + size])
            self._relation.add(self._rows[arrived : arrived + size])
            self._begin += size

    def probe(self, way: str, keys: Ints) -> float:
        """Find the rows of some keys, which are all in the window: where they begin, not each of them."""
        if way == "loop":
            tables = RelationTables([self._relation])
            loop = _probe_ordered_index if isinstance(self._index, OrderedIndex) else _probe_ring_index
            room = np.zeros(1, np.int32), np.empty((1, 1), np.int64)
            loop(tables.relations, tables.indexes, tables.keys, keys[:1], *room)
            run = partial(loop, tables.relations, tables.indexes, tables.keys, keys, *room)
        else:
            run = partial(self._probe_in_batches, keys.reshape(-1, 1), BATCH if way == "batches" else 1)
        found: list[int] = []
        taken = seconds(lambda: found.append(run()))
        if found != [len(keys)]:
            raise AssertionError(f"{found[0]} of {len(keys)} keys were found")
        return taken / len(keys)

    def _probe_in_batches(self, keys: Ints, batch: int) -> int:
        index = self._index
        assert isinstance(index, RingIndex), "an ordered index is probed for intervals alone"
        found = 0
        for start in range(0, keys.shape[0], batch):
            _, counts, _ = index.probe(self._relation.rows, keys[start : start + batch], index.key)
            found += int(np.count_nonzero(counts))
        return found
