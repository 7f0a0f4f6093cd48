"""Filters that stand upon each other as one again, once each has found its place.

Filter(Filter(P, a), b)    →    Filter(P, a && b)
"""

from __future__ import annotations

from headwater.algebra.nodes import Filter, Node
from headwater.algebra.plan import QueryPlan
from headwater.algebra.translate import conjunction
from headwater.optimizer.rule import Rule, Where, rewritten
from headwater.optimizer.statistics import Statistics


def join_filters(plan: QueryPlan, statistics: Statistics | None = None) -> Node:
    def change(node: Node, where: Where) -> Node:
        match node:
            case Filter(Filter(inner, first), second):
                return Filter(inner, conjunction([first, second]))
        return node

    return rewritten(plan, change)


RULE = Rule(
    "join filters",
    "both filters see the same solution, and a conjunction is true exactly where both its parts are",
    join_filters,
)
