"""Adjacent filters become one again, after they were pushed.

Filter(Filter(P, a), b)    →    Filter(P, a && b)
"""

from __future__ import annotations

from headwater.algebra.nodes import Filter, Node
from headwater.algebra.plan import QueryPlan
from headwater.algebra.translate import conjunction_of
from headwater.optimizer.rule import NodeContext, Rule, rewrite_plan
from headwater.optimizer.statistics import Statistics


def join_filters(plan: QueryPlan, statistics: Statistics | None = None) -> Node:
    def change(node: Node, context: NodeContext) -> Node:
        match node:
            case Filter(Filter(inner, first), second):
                return Filter(inner, conjunction_of([first, second]))
        return node

    return rewrite_plan(plan, change)


RULE = Rule(
    "join filters",
    "both filters see the same solution, and a conjunction is true exactly where both its parts are",
    join_filters,
)
