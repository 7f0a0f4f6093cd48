"""A filter that no single input of a join decides goes to the join of static inputs that decides it.

    Filter(Join(Window(w, A), S1, S2), c)    →    Join(Window(w, A), Filter(Join(S1, S2), c))
        S1 and S2 share a variable, read no stream, and together bind all variables of c

Connected static inputs are one view, which is computed once, and so is the filter in it. Streams are left alone: a
filter around two of several joined streams would force their join to be computed and kept by itself.
"""

from __future__ import annotations

from headwater.algebra.active_graphs import ActiveGraph
from headwater.algebra.nodes import Filter, Join, Node, Service
from headwater.algebra.plan import QueryPlan
from headwater.language.expressions import Expression
from headwater.optimizer.dependencies import has_stream_pattern, patterns_with_graphs
from headwater.optimizer.joins import connected_components, join_operands, join_plans
from headwater.optimizer.rewrites.push_filters import can_move, is_decided_by, is_independent_of_outside
from headwater.optimizer.rule import NodeContext, Rule, rewrite_plan
from headwater.optimizer.statistics import Statistics


def filter_static_parts(plan: QueryPlan, statistics: Statistics | None = None) -> Node:
    """Move filters over a join to the static inputs that decide them together."""

    def change(node: Node, context: NodeContext) -> Node:
        conditions: list[Expression] = []
        below = node
        while isinstance(below, Filter):
            conditions.insert(0, below.condition)
            below = below.inner
        if not conditions or not isinstance(below, Join):
            return node
        left_over: list[Expression] = []
        inputs = join_operands(below)
        for condition in conditions:
            filtered = None
            if can_move(condition) and is_independent_of_outside(below, condition, context):
                filtered = _filter_static_inputs(plan, inputs, condition, context.active_graph)
            if filtered is None:
                left_over.append(condition)
            else:
                inputs = filtered
        if len(left_over) == len(conditions):
            return node
        result = join_plans(inputs)
        for condition in left_over:
            result = Filter(result, condition)
        return result

    return rewrite_plan(plan, change)


def _filter_static_inputs(
    plan: QueryPlan, inputs: list[Node], condition: Expression, graph: ActiveGraph
) -> list[Node] | None:
    """The inputs with the filter around connected static ones; None if none of these decide the condition."""
    for group in connected_components(node for node in inputs if is_static(plan, node, graph)):
        rest = [node for node in inputs if not any(node is mine for mine in group)]
        if rest and is_decided_by(join_plans(group), rest, condition):
            return [Filter(join_plans(group), condition), *rest]
    return None


def is_static(plan: QueryPlan, node: Node, graph: ActiveGraph) -> bool:
    """Whether a part reads graphs, and only static ones of this engine."""
    if isinstance(node, Service) or has_stream_pattern(plan, node, graph):
        return False
    return any(
        active_graph.static_graphs and not active_graph.is_remote
        for _, active_graph in patterns_with_graphs(plan, node, graph)
    )


RULE = Rule(
    "filter static parts",
    "each variable of the condition is bound for sure in the static inputs together, or nothing else can bind it",
    filter_static_parts,
)
