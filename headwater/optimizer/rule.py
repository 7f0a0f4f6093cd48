"""What a rewrite is, and the walk that most of them share.

A rule takes a plan and gives the root of one that has the same answers: the same root where it has nothing to do. `why`
says in one sentence under which condition that is so. Nothing but the root changes: the windows stay, because
they decide when a query is evaluated, and so do the variables of the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from headwater.algebra.nodes import (
    Aggregation,
    ExistsPlan,
    Extend,
    Filter,
    Group,
    LeftJoin,
    Node,
    OrderBy,
    Service,
)
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


def rewritten(node: Node, change: Callable[[Node, bool], Node], correlated: bool = False) -> Node:
    """The plan rebuilt from the leaves up, `change` applied to each node and told whether it stands inside EXISTS.

    A pattern inside EXISTS is evaluated under the bindings of the solution that is tested, so that any of its variables
    may have a value from outside. What SERVICE sends to another engine is never touched. What does not change stays the
    same object.
    """
    if isinstance(node, Service):
        return node
    children = node.children
    renewed = tuple(rewritten(child, change, correlated) for child in children)
    if any(new is not old for new, old in zip(renewed, children, strict=True)):
        node = node.with_children(*renewed)
    if isinstance(node, _WITH_EXPRESSIONS) and any(map(_has_exists, expressions_of(node))):
        node = map_expressions(node, lambda e: map_expression(e, lambda part: _inside(part, change)))
    return change(node, correlated)


def _has_exists(expression: Expression) -> bool:
    return any(isinstance(part, ExistsPlan) for part in sub_expressions(expression))


def _inside(expression: Expression, change: Callable[[Node, bool], Node]) -> Expression | None:
    if not isinstance(expression, ExistsPlan):
        return None
    return replace(expression, plan=rewritten(expression.plan, change, True))
