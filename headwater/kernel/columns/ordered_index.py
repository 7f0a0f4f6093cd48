"""The ordered index (OA13): the rows of a relation as a balanced tree, for keys of which the last is between bounds.

The tree orders rows by the columns of its key and then by row id. All columns but the last are compared for equality;
the last has order keys (`order_keys`), and a probe asks for an interval of them. So rows with equal first columns are
neighbours, and a probe costs as much as the tree is high, and then a little for each row that it finds.

A treap: each row has a place in a second, random order, and no row below it comes before it there. That decides the
shape of the tree, so nothing about balance is kept or repaired. Nodes are row ids: a row costs two links, and no memory
is allocated for it.

    links[0]        (root, unused)
    links[row + 1]  (left, right)       0: nobody; otherwise row + 1
"""

from __future__ import annotations

import numpy as np

from headwater.kernel.columns.array_addresses import address_of
from headwater.kernel.columns.delta import stack_rows
from headwater.kernel.columns.larger_arrays import enlarge_ints
from headwater.kernel.columns.order_keys import DOMAINS, domain_of, find_interval
from headwater.kernel.columns.ring_index import Ints, Links, mix_bits
from headwater.terms.compiled_code import compiled
from headwater.values.query_guard import check_rows

_FIRST_DOMAIN, _BEHIND_DOMAINS = DOMAINS.start, DOMAINS.stop
_MOST_AT_ONCE = 1 << 24
"""So many rows may be found before they are counted."""
FIRST_STACK = 128
"""So many nodes that are still to be looked at have room at first."""
NO_ROOM_FOUND, NO_ROOM_STACK = -1, -2
"""In place of how many rows were found: there is no room for more of them, or on the stack."""
"""A tree is rarely higher than this; the stack grows if it is."""


@compiled(inline="always")
def _is_before(rows, row, other, key):  # type: ignore[no-untyped-def]
    result = row < other
    for i in range(key.shape[0]):
        a, b = rows[row, key[i]], rows[other, key[i]]
        if a != b:
            result = a < b
            break
    return result


@compiled
def insert_node(links, rows, key, row):  # type: ignore[no-untyped-def]
    """Insert a row: below all rows that precede it in the random order, and above all others."""
    node = row + 1
    rank = mix_bits(row)
    above, side = np.int64(0), 0
    at = np.int64(links[0, 0])
    while at != 0 and mix_bits(at - 1) < rank:
        side = 0 if _is_before(rows, row, at - 1, key) else 1
        above, at = at, np.int64(links[at, side])
    links[above, side] = node
    left, left_side, right, right_side = node, 0, node, 1
    while at != 0:
        if _is_before(rows, at - 1, row, key):
            links[left, left_side] = at
            left, left_side, at = at, 1, np.int64(links[at, 1])
        else:
            links[right, right_side] = at
            right, right_side, at = at, 0, np.int64(links[at, 0])
    links[left, left_side] = 0
    links[right, right_side] = 0


@compiled
def remove_node(links, rows, key, row):  # type: ignore[no-untyped-def]
    """Remove a row, while its values are still there: the trees below it are merged."""
    node = row + 1
    above, side = np.int64(0), 0
    at = np.int64(links[0, 0])
    while at != node:
        if at == 0:
            raise AssertionError("an ordered index removes a row that was never there")
        side = 0 if _is_before(rows, row, at - 1, key) else 1
        above, at = at, np.int64(links[at, side])
    left, right = np.int64(links[node, 0]), np.int64(links[node, 1])
    while left != 0 and right != 0:
        if mix_bits(left - 1) < mix_bits(right - 1):
            links[above, side] = left
            above, side, left = left, 1, np.int64(links[left, 1])
        else:
            links[above, side] = right
            above, side, right = right, 0, np.int64(links[right, 0])
    links[above, side] = left if left != 0 else right


@compiled
def _collect_interval(links, rows, key, probe, low, high, found, count, stack):  # type: ignore[no-untyped-def]
    """Append the rows between two order keys whose other columns equal those of a probe.

    Gives how many rows there are then, or which room is too small.
    """
    last = key.shape[0] - 1
    stack[0] = links[0, 0]
    top = 1 if stack[0] != 0 else 0
    while top:
        top -= 1
        at = stack[top]
        row = at - 1
        place = 0
        for i in range(last):
            value = rows[row, key[i]]
            if value != probe[i]:
                place = -1 if value < probe[i] else 1
                break
        if place == 0:
            value = rows[row, key[last]]
            place = -1 if value < low else (1 if value > high else 0)
        if top + 2 > stack.shape[0]:
            return np.int64(NO_ROOM_STACK)
        if place <= 0 and links[at, 1] != 0:
            stack[top] = links[at, 1]
            top += 1
        if place >= 0 and links[at, 0] != 0:
            stack[top] = links[at, 0]
            top += 1
        if place == 0:
            if count == found.shape[0]:
                return np.int64(NO_ROOM_FOUND)
            found[count] = row
            count += 1
    return np.int64(count)


@compiled
def collect_rows(links, rows, key, domains, probe, low_count, high_count, found, count, stack):  # type: ignore[no-untyped-def]
    """Append the rows that a probe may be joined with to `found`: its values for the key, then lower and upper bounds.

    Gives how many rows there are then, or which room is too small.
    """
    bounds = probe[key.shape[0] - 1 :]
    for domain in range(_FIRST_DOMAIN, _BEHIND_DOMAINS):
        if (domains >> domain) & 1:
            low, high = find_interval(bounds, low_count, high_count, domain)
            if low <= high:
                count = _collect_interval(links, rows, key, probe, low, high, found, count, stack)
                if count < 0:
                    break
    return np.int64(count)


