"""Pairing heaps over numbered nodes: one heap for each group, all in the same arrays (Fredman et al., 1986).

    keys[node]          what the nodes are ordered by
    child[node]         the first node below it; OUT where the node is in no heap
    sibling[node]       the next node below the same node
    first_equal[node]   the first of the nodes that were melded with it at an equal key, linked by `sibling`, too
    roots[group]        the smallest node of a group

To insert a node takes one comparison, with the root. When the root is removed, the nodes below it are melded in pairs.
A node whose key equals that of the root hangs at the root as an equal node, or at one of those, never below another
key: the nodes among which the key alone does not decide are found without a search.
"""

from __future__ import annotations

import numpy as np

from headwater.terms.compiled_code import compiled

NONE = np.int32(-1)
OUT = np.int32(-2)


@compiled(inline="always")
def _meld(keys, child, sibling, first_equal, first, second):  # type: ignore[no-untyped-def]
    """Meld two heaps; gives the root."""
    if first < 0:
        return second
    if second < 0:
        return first
    if keys[first] == keys[second]:
        sibling[second] = first_equal[first]
        first_equal[first] = second
        return first
    if keys[second] < keys[first]:
        first, second = second, first
    sibling[second] = child[first]
    child[first] = second
    return first


@compiled
def _remove_root(keys, child, sibling, first_equal, root):  # type: ignore[no-untyped-def]
    """Remove the root of a heap; gives the new root."""
    pairs = NONE
    first = child[root]
    while first >= 0:
        second = sibling[first]
        next_node = NONE
        sibling[first] = NONE
        if second >= 0:
            next_node = sibling[second]
            sibling[second] = NONE
        merged = _meld(keys, child, sibling, first_equal, first, second)
        sibling[merged] = pairs
        pairs = merged
        first = next_node
    best = NONE
    while pairs >= 0:
        next_node = sibling[pairs]
        sibling[pairs] = NONE
        best = _meld(keys, child, sibling, first_equal, best, pairs)
        pairs = next_node
    equal = first_equal[root]
    while equal >= 0:
        next_node = sibling[equal]
        sibling[equal] = NONE
        best = _meld(keys, child, sibling, first_equal, best, equal)
        equal = next_node
    child[root] = OUT
    first_equal[root] = NONE
    return best


@compiled
def insert_nodes(keys, child, sibling, first_equal, roots, groups, nodes):  # type: ignore[no-untyped-def]
    """Insert nodes into the heaps of their groups; nodes that are still in a heap stay where they are."""
    for i in range(nodes.shape[0]):
        node = np.int32(nodes[i])
        if child[node] == OUT:
            child[node] = NONE
            sibling[node] = NONE
            first_equal[node] = NONE
            group = groups[i]
            roots[group] = _meld(keys, child, sibling, first_equal, roots[group], node)


@compiled(makes_arrays=True)
def find_equal_nodes(sibling, first_equal, counts, root):  # type: ignore[no-untyped-def]
    """A root and all nodes with the same key that have a count."""
    unvisited = [np.int64(root)]
    nodes = [np.int64(root)]
    while len(unvisited) > 0:
        node = np.int64(first_equal[unvisited.pop()])
        while node >= 0:
            if counts[node] > 0:
                nodes.append(node)
            unvisited.append(node)
            node = np.int64(sibling[node])
    return np.array(nodes)


@compiled
def _find_minimum(keys, child, sibling, first_equal, roots, counts, group):  # type: ignore[no-untyped-def]
    """The smallest node of a group with a count, -1 for none; roots without a count are removed."""
    root = roots[group]
    if root >= 0 and counts[root] <= 0:
        while root >= 0 and counts[root] <= 0:
            root = _remove_root(keys, child, sibling, first_equal, root)
        roots[group] = root
    return root


@compiled(makes_arrays=True)
def follow_minima(  # type: ignore[no-untyped-def]
    keys, child, sibling, first_equal, roots, counts, groups, nodes, signs, is_end, minima
):  # fmt: skip
    """Count nodes up or down, one after the other; `minima` gets the smallest node of the group where `is_end` is set.

    Gives all nodes with the same key as such a node, itself included, where there are several, and their places in
    `minima`.
    """
    tied_nodes = [np.int64(0) for _ in range(0)]
    tied_places = [np.int64(0) for _ in range(0)]
    n = 0
    for i in range(nodes.shape[0]):
        node, group = np.int32(nodes[i]), groups[i]
        counts[node] += signs[i]
        if counts[node] > 0 and child[node] == OUT:
            child[node] = NONE
            sibling[node] = NONE
            first_equal[node] = NONE
            roots[group] = _meld(keys, child, sibling, first_equal, roots[group], node)
        if is_end[i]:
            root = _find_minimum(keys, child, sibling, first_equal, roots, counts, group)
            minima[n] = root
            if root >= 0 and first_equal[root] >= 0:
                for equal in find_equal_nodes(sibling, first_equal, counts, root):
                    tied_nodes.append(equal)
                    tied_places.append(np.int64(n))
            n += 1
    return np.array(tied_nodes), np.array(tied_places)


@compiled
def find_minima(keys, child, sibling, first_equal, roots, counts, groups, minima):  # type: ignore[no-untyped-def]
    """Find the smallest node with a count in some groups, -1 for none; roots without a count are removed.

    Gives how many of these nodes have equal nodes.
    """
    tied = 0
    for i in range(groups.shape[0]):
        root = _find_minimum(keys, child, sibling, first_equal, roots, counts, groups[i])
        minima[i] = root
        if root >= 0 and first_equal[root] >= 0:
            tied += 1
    return tied
