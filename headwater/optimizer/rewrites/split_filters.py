"""FILTER(a && b) becomes two filters, so that each can be pushed by itself.

Filter(P, a && b)    →    Filter(Filter(P, a), b)
"""

from __future__ import annotations

from functools import reduce

from headwater.algebra.nodes import Filter, Node
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import conjuncts_of
from headwater.optimizer.rule import NodeContext, Rule, rewrite_plan
from headwater.optimizer.statistics import Statistics


def split_filters(plan: QueryPlan, statistics: Statistics | None = None) -> Node:
    def change(node: Node, context: NodeContext) -> Node:
        if not isinstance(node, Filter):
            return node
        conditions = conjuncts_of(node.condition)
        return reduce(Filter, conditions, node.inner) if len(conditions) > 1 else node

    return rewrite_plan(plan, change)


RULE = Rule(
    "split filters",
    "a conjunction is true exactly where both its parts are: an error in one of them never makes it true",
    split_filters,
)
