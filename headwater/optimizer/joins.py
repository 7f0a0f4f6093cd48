"""Nested joins as lists of operands: Ω1 ⋈ Ω2 is commutative and associative, also where variables may be unbound.

So the operands of nested joins, and the triple patterns of one basic graph pattern, may be taken in any order and
grouping.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from headwater.algebra.nodes import Bgp, Join, Node, Unit
from headwater.algebra.scope import visible_variables
from headwater.algebra.translate import join_nodes
from headwater.terms.model import Variable


def join_operands(node: Node) -> list[Node]:
    """The operands of nested joins, left to right."""
    if isinstance(node, Join):
        return [*join_operands(node.left), *join_operands(node.right)]
    return [] if isinstance(node, Unit) else [node]


def single_pattern_operands(node: Node) -> list[Node]:
    """The operands of nested joins with each triple pattern by itself."""
    operands: list[Node] = []
    for factor in join_operands(node):
        operands += [Bgp((triple,)) for triple in factor.triples] if isinstance(factor, Bgp) else [factor]
    return operands


def join_plans(inputs: Iterable[Node]) -> Node:
    """The join of the inputs in their order; adjacent graph patterns become one."""
    merged: list[Node] = []
    for node in inputs:
        if isinstance(node, Bgp) and merged and isinstance(merged[-1], Bgp):
            merged[-1] = Bgp((*merged[-1].triples, *node.triples))
        else:
            merged.append(node)
    nothing: Node = Unit()
    return reduce(join_nodes, merged, nothing)


def visible_in_any(inputs: Iterable[Node]) -> frozenset[Variable]:
    """The variables that at least one input can bind."""
    return frozenset(variable for node in inputs for variable in visible_variables(node))


def connected_components(inputs: Iterable[Node]) -> list[list[Node]]:
    """The inputs in groups that are connected by shared variables; no two groups share one."""
    groups: list[list[Node]] = []
    for node in inputs:
        mine = [group for group in groups if visible_in_any(group) & frozenset(visible_variables(node))]
        groups = [group for group in groups if group not in mine]
        groups.append([*(other for group in mine for other in group), node])
    return groups
