"""A relation: rows of ids that come and go, with ring indexes on whatever keys its readers ask for.

Rows are numbered; a number is free again once its row was removed, and its values stand there until it is given again.
Removal is by number, or by value where the giver of a difference knows values only: then one row of each value goes.
What a window loses are the rows that came first, so those are looked at first. Where others go, an index finds them; it
is made at the first such removal, so rows that never leave (static data) or leave in turn do without.

Whether an index is worth its keep is seen from its counters (CQ7): `review` drops those that were inserted into much
more often than probed, and `index` builds them again when somebody asks.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from headwater.kernel.columns.ring_index import Ints, RingIndex, plain
from headwater.kernel.columns.row_numbers import Numbering, Queue, enlarged, grown
from headwater.terms.compiled_code import compiled

NOTHING: Ints = np.zeros(0, dtype=np.int64)
Key = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class IndexUse:
    """What an index did since the last review, and how often it was dropped so far."""

    key: Key
    inserts: int
    probes: int
    drops: int
    is_built: bool


class Relation:
    """Rows of `width` ids."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.rows: Ints = np.zeros((0, width), dtype=np.int64)
        self._numbering = Numbering()
        self._whole: RingIndex | None = None
        self._indexes: dict[Key, RingIndex] = {}
        self._all: list[RingIndex] = []
        self._drops: Counter[Key] = Counter()
        self._queue: Queue | None = Queue()
        """The rows in the order in which they came, as long as they leave in it."""

    def index(self, key: Key) -> RingIndex:
        """The index on some columns, built when it is first asked for."""
        found = self._indexes.get(key)
        if found is None:
            found = self._indexes[key] = self._built(RingIndex(key))
        return found

    def _built(self, index: RingIndex) -> RingIndex:
        index.rebuild(self.rows, self.live())
        self._all.append(index)
        return index

    def drop_index(self, key: Key) -> None:
        """Forget an index; it is built again when somebody asks."""
        self._all.remove(self._indexes.pop(key))
        self._drops[key] += 1

    def review(self, inserts_per_probe: float) -> None:
        """Drop the indexes with more inserts per probe than this, once the inserts pay for building them again."""
        for key, index in list(self._indexes.items()):
            if index.inserts > max(self.size, 64):
                if index.inserts > inserts_per_probe * index.probes:
                    self.drop_index(key)
                index.inserts = index.probes = 0

    def index_uses(self) -> list[IndexUse]:
        """The indexes that readers asked for, dropped ones included."""
        uses = [
            IndexUse(key, index.inserts, index.probes, self._drops[key], True) for key, index in self._indexes.items()
        ]
        return uses + [IndexUse(key, 0, 0, n, False) for key, n in self._drops.items() if key not in self._indexes]

    @property
    def size(self) -> int:
        return self._numbering.size

    def live(self) -> Ints:
        """The numbers of all rows there are."""
        return self._numbering.live()

    def add(self, values: Ints) -> Ints:
        """Add rows; gives their numbers."""
        n = values.shape[0]
        if n == 0:
            return NOTHING
        numbers = self._numbering.give(n)
        if self._numbering.top > self.rows.shape[0]:
            self.rows = enlarged(self.rows, grown(self._numbering.top, self.rows.shape[0]))
        _place(self.rows, numbers, plain(values))
        if self._queue is not None:
            self._queue.append(numbers)
        for index in self._all:
            index.insert(self.rows, numbers)
        return numbers

    def remove(self, numbers: Ints) -> None:
        """Remove rows by number."""
        self._queue = None
        for index in self._all:
            index.remove(self.rows, numbers)
        self._numbering.give_back(numbers)

    def take(self, values: Ints) -> Ints:
        """Remove one row of each value; gives the numbers they had, and -1 for a value that is not there."""
        if not values.shape[0]:
            return NOTHING
        oldest = self.take_oldest(values)
        if oldest is not None:
            return oldest
        self._queue = None
        if self._whole is None:
            self._whole = self._built(RingIndex(tuple(range(self.width)), rows_leave_singly=False))
        numbers = self._whole.take(self.rows, values)
        found = numbers if are_all_there(numbers) else numbers[numbers >= 0]
        for index in self._indexes.values():
            index.remove(self.rows, found)
        self._numbering.give_back(found)
        return numbers

    def take_oldest(self, values: Ints) -> Ints | None:
        """Remove the rows that came first, if they have these values; gives the numbers they had."""
        if self._queue is None:
            return None
        numbers = self._queue.taken(self.rows, plain(values))
        if numbers is None:
            return None
        for index in self._all:
            index.remove(self.rows, numbers)
        self._numbering.give_back(numbers)
        return numbers

    def clear(self) -> None:
        """Remove all rows."""
        if self._queue is not None:
            self._queue.clear()
        for index in self._all:
            index.clear()
        self._numbering.clear()

    def exchange(self, added: Ints, removed: Ints) -> tuple[Ints, Ints]:
        """Take what went; gives the numbers it had, and what is left to add of what came.

        A row that comes and goes in one difference was perhaps never here: it takes away one of those that come.
        """
        numbers = self.take(removed)
        if are_all_there(numbers):
            return numbers, added
        return numbers[numbers >= 0], without(added, removed[numbers < 0])

    def described(self) -> str:
        """Where the rows are, in words for `explain`."""
        return f"{self.size:,} rows in memory"

    def ids(self) -> Ints:
        """The values of all rows there are."""
        return self.rows[self.live()]

    @property
    def nbytes(self) -> int:
        queue = 0 if self._queue is None else self._queue.nbytes
        return self.rows.nbytes + self._numbering.nbytes + queue + sum(index.nbytes for index in self._all)


@compiled
def _place(rows, numbers, values):  # type: ignore[no-untyped-def]
    for i in range(numbers.shape[0]):
        for column in range(values.shape[1]):
            rows[numbers[i], column] = values[i, column]


def are_all_there(numbers: Ints) -> bool:
    """Whether `take` found a row of each value."""
    return bool(numbers.item() >= 0 if numbers.shape[0] == 1 else not (numbers < 0).any())


def without(rows: Ints, gone: Ints) -> Ints:
    """A bag of rows less another that is part of it."""
    left = Counter(map(tuple, gone.tolist()))
    kept = []
    for place, row in enumerate(map(tuple, rows.tolist())):
        if left[row]:
            left[row] -= 1
        else:
            kept.append(place)
    if left.total():
        raise AssertionError("a difference takes away what was never there")
    return rows[np.array(kept, dtype=np.int64)]
