"""Answers that do not depend on the order in which a store happens to give its solutions.

SPARQL leaves open which solutions LIMIT keeps among equals, and in which order solutions come that nobody ordered. A
continuous answer must not depend on how its stream was cut, so both are settled here: wherever LIMIT or OFFSET stands,
and in every ORDER BY, all visible variables decide what the keys leave open; a result without ORDER BY is sorted by
the text of its terms.
"""

from __future__ import annotations

from headwater.algebra.nodes import Distinct, Node, OrderBy, Project, Reduced, Slice
from headwater.algebra.scope import map_plan, visible
from headwater.language.expressions import VariableReference
from headwater.terms.model import Row


def settled(plan: Node) -> Node:
    """The plan with every order complete and none missing below LIMIT."""

    def change(node: Node) -> Node:
        if isinstance(node, Slice):
            return Slice(_ordered(node.inner), node.offset, node.limit)
        if isinstance(node, Project) and isinstance(node.inner, OrderBy):
            return Project(_complete(node.inner, node), node.variables)
        return node

    return map_plan(plan, change)


def _ordered(node: Node) -> Node:
    if isinstance(node, Distinct | Reduced):
        return type(node)(_ordered(node.inner))
    if isinstance(node, Project) and not isinstance(node.inner, OrderBy):
        return Project(_complete(OrderBy(node.inner, ()), node), node.variables)
    return node


def _complete(order: OrderBy, shown: Node) -> OrderBy:
    by = {key for key, _ in order.keys}
    rest = (VariableReference(variable) for variable in visible(shown))
    return OrderBy(order.inner, (*order.keys, *((key, False) for key in rest if key not in by)))


def is_ordered(plan: Node) -> bool:
    """Whether the plan itself says in which order its solutions come."""
    while isinstance(plan, Slice | Distinct | Reduced):
        plan = plan.inner
    return isinstance(plan, Project) and isinstance(plan.inner, OrderBy) and bool(plan.inner.keys)


def row_text(row: Row) -> str:
    """What decides the order of rows that nobody ordered."""
    return "\x1f".join("" if term is None else str(term) for term in row)
