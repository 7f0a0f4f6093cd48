"""A filter that no single input of a join decides goes to the static inputs that decide it together.

    Filter(Join(Window(w, A), S1, S2), c)    →    Join(Window(w, A), Filter(Join(S1, S2), c))
        S1 and S2 share a variable, no stream touches them, and together they know all variables of c

Static inputs that hang together are one view that is made once, so the filter is asked once, too. Streams are
left alone: a filter around two of several joined streams would have their join made by itself, and kept.
"""

from __future__ import annotations

from headwater.algebra.active_graphs import Source
from headwater.algebra.nodes import Filter, Join, Node, Service
from headwater.algebra.plan import QueryPlan
from headwater.language.expressions import Expression
from headwater.optimizer.dependencies import patterns, reads_stream
from headwater.optimizer.joins import factors, hanging_together, joined
from headwater.optimizer.rewrites.push_filters import decides, looks_inside, may_move
from headwater.optimizer.rule import Rule, Where, rewritten
from headwater.optimizer.statistics import Statistics


def filter_static_parts(plan: QueryPlan, statistics: Statistics | None = None) -> Node:
    def change(node: Node, where: Where) -> Node:
        conditions: list[Expression] = []
        below = node
        while isinstance(below, Filter):
            conditions.insert(0, below.condition)
            below = below.inner
        if not conditions or not isinstance(below, Join):
            return node
        left_over: list[Expression] = []
        inputs = factors(below)
        for condition in conditions:
            found = None
            if may_move(condition) and looks_inside(below, condition, where.correlated):
                found = _filtered(plan, inputs, condition, where.source)
            if found is None:
                left_over.append(condition)
            else:
                inputs = found
        if len(left_over) == len(conditions):
            return node
        result = joined(inputs)
        for condition in left_over:
            result = Filter(result, condition)
        return result

    return rewritten(plan, change)


def _filtered(plan: QueryPlan, inputs: list[Node], condition: Expression, source: Source) -> list[Node] | None:
    """The inputs with the filter around some static ones; None where those do not decide it."""
    for group in hanging_together(node for node in inputs if is_static(plan, node, source)):
        rest = [node for node in inputs if not any(node is mine for mine in group)]
        if rest and decides(joined(group), rest, condition):
            return [Filter(joined(group), condition), *rest]
    return None


def is_static(plan: QueryPlan, node: Node, source: Source) -> bool:
    """Whether a part reads graphs, and only such as do not stream."""
    if isinstance(node, Service) or reads_stream(plan, node, source):
        return False
    return any(where.graphs and not where.is_remote for _, where in patterns(plan, node, source))


RULE = Rule(
    "filter static parts",
    "each variable of the condition is bound for sure in the static inputs together, or nothing else can bind it",
    filter_static_parts,
)
