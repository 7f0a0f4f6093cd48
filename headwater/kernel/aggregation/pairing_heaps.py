"""Pairing heaps over numbered nodes: one heap per group, all in the same columns (Fredman et al., 1986).

    keys[node]      what the nodes are ordered by
    child[node]     the first of those that lost against it; OUT where the node is in no heap
    sibling[node]   the next that lost against the same node
    twin[node]      the first of those that met it with an equal key, linked by `sibling`, too
    roots[group]    the smallest node of a group

To add a node is one comparison, with the root. A root that has gone leaves those that lost against it, which are merged
in pairs. A node with a key equal to that of the root is a twin of the root, or of one of its twins, and never below
another key: the nodes among which the key alone does not decide are found without a search.
"""

from __future__ import annotations

import numpy as np

from headwater.terms.compiled_code import compiled

NONE = np.int32(-1)
OUT = np.int32(-2)


@compiled(inline="always")
def _melded(keys, child, sibling, twin, one, other):  # type: ignore[no-untyped-def]
    """The root of two heaps made one."""
    if one < 0:
        return other
    if other < 0:
        return one
    if keys[one] == keys[other]:
        sibling[other] = twin[one]
        twin[one] = other
        return one
    if keys[other] < keys[one]:
        one, other = other, one
    sibling[other] = child[one]
    child[one] = other
    return one


@compiled
def _without_root(keys, child, sibling, twin, root):  # type: ignore[no-untyped-def]
    """Take the root out of its heap; gives the next one."""
    pairs = NONE
    one = child[root]
    while one >= 0:
        other = sibling[one]
        following = NONE
        sibling[one] = NONE
        if other >= 0:
            following = sibling[other]
            sibling[other] = NONE
        merged = _melded(keys, child, sibling, twin, one, other)
        sibling[merged] = pairs
        pairs = merged
        one = following
    best = NONE
    while pairs >= 0:
        following = sibling[pairs]
        sibling[pairs] = NONE
        best = _melded(keys, child, sibling, twin, best, pairs)
        pairs = following
    equal = twin[root]
    while equal >= 0:
        following = sibling[equal]
        sibling[equal] = NONE
        best = _melded(keys, child, sibling, twin, best, equal)
        equal = following
    child[root] = OUT
    twin[root] = NONE
    return best


@compiled
def enter(keys, child, sibling, twin, roots, groups, nodes):  # type: ignore[no-untyped-def]
    """Add nodes to the heaps of their groups; those that are still in one stay where they are."""
    for i in range(nodes.shape[0]):
        node = np.int32(nodes[i])
        if child[node] == OUT:
            child[node] = NONE
            sibling[node] = NONE
            twin[node] = NONE
            group = groups[i]
            roots[group] = _melded(keys, child, sibling, twin, roots[group], node)


@compiled
def smallest(keys, child, sibling, twin, roots, counts, groups, found):  # type: ignore[no-untyped-def]
    """The smallest living node of some groups, -1 for none; nodes without a count are thrown away on the way.

    Gives how many of those found have twins.
    """
    tied = 0
    for i in range(groups.shape[0]):
        group = groups[i]
        root = roots[group]
        if root >= 0 and counts[root] <= 0:
            while root >= 0 and counts[root] <= 0:
                root = _without_root(keys, child, sibling, twin, root)
            roots[group] = root
        found[i] = root
        if root >= 0 and twin[root] >= 0:
            tied += 1
    return tied


@compiled
def equals(sibling, twin, counts, root):  # type: ignore[no-untyped-def]
    """A root and all living nodes with the same key."""
    waiting = [np.int64(root)]
    found = [np.int64(root)]
    while len(waiting) > 0:
        node = np.int64(twin[waiting.pop()])
        while node >= 0:
            if counts[node] > 0:
                found.append(node)
            waiting.append(node)
            node = np.int64(sibling[node])
    return np.array(found)
