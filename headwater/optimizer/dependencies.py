"""What an expression depends on, and what a plan reads: the questions that decide where an expression may stand."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.algebra.active_graphs import Source, source_inside
from headwater.algebra.nodes import Bgp, ExistsPlan, Node, PathMatch, Service
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import expressions_of, mentioned, nodes, sub_expressions
from headwater.language.expressions import Expression, FunctionCall, Timestamp
from headwater.terms.model import XSD, NamedNode, Variable

_UNSTEADY = frozenset({"NOW", "RAND", "UUID", "STRUUID", "BNODE"})


def reads(expression: Expression) -> frozenset[Variable]:
    """The variables whose values an expression may look at; all of the pattern's for EXISTS."""
    streams = (part.stream for part in sub_expressions(expression) if isinstance(part, Timestamp))
    return mentioned(expression) | frozenset(stream for stream in streams if isinstance(stream, Variable))


def is_steady(expression: Expression) -> bool:
    """Whether the value depends on the solution alone: not on the tick, on chance or on how a solution came about."""
    for part in sub_expressions(expression):
        match part:
            case Timestamp():
                return False
            case FunctionCall(NamedNode() as name, _):
                if not name.value.startswith(XSD):
                    return False
            case FunctionCall(name, _):
                if name in _UNSTEADY:
                    return False
            case ExistsPlan(plan, _):
                if not is_steady_plan(plan):
                    return False
    return True


def is_steady_plan(plan: Node) -> bool:
    """Whether a plan has the same solutions whenever and however often it is evaluated over the same data."""
    return all(
        not isinstance(node, Service) and all(is_steady(expression) for expression in expressions_of(node))
        for node in nodes(plan)
    )


def has_exists(expression: Expression) -> bool:
    """Whether the value depends on the active graph."""
    return any(isinstance(part, ExistsPlan) for part in sub_expressions(expression))


def patterns(plan: QueryPlan, node: Node, source: Source) -> Iterator[tuple[Node, Source]]:
    """The graph and path patterns below a node, those inside EXISTS included, each with its active graph."""
    if isinstance(node, Bgp | PathMatch):
        yield node, source
    for expression in expressions_of(node):
        for part in sub_expressions(expression):
            if isinstance(part, ExistsPlan):
                yield from patterns(plan, part.plan, source)
    within = source_inside(plan, node, source)
    for child in node.children:
        yield from patterns(plan, child, within)


def reads_stream(plan: QueryPlan, node: Node, source: Source) -> bool:
    """Whether some pattern below a node is matched against a window."""
    return any(where.windows for _, where in patterns(plan, node, source))
