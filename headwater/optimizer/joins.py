"""Joins as lists: Ω1 ⋈ Ω2 is commutative and associative, also where variables may be unbound.

Two mappings that are compatible with a third are compatible with it together, so the inputs of nested joins, and the
triple patterns of one basic graph pattern, may be taken in any order and in any groups.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

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


def hanging_together(inputs: Iterable[Node]) -> list[list[Node]]:
    """The inputs in groups such that no two groups have a variable in common."""
    groups: list[list[Node]] = []
    for node in inputs:
        mine = [group for group in groups if all_visible(group) & frozenset(visible(node))]
        groups = [group for group in groups if group not in mine]
        groups.append([*(other for group in mine for other in group), node])
    return groups
