"""The ring index (OA3): from a key to the number of rows that have it, and to the rows themselves, newest first.

An open-addressing table holds for each key the `head` of a ring of rows and their `count`; `links` has the rings.
Inserting and removing a row touch one slot and two neighbours. A probe gives the exact number of rows before any row is
read, which is what the adaptive join needs (OA6). A key is the values of some columns of a row, and is not copied: a
slot holds a few bits of the hash as a tag, so that a row is read only where the tags are equal.

    table[slot] = tag << 56 | head << 28 | count      0: empty; count 0 otherwise: emptied (lazy deletion, OA4)
    links[row]  = (next, previous)                    `next` alone where only whole keys are taken out

An index counts its inserts and its probes, so that its relation can drop it if it is hardly probed (CQ7).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headwater.kernel.columns.array_addresses import address_of
from headwater.terms.compiled_code import compiled
from headwater.terms.ids.prefetching import prefetch
from headwater.values.query_guard import MANY_ROWS, check_rows

Ints = npt.NDArray[np.int64]
Links = npt.NDArray[np.int32]

MOST_ROWS = 1 << 28
"""A relation holds fewer rows than this, because a slot has 28 bits for a row id."""

_ODD = np.uint64(0xD6E8FEB86659FD93)
GOLD = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_COUNT = np.int64(MOST_ROWS - 1)
_ROW = np.int64(28)
_TAG = np.int64(56)
_SMALLEST_TABLE = 16
_WORTH_CLEARING = 1024
"""Up to so many slots, clearing a table is faster than a new one."""
PREFETCH_DISTANCE = 8
"""How many steps ahead memory is prefetched."""
_BLOCK_SIZE = 128
"""So many pairs are made before the other index is probed for them."""

PartialKeys = tuple[Ints, Links]
"""Keys of which some values are known for each probe, and the others are in columns of a row; column -1: known."""


@compiled(inline="always")
def mix_bits(value):  # type: ignore[no-untyped-def]
    """A bijection of 64-bit values whose every output bit depends on every input bit."""
    x = np.uint64(value)
    x ^= x >> _HALF
    x *= _ODD
    x ^= x >> _HALF
    x *= _ODD
    x ^= x >> _HALF
    return x


@compiled(inline="always")
def hash_row(rows, row, key):  # type: ignore[no-untyped-def]
    h = GOLD
    for i in range(key.shape[0]):
        h = mix_bits(np.int64(h) ^ rows[row, key[i]])
    return h


@compiled(inline="always")
def first_slot(h, size):  # type: ignore[no-untyped-def]
    """The slot where the search for a hash begins: its upper half scaled to the table size, which may be any number."""
    return np.int64(((h >> _HALF) * np.uint64(size)) >> _HALF)


@compiled(inline="always")
def _tag(h):  # type: ignore[no-untyped-def]
    return np.int64(h & np.uint64(63)) | np.int64(64)


@compiled(inline="always")
def ring_head(entry):  # type: ignore[no-untyped-def]
    return (entry >> _ROW) & _COUNT


@compiled(inline="always")
def ring_size(entry):  # type: ignore[no-untyped-def]
    return entry & _COUNT


@compiled(inline="always")
def has_same_key(rows, row, key, other_rows, other, other_key):  # type: ignore[no-untyped-def]
    """Whether a row and another one have the same key."""
    are_same = True
    for i in range(key.shape[0]):
        are_same &= rows[row, key[i]] == other_rows[other, other_key[i]]
    return are_same


@compiled(inline="always")
def _hash_rows(rows, row_ids, start, key, hashes):  # type: ignore[no-untyped-def]
    """Hash some rows once: hashes are needed to prefetch slots and to read them."""
    for i in range(start, row_ids.shape[0]):
        prefetch(rows, row_ids[min(i + PREFETCH_DISTANCE, row_ids.shape[0] - 1)])
        hashes[i] = hash_row(rows, row_ids[i], key)


@compiled(inline="always")
def _hash_all_rows(rows, key, hashes):  # type: ignore[no-untyped-def]
    for i in range(rows.shape[0]):
        hashes[i] = hash_row(rows, i, key)


@compiled(inline="always")
def _prefetch_probe(table, rows, hashes, i):  # type: ignore[no-untyped-def]
    """Prefetch the slot of a later probe, and the head row of a nearer one, whose slot is in the cache by now."""
    prefetch(table, first_slot(hashes[i + 2 * PREFETCH_DISTANCE], table.shape[0]))
    entry = table[first_slot(hashes[i + PREFETCH_DISTANCE], table.shape[0])]
    if entry & _COUNT:
        prefetch(rows, ring_head(entry))


@compiled(inline="always")
def find_slot(table, rows, key, probes, i, probe_key, h):  # type: ignore[no-untyped-def]
    """The slot of a key, or -1."""
    size = table.shape[0]
    tag = _tag(h)
    slot = first_slot(h, size)
    while True:
        entry = table[slot]
        if entry == 0:
            return np.int64(-1)
        if entry >> _TAG == tag and entry & _COUNT and has_same_key(rows, ring_head(entry), key, probes, i, probe_key):
            return slot
        slot += 1
        if slot == size:
            slot = np.int64(0)


@compiled(inline="always")
def link_row(table, links, rows, key, row, h, room):  # type: ignore[no-untyped-def]
    """Link a row into the ring of its key. Gives the number of slots newly used, or -1 if that is more than `room`."""
    size = table.shape[0]
    has_previous = links.shape[1] == 2
    tag = _tag(h)
    slot = first_slot(h, size)
    free = np.int64(-1)
    count = np.int64(0)
    head = np.int64(-1)
    used = 0
    while True:
        entry = table[slot]
        if entry == 0:
            if free >= 0:
                slot = free
            else:
                used = 1
            break
        if entry & _COUNT == 0:
            if free < 0:
                free = slot
        elif entry >> _TAG == tag and has_same_key(rows, ring_head(entry), key, rows, row, key):
            count = entry & _COUNT
            head = ring_head(entry)
            break
        slot += 1
        if slot == size:
            slot = np.int64(0)
    if used > room:
        return -1
    if count == 0:
        links[row, 0] = row
        if has_previous:
            links[row, 1] = row
    else:
        links[row, 0] = head
        if has_previous:
            last = links[head, 1]
            links[row, 1] = last
            links[last, 0] = row
            links[head, 1] = row
    table[slot] = tag << _TAG | row << _ROW | (count + 1)
    return used


@compiled
def _insert(table, links, rows, key, added, start, room, hashes):  # type: ignore[no-untyped-def]
    """Link rows into the rings of their keys, until all are linked or `room` new slots are used.

    Gives how many rows are linked now and how many slots were newly used.
    """
    used = 0
    _hash_rows(rows, added, start, key, hashes)
    for i in range(start, added.shape[0]):
        if i + 2 * PREFETCH_DISTANCE < hashes.shape[0]:
            _prefetch_probe(table, rows, hashes, i)
        more = link_row(table, links, rows, key, added[i], hashes[i], room - used)
        if more < 0:
            return i, used
        used += more
    return added.shape[0], used


@compiled
def _rehash(old, table, rows, key):  # type: ignore[no-untyped-def]
    """Move every key that still has rows to another table."""
    size = table.shape[0]
    for i in range(old.shape[0]):
        if old[i] & _COUNT:
            slot = first_slot(hash_row(rows, ring_head(old[i]), key), size)
            while table[slot] != 0:
                slot += 1
                if slot == size:
                    slot = np.int64(0)
            table[slot] = old[i]


@compiled(inline="always")
def unlink_row(table, links, slot, row):  # type: ignore[no-untyped-def]
    """Unlink a row from its ring; gives the number of slots that became empty."""
    size = table.shape[0]
    entry = table[slot]
    count = (entry & _COUNT) - 1
    head = ring_head(entry)
    freed = 0
    if count == 0:
        table[slot] = entry & ~_COUNT
        # A search that gets here would stop at the next slot, which is empty: this one may be empty, too.
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
        if i + 2 * PREFETCH_DISTANCE < hashes.shape[0]:
            _prefetch_probe(table, rows, hashes, i)
        slot = find_slot(table, rows, key, rows, removed[i], key, hashes[i])
        freed += unlink_row(table, links, slot, removed[i])
    return freed


@compiled
def _take(table, links, rows, key, wanted, taken_ids, hashes):  # type: ignore[no-untyped-def]
    """Find one row of each value and unlink it, so that equal values find different rows."""
    freed = 0
    _hash_all_rows(wanted, key, hashes)
    for i in range(wanted.shape[0]):
        if i + 2 * PREFETCH_DISTANCE < hashes.shape[0]:
            _prefetch_probe(table, rows, hashes, i)
        slot = find_slot(table, rows, key, wanted, i, key, hashes[i])
        taken_ids[i] = -1
        if slot >= 0:
            taken_ids[i] = ring_head(table[slot])
            freed += unlink_row(table, links, slot, taken_ids[i])
    return freed


@compiled(inline="always")
def _record_probe(table, slot, heads, counts, i):  # type: ignore[no-untyped-def]
    """Write the head and count of a probed slot; gives the count."""
    entry = table[slot] if slot >= 0 else np.int64(0)
    heads[i] = ring_head(entry)
    counts[i] = entry & _COUNT
    return counts[i]


@compiled
def _probe(table, rows, key, probes, probe_key, heads, counts, hashes):  # type: ignore[no-untyped-def]
    total = 0
    _hash_all_rows(probes, probe_key, hashes)
    for i in range(probes.shape[0]):
        if i + 2 * PREFETCH_DISTANCE < hashes.shape[0]:
            _prefetch_probe(table, rows, hashes, i)
        total += _record_probe(table, find_slot(table, rows, key, probes, i, probe_key, hashes[i]), heads, counts, i)
    return total


@compiled
def _probe_leaf(table, rows, key, leaves, leaf_rows, place, probe_key, heads, counts, hashes):  # type: ignore[no-untyped-def]
    total = 0
    for i in range(leaf_rows.shape[0]):
        prefetch(leaves, leaf_rows[min(i + PREFETCH_DISTANCE, leaf_rows.shape[0] - 1), place])
        hashes[i] = hash_row(leaves, leaf_rows[i, place], probe_key)
    for i in range(leaf_rows.shape[0]):
        if i + 2 * PREFETCH_DISTANCE < hashes.shape[0]:
            _prefetch_probe(table, rows, hashes, i)
        total += _record_probe(
            table, find_slot(table, rows, key, leaves, leaf_rows[i, place], probe_key, hashes[i]), heads, counts, i
        )
    return total


@compiled
def _expand(links, heads, counts, leaf_rows, place, probe_places, extended):  # type: ignore[no-untyped-def]
    n = 0
    for i in range(heads.shape[0]):
        row = heads[i]
        for k in range(counts[i]):
            if k:
                row = np.int64(links[row, 0])
            if probe_places.shape[0]:
                probe_places[n] = i
            for j in range(leaf_rows.shape[1]):
                extended[n, j] = leaf_rows[i, j]
            extended[n, place] = row
            n += 1


@compiled
def _expand_matching(links, heads, counts, rows, table, other_rows, key, known, columns, block, whole, hashes, pairs):  # type: ignore[no-untyped-def]
    """Write the pairs of a probe and a row of its ring that have a row in another index; gives their number.

    The key for the other index has the probe's `known` values, and the row's values where `columns` names a column.
    Pairs are made and tested in blocks that fit the cache; those without a row in the other index are overwritten.
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
            hashes[b] = hash_row(block, b, whole)
            prefetch(table, first_slot(hashes[b], table.shape[0]))
        matched = 0
        for b in range(size):
            if find_slot(table, other_rows, key, block, b, whole, hashes[b]) >= 0:
                pairs[0, n + matched] = pairs[0, n + b]
                pairs[1, n + matched] = pairs[1, n + b]
                matched += 1
        n += matched
    return n


