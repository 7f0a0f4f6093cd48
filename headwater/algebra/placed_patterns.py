"""The triple patterns of a plan with the graphs in which they are matched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from headwater.algebra.nodes import Bgp, ExistsPlan, Graph, Node, Service, Window
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import expressions_of, sub_expressions
from headwater.algebra.window_graphs import DEFAULT, window_graph
from headwater.language.patterns import TriplePattern
from headwater.terms.model import NamedNode


class PlacedPattern(NamedTuple):
    """A triple pattern, and the graph in which it is matched (`window_graphs`)."""

    graph: NamedNode
    triple: TriplePattern


def placed_patterns(plan: QueryPlan) -> tuple[PlacedPattern, ...]:
    """The triple patterns of a plan in the graphs of its windows and in the default graph, each once."""
    return tuple(dict.fromkeys(_patterns_in(plan, plan.root, DEFAULT)))


def _patterns_in(plan: QueryPlan, node: Node, graph: NamedNode) -> Iterator[PlacedPattern]:
    match node:
        case Bgp(triples):
            yield from (PlacedPattern(graph, triple) for triple in triples)
        case Service():
            return
        case Window(windows, _, inner):
            for number in windows:
                yield from _patterns_in(plan, inner, window_graph(number, plan.windows[number]))
            return
        case Graph(NamedNode() as name, inner):
            yield from _patterns_in(plan, inner, name)
            return
        case Graph(_, inner):
            for source in plan.windows:
                if source.graph is not None:
                    yield from _patterns_in(plan, inner, source.graph)
            return
    for expression in expressions_of(node):
        for part in sub_expressions(expression):
            if isinstance(part, ExistsPlan):
                yield from _patterns_in(plan, part.plan, graph)
    for child in node.children:
        yield from _patterns_in(plan, child, graph)
