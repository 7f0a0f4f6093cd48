"""A relation: rows of ids that are added and removed, with indexes on the keys that its readers need.

There are ring indexes, which find the rows of a key, and ordered indexes, which find those between bounds.

Each row has a row id. A removed row leaves its id free for another row; its values stay readable until then.
Rows are removed by id, or by value where a delta has values only: then one row of each value is removed. A window loses
its oldest rows first, so `locate` compares with those first. If they differ, an index over whole rows finds the rows.
It is built at the first such removal: rows that never leave (static data), or leave in order of arrival, need none.

Indexes that are hardly used are dropped (CQ7): `review` drops those with many more inserts than probes. Without an
index all rows are compared with the keys of a batch of probes (`index_for`), until these scans take as long as an index
would have taken for the rows that came and went.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from headwater.kernel.columns.array_addresses import address_of
from headwater.kernel.columns.ordered_index import OrderedIndex
from headwater.kernel.columns.ring_index import Ints, RingIndex, as_contiguous
from headwater.kernel.columns.row_ids import ArrivalQueue, RowIdAllocator, enlarge, grow_capacity
from headwater.terms.compiled_code import compiled
from headwater.terms.ids.distinct_ids import DistinctIds

NO_ROW_IDS: Ints = np.zeros(0, dtype=np.int64)
Key = tuple[int, ...]


_MIXER = np.int64(-7046029254386353131)
"""An odd number, which spreads the bits of ids."""

_SCAN_NANOSECONDS = 6.0
"""To compare a row with the keys of some probes."""
_UPKEEP_NANOSECONDS = 60.0
"""To insert a row into an index and to remove it in the end."""


@dataclass(frozen=True, slots=True)
class IndexUse:
    """What an index did since the last review, how often it was dropped so far, and the scans since then."""

    key: Key
    inserts: int
    probes: int
    drops: int
    is_built: bool
    is_ordered: bool = False
    scans: int = 0


@dataclass
class _WithoutIndex:
    """What happened since an index was dropped."""

    inserts: int = 0
    probes: int = 0
    scans: int = 0
    scanned_rows: int = 0

    def forget_half(self) -> None:
        """Give what happens from now on more weight."""
        self.inserts //= 2
        self.scanned_rows //= 2

    def is_index_better(self, size: int) -> bool:
        """Whether an index, with its building, would have taken less time than the scans."""
        return self.scanned_rows * _SCAN_NANOSECONDS > (size + self.inserts) * _UPKEEP_NANOSECONDS


class Relation:
    """Rows of `width` ids."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.rows: Ints = np.zeros((0, width), dtype=np.int64)
        self._row_ids = RowIdAllocator()
        self._row_index: RingIndex | None = None
        self._indexes: dict[Key, RingIndex] = {}
        self._ordered_indexes: dict[Key, OrderedIndex] = {}
        self._all_indexes: list[RingIndex | OrderedIndex] = []
        self._mean_rings: dict[Key, tuple[int, float]] = {}
        """For keys without an index: the number of rows when they were counted, and how many a key had then."""
        self._drops: Counter[Key] = Counter()
        self._without: dict[Key, _WithoutIndex] = {}
        """The indexes that were dropped and not built again."""
        self._queue: ArrivalQueue | None = ArrivalQueue()
        """The rows in order of arrival; None once rows left in another order."""

    def index(self, key: Key) -> RingIndex:
        """The index on some columns, which is built when it is first needed."""
        index = self._indexes.get(key)
        if index is None:
            index = self._indexes[key] = RingIndex(key)
            self._build_index(index)
            self._without.pop(key, None)
        return index

    def index_for(self, key: Key, make_probes: Callable[[], Ints]) -> RingIndex:
        """The index on some columns; if it was dropped, one of those rows alone that match a probe, found by a scan.

        The index comes back when it would have taken less time than the scans since it was dropped.
        """
        without = self._without.get(key)
        if without is None or without.is_index_better(self.size):
            return self.index(key)
        probes = make_probes()
        without.probes += probes.shape[0]
        without.scans += 1
        without.scanned_rows += self.size
        return RingIndex.of_matching_rows(key, self.rows, self.live(), probes)

    def ordered_index(self, key: Key) -> OrderedIndex:
        """The index on some columns of which the last has order keys; it is built when it is first needed."""
        index = self._ordered_indexes.get(key)
        if index is None:
            index = self._ordered_indexes[key] = OrderedIndex(key)
            self._build_index(index)
        return index

    def mean_ring(self, key: Key) -> float:
        """How many rows a key has in the mean; without an index, as counted when the size last doubled or halved."""
        index = self._indexes.get(key)
        if index is not None:
            return self.size / max(1, index.used)
        known = self._mean_rings.get(key)
        if known is None or not known[0] // 2 <= self.size <= 2 * known[0]:
            known = self._mean_rings[key] = self.size, self.size / max(1, self._count_keys(key))
        return known[1]

    def _count_keys(self, key: Key) -> int:
        """How many different values some columns have; different values with one hash count once."""
        values = self.rows[self.live()][:, key]
        mixed = np.zeros(values.shape[0], dtype=np.int64)
        for column in values.T:
            mixed = (mixed ^ (mixed >> 32) ^ column) * _MIXER
        return int(DistinctIds(mixed).ids.shape[0])

    def _build_index(self, index: RingIndex | OrderedIndex) -> None:
        index.rebuild(self.rows, self.live())
        self._all_indexes.append(index)

    def drop_index(self, key: Key) -> None:
        """Drop an index; it is built again when it is needed."""
        self._all_indexes.remove(self._indexes.pop(key))
        self._drops[key] += 1
        self._without[key] = _WithoutIndex()

    def review(self, inserts_per_probe: float) -> None:
        """Drop the indexes with more inserts per probe than this, once they had more inserts than a rebuild takes."""
        for key, index in list(self._indexes.items()):
            if index.inserts > max(self.size, 64):
                if index.inserts > inserts_per_probe * index.probes:
                    self.drop_index(key)
                index.inserts = index.probes = 0
        for without in self._without.values():
            without.forget_half()

    def record_probes(self, key: Key, probes: int) -> None:
        """Count probes that compiled code has made."""
        for index in (self._indexes.get(key), self._ordered_indexes.get(key)):
            if index is not None:
                index.probes += probes

    def index_uses(self) -> list[IndexUse]:
        """How often each index was used, dropped ones included."""
        uses = [
            IndexUse(key, index.inserts, index.probes, self._drops[key], True) for key, index in self._indexes.items()
        ]
        uses += [
            IndexUse(key, one.inserts, one.probes, self._drops[key], False, scans=one.scans)
            for key, one in self._without.items()
        ]
        return uses + [
            IndexUse(key, index.inserts, index.probes, 0, True, True) for key, index in self._ordered_indexes.items()
        ]

    @property
    def size(self) -> int:
        return self._row_ids.size

    def live(self) -> Ints:
        """The ids of all rows."""
        return self._row_ids.live()

    def add(self, values: Ints) -> Ints:
        """Add rows; gives their row ids."""
        n = values.shape[0]
        if n == 0:
            return NO_ROW_IDS
        row_ids = self._row_ids.allocate(n)
        if self._row_ids.top > self.rows.shape[0]:
            self.rows = enlarge(self.rows, grow_capacity(self._row_ids.top, self.rows.shape[0]))
        _write_rows(self.rows, row_ids, as_contiguous(values))
        if self._queue is not None:
            self._queue.append(row_ids)
        for index in self._all_indexes:
            index.insert(self.rows, row_ids)
        for without in self._without.values():
            without.inserts += n
        return row_ids

    def remove(self, row_ids: Ints) -> None:
        """Remove rows by row id."""
        self._queue = None
        for index in self._all_indexes:
            index.remove(self.rows, row_ids)
        self._row_ids.release(row_ids)

    def take(self, values: Ints) -> Ints:
        """Remove one row of each value; gives their row ids, -1 for a value that is not there."""
        row_ids = self.locate(values)
        self.discard(row_ids if has_all_rows(row_ids) else row_ids[row_ids >= 0])
        return row_ids

    def locate(self, values: Ints) -> Ints:
        """Find one row of each value, -1 where there is none. Indexes have them until `discard`, which must follow."""
        oldest = self.locate_oldest(values)
        if oldest is not None:
            return oldest
        self.index_rows()
        assert self._row_index is not None
        return self._row_index.take(self.rows, values)

    def locate_oldest(self, values: Ints) -> Ints | None:
        """The same for the oldest rows, if they have these values; None if they have others."""
        if not values.shape[0]:
            return NO_ROW_IDS
        return None if self._queue is None else self._queue.take_first(self.rows, as_contiguous(values))

    def discard(self, row_ids: Ints) -> None:
        """Remove the rows with these ids, which `locate` gave, from the indexes, and free the ids."""
        for index in self._all_indexes:
            if index is not self._row_index:
                index.remove(self.rows, row_ids)
        self._row_ids.release(row_ids)

    def release(self, row_ids: Ints) -> None:
        """Free the ids of rows that compiled code has removed."""
        self._row_ids.release(row_ids)

    def index_rows(self) -> None:
        """Give up the order of arrival: an index of whole rows finds those that are removed."""
        self._queue = None
        if self._row_index is None:
            self._row_index = RingIndex(tuple(range(self.width)), has_previous_links=False)
            self._build_index(self._row_index)

    @property
    def row_index(self) -> RingIndex | None:
        """The index of whole rows, if there is one."""
        return self._row_index

    def indexes(self) -> Mapping[Key, RingIndex]:
        """The ring indexes that readers use."""
        return self._indexes

    def ordered_indexes(self) -> Mapping[Key, OrderedIndex]:
        """The ordered indexes that readers use."""
        return self._ordered_indexes

    def in_order_of_arrival(self) -> Ints:
        """All rows, the oldest first if the order is known."""
        is_known = self._queue is not None and self._queue.row_ids.shape[0] == self.size
        return self.rows[self._queue.row_ids if self._queue is not None and is_known else self.live()]

    def reserve(self, added: int, removed: int) -> None:
        """Make room for rows that compiled code will add, and for the row ids of those that it will remove."""
        rows = self._row_ids.reserve(added, removed)
        if rows > self.rows.shape[0]:
            self.rows = enlarge(self.rows, grow_capacity(rows, self.rows.shape[0]))
        if self._queue is not None:
            self._queue.reserve(added)
        if added:
            for index in self._all_indexes:
                index.reserve(self.rows, added)

    def record_inserts(self, inserts: int) -> None:
        """Count rows that compiled code has added."""
        for index in self._all_indexes:
            index.inserts += inserts
        for without in self._without.values():
            without.inserts += inserts

    def is_scanned(self, key: Key) -> bool:
        """Whether there is no index on some columns, because it was hardly used."""
        return key in self._without

    def fields(self) -> tuple[int, ...]:
        """Where compiled code finds the rows, the free row ids and the queue, and how many there are."""
        queue = (0, 0, 0) if self._queue is None else self._queue.fields()
        return address_of(self.rows), self.width, self.rows.shape[0], *self._row_ids.fields(), *queue

    def set_fields(self, free_count: int, top: int, begin: int, end: int) -> None:
        """Take over the numbers that compiled code has changed."""
        self._row_ids.set_fields(free_count, top)
        if self._queue is not None:
            self._queue.set_fields(begin, end)

    def clear(self) -> None:
        """Remove all rows."""
        if self._queue is not None:
            self._queue.clear()
        for index in self._all_indexes:
            index.clear()
        self._row_ids.clear()

    def cancel_and_locate(self, added: Ints, removed: Ints) -> tuple[Ints, Ints]:
        """`locate` the removed rows; gives their row ids, and the rows that are still to be added.

        A removed row that is not here came and went within one delta: it cancels one of the added rows.
        """
        row_ids = self.locate(removed)
        if has_all_rows(row_ids):
            return row_ids, added
        return row_ids[row_ids >= 0], subtract_rows(added, removed[row_ids < 0])

    def cancel_and_take(self, added: Ints, removed: Ints) -> tuple[Ints, Ints]:
        """`cancel_and_locate`, and remove the rows."""
        row_ids, added = self.cancel_and_locate(added, removed)
        self.discard(row_ids)
        return row_ids, added

    def describe(self) -> str:
        """How many rows there are and where, for `explain`."""
        return f"{self.size:,} rows in memory"

    def ids(self) -> Ints:
        """The values of all rows."""
        return self.rows[self.live()]

    @property
    def nbytes(self) -> int:
        queue = 0 if self._queue is None else self._queue.nbytes
        return self.rows.nbytes + self._row_ids.nbytes + queue + sum(index.nbytes for index in self._all_indexes)


@compiled
def _write_rows(rows, row_ids, values):  # type: ignore[no-untyped-def]
    for i in range(row_ids.shape[0]):
        for column in range(values.shape[1]):
            rows[row_ids[i], column] = values[i, column]


def has_all_rows(row_ids: Ints) -> bool:
    """Whether `take` found a row of each value."""
    return bool(row_ids.item() >= 0 if row_ids.shape[0] == 1 else not (row_ids < 0).any())


def subtract_rows(rows: Ints, removed: Ints) -> Ints:
    """The rows of a bag without those of another, which it contains."""
    to_subtract = Counter(map(tuple, removed.tolist()))
    kept = []
    for place, row in enumerate(map(tuple, rows.tolist())):
        if to_subtract[row]:
            to_subtract[row] -= 1
        else:
            kept.append(place)
    if to_subtract.total():
        raise AssertionError("a difference takes away what was never there")
    return rows[np.array(kept, dtype=np.int64)]
