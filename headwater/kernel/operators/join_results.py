"""The results of a join, each reachable from the leaf rows that made it (OA1, OA5; algorithm 3 of the paper).

    leaf_rows[result] = (row id in input 0, row id in input 1, …)        the tree of the paper, flattened

The results of one leaf row form a doubly linked list. When the row is removed, the list gives the results to remove
without a scan, and each of them is unlinked from the lists of its other leaf rows. An input from which no row was ever
removed has no lists: they are built when it first loses a row.
"""

from __future__ import annotations

import numpy as np

from headwater.kernel.columns.prefetching import prefetch
from headwater.kernel.columns.ring_index import PREFETCH_DISTANCE, Ints, Links
from headwater.kernel.columns.row_ids import RowIdAllocator, enlarge, grow_capacity
from headwater.terms.compiled_code import compiled

_NONE = -1


@compiled
def _link(leaf_rows, links, heads, linked_leaves, starts, result_ids):  # type: ignore[no-untyped-def]
    for i in range(result_ids.shape[0]):
        if i + PREFETCH_DISTANCE < result_ids.shape[0]:
            for p in range(linked_leaves.shape[0]):
                prefetch(heads, starts[p] + leaf_rows[result_ids[i + PREFETCH_DISTANCE], linked_leaves[p]])
        result_id = np.int32(result_ids[i])
        for p in range(linked_leaves.shape[0]):
            at = starts[p] + leaf_rows[result_id, linked_leaves[p]]
            head = heads[at]
            links[result_id, p, 0] = head
            links[result_id, p, 1] = _NONE
            if head >= 0:
                links[head, p, 1] = result_id
            heads[at] = result_id


@compiled
def _unlink_results(leaf_rows, links, heads, linked_leaves, starts, list_index, rows, unlinked):  # type: ignore[no-untyped-def]
    """Unlink every result of some rows of one leaf; gives their number."""
    n = 0
    for i in range(rows.shape[0]):
        if i + 2 * PREFETCH_DISTANCE < rows.shape[0]:
            prefetch(heads, starts[list_index] + rows[i + 2 * PREFETCH_DISTANCE])
            next_id = heads[starts[list_index] + rows[i + PREFETCH_DISTANCE]]
            if next_id >= 0:
                prefetch(leaf_rows, next_id)
                prefetch(links, next_id)
        result_id = heads[starts[list_index] + rows[i]]
        while result_id >= 0:
            next_id = links[result_id, list_index, 0]
            for p in range(linked_leaves.shape[0]):
                after, before = links[result_id, p, 0], links[result_id, p, 1]
                if before >= 0:
                    links[before, p, 0] = after
                else:
                    heads[starts[p] + leaf_rows[result_id, linked_leaves[p]]] = after
                if after >= 0:
                    links[after, p, 1] = before
            unlinked[n] = result_id
            n += 1
            result_id = next_id
    return n


class JoinResults:
    """The results of a join of `width` inputs, as rows of leaf row ids."""

    def __init__(self, width: int) -> None:
        self.leaf_rows: Links = np.empty((0, width), dtype=np.int32)
        self._result_ids = RowIdAllocator()
        self._links: Links = np.empty((0, 0, 2), dtype=np.int32)
        self._heads: Links = np.empty(0, dtype=np.int32)
        self._linked_leaves: Links = np.empty(0, dtype=np.int32)
        self._starts: Ints = np.empty(0, dtype=np.int64)
        self._spans: list[int] = []
        self._list_indexes: dict[int, int] = {}

    def add(self, leaf_rows: Ints, capacities: list[int]) -> None:
        """Add results. The row ids of each leaf are below its capacity."""
        n = leaf_rows.shape[0]
        if not n:
            return
        result_ids = self._result_ids.allocate(n)
        if self._result_ids.top > self.leaf_rows.shape[0]:
            capacity = grow_capacity(self._result_ids.top, self.leaf_rows.shape[0])
            self.leaf_rows = enlarge(self.leaf_rows, capacity)
            self._links = enlarge(self._links, capacity)
        self.leaf_rows[result_ids] = leaf_rows
        if self._list_indexes:
            self._widen(capacities)
            _link(self.leaf_rows, self._links, self._heads, self._linked_leaves, self._starts, result_ids)

    def remove_results_of(self, leaf: int, rows: Ints, capacities: list[int]) -> Links:
        """Remove the results of some rows of a leaf; gives their leaf rows."""
        list_index = self._list_indexes.get(leaf)
        if list_index is None:
            list_index = self._link_leaf(leaf, capacities)
        self._widen(capacities)
        unlinked = np.empty(self.size, dtype=np.int64)
        n = _unlink_results(
            self.leaf_rows, self._links, self._heads, self._linked_leaves, self._starts, list_index, rows, unlinked
        )
        result_ids = unlinked[:n]
        removed: Links = self.leaf_rows[result_ids]
        self._result_ids.release(result_ids)
        return removed

    def clear(self) -> None:
        """Remove all results."""
        if self.size:
            self._heads.fill(_NONE)
            self._result_ids.clear()

    def all_results(self) -> Links:
        """The leaf rows of all results."""
        return self.leaf_rows[self._result_ids.live()]

    @property
    def size(self) -> int:
        return self._result_ids.size

    def _link_leaf(self, leaf: int, capacities: list[int]) -> int:
        """Start lists for one more leaf: all lists are rebuilt, which happens once for each leaf."""
        self._list_indexes[leaf] = len(self._list_indexes)
        self._linked_leaves = np.array(list(self._list_indexes), dtype=np.int32)
        self._links = np.empty((self.leaf_rows.shape[0], len(self._list_indexes), 2), dtype=np.int32)
        self._spans = [capacities[leaf] for leaf in self._list_indexes]
        self._starts = np.cumsum([0, *self._spans[:-1]], dtype=np.int64)
        self._heads = np.full(sum(self._spans), _NONE, dtype=np.int32)
        _link(self.leaf_rows, self._links, self._heads, self._linked_leaves, self._starts, self._result_ids.live())
        return self._list_indexes[leaf]

    def _widen(self, capacities: list[int]) -> None:
        """Make room in the heads for leaves that have more rows than before."""
        spans = [capacities[leaf] for leaf in self._list_indexes]
        if spans == self._spans:
            return
        starts = np.cumsum([0, *spans[:-1]], dtype=np.int64)
        heads = np.full(sum(spans), _NONE, dtype=np.int32)
        for old, new, span in zip(self._starts.tolist(), starts.tolist(), self._spans, strict=True):
            heads[new : new + span] = self._heads[old : old + span]
        self._heads, self._starts, self._spans = heads, starts, spans

    @property
    def nbytes(self) -> int:
        return self.leaf_rows.nbytes + self._result_ids.nbytes + self._links.nbytes + self._heads.nbytes
