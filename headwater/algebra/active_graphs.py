"""The active graph of each pattern: the windows and static graphs against which it is matched.

A pattern outside GRAPH, WINDOW, STREAM and SERVICE reads the default graph, which in C-SPARQL is the RDF merge of the
FROM STREAM windows and the static default graph. Each of those clauses gives the patterns inside it another one. After
a plain FROM STREAM <s>, GRAPH <s> is the default graph with <s> as its only stream; after FROM NAMED STREAM it is the
window of <s> alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headwater.algebra.nodes import Graph, GraphName, Node, Service, Window, WindowGraph
from headwater.algebra.plan import QueryPlan
from headwater.terms.model import NamedNode, Variable


@dataclass(frozen=True, slots=True)
class StaticGraph:
    """A static graph: the clause by which a query reads it, and its name.

    The clauses are `FROM`, `FROM NAMED`, `GRAPH` (not listed by a dataset clause), `SERVICE`, and for static data of
    the engine `default graph` and `named graphs`, which need no name.
    """

    clause: str
    name: GraphName | None = None


@dataclass(frozen=True, slots=True)
class ActiveGraph:
    """The active graph of a pattern: window indexes and static graphs.

    With `is_merged` they are one graph together; otherwise the pattern is matched in each of them and `name` is bound
    to the one it was matched in.
    """

    windows: tuple[int, ...] = ()
    static_graphs: tuple[StaticGraph, ...] = ()
    name: Variable | None = None
    is_merged: bool = False

    @property
    def is_remote(self) -> bool:
        """Whether an endpoint evaluates the pattern."""
        return any(graph.clause == "SERVICE" for graph in self.static_graphs)


def default_active_graph(plan: QueryPlan) -> ActiveGraph:
    """The active graph of a pattern outside GRAPH, WINDOW, STREAM and SERVICE."""
    windows = tuple(number for number, window in enumerate(plan.windows) if window.in_default_graph)
    if plan.default_graphs is None:
        return ActiveGraph(windows, (StaticGraph("default graph"),), is_merged=True)
    return ActiveGraph(windows, tuple(StaticGraph("FROM", graph) for graph in plan.default_graphs), is_merged=True)


def active_graph_inside(plan: QueryPlan, node: Node, around: ActiveGraph) -> ActiveGraph:
    """The active graph of the patterns inside a node, given that around it."""
    if around.is_remote:
        return around
    match node:
        case Window(windows, name, _):
            return ActiveGraph(windows, (), name)
        case WindowGraph(name, _):
            return ActiveGraph(around.windows, (), name if isinstance(name, Variable) else None)
        case Service(endpoint, _, _):
            return ActiveGraph((), (StaticGraph("SERVICE", endpoint),))
        case Graph(Variable() as name, _):
            windows = tuple(n for n, window in enumerate(plan.windows) if window.graph is not None)
            named = plan.named_graphs
            graphs = (
                (StaticGraph("named graphs"),)
                if named is None
                else tuple(StaticGraph("FROM NAMED", graph) for graph in named)
            )
            return ActiveGraph(windows, graphs, name)
        case Graph(NamedNode() as iri, _):
            windows = tuple(n for n, window in enumerate(plan.windows) if window.graph == iri)
            listed = plan.named_graphs is not None and iri in plan.named_graphs
            if any(plan.windows[number].in_default_graph for number in windows):
                # The default graph with this stream alone (C-SPARQL, section 2.6).
                return replace(default_active_graph(plan), windows=windows)
            if windows and not listed:
                return ActiveGraph(windows)
            clause = "FROM" if listed and iri in (plan.default_graphs or ()) else "FROM NAMED" if listed else "GRAPH"
            return ActiveGraph(windows, (StaticGraph(clause, iri),))
    return around
