"""Joins as lists: Ω1 ⋈ Ω2 is commutative and associative, also where variables may be unbound.

Two mappings that are compatible with a third are compatible with it together, so the inputs of nested joins, and the
triple patterns of one basic graph pattern, may be taken in any order and in any groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import combinations

from headwater.algebra.nodes import Bgp, Join, Node, Unit
from headwater.algebra.scope import visible
from headwater.algebra.translate import join
from headwater.terms.model import Variable


def factors(node: Node) -> list[Node]:
    """The inputs of nested joins, left to right."""
    if isinstance(node, Join):
        return [*factors(node.left), *factors(node.right)]
    return [] if isinstance(node, Unit) else [node]


def single_factors(node: Node) -> list[Node]:
    """The same with each triple pattern by itself."""
    found: list[Node] = []
    for factor in factors(node):
        found += [Bgp((triple,)) for triple in factor.triples] if isinstance(factor, Bgp) else [factor]
    return found


def joined(inputs: Iterable[Node]) -> Node:
    """The inputs joined in their order; neighbours that are graph patterns become one."""
    merged: list[Node] = []
    for node in inputs:
        if isinstance(node, Bgp) and merged and isinstance(merged[-1], Bgp):
            merged[-1] = Bgp((*merged[-1].triples, *node.triples))
        else:
            merged.append(node)
    nothing: Node = Unit()
    return reduce(join, merged, nothing)


def all_visible(inputs: Iterable[Node]) -> frozenset[Variable]:
    """The variables that some of the inputs can bind."""
    return frozenset(variable for node in inputs for variable in visible(node))


def connected_groups(inputs: Sequence[Node], largest: int) -> Iterable[tuple[int, ...]]:
    """Numbers of inputs, from two to `largest` of them, that hang together by their variables; the smallest first."""
    shown = [frozenset(visible(node)) for node in inputs]
    for size in range(2, min(largest, len(inputs) - 1) + 1):
        for group in combinations(range(len(inputs)), size):
            if _hangs_together([shown[i] for i in group]):
                yield group


def _hangs_together(parts: list[frozenset[Variable]]) -> bool:
    reached, waiting = parts[0], parts[1:]
    while waiting:
        near = [part for part in waiting if part & reached]
        if not near:
            return False
        reached = reached.union(*near)
        waiting = [part for part in waiting if not part & reached]
    return True
