"""FILTER(a && b) as two filters, so that each can go its own way.

Filter(P, a && b)    →    Filter(Filter(P, a), b)
"""

from __future__ import annotations

from functools import reduce

from headwater.algebra.nodes import Filter, Node
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import conjuncts
from headwater.optimizer.rule import Rule, Where, rewritten
from headwater.optimizer.statistics import Statistics


def split_filters(plan: QueryPlan, statistics: Statistics | None = None) -> Node:
    def change(node: Node, where: Where) -> Node:
        if not isinstance(node, Filter):
            return node
        conditions = conjuncts(node.condition)
        return reduce(Filter, conditions, node.inner) if len(conditions) > 1 else node

    return rewritten(plan, change)


RULE = Rule(
    "split filters",
    "a conjunction is true exactly where both its parts are: an error in one of them never makes it true",
    split_filters,
)
