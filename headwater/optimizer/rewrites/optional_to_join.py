"""OPTIONAL becomes a join where a later filter throws away every solution in which the optional part is missing.

Filter(LeftJoin(A, B, c), ?b > 3)    →    Filter(Filter(Join(A, B), c), ?b > 3)        ?b comes from B alone
"""

from __future__ import annotations

from headwater.algebra.nodes import Filter, Join, LeftJoin, Node
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import visible
from headwater.language.expressions import Expression
from headwater.optimizer.null_rejection import rejects_unbound
from headwater.optimizer.rule import Rule, Where, rewritten
from headwater.optimizer.statistics import Statistics
from headwater.terms.model import Variable


def optional_to_join(plan: QueryPlan, statistics: Statistics | None = None) -> Node:
    def change(node: Node, where: Where) -> Node:
        if not isinstance(node, Filter) or may_be_bound_from_outside(where.correlated):
            return node
        conditions: list[Expression] = []
        below: Node = node
        while isinstance(below, Filter):
            conditions.append(below.condition)
            below = below.inner
        if not isinstance(below, LeftJoin):
            return node
        optional = bound_by_the_optional_part_alone(below)
        if not any(rejects_unbound(condition, v) for condition in conditions for v in optional):
            return node
        result: Node = Join(below.left, below.right)
        if below.condition is not None:
            result = Filter(result, below.condition)
        for condition in reversed(conditions):
            result = Filter(result, condition)
        return result

    return rewritten(plan, change)


def bound_by_the_optional_part_alone(node: LeftJoin) -> frozenset[Variable]:
    """What is unbound in every solution without the optional part."""
    return frozenset(visible(node.right)) - frozenset(visible(node.left))


def may_be_bound_from_outside(correlated: bool) -> bool:
    """Inside EXISTS a variable of the optional part may have a value though the part is missing."""
    return correlated


RULE = Rule(
    "OPTIONAL to join",
    "a filter above is never true where a variable is unbound that only the optional part binds",
    optional_to_join,
)
