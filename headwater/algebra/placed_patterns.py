"""The triple patterns of a plan with the graphs in which they are matched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from headwater.algebra.nodes import Bgp, ExistsPlan, Graph, GraphName, Node, PathMatch, Service, Window, WindowGraph
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import expressions_of, sub_expressions
from headwater.algebra.unrolled_paths import triples_of, unroll_for_readers
from headwater.algebra.window_graphs import DEFAULT, graph_in_window, is_in_window, window_graph
from headwater.language.patterns import TriplePattern
from headwater.terms.model import NamedNode, Variable

EACH = Variable("graph")
"""Stands for every variable that GRAPH names in a window."""


class PlacedPattern(NamedTuple):
    """A triple pattern, and the graph in which it is matched (`window_graphs`).

    Where GRAPH stands in the clause of a window, `name` is that of the window's graph, or `EACH` for a variable.
    """

    graph: NamedNode
    triple: TriplePattern
    name: GraphName | None = None

    @classmethod
    def of(cls, graph: NamedNode, triple: TriplePattern, name: GraphName | None = None) -> PlacedPattern:
        """The pattern, whatever the variable of GRAPH is called."""
        return cls(graph, triple, EACH if isinstance(name, Variable) else name)

    def is_matched_in(self, graph: NamedNode) -> bool:
        """Whether the pattern is matched in a graph, which may be that of a window, or one of its graphs."""
        if self.name is None:
            return graph == self.graph
        if isinstance(self.name, NamedNode):
            return graph == graph_in_window(self.graph, self.name)
        return is_in_window(self.graph, graph)


def placed_patterns(plan: QueryPlan) -> tuple[PlacedPattern, ...]:
    """The triple patterns of a plan, and the steps of its paths, in the graphs of its windows and in the default graph.

    Each is there once.
    """
    return tuple(dict.fromkeys(_patterns_in(plan, plan.root, DEFAULT)))


def _patterns_in(
    plan: QueryPlan, node: Node, graph: NamedNode, name: GraphName | None = None
) -> Iterator[PlacedPattern]:
    match node:
        case Bgp(triples):
            yield from (PlacedPattern.of(graph, triple, name) for triple in triples)
        case PathMatch():
            yield from (PlacedPattern.of(graph, triple, name) for triple in triples_of(unroll_for_readers(node)))
        case Service():
            return
        case Window(windows, _, inner):
            for number in windows:
                yield from _patterns_in(plan, inner, window_graph(number, plan.windows[number]))
            return
        case WindowGraph(inside, inner):
            yield from _patterns_in(plan, inner, graph, inside)
            return
        case Graph(NamedNode() as outside, inner):
            yield from _patterns_in(plan, inner, outside)
            return
        case Graph(_, inner):
            for source in plan.windows:
                if source.graph is not None:
                    yield from _patterns_in(plan, inner, source.graph)
            return
    for expression in expressions_of(node):
        for part in sub_expressions(expression):
            if isinstance(part, ExistsPlan):
                yield from _patterns_in(plan, part.plan, graph, name)
    for child in node.children:
        yield from _patterns_in(plan, child, graph, name)