@compiled
def _find_matching_rows(rows, row_ids, key, table, probes, probe_key, matching):  # type: ignore[no-untyped-def]
    """Write the ids of the rows whose key is that of a probe; `table` indexes the probes. Gives their number."""
    n = 0
    for i in range(row_ids.shape[0]):
        row = row_ids[i]
        if find_slot(table, probes, probe_key, rows, row, key, hash_row(rows, row, key)) >= 0:
            matching[n] = row
            n += 1
    return n


@compiled(makes_arrays=True)
def _join_leaf(table, links, rows, key, leaves, leaf_rows, holder, probe_key, place, most):  # type: ignore[no-untyped-def]
    heads = np.empty(leaf_rows.shape[0], dtype=np.int64)
    counts = np.empty(leaf_rows.shape[0], dtype=np.int64)
    hashes = np.empty(leaf_rows.shape[0], dtype=np.uint64)
    total = _probe_leaf(table, rows, key, leaves, leaf_rows, holder, probe_key, heads, counts, hashes)
    if total > most:
        return total, np.empty((0, leaf_rows.shape[1]), dtype=np.int64)
    extended = np.empty((total, leaf_rows.shape[1]), dtype=np.int64)
    _expand(links, heads, counts, leaf_rows, place, heads[:0], extended)
    return total, extended


