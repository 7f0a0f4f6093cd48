"""What a rewrite is, and the walk that most of them share.

A rule takes a plan and gives the root of one that has the same answers: the same root where it has nothing to do. `why`
says in one sentence under which condition that is so. Nothing but the root changes: the windows stay, because
they decide when a query is evaluated, and so do the variables of the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from headwater.algebra.active_graphs import Source, default_source, source_inside
from headwater.algebra.nodes import Aggregation, ExistsPlan, Extend, Filter, Group, LeftJoin, Node, OrderBy, Service
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import expressions_of, map_expression, map_expressions, sub_expressions
from headwater.language.expressions import Expression
from headwater.optimizer.statistics import Statistics

_WITH_EXPRESSIONS = (Filter, LeftJoin, Extend, Group, Aggregation, OrderBy)


@dataclass(frozen=True)
class Rule:
    """A rewrite by name."""

    name: str
    why: str
    rewrite: Callable[[QueryPlan, Statistics | None], Node]


@dataclass(frozen=True, slots=True)
class Where:
    """Where a node stands: what its patterns read, and whether it is inside EXISTS.

    A pattern inside EXISTS is *correlated*: it is evaluated under the bindings of the solution that is tested, so that
    any of its variables may have a value from outside.
    """

    source: Source
    correlated: bool = False


Change: TypeAlias = Callable[[Node, Where], Node]


def rewritten(plan: QueryPlan, change: Change) -> Node:
    """The plan rebuilt from the leaves up, `change` applied to each node and told where it stands.

    What SERVICE sends to another engine is never touched. What does not change stays the same object.
    """
    return _rebuilt(plan, plan.root, change, Where(default_source(plan)))


def _rebuilt(plan: QueryPlan, node: Node, change: Change, where: Where) -> Node:
    if isinstance(node, Service):
        return node
    children = node.children
    within = replace(where, source=source_inside(plan, node, where.source))
    renewed = tuple(_rebuilt(plan, child, change, within) for child in children)
    if any(new is not old for new, old in zip(renewed, children, strict=True)):
        node = node.with_children(*renewed)
    if isinstance(node, _WITH_EXPRESSIONS) and any(map(_has_exists, expressions_of(node))):
        inside = replace(where, correlated=True)

        def in_exists(part: Expression) -> Expression | None:
            if not isinstance(part, ExistsPlan):
                return None
            return replace(part, plan=_rebuilt(plan, part.plan, change, inside))

        node = map_expressions(node, lambda e: map_expression(e, in_exists))
    return change(node, where)


def _has_exists(expression: Expression) -> bool:
    return any(isinstance(part, ExistsPlan) for part in sub_expressions(expression))
