"""The O-Graph of a plan (C-SPARQL, section 3.4 and figure 1): vertices are operators, edges the flow of data.

From the leaves to the root: stream operators, a window operator over each, static graphs, the graph patterns that read
them, the operators of the algebra, the solution modifiers, the form of the query, its streaming operator, the result.
A basic graph pattern is one vertex, as after the paper's MergeJoinedGPOs, because SPARQL matches it as a whole; with
`is_merged=False` each triple pattern is one, and the joins between them are drawn, as before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce

from headwater.algebra.active_graphs import ActiveGraph, StaticGraph, active_graph_inside, default_active_graph
from headwater.algebra.nodes import (
    Aggregation,
    Bgp,
    Distinct,
    ExistsPlan,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Node,
    OrderBy,
    PathMatch,
    Project,
    Reduced,
    Service,
    Slice,
    Unit,
    Values,
    Window,
    WindowGraph,
)
from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.algebra.scope import expressions_of, sub_expressions
from headwater.explain.active_graph_text import label_text
from headwater.explain.drawing_model import Direction, Drawing, DrawingBuilder, VertexKind
from headwater.explain.notation import Notation, duration_text
from headwater.explain.operator_text import operator_lines
from headwater.language.stream_clauses import CountSpec, RegistrationKind
from headwater.terms.model import NamedNode, Variable

_MODIFIERS = (Project, Distinct, Reduced, OrderBy, Slice)


def operator_graph(plan: QueryPlan, *, brief: bool = True, is_merged: bool = True) -> Drawing:
    """The operators of a plan, streams at the bottom and the result at the top."""
    builder = _Builder(plan, Notation.of(plan, brief=brief), is_merged)
    for number in range(len(plan.windows)):
        builder.window(number)
    builder.finish(builder.operator(plan.root, default_active_graph(plan)))
    return Drawing(
        f"Operators of {plan.name}",
        tuple(builder.shapes.vertices),
        tuple(builder.shapes.edges),
        direction=Direction.UP,
    )


@dataclass
class _Builder:
    plan: QueryPlan
    notation: Notation
    is_merged: bool = True
    shapes: DrawingBuilder = field(default_factory=DrawingBuilder)
    streams: dict[NamedNode, str] = field(default_factory=dict)
    windows: dict[int, str] = field(default_factory=dict)
    graphs: dict[StaticGraph, str] = field(default_factory=dict)
    merges: dict[ActiveGraph, str] = field(default_factory=dict)

    def window(self, number: int) -> str:
        """The window operator, and the stream operator that feeds it."""
        if number not in self.windows:
            window = self.plan.windows[number]
            if window.stream not in self.streams:
                self.streams[window.stream] = self.shapes.add_vertex(
                    VertexKind.STREAM, "stream", self.notation.iri(window.stream)
                )
            name = "physical window ω" if isinstance(window.spec, CountSpec) else "logical window ω"
            lines = [name, f"[{self.notation.window(window.spec)}]"]
            if window.label != window.stream.value:
                lines.append(label_text(window.label, self.notation))
            self.windows[number] = self.shapes.add_vertex(VertexKind.WINDOW, *lines)
            self.shapes.add_edge(self.streams[window.stream], self.windows[number])
        return self.windows[number]

    def _add_graph(self, graph: StaticGraph) -> str:
        if graph not in self.graphs:
            if graph.name is None:
                lines = ("static data", graph.clause)
            else:
                lines = (f"{graph.clause}", self.notation.term(graph.name))
            self.graphs[graph] = self.shapes.add_vertex(VertexKind.GRAPH, *lines)
        return self.graphs[graph]

    def _add_inputs(self, active_graph: ActiveGraph) -> list[str]:
        """The vertices of the graphs and windows that a pattern reads."""
        parts = [*map(self.window, active_graph.windows), *map(self._add_graph, active_graph.static_graphs)]
        if not active_graph.is_merged or len(parts) < 2:
            return parts
        if active_graph not in self.merges:
            self.merges[active_graph] = self.shapes.add_vertex(VertexKind.GRAPH, "default graph", "RDF merge")
            for part in parts:
                self.shapes.add_edge(part, self.merges[active_graph])
        return [self.merges[active_graph]]

    def operator(self, node: Node, active_graph: ActiveGraph) -> str:
        """Add the vertices of a node and everything below it; return that of the node."""
        match node:
            case Bgp((_, _, *_) as triples) if not self.is_merged:
                singles: list[Node] = [Bgp((triple,)) for triple in triples]
                return self.operator(reduce(Join, singles), active_graph)
            case Bgp() | PathMatch():
                vertex = self.shapes.add_vertex(VertexKind.PATTERN, *operator_lines(node, self.notation))
                for part in self._add_inputs(active_graph):
                    self.shapes.add_edge(part, vertex)
                return vertex
            case Unit() | Values():
                return self.shapes.add_vertex(VertexKind.PATTERN, *operator_lines(node, self.notation))
            case Graph(name, inner) | WindowGraph(name, inner) | Window(_, name, inner):
                below = self.operator(inner, active_graph_inside(self.plan, node, active_graph))
                if not isinstance(name, Variable):
                    return below
                # Each graph or window in turn: their solutions together, with the name bound.
                each = self.shapes.add_vertex(VertexKind.OPERATOR, "union", f"binds {self.notation.variable(name)}")
                self.shapes.add_edge(below, each)
                return each
            case Service(_, inner, _):
                return self.operator(inner, active_graph_inside(self.plan, node, active_graph))
        return self._add_operator(node, active_graph)

    def _add_operator(self, node: Node, active_graph: ActiveGraph) -> str:
        """Add an operator with inputs, and the filter of an AGGREGATE; returns the upper vertex."""
        below = [self.operator(child, active_graph) for child in node.children]
        labels = ["", "optional"] if isinstance(node, LeftJoin) else [""] * len(below)
        vertex = self.shapes.add_vertex(_kind_of(node), *operator_lines(node, self.notation))
        for child, label in zip(below, labels, strict=True):
            self.shapes.add_edge(child, vertex, label)
        if not isinstance(node, Aggregation):
            self._add_exists(node, vertex, active_graph)
            return vertex
        if not node.conditions:
            return vertex
        texts = [self.notation.expression(condition) for condition in node.conditions]
        tests = self.shapes.add_vertex(VertexKind.FILTER, "filter", *texts)
        self.shapes.add_edge(vertex, tests)
        self._add_exists(node, tests, active_graph)
        return tests

    def _add_exists(self, node: Node, vertex: str, active_graph: ActiveGraph) -> None:
        for expression in expressions_of(node):
            for part in sub_expressions(expression):
                if isinstance(part, ExistsPlan):
                    name = self.notation.exists[part]
                    self.shapes.add_edge(self.operator(part.plan, active_graph), vertex, name)

    def finish(self, top: str) -> None:
        """The form of the query, its streaming operator and the result."""
        plan, notation = self.plan, self.notation
        if plan.kind is QueryKind.CONSTRUCT:
            top = self._add_above(top, VertexKind.MODIFIER, "construct", *map(notation.triple, plan.template))
        elif plan.kind is QueryKind.DESCRIBE:
            top = self._add_above(top, VertexKind.MODIFIER, "describe", " ".join(map(notation.term, plan.described)))
        elif plan.kind is QueryKind.ASK:
            top = self._add_above(top, VertexKind.MODIFIER, "ask", "is there a solution?")
        if plan.stream_operator is not None:
            top = self._add_above(top, VertexKind.WINDOW, plan.stream_operator.name)
        registration = plan.registration
        feeds = registration is not None and registration.kind is RegistrationKind.STREAM
        lines = ["result stream" if feeds else "result", label_text(plan.name, notation)]
        if registration is not None and registration.every is not None:
            lines.append(f"every {duration_text(registration.every)}")
        self._add_above(top, VertexKind.RESULT, *lines)

    def _add_above(self, below: str, kind: VertexKind, *lines: str) -> str:
        vertex = self.shapes.add_vertex(kind, *lines)
        self.shapes.add_edge(below, vertex)
        return vertex


def _kind_of(node: Node) -> VertexKind:
    if isinstance(node, Filter):
        return VertexKind.FILTER
    if isinstance(node, Aggregation | Group):
        return VertexKind.AGGREGATION
    return VertexKind.MODIFIER if isinstance(node, _MODIFIERS) else VertexKind.OPERATOR