def as_contiguous(values: Ints) -> Ints:
    """The same rows in C order and writable: each other layout would compile the functions once more."""
    return values if values.flags.c_contiguous and values.flags.writeable else values.copy()


class RingIndex:
    """A ring index over some columns of a table of rows.

    The table is at most three quarters full, and half full after it grew. `has_previous_links=False` saves the link to
    the previous row. Removing then walks the ring, so it is for keys that few rows share, such as whole rows.
    """

    def __init__(self, key: tuple[int, ...], *, has_previous_links: bool = True) -> None:
        self.key = np.array(key, dtype=np.int32)
        self.links: Links = np.zeros((0, 2 if has_previous_links else 1), dtype=np.int32)
        self.table: Ints = np.zeros(_SMALLEST_TABLE, dtype=np.int64)
        self.inserts = 0
        self.probes = 0
        self._used = 0

    def insert(self, rows: Ints, added: Ints) -> None:
        """Index the rows with the ids `added`."""
        self._make_links(rows)
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

    @classmethod
    def of_matching_rows(cls, key: tuple[int, ...], rows: Ints, row_ids: Ints, probes: Ints) -> RingIndex:
        """An index of those rows alone whose key is that of a probe: they are found by a scan."""
        probe_index = cls(tuple(range(probes.shape[1])))
        probe_index.insert(probes, np.arange(probes.shape[0]))
        index = cls(key)
        matching = np.empty_like(row_ids)
        n = _find_matching_rows(rows, row_ids, index.key, probe_index.table, probes, probe_index.key, matching)
        index.insert(rows, matching[:n])
        return index

    def reserve(self, rows: Ints, more: int) -> None:
        """Make room for rows that compiled code will insert."""
        self._make_links(rows)
        if self._used + more > (self.table.shape[0] * 3) // 4:
            keys = int(np.count_nonzero(self.table & _COUNT))
            table = np.zeros(3 * (keys + more), dtype=np.int64)
            _rehash(self.table, table, rows, self.key)
            self.table, self._used = table, keys

    def _make_links(self, rows: Ints) -> None:
        """Have a link for each row."""
        if rows.shape[0] > self.links.shape[0]:
            links = np.empty((rows.shape[0], self.links.shape[1]), dtype=np.int32)
            links[: self.links.shape[0]] = self.links
            self.links = links

    def fields(self) -> tuple[int, ...]:
        """Where compiled code finds the table and the links, and their sizes."""
        return address_of(self.table), self.table.shape[0], self._used, address_of(self.links), self.links.shape[1]

    @property
    def used(self) -> int:
        """About how many keys there are."""
        return self._used

    def set_fields(self, slots: int, used: int) -> None:
        """Take over the number of used slots that compiled code has changed."""
        self._used = used

    def _resize(self, rows: Ints, more: int) -> None:
        """Make room for more keys in a new table without emptied slots.

        The estimate `more` may be far off at first, so growth is limited at each step.
        """
        keys = int(np.count_nonzero(self.table & _COUNT))
        table = np.zeros(max(_SMALLEST_TABLE, 2 * min(keys + more, 4 * keys)), dtype=np.int64)
        _rehash(self.table, table, rows, self.key)
        self.table, self._used = table, keys

    def rebuild(self, rows: Ints, live: Ints) -> None:
        """Index these rows and no others."""
        self.table = np.zeros(_SMALLEST_TABLE, dtype=np.int64)
        self._used = 0
        self.insert(rows, live)
        self.inserts -= live.shape[0]

    def adopt(self, table: Ints, links: Links) -> None:
        """Use a table and links that were built before."""
        self.table, self.links = table, links
        self._used = int(np.count_nonzero(table))

    def remove(self, rows: Ints, row_ids: Ints) -> None:
        """Take the rows with these ids out of the index; `rows` must still hold their values."""
        hashes = np.empty(row_ids.shape[0], dtype=np.uint64)
        self._used -= _remove(self.table, self.links, rows, self.key, row_ids, hashes)

    def take(self, rows: Ints, values: Ints) -> Ints:
        """Remove one row of each value from this index; gives their row ids, -1 where there is none."""
        taken_ids = np.empty(values.shape[0], dtype=np.int64)
        hashes = np.empty(values.shape[0], dtype=np.uint64)
        self._used -= _take(self.table, self.links, rows, self.key, as_contiguous(values), taken_ids, hashes)
        return taken_ids

    def probe(self, rows: Ints, probes: Ints, probe_key: Links) -> tuple[Ints, Ints, int]:
        """For each probe the head of its ring and the number of rows in it; and the sum of these numbers."""
        n = probes.shape[0]
        self.probes += n
        heads = np.empty(n, dtype=np.int64)
        counts = np.empty(n, dtype=np.int64)
        hashes = np.empty(n, dtype=np.uint64)
        return heads, counts, _probe(self.table, rows, self.key, probes, probe_key, heads, counts, hashes)

    def probe_leaf(
        self, rows: Ints, leaves: Ints, leaf_rows: Ints, place: int, probe_key: Links
    ) -> tuple[Ints, Ints, int]:
        """The same for probes that are columns of the leaf rows at `place`."""
        n = leaf_rows.shape[0]
        self.probes += n
        heads = np.empty(n, dtype=np.int64)
        counts = np.empty(n, dtype=np.int64)
        hashes = np.empty(n, dtype=np.uint64)
        total = _probe_leaf(self.table, rows, self.key, leaves, leaf_rows, place, probe_key, heads, counts, hashes)
        return heads, counts, total

    def join_leaf(self, rows: Ints, leaves: Ints, leaf_rows: Ints, holder: int, probe_key: Links, place: int) -> Ints:
        """`probe_leaf` and `expand_leaf_rows` in one call, for a join that has no other input to choose."""
        self.probes += leaf_rows.shape[0]
        extended: Ints
        total, extended = _join_leaf(
            self.table, self.links, rows, self.key, leaves, leaf_rows, holder, probe_key, place, MANY_ROWS
        )
        if total <= MANY_ROWS:
            return extended
        heads, counts, total = self.probe_leaf(rows, leaves, leaf_rows, holder, probe_key)
        return self.expand_leaf_rows(leaf_rows, place, heads, counts, total)[1]

    def expand(self, heads: Ints, counts: Ints, total: int) -> tuple[Ints, Ints]:
        """All pairs of a probe and a matching row, from the result of `probe`."""
        probe_places, row_ids = self.expand_leaf_rows(
            np.empty((heads.shape[0], 1), dtype=np.int64), 0, heads, counts, total
        )
        return probe_places, row_ids.reshape(total)

    def expand_leaf_rows(self, leaf_rows: Ints, place: int, heads: Ints, counts: Ints, total: int) -> tuple[Ints, Ints]:
        """Each of the `leaf_rows` once for each matching row, whose id goes to `place`; and which of them it was."""
        check_rows(total, leaf_rows.shape[1] + 1)
        probe_places = np.empty(total, dtype=np.int64)
        extended = np.empty((total, leaf_rows.shape[1]), dtype=np.int64)
        _expand(self.links, heads, counts, leaf_rows, place, probe_places, extended)
        return probe_places, extended

    def expand_matching(
        self, rows: Ints, heads: Ints, counts: Ints, total: int, other: RingIndex, other_rows: Ints, key: PartialKeys
    ) -> tuple[Ints, Ints]:
        """The pairs of a probe and a row of this index that have a row in another index, as places and row ids."""
        known_values, columns = key
        other.probes += total
        block = np.empty((_BLOCK_SIZE, columns.shape[0]), dtype=np.int64)
        whole = np.arange(columns.shape[0], dtype=np.int32)
        hashes = np.empty(_BLOCK_SIZE, dtype=np.uint64)
        check_rows(total, 2)
        pairs = np.empty((2, total), dtype=np.int64)
        links, table = self.links, other.table
        n = _expand_matching(
            links, heads, counts, rows, table, other_rows, other.key, known_values, columns, block, whole, hashes, pairs
        )
        return pairs[0, :n], pairs[1, :n]

    def clear(self) -> None:
        """Remove all rows."""
        if self.table.shape[0] <= _WORTH_CLEARING:
            self.table.fill(0)
        else:
            self.table = np.zeros(_SMALLEST_TABLE, dtype=np.int64)
        self._used = 0

    @property
    def nbytes(self) -> int:
        return self.table.nbytes + self.links.nbytes
