"""The solutions of each node of a plan at one tick, and the triples that its patterns can match.

Every node is evaluated by the reference as a query of its own, in the graph that is active at it. So what FILTER, BIND
and GROUP BY mean is decided in one place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias, cast

from pyoxigraph import DefaultGraph, Store

from headwater.algebra.nodes import Extend, Graph, GraphName, Node, Project, Window
from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.algebra.scope import visible_variables
from headwater.algebra.window_graphs import DEFAULT, graphs_with_static_data, window_graph, windows_of
from headwater.errors import SettingError
from headwater.execution.remote_solutions import has_services
from headwater.execution.static_data import StaticData, select_statements
from headwater.language.expressions import Constant
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.reference.tick_dataset import TickDataset
from headwater.reference.window_content import WindowBuffer, WindowItem
from headwater.terms.model import BlankNode, Literal, NamedNode, Row, Term, Triple, Variable
from headwater.terms.stored_forms import restore_term
from headwater.windows.settings import QuerySettings

Solution: TypeAlias = frozenset[tuple[Variable, Term]]
"""A solution mapping: the variables that are bound, with their values."""


class Leaf(NamedTuple):
    """A triple that a pattern matched, and the graph in which (`algebra.window_graphs`)."""

    graph: NamedNode
    triple: Triple


class FoundElement(NamedTuple):
    """An item of a window: its window, its time and its place in the stream."""

    window: int
    time: int
    position: tuple[int, ...]


class StaticTriple(NamedTuple):
    """A triple of the static data; `graph` is None for the default graph."""

    graph: NamedNode | None
    triple: Triple


@dataclass
class TickSolutions:
    """The solutions of nodes at one tick, each found when it is first asked for."""

    plan: QueryPlan
    settings: QuerySettings
    static: StaticData
    dataset: TickDataset
    buffers: list[WindowBuffer]
    tick: int

    def __post_init__(self) -> None:
        if has_services(self.plan.root):
            raise SettingError("an answer that rests on SERVICE cannot be explained: what the endpoint said is gone")
        self._known: dict[tuple[Node, NamedNode], tuple[int, frozenset[Solution]]] = {}
        self._static_triples: dict[NamedNode, frozenset[Triple]] = {}
        self._placed: dict[tuple[int, NamedNode | BlankNode | None], dict[Triple, list[WindowItem]]] = {}

    def count(self, node: Node, graph: NamedNode) -> int:
        """How many solutions a node has, as a bag."""
        return self._evaluate(node, graph)[0]

    def solutions(self, node: Node, graph: NamedNode) -> frozenset[Solution]:
        """The different solutions of a node in a graph."""
        return self._evaluate(node, graph)[1]

    def _evaluate(self, node: Node, graph: NamedNode) -> tuple[int, frozenset[Solution]]:
        known = self._known.get((node, graph))
        if known is None:
            shown = visible_variables(node)
            rows = self._rows(self._place(node, graph), shown)
            different = {frozenset((v, t) for v, t in zip(shown, row, strict=False) if t is not None) for row in rows}
            known = self._known[node, graph] = len(rows), frozenset(different)
        return known

    def rows(self) -> list[Row]:
        """The rows of the result, in the order in which an answer has them; none where a query shows no variable."""
        if not self.plan.variables:
            return []
        plan = replace(self.plan, kind=QueryKind.SELECT)
        evaluator = ReferenceEvaluator(plan, self.settings, Store(), self.dataset)
        return cast("list[Row]", evaluator.evaluate_beside(self.buffers, self.tick))

    def _place(self, node: Node, graph: NamedNode) -> Node:
        """The node with its active graph written around it."""
        if graph == DEFAULT:
            return node
        for number, source in enumerate(self.plan.windows):
            if source.graph is None and window_graph(number, source) == graph:
                return Window((number,), None, node)
        return Graph(graph, node)

    def _rows(self, node: Node, shown: tuple[Variable, ...]) -> list[Row]:
        if not shown:
            # A query must show something.
            shown = (Variable("hw_there"),)
            node = Extend(node, shown[0], Constant(Literal(1)))
            return [()] * len(self._rows(node, shown))
        root = Project(node, shown)
        plan = replace(self.plan, root=root, variables=shown, kind=QueryKind.SELECT)
        evaluator = ReferenceEvaluator(plan, self.settings, Store(), self.dataset)
        return cast("list[Row]", evaluator.evaluate_beside(self.buffers, self.tick))

    def graphs_in_window(self, window: NamedNode, name: GraphName) -> dict[NamedNode | BlankNode, NamedNode]:
        """The graphs that GRAPH ranges over in the clause of a window: their names, and the graphs that hold them.

        `window` is the active graph: that of the window, or of one of its graphs.
        """
        known = self.dataset.graphs_in_windows
        graphs = known.get(window) or next((found for found in known.values() if window in found.values()), {})
        if isinstance(name, Variable):
            return dict(graphs)
        return {name: graphs[name]} if name in graphs else {}

    def _place_in_window(self, graph: NamedNode) -> tuple[NamedNode, NamedNode | BlankNode | None]:
        """The window of a graph that holds one graph of a window, with its name; other graphs without a name."""
        for window, graphs in self.dataset.graphs_in_windows.items():
            for name, held in graphs.items():
                if held == graph:
                    return window, name
        return graph, None

    def static_triples(self, graph: NamedNode) -> frozenset[Triple]:
        """The static triples that patterns in a graph can match."""
        if graph not in self._static_triples:
            chosen: list[NamedNode | DefaultGraph] = []
            if graph == DEFAULT or graph in graphs_with_static_data(self.plan):
                default = self.plan.default_graphs
                chosen = [DefaultGraph()] if default is None else list(default)
            elif graph in self.dataset.named:
                chosen = [graph]
            statements = (quad for one in chosen for quad in select_statements(self.static, self.plan, one))
            self._static_triples[graph] = frozenset(
                Triple(quad.subject, quad.predicate, restore_term(quad.object)) for quad in statements
            )
        return self._static_triples[graph]

    def _items(self, graph: NamedNode) -> Iterator[tuple[int, Mapping[Triple, list[WindowItem]]]]:
        """By window, the triples that a graph has of it, with their items."""
        place, name = self._place_in_window(graph)
        for window in windows_of(self.plan, place):
            if (window, name) not in self._placed:
                found = self._placed[window, name] = {}
                for item in self.buffers[window].shown:
                    triples = (*item.triples, *item.outside) if name is None else item.triples
                    for triple in dict.fromkeys(triples if name in (None, item.graph) else ()):
                        found.setdefault(triple, []).append(item)
            yield window, self._placed[window, name]

    def triples(self, graph: NamedNode) -> Iterator[Triple]:
        """All triples that patterns in a graph can match."""
        yield from self.static_triples(graph)
        for _, placed in self._items(graph):
            yield from placed

    def trace(self, leaf: Leaf) -> Iterator[FoundElement | StaticTriple]:
        """Where a triple came from: every element of the windows of its graph that has it, and the static data."""
        for window, placed in self._items(leaf.graph):
            for item in placed.get(leaf.triple, ()):
                yield FoundElement(window, item.time, item.position)
        if leaf.triple in self.static_triples(leaf.graph):
            is_default = leaf.graph == DEFAULT or leaf.graph in graphs_with_static_data(self.plan)
            yield StaticTriple(None if is_default else leaf.graph, leaf.triple)
