"""Where a pattern of a plan is matched: which windows and static graphs make up its active graph.

A pattern outside GRAPH, WINDOW, STREAM and SERVICE reads the default graph, which in C-SPARQL is the RDF merge of the
FROM STREAM windows and the static default graph. Each of those clauses gives the patterns inside it another source.
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater.algebra.nodes import Graph, GraphName, Node, Service, Window
from headwater.algebra.plan import QueryPlan
from headwater.terms.model import NamedNode, Variable


@dataclass(frozen=True, slots=True)
class StaticGraph:
    """A graph that does not stream: `clause` says how the query comes to it, `name` which it is.

    The clauses are `FROM`, `FROM NAMED`, `GRAPH` (no dataset clause speaks of it), `SERVICE`, and for what the engine
    loaded `default graph` and `named graphs`, which need no name.
    """

    clause: str
    name: GraphName | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """The active graph of a pattern: numbers of windows, and static graphs.

    `merged` says that together they are one graph; otherwise the pattern is matched in each of them in turn and
    `name` is bound to the one it was matched in.
    """

    windows: tuple[int, ...] = ()
    graphs: tuple[StaticGraph, ...] = ()
    name: Variable | None = None
    merged: bool = False

    @property
    def is_remote(self) -> bool:
        """Whether an endpoint evaluates the pattern."""
        return any(graph.clause == "SERVICE" for graph in self.graphs)


def default_source(plan: QueryPlan) -> Source:
    """What a pattern outside all clauses reads."""
    windows = tuple(number for number, window in enumerate(plan.windows) if window.in_default_graph)
    if plan.default_graphs is None:
        return Source(windows, (StaticGraph("default graph"),), merged=True)
    return Source(windows, tuple(StaticGraph("FROM", graph) for graph in plan.default_graphs), merged=True)


def source_inside(plan: QueryPlan, node: Node, around: Source) -> Source:
    """What the patterns inside a node read, given what those around it do."""
    if around.is_remote:
        return around
    match node:
        case Window(windows, name, _):
            return Source(windows, (), name)
        case Service(endpoint, _, _):
            return Source((), (StaticGraph("SERVICE", endpoint),))
        case Graph(Variable() as name, _):
            windows = tuple(n for n, window in enumerate(plan.windows) if window.graph is not None)
            named = plan.named_graphs
            graphs = (
                (StaticGraph("named graphs"),)
                if named is None
                else tuple(StaticGraph("FROM NAMED", graph) for graph in named)
            )
            return Source(windows, graphs, name)
        case Graph(NamedNode() as iri, _):
            windows = tuple(n for n, window in enumerate(plan.windows) if window.graph == iri)
            listed = plan.named_graphs is not None and iri in plan.named_graphs
            if windows and not listed:
                return Source(windows)
            return Source(windows, (StaticGraph("FROM NAMED" if listed else "GRAPH", iri),))
    return around
