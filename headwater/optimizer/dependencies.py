"""What the value of an expression depends on, and which graphs a plan reads; rules ask this before they move one."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.algebra.active_graphs import ActiveGraph, active_graph_inside
from headwater.algebra.nodes import Bgp, ExistsPlan, Node, PathMatch, Service
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import expressions_of, nodes_of, sub_expressions
from headwater.language.builtins import is_volatile
from headwater.language.expressions import Expression, FunctionCall, Timestamp


def is_deterministic(expression: Expression) -> bool:
    """Whether the value depends on the solution alone: not on the tick, a random number or the matched triples."""
    for part in sub_expressions(expression):
        match part:
            case Timestamp():
                return False
            case FunctionCall(name, _):
                if is_volatile(name):
                    return False
            case ExistsPlan(plan, _):
                if not is_deterministic_plan(plan):
                    return False
    return True


def is_deterministic_plan(plan: Node) -> bool:
    """Whether a plan has the same solutions at each evaluation over the same data."""
    return all(
        not isinstance(node, Service) and all(is_deterministic(expression) for expression in expressions_of(node))
        for node in nodes_of(plan)
    )


def has_exists(expression: Expression) -> bool:
    """Whether EXISTS stands in an expression, so that its value depends on the active graph."""
    return any(isinstance(part, ExistsPlan) for part in sub_expressions(expression))


def patterns_with_graphs(plan: QueryPlan, node: Node, graph: ActiveGraph) -> Iterator[tuple[Node, ActiveGraph]]:
    """The graph and path patterns below a node, those inside EXISTS included, each with its active graph."""
    if isinstance(node, Bgp | PathMatch):
        yield node, graph
    for expression in expressions_of(node):
        for part in sub_expressions(expression):
            if isinstance(part, ExistsPlan):
                yield from patterns_with_graphs(plan, part.plan, graph)
    within = active_graph_inside(plan, node, graph)
    for child in node.children:
        yield from patterns_with_graphs(plan, child, within)


def has_stream_pattern(plan: QueryPlan, node: Node, graph: ActiveGraph) -> bool:
    """Whether some pattern below a node is matched against a window."""
    return any(active_graph.windows for _, active_graph in patterns_with_graphs(plan, node, graph))
