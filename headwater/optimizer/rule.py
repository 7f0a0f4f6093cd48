"""What a rewrite rule is, and the traversal that most of them share.

A rule takes a plan and gives the root of an equivalent one: the same root if it does not apply. `condition` says in one
sentence when the rewrite is valid. Nothing but the root changes: the windows stay, because they decide when a query is
evaluated, and so do the variables of the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from headwater.algebra.active_graphs import ActiveGraph, active_graph_inside, default_active_graph
from headwater.algebra.nodes import Aggregation, ExistsPlan, Extend, Filter, Group, LeftJoin, Node, OrderBy, Service
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import expressions_of, map_expression, map_expressions
from headwater.language.expressions import Expression
from headwater.optimizer.dependencies import has_exists
from headwater.optimizer.statistics import Statistics

_WITH_EXPRESSIONS = (Filter, LeftJoin, Extend, Group, Aggregation, OrderBy)


@dataclass(frozen=True)
class Rule:
    """A rewrite with its name and the condition under which it keeps every answer."""

    name: str
    condition: str
    rewrite: Callable[[QueryPlan, Statistics | None], Node]


@dataclass(frozen=True, slots=True)
class NodeContext:
    """The surroundings of a node: the active graph of its patterns, and whether it is inside EXISTS.

    A pattern inside EXISTS is *correlated*: it is evaluated under the bindings of the solution that is tested, so that
    any of its variables may have a value from outside.
    """

    active_graph: ActiveGraph
    is_correlated: bool = False


Change: TypeAlias = Callable[[Node, NodeContext], Node]


def rewrite_plan(plan: QueryPlan, change: Change) -> Node:
    """The plan rebuilt from the leaves up, with `change` applied to each node in its context.

    The pattern of SERVICE belongs to another engine and is not changed. Unchanged nodes stay the same objects.
    """
    return _rewrite_node(plan, plan.root, change, NodeContext(default_active_graph(plan)))


def _rewrite_node(plan: QueryPlan, node: Node, change: Change, context: NodeContext) -> Node:
    """Rewrite the children and the patterns inside EXISTS, then the node itself; SERVICE stays as it is."""
    if isinstance(node, Service):
        return node
    children = node.children
    within = replace(context, active_graph=active_graph_inside(plan, node, context.active_graph))
    renewed = tuple(_rewrite_node(plan, child, change, within) for child in children)
    if any(new is not old for new, old in zip(renewed, children, strict=True)):
        node = node.with_children(*renewed)
    if isinstance(node, _WITH_EXPRESSIONS) and any(map(has_exists, expressions_of(node))):
        inside = replace(context, is_correlated=True)

        def in_exists(part: Expression) -> Expression | None:
            if not isinstance(part, ExistsPlan):
                return None
            return replace(part, plan=_rewrite_node(plan, part.plan, change, inside))

        node = map_expressions(node, lambda e: map_expression(e, in_exists))
    return change(node, context)
