"""The ring index (OA3): from a key to the number of rows that have it, and to the rows themselves, newest first.

An open-addressing table holds, per key, the `head` of a ring of rows and their `count`; `links` stands beside the rows.
Inserting and removing a row touch one slot and two neighbours, and a probe knows the exact number of live rows before
any of them is looked at, which is what the adaptive join asks for (OA6). Keys are the values of some columns of the
rows, and are read there: a slot has only a few bits of the hash, so that most other keys are told apart without a look.

    table[slot] = tag << 56 | head << 28 | count      0: empty; count 0 otherwise: emptied (lazy deletion, OA4)
    links[row]  = (next, previous)                    `next` alone where only whole keys are taken out

An index counts its inserts and its probes, so that its relation can see whether it is worth its keep (CQ7).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headwater.kernel.columns.prefetching import prefetch
from headwater.terms.compiled_code import compiled

Ints = npt.NDArray[np.int64]
Links = npt.NDArray[np.int32]

MOST_ROWS = 1 << 28
"""A relation holds fewer rows than this, since a slot has 28 bits for a row number."""

_ODD = np.uint64(0xD6E8FEB86659FD93)
_GOLD = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_COUNT = np.int64(MOST_ROWS - 1)
_ROW = np.int64(28)
_TAG = np.int64(56)
_SMALLEST = 16
_WORTH_KEEPING = 1024
"""A table of at most so many slots is faster emptied than made anew."""
AHEAD = 8
"""How many steps ahead memory is asked for."""
_BLOCK = 128
"""So many pairs are made before the next index is asked about them."""

Asked = tuple[Ints, Links]
"""Keys of which some values are known for each probe, and the others stand in columns of a row; -1: it is known."""


@compiled(inline="always")
def mixed(value):  # type: ignore[no-untyped-def]
    """A bijection of 64-bit values whose every output bit depends on every input bit."""
    x = np.uint64(value)
    x ^= x >> _HALF
    x *= _ODD
    x ^= x >> _HALF
    x *= _ODD
    x ^= x >> _HALF
    return x


@compiled(inline="always")
def hashed(rows, row, key):  # type: ignore[no-untyped-def]
    h = _GOLD
    for i in range(key.shape[0]):
        h = mixed(np.int64(h) ^ rows[row, key[i]])
    return h


@compiled(inline="always")
def first_slot(h, size):  # type: ignore[no-untyped-def]
    """Where the search for a hash begins: its upper half scaled to the size, so that any size will do."""
    return np.int64(((h >> _HALF) * np.uint64(size)) >> _HALF)


@compiled(inline="always")
def _tag(h):  # type: ignore[no-untyped-def]
    return np.int64(h & np.uint64(63)) | np.int64(64)


@compiled(inline="always")
def _head(entry):  # type: ignore[no-untyped-def]
    return (entry >> _ROW) & _COUNT


@compiled(inline="always")
def same(rows, row, key, others, other, other_key):  # type: ignore[no-untyped-def]
    """Whether a row and another one have the same key."""
    are_same = True
    for i in range(key.shape[0]):
        are_same &= rows[row, key[i]] == others[other, other_key[i]]
    return are_same


@compiled(inline="always")
def _hash_rows(rows, numbers, start, key, hashes):  # type: ignore[no-untyped-def]
    """Hash some rows once: hashes are needed where memory is asked for and where it is looked at."""
    for i in range(start, numbers.shape[0]):
        prefetch(rows, numbers[min(i + AHEAD, numbers.shape[0] - 1)])
        hashes[i] = hashed(rows, numbers[i], key)


@compiled(inline="always")
def _hash_all(rows, key, hashes):  # type: ignore[no-untyped-def]
    for i in range(rows.shape[0]):
        hashes[i] = hashed(rows, i, key)


@compiled(inline="always")
def _look_ahead(table, rows, hashes, i):  # type: ignore[no-untyped-def]
    """Ask for the slot of a probe some steps before its turn, and for the row that it names when it has arrived."""
    prefetch(table, first_slot(hashes[i + 2 * AHEAD], table.shape[0]))
    entry = table[first_slot(hashes[i + AHEAD], table.shape[0])]
    if entry & _COUNT:
        prefetch(rows, _head(entry))


@compiled(inline="always")
def _find(table, rows, key, probes, i, probe_key, h):  # type: ignore[no-untyped-def]
    """The slot of a key, or -1."""
    size = table.shape[0]
    tag = _tag(h)
    slot = first_slot(h, size)
    while True:
        entry = table[slot]
        if entry == 0:
            return np.int64(-1)
        if entry >> _TAG == tag and entry & _COUNT and same(rows, _head(entry), key, probes, i, probe_key):
            return slot
        slot += 1
        if slot == size:
            slot = np.int64(0)


@compiled
def _insert(table, links, rows, key, added, start, room, hashes):  # type: ignore[no-untyped-def]
    """Link rows into the rings of their keys, until all are or no slot may be taken into use any more.

    Gives how many rows are linked now and how many slots were taken into use.
    """
    size = table.shape[0]
    double = links.shape[1] == 2
    used = 0
    _hash_rows(rows, added, start, key, hashes)
    for i in range(start, added.shape[0]):
        if i + 2 * AHEAD < hashes.shape[0]:
            _look_ahead(table, rows, hashes, i)
        row = added[i]
        h = hashes[i]
        tag = _tag(h)
        slot = first_slot(h, size)
        free = np.int64(-1)
        count = np.int64(0)
        while True:
            entry = table[slot]
            if entry == 0:
                if free >= 0:
                    slot = free
                elif used == room:
                    return i, used
                else:
                    used += 1
                break
            if entry & _COUNT == 0:
                if free < 0:
                    free = slot
            elif entry >> _TAG == tag and same(rows, _head(entry), key, rows, row, key):
                count = entry & _COUNT
                break
            slot += 1
            if slot == size:
                slot = np.int64(0)
        if count == 0:
            links[row, 0] = row
            if double:
                links[row, 1] = row
        else:
            head = _head(entry)
            links[row, 0] = head
            if double:
                last = links[head, 1]
                links[row, 1] = last
                links[last, 0] = row
                links[head, 1] = row
        table[slot] = tag << _TAG | row << _ROW | (count + 1)
    return added.shape[0], used


@compiled
def _rehash(old, table, rows, key):  # type: ignore[no-untyped-def]
    """Move every key that still has rows to another table."""
    size = table.shape[0]
    for i in range(old.shape[0]):
        if old[i] & _COUNT:
            slot = first_slot(hashed(rows, _head(old[i]), key), size)
            while table[slot] != 0:
                slot += 1
                if slot == size:
                    slot = np.int64(0)
            table[slot] = old[i]


@compiled(inline="always")
def _unlink(table, links, slot, row):  # type: ignore[no-untyped-def]
    """Take a row out of its ring; gives how many slots are free again."""
    size = table.shape[0]
    entry = table[slot]
    count = (entry & _COUNT) - 1
    head = _head(entry)
    freed = 0
    if count == 0:
        table[slot] = entry & ~_COUNT
        # Where a search would stop at the next slot anyway, nobody needs to walk over this one any more.
        while table[slot + 1 if slot + 1 < size else 0] == 0 and table[slot] != 0 and table[slot] & _COUNT == 0:
            table[slot] = 0
            freed += 1
            slot = slot - 1 if slot > 0 else size - 1
    else:
        if links.shape[1] == 2:
            before, after = links[row, 1], links[row, 0]
            links[before, 0] = after
            links[after, 1] = before
            if head == row:
                head = np.int64(after)
        elif head == row:
            head = np.int64(links[row, 0])
        else:
            before = np.int32(head)
            while links[before, 0] != row:
                before = links[before, 0]
            links[before, 0] = links[row, 0]
        table[slot] = (entry >> _TAG) << _TAG | head << _ROW | count
    return freed


@compiled
def _remove(table, links, rows, key, removed, hashes):  # type: ignore[no-untyped-def]
    freed = 0
    _hash_rows(rows, removed, 0, key, hashes)
    for i in range(removed.shape[0]):
        if i + 2 * AHEAD < hashes.shape[0]:
            _look_ahead(table, rows, hashes, i)
        slot = _find(table, rows, key, rows, removed[i], key, hashes[i])
        freed += _unlink(table, links, slot, removed[i])
    return freed


@compiled
def _take(table, links, rows, key, wanted, taken, hashes):  # type: ignore[no-untyped-def]
    """Find one row of each value and unlink it, so that equal values find different rows."""
    freed = 0
    _hash_all(wanted, key, hashes)
    for i in range(wanted.shape[0]):
        if i + 2 * AHEAD < hashes.shape[0]:
            _look_ahead(table, rows, hashes, i)
        slot = _find(table, rows, key, wanted, i, key, hashes[i])
        taken[i] = -1
        if slot >= 0:
            taken[i] = _head(table[slot])
            freed += _unlink(table, links, slot, taken[i])
    return freed


@compiled(inline="always")
def _found(table, slot, heads, counts, i):  # type: ignore[no-untyped-def]
    """Write down what a slot says to a probe; gives the number of rows."""
    entry = table[slot] if slot >= 0 else np.int64(0)
    heads[i] = _head(entry)
    counts[i] = entry & _COUNT
    return counts[i]


@compiled
def _probe(table, rows, key, probes, probe_key, heads, counts, hashes):  # type: ignore[no-untyped-def]
    total = 0
    _hash_all(probes, probe_key, hashes)
    for i in range(probes.shape[0]):
        if i + 2 * AHEAD < hashes.shape[0]:
            _look_ahead(table, rows, hashes, i)
        total += _found(table, _find(table, rows, key, probes, i, probe_key, hashes[i]), heads, counts, i)
    return total


@compiled
def _probe_leaf(table, rows, key, leaves, tree, place, probe_key, heads, counts, hashes):  # type: ignore[no-untyped-def]
    total = 0
    for i in range(tree.shape[0]):
        prefetch(leaves, tree[min(i + AHEAD, tree.shape[0] - 1), place])
        hashes[i] = hashed(leaves, tree[i, place], probe_key)
    for i in range(tree.shape[0]):
        if i + 2 * AHEAD < hashes.shape[0]:
            _look_ahead(table, rows, hashes, i)
        total += _found(table, _find(table, rows, key, leaves, tree[i, place], probe_key, hashes[i]), heads, counts, i)
    return total


@compiled
def _expand(links, heads, counts, tree, place, which, longer):  # type: ignore[no-untyped-def]
    n = 0
    for i in range(heads.shape[0]):
        row = heads[i]
        for k in range(counts[i]):
            if k:
                row = np.int64(links[row, 0])
            if which.shape[0]:
                which[n] = i
            for j in range(tree.shape[1]):
                longer[n, j] = tree[i, j]
            longer[n, place] = row
            n += 1


@compiled
def _expand_matching(links, heads, counts, rows, table, others, key, known, columns, block, whole, hashes, pairs):  # type: ignore[no-untyped-def]
    """Pairs of a probe and a row of its ring that have a row in another index; gives how many there are.

    Their key in the other index has `known` values of the probe, and those of the row where `columns` says of which.
    Pairs are made and asked about in blocks that stay in near memory; those without a row leave no trace.
    """
    n = 0
    i = -1
    left = np.int64(0)
    row = np.int64(0)
    while i < heads.shape[0]:
        size = 0
        while size < block.shape[0] and i < heads.shape[0]:
            if left == 0:
                i += 1
                if i < heads.shape[0]:
                    left, row = counts[i], heads[i]
            else:
                for c in range(columns.shape[0]):
                    block[size, c] = rows[row, columns[c]] if columns[c] >= 0 else known[i, c]
                pairs[0, n + size] = i
                pairs[1, n + size] = row
                row = np.int64(links[row, 0])
                left -= 1
                size += 1
        for b in range(size):
            hashes[b] = hashed(block, b, whole)
            prefetch(table, first_slot(hashes[b], table.shape[0]))
        kept = 0
        for b in range(size):
            if _find(table, others, key, block, b, whole, hashes[b]) >= 0:
                pairs[0, n + kept] = pairs[0, n + b]
                pairs[1, n + kept] = pairs[1, n + b]
                kept += 1
        n += kept
    return n


@compiled
def _partners(table, links, rows, key, leaves, tree, holder, probe_key, place):  # type: ignore[no-untyped-def]
    heads = np.empty(tree.shape[0], dtype=np.int64)
    counts = np.empty(tree.shape[0], dtype=np.int64)
    hashes = np.empty(tree.shape[0], dtype=np.uint64)
    total = _probe_leaf(table, rows, key, leaves, tree, holder, probe_key, heads, counts, hashes)
    longer = np.empty((total, tree.shape[1]), dtype=np.int64)
    _expand(links, heads, counts, tree, place, heads[:0], longer)
    return longer


def plain(values: Ints) -> Ints:
    """The same rows one behind the other: for any other layout, compiled functions would be compiled once more."""
    return values if values.flags.c_contiguous and values.flags.writeable else values.copy()


class RingIndex:
    """A ring index over some columns of a table of rows.

    The table is at most three quarters full, and half full after it grew. `rows_leave_singly=False`
    saves the link to the previous row. Removing then walks the ring, so it is for keys that few rows share, above all
    for whole rows.
    """

    def __init__(self, key: tuple[int, ...], *, rows_leave_singly: bool = True) -> None:
        self.key = np.array(key, dtype=np.int32)
        self.links: Links = np.zeros((0, 2 if rows_leave_singly else 1), dtype=np.int32)
        self.table: Ints = np.zeros(_SMALLEST, dtype=np.int64)
        self.inserts = 0
        self.probes = 0
        self._used = 0

    def insert(self, rows: Ints, added: Ints) -> None:
        """Index the rows numbered `added`."""
        if rows.shape[0] > self.links.shape[0]:
            links = np.empty((rows.shape[0], self.links.shape[1]), dtype=np.int32)
            links[: self.links.shape[0]] = self.links
            self.links = links
        n = added.shape[0]
        self.inserts += n
        done = 0
        hashes = np.empty(n, dtype=np.uint64)
        while True:
            room = (self.table.shape[0] * 3) // 4 - self._used
            after, used = _insert(self.table, self.links, rows, self.key, added, done, room, hashes)
            self._used += used
            if after == n:
                return
            share = used / (after - done) if after > done else 1.0
            self._resize(rows, int((n - after) * share) + 1)
            done = after

    def _resize(self, rows: Ints, more: int) -> None:
        """A table for so many more keys; emptied slots are gone with the old one.

        The guess of `more` may be far off at the beginning, so growth is limited at each step.
        """
        keys = int(np.count_nonzero(self.table & _COUNT))
        table = np.zeros(max(_SMALLEST, 2 * min(keys + more, 4 * keys)), dtype=np.int64)
        _rehash(self.table, table, rows, self.key)
        self.table, self._used = table, keys

    def rebuild(self, rows: Ints, live: Ints) -> None:
        """Index these rows and no others."""
        self.table = np.zeros(_SMALLEST, dtype=np.int64)
        self._used = 0
        self.insert(rows, live)
        self.inserts -= live.shape[0]

    def take_over(self, table: Ints, links: Links) -> None:
        """Be the index whose table and links these are."""
        self.table, self.links = table, links
        self._used = int(np.count_nonzero(table))

    def remove(self, rows: Ints, removed: Ints) -> None:
        """Take out rows by number, while their values still stand in `rows`."""
        hashes = np.empty(removed.shape[0], dtype=np.uint64)
        self._used -= _remove(self.table, self.links, rows, self.key, removed, hashes)

    def take(self, rows: Ints, values: Ints) -> Ints:
        """One row of each value, taken out of this index; -1 where there is none."""
        taken = np.empty(values.shape[0], dtype=np.int64)
        hashes = np.empty(values.shape[0], dtype=np.uint64)
        self._used -= _take(self.table, self.links, rows, self.key, plain(values), taken, hashes)
        return taken

    def probe(self, rows: Ints, probes: Ints, probe_key: Links) -> tuple[Ints, Ints, int]:
        """For each probe the head of its ring and the number of rows in it; and the number of all of them."""
        n = probes.shape[0]
        self.probes += n
        heads = np.empty(n, dtype=np.int64)
        counts = np.empty(n, dtype=np.int64)
        hashes = np.empty(n, dtype=np.uint64)
        return heads, counts, _probe(self.table, rows, self.key, probes, probe_key, heads, counts, hashes)

    def probe_leaf(self, rows: Ints, leaves: Ints, tree: Ints, place: int, probe_key: Links) -> tuple[Ints, Ints, int]:
        """The same for probes that are some columns of the leaves that stand at a place of each tree."""
        n = tree.shape[0]
        self.probes += n
        heads = np.empty(n, dtype=np.int64)
        counts = np.empty(n, dtype=np.int64)
        hashes = np.empty(n, dtype=np.uint64)
        total = _probe_leaf(self.table, rows, self.key, leaves, tree, place, probe_key, heads, counts, hashes)
        return heads, counts, total

    def partners(self, rows: Ints, leaves: Ints, tree: Ints, holder: int, probe_key: Links, place: int) -> Ints:
        """`probe_leaf` and `expand_tree` in one, for whoever has no choice where to go."""
        self.probes += tree.shape[0]
        longer: Ints = _partners(self.table, self.links, rows, self.key, leaves, tree, holder, probe_key, place)
        return longer

    def expand(self, heads: Ints, counts: Ints, total: int) -> tuple[Ints, Ints]:
        """All pairs of a probe and a matching row, from what `probe` found."""
        which, found = self.expand_tree(np.empty((heads.shape[0], 1), dtype=np.int64), 0, heads, counts, total)
        return which, found.reshape(total)

    def expand_tree(self, tree: Ints, place: int, heads: Ints, counts: Ints, total: int) -> tuple[Ints, Ints]:
        """Each row of `tree` once for each matching row, whose number stands at `place`; and which row it was."""
        which = np.empty(total, dtype=np.int64)
        longer = np.empty((total, tree.shape[1]), dtype=np.int64)
        _expand(self.links, heads, counts, tree, place, which, longer)
        return which, longer

    def expand_matching(
        self, rows: Ints, heads: Ints, counts: Ints, total: int, other: RingIndex, others: Ints, key: Asked
    ) -> tuple[Ints, Ints]:
        """The pairs of a probe and a row of this index that have a row in another index: which probe, which row."""
        known, columns = key
        other.probes += total
        block = np.empty((_BLOCK, columns.shape[0]), dtype=np.int64)
        whole = np.arange(columns.shape[0], dtype=np.int32)
        hashes = np.empty(_BLOCK, dtype=np.uint64)
        pairs = np.empty((2, total), dtype=np.int64)
        links, table = self.links, other.table
        n = _expand_matching(
            links, heads, counts, rows, table, others, other.key, known, columns, block, whole, hashes, pairs
        )
        return pairs[0, :n], pairs[1, :n]

    def clear(self) -> None:
        """No rows are left."""
        if self.table.shape[0] <= _WORTH_KEEPING:
            self.table.fill(0)
        else:
            self.table = np.zeros(_SMALLEST, dtype=np.int64)
        self._used = 0

    @property
    def nbytes(self) -> int:
        return self.table.nbytes + self.links.nbytes
