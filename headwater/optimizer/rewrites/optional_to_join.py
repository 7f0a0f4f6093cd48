"""OPTIONAL becomes a join where a filter above rejects every solution without the optional part.

Filter(LeftJoin(A, B, c), ?b > 3)    →    Filter(Filter(Join(A, B), c), ?b > 3)        ?b comes from B alone
"""

from __future__ import annotations

from headwater.algebra.nodes import Filter, Join, LeftJoin, Node
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import visible_variables
from headwater.language.expressions import Expression
from headwater.optimizer.null_rejection import is_null_rejecting
from headwater.optimizer.rule import NodeContext, Rule, rewrite_plan
from headwater.optimizer.statistics import Statistics
from headwater.terms.model import Variable


def optional_to_join(plan: QueryPlan, statistics: Statistics | None = None) -> Node:
    """Replace OPTIONAL by a join where a filter above drops solutions without the optional part."""

    def change(node: Node, context: NodeContext) -> Node:
        if not isinstance(node, Filter) or can_be_bound_outside(context):
            return node
        conditions: list[Expression] = []
        below: Node = node
        while isinstance(below, Filter):
            conditions.append(below.condition)
            below = below.inner
        if not isinstance(below, LeftJoin):
            return node
        optional = optional_only_variables(below)
        if not any(is_null_rejecting(condition, v) for condition in conditions for v in optional):
            return node
        result: Node = Join(below.left, below.right)
        if below.condition is not None:
            result = Filter(result, below.condition)
        for condition in reversed(conditions):
            result = Filter(result, condition)
        return result

    return rewrite_plan(plan, change)


def optional_only_variables(node: LeftJoin) -> frozenset[Variable]:
    """The variables that are unbound in every solution without the optional part."""
    return frozenset(visible_variables(node.right)) - frozenset(visible_variables(node.left))


def can_be_bound_outside(context: NodeContext) -> bool:
    """Whether a variable of the optional part may have a value from outside, as inside EXISTS."""
    return context.is_correlated


RULE = Rule(
    "OPTIONAL to join",
    "a filter above is never true where a variable is unbound that only the optional part binds",
    optional_to_join,
)
