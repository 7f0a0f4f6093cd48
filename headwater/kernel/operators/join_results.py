"""The results of a join, and from each leaf the list of those it made (OA1, OA5; algorithm 3 of the paper).

A result is a row of leaf row numbers, one per input: the tree of the paper, flattened. The results of one leaf row are
linked to and fro, so that a leaf that goes finds what it made without a scan, and takes it out of the lists of all its
other leaves. An input that never lost a row has no lists; they are made when it does for the first time.
"""

from __future__ import annotations

import numpy as np

from headwater.kernel.columns.prefetching import prefetch
from headwater.kernel.columns.ring_index import AHEAD, Ints, Links
from headwater.kernel.columns.row_numbers import Numbering, enlarged, grown
from headwater.terms.compiled_code import compiled

_NONE = -1


@compiled
def _link(tree, links, heads, linked, start, numbers):  # type: ignore[no-untyped-def]
    for i in range(numbers.shape[0]):
        if i + AHEAD < numbers.shape[0]:
            for p in range(linked.shape[0]):
                prefetch(heads, start[p] + tree[numbers[i + AHEAD], linked[p]])
        number = np.int32(numbers[i])
        for p in range(linked.shape[0]):
            at = start[p] + tree[number, linked[p]]
            head = heads[at]
            links[number, p, 0] = head
            links[number, p, 1] = _NONE
            if head >= 0:
                links[head, p, 1] = number
            heads[at] = number


@compiled
def _unlink_all_of(tree, links, heads, linked, start, place, leaves, found):  # type: ignore[no-untyped-def]
    """Unlink every result of some rows of one leaf; gives how many there were."""
    n = 0
    for i in range(leaves.shape[0]):
        if i + 2 * AHEAD < leaves.shape[0]:
            prefetch(heads, start[place] + leaves[i + 2 * AHEAD])
            following = heads[start[place] + leaves[i + AHEAD]]
            if following >= 0:
                prefetch(tree, following)
                prefetch(links, following)
        number = heads[start[place] + leaves[i]]
        while number >= 0:
            following = links[number, place, 0]
            for p in range(linked.shape[0]):
                after, before = links[number, p, 0], links[number, p, 1]
                if before >= 0:
                    links[before, p, 0] = after
                else:
                    heads[start[p] + tree[number, linked[p]]] = after
                if after >= 0:
                    links[after, p, 1] = before
            found[n] = number
            n += 1
            number = following
    return n


class Results:
    """Rows of `width` leaf row numbers."""

    def __init__(self, width: int) -> None:
        self.tree: Links = np.empty((0, width), dtype=np.int32)
        self._numbering = Numbering()
        self._links: Links = np.empty((0, 0, 2), dtype=np.int32)
        self._heads: Links = np.empty(0, dtype=np.int32)
        self._linked: Links = np.empty(0, dtype=np.int32)
        self._start: Ints = np.empty(0, dtype=np.int64)
        self._spans: list[int] = []
        self._places: dict[int, int] = {}

    def add(self, tree: Ints, capacities: list[int]) -> None:
        """Keep results. `capacities` says for each leaf below which number its row numbers are."""
        n = tree.shape[0]
        if not n:
            return
        numbers = self._numbering.give(n)
        if self._numbering.top > self.tree.shape[0]:
            capacity = grown(self._numbering.top, self.tree.shape[0])
            self.tree = enlarged(self.tree, capacity)
            self._links = enlarged(self._links, capacity)
        self.tree[numbers] = tree
        if self._places:
            self._widen(capacities)
            _link(self.tree, self._links, self._heads, self._linked, self._start, numbers)

    def remove_made_by(self, leaf: int, rows: Ints, capacities: list[int]) -> Links:
        """Take out the results of some rows of a leaf; gives their trees."""
        place = self._places.get(leaf)
        if place is None:
            place = self._link_leaf(leaf, capacities)
        self._widen(capacities)
        found = np.empty(self.size, dtype=np.int64)
        n = _unlink_all_of(self.tree, self._links, self._heads, self._linked, self._start, place, rows, found)
        numbers = found[:n]
        trees: Links = self.tree[numbers]
        self._numbering.give_back(numbers)
        return trees

    def clear(self) -> None:
        """Take out all results."""
        if self.size:
            self._heads.fill(_NONE)
            self._numbering.clear()

    def trees(self) -> Links:
        """All results."""
        return self.tree[self._numbering.live()]

    @property
    def size(self) -> int:
        return self._numbering.size

    def _link_leaf(self, leaf: int, capacities: list[int]) -> int:
        """Begin lists for a leaf: all lists are made anew, which happens once for each leaf."""
        self._places[leaf] = len(self._places)
        self._linked = np.array(list(self._places), dtype=np.int32)
        self._links = np.empty((self.tree.shape[0], len(self._places), 2), dtype=np.int32)
        self._spans = [capacities[leaf] for leaf in self._places]
        self._start = np.cumsum([0, *self._spans[:-1]], dtype=np.int64)
        self._heads = np.full(sum(self._spans), _NONE, dtype=np.int32)
        _link(self.tree, self._links, self._heads, self._linked, self._start, self._numbering.live())
        return self._places[leaf]

    def _widen(self, capacities: list[int]) -> None:
        """Room in the heads for leaves that have more rows than before."""
        spans = [capacities[leaf] for leaf in self._places]
        if spans == self._spans:
            return
        start = np.cumsum([0, *spans[:-1]], dtype=np.int64)
        heads = np.full(sum(spans), _NONE, dtype=np.int32)
        for old, new, span in zip(self._start.tolist(), start.tolist(), self._spans, strict=True):
            heads[new : new + span] = self._heads[old : old + span]
        self._heads, self._start, self._spans = heads, start, spans

    @property
    def nbytes(self) -> int:
        return self.tree.nbytes + self._numbering.nbytes + self._links.nbytes + self._heads.nbytes