@compiled
def _insert_nodes(links, rows, key, added):  # type: ignore[no-untyped-def]
    """Insert rows; gives the domains of their order keys, as bits."""
    domains = np.int64(0)
    for i in range(added.shape[0]):
        insert_node(links, rows, key, added[i])
        domains |= np.int64(1) << domain_of(rows[added[i], key[key.shape[0] - 1]])
    return domains


@compiled
def _remove_nodes(links, rows, key, removed):  # type: ignore[no-untyped-def]
    for i in range(removed.shape[0]):
        remove_node(links, rows, key, removed[i])


@compiled
def _find_partners(  # type: ignore[no-untyped-def]
    links, rows, key, domains, probes, low_count, high_count, probe, found, ends, stack
):  # fmt: skip
    """Find what probes may be joined with, from one of them on (`found`), and where those of each end (`ends`).

    Gives the probe at which it stops, and which room is too small for that.
    """
    count = ends[probe - 1] if probe else np.int64(0)
    while probe < probes.shape[0]:
        count = collect_rows(links, rows, key, domains, probes[probe], low_count, high_count, found, count, stack)
        if count < 0:
            return probe, count
        ends[probe] = count
        probe += 1
    return probe, np.int64(0)


@compiled(makes_arrays=True)
def _expand_intervals(links, rows, key, domains, probes, low_count, high_count, leaf_rows, place):  # type: ignore[no-untyped-def]
    """Each of the `leaf_rows` once for each row that its probe finds, whose id goes to `place`."""
    found = np.empty(max(16, probes.shape[0]), np.int64)
    ends = np.empty(probes.shape[0], np.int64)
    stack = np.empty(FIRST_STACK, np.int64)
    i = 0
    while i < probes.shape[0]:
        i, room = _find_partners(
            links, rows, key, domains, probes, low_count, high_count, i, found, ends, stack
        )  # fmt: skip
        if room == NO_ROOM_FOUND:
            found = enlarge_ints(found)
        elif room == NO_ROOM_STACK:
            stack = enlarge_ints(stack)
    count = ends[-1] if ends.shape[0] else np.int64(0)
    extended = np.empty((count, leaf_rows.shape[1]), np.int64)
    n = 0
    for i in range(probes.shape[0]):
        while n < ends[i]:
            for j in range(leaf_rows.shape[1]):
                extended[n, j] = leaf_rows[i, j]
            extended[n, place] = found[n]
            n += 1
    return extended


class OrderedIndex:
    """An ordered index over some columns of a table of rows, of which the last has order keys."""

    def __init__(self, key: tuple[int, ...]) -> None:
        self.key = np.array(key, dtype=np.int32)
        self.links: Links = np.zeros((1, 2), dtype=np.int32)
        self.inserts = 0
        self.probes = 0
        self._domains = 0
        """The domains that its order keys have had, as bits."""

    def insert(self, rows: Ints, added: Ints) -> None:
        """Index the rows with the ids `added`."""
        self._make_links(rows)
        self.inserts += added.shape[0]
        self._domains |= int(_insert_nodes(self.links, rows, self.key, added))

    def reserve(self, rows: Ints, more: int) -> None:
        """Make room for rows that compiled code will insert."""
        self._make_links(rows)

    def _make_links(self, rows: Ints) -> None:
        if rows.shape[0] >= self.links.shape[0]:
            links = np.zeros((rows.shape[0] + 1, 2), dtype=np.int32)
            links[: self.links.shape[0]] = self.links
            self.links = links

    def fields(self) -> tuple[int, ...]:
        """What compiled code needs: the domains and the links, in the places that they have for any index."""
        return 0, self._domains, 0, address_of(self.links), 2

    def set_fields(self, domains: int, used: int) -> None:
        """Take over what compiled code has changed."""
        self._domains = domains

    def rebuild(self, rows: Ints, live: Ints) -> None:
        """Index these rows and no others."""
        self.clear()
        self.insert(rows, live)
        self.inserts -= live.shape[0]

    def remove(self, rows: Ints, row_ids: Ints) -> None:
        """Take the rows with these ids out of the index; `rows` must still hold their values."""
        _remove_nodes(self.links, rows, self.key, row_ids)

    def expand(self, rows: Ints, probes: Ints, bounds: tuple[int, int], leaf_rows: Ints, place: int) -> Ints:
        """Each of the `leaf_rows` once for each row that may match its probe, whose id goes to `place`.

        A probe has the values of the key without the last, then so many lower and upper bounds as order keys.
        """
        self.probes += probes.shape[0]
        parts: list[Ints] = []
        count, size = 0, max(1, _MOST_AT_ONCE // max(1, rows.shape[0]))
        for low in range(0, probes.shape[0], size):
            some, theirs = probes[low : low + size], leaf_rows[low : low + size]
            parts.append(_expand_intervals(self.links, rows, self.key, self._domains, some, *bounds, theirs, place))
            count += parts[-1].shape[0]
            check_rows(count, leaf_rows.shape[1])
        return parts[0] if len(parts) == 1 else stack_rows(parts, leaf_rows.shape[1])

    def clear(self) -> None:
        """Remove all rows."""
        self.links[0] = 0
        self._domains = 0

    @property
    def nbytes(self) -> int:
        return self.links.nbytes
