"""Answers that do not depend on the order in which a store happens to give its solutions.

SPARQL leaves open which solutions LIMIT keeps among equals, and in which order solutions without ORDER BY come. A
continuous answer must not depend on how its stream was cut, so both are defined here: wherever LIMIT or OFFSET stands,
and in every ORDER BY, all visible variables decide what the keys leave open, their texts where values are equal (2.0
and 2); a result without ORDER BY is sorted by the text of its terms.
"""

from __future__ import annotations

from headwater.algebra.nodes import Distinct, Node, OrderBy, Project, Reduced, Slice
from headwater.algebra.scope import map_plan, visible_variables
from headwater.language.expressions import Expression, FunctionCall, VariableReference
from headwater.terms.model import Row
from headwater.values.order_texts import in_total_order

SEPARATOR = "\x1f"
"""Stands between the terms of a row where rows are compared as texts."""


def with_total_order(plan: Node) -> Node:
    """The plan with every order complete, none missing below LIMIT, and keys that are a total order."""

    def change(node: Node) -> Node:
        if isinstance(node, Slice):
            return Slice(_with_order(node.inner), node.offset, node.limit)
        if isinstance(node, Project) and isinstance(node.inner, OrderBy):
            return Project(_with_all_variables(node.inner, node), node.variables)
        return node

    return map_plan(plan, change)


def _with_order(node: Node) -> Node:
    if isinstance(node, Distinct | Reduced):
        return type(node)(_with_order(node.inner))
    if isinstance(node, Project) and node.variables and not isinstance(node.inner, OrderBy):
        return Project(_with_all_variables(OrderBy(node.inner, ()), node), node.variables)
    return node


def _with_all_variables(order: OrderBy, shown: Node) -> OrderBy:
    by = {key for key, _ in order.keys}
    rest: list[Expression] = []
    for variable in map(VariableReference, visible_variables(shown)):
        if variable not in by:
            rest.append(variable)
        rest += [FunctionCall("STR", (variable,)), FunctionCall("STR", (FunctionCall("DATATYPE", (variable,)),))]
    keys = (*order.keys, *((key, False) for key in rest))
    return OrderBy(order.inner, tuple((in_total_order(key), descending) for key, descending in keys))


def is_ordered(plan: Node) -> bool:
    """Whether the plan has an ORDER BY for its solutions."""
    while isinstance(plan, Slice | Distinct | Reduced):
        plan = plan.inner
    return isinstance(plan, Project) and isinstance(plan.inner, OrderBy) and bool(plan.inner.keys)


def row_text(row: Row) -> str:
    """The text by which rows without ORDER BY are sorted."""
    return SEPARATOR.join("" if term is None else str(term) for term in row)
