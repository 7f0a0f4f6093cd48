"""The RDF dataset over which a query is evaluated at a tick, held in a pyoxigraph store.

Each window is a named graph; a window that C-SPARQL merges into the default graph is there too, and the static triples
of the default graph are then in the graph of the window. A graph that several windows feed holds a triple as long as
one of them does.

Where the query has GRAPH in the clause of a window, each named graph of the window is a named graph, too, with a name
of ours, because windows may hold graphs of one name. A graph of names has the names that they have in the stream:

    GRAPH <urn:headwater:graph:…> { :sensor1 :value 20 }
    GRAPH <urn:headwater:names> { <urn:headwater:graph:…> :name <the graph's name> }

Plain graphs do not hold how often a triple came, nor when. Where that matters (bags with equal triples, `timestamp()`)
each *occurrence* of a triple gets a graph of its own, described in a graph of occurrences:

    GRAPH <urn:headwater:occurrence:7> { :sensor1 :value 20 }
    GRAPH <urn:headwater:occurrences> { <urn:headwater:occurrence:7> :of <the window's graph> ; :time 4000 }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from pyoxigraph import DefaultGraph, Quad, Store

from headwater.algebra.plan import QueryPlan
from headwater.algebra.window_graphs import DEFAULT, INTERNAL, graph_in_window, graphs_with_static_data, window_graph
from headwater.execution.static_data import StaticData, select_statements
from headwater.reference.window_content import WindowBuffer, WindowItem
from headwater.terms.model import BlankNode, NamedNode, Triple
from headwater.terms.stored_forms import is_stored_form, to_stored_triple
from headwater.values.time_literals import time_literal
from headwater.windows.settings import Content

OCCURRENCES = NamedNode(INTERNAL + "occurrences")
OF = NamedNode(INTERNAL + "of")
TIME = NamedNode(INTERNAL + "time")
STATIC = NamedNode(INTERNAL + "static")
NAMES = NamedNode(INTERNAL + "names")
NAME = NamedNode(INTERNAL + "name")

GraphsInWindows: TypeAlias = dict[NamedNode, dict[NamedNode | BlankNode, NamedNode]]
"""By the graph of a window, the graphs in it: their names in the stream, and the names that they have in the store."""


def stream_time(stream: NamedNode) -> NamedNode:
    """The property that holds an occurrence's newest time in one stream."""
    return NamedNode(f"{INTERNAL}time:{stream.value}")


@dataclass
class TickDataset:
    """The static graphs of a query and the changing graphs of its windows."""

    plan: QueryPlan
    content: Content
    store: Store
    static_default: frozenset[Triple] = frozenset()
    named: tuple[NamedNode, ...] = ()
    """The static graphs that GRAPH can name."""
    holds_stored_forms: bool = False
    """Whether some literal is, or was, in the store in a form of its own (see `headwater.terms.stored_forms`)."""
    graphs_in_windows: GraphsInWindows = field(default_factory=dict)
    """The named graphs that have a triple in a window just now."""
    _counts: dict[NamedNode, Counter[Triple]] = field(default_factory=dict)
    _occurrence_quads: list[Quad] = field(default_factory=list)
    collapsed: dict[NamedNode, Counter[Triple]] = field(default_factory=dict)
    """For each graph how often a triple entered it while an equal one was there, in a set."""

    @classmethod
    def of(cls, plan: QueryPlan, content: Content, static: StaticData) -> TickDataset:
        """A store of the query's own, with what can matter to it of the static graphs that its FROM clauses choose."""
        store = Store()
        default = plan.default_graphs
        sources = [DefaultGraph()] if default is None else list(default)
        merged = frozenset(quad.triple for graph in sources for quad in select_statements(static, plan, graph))
        store.extend(Quad(t.subject, t.predicate, t.object) for t in merged)
        chosen = plan.named_graphs if plan.named_graphs is not None else static.named_graphs()
        named = tuple(graph for graph in chosen if isinstance(graph, NamedNode))
        for graph in named:
            store.add_graph(graph)
            store.extend(select_statements(static, plan, graph))
        keeps_static = content is Content.BAG and any(source.in_default_graph for source in plan.windows)
        if keeps_static:
            store.extend(Quad(t.subject, t.predicate, t.object, STATIC) for t in merged)
        reads_default = any(source.in_default_graph for source in plan.windows)
        inexact = any(is_stored_form(quad.object) for quad in store)
        dataset = cls(plan, content, store, merged if reads_default else frozenset(), named, inexact)
        for window_index, source in enumerate(plan.windows):
            graph = window_graph(window_index, source)
            store.add_graph(graph)
            if graph in dataset._with_static_data:
                store.extend(Quad(t.subject, t.predicate, t.object, graph) for t in merged)
        return dataset

    @cached_property
    def _with_static_data(self) -> frozenset[NamedNode]:
        return graphs_with_static_data(self.plan)

    def _is_static(self, triple: Triple, graph: NamedNode) -> bool:
        """Whether a triple is in a graph whatever the windows hold."""
        return graph in self._with_static_data and triple in self.static_default

    def graphs_of(self, window_index: int) -> list[NamedNode]:
        """Where a window's content is seen; `DEFAULT` stands for the default graph."""
        source = self.plan.windows[window_index]
        return [window_graph(window_index, source), *([DEFAULT] if source.in_default_graph else [])]

    def _placed_triples(self, window_index: int, item: WindowItem) -> Iterator[tuple[NamedNode, Triple]]:
        """Each triple of an item, as the store has to see it, in each graph where it is seen."""
        window = window_graph(window_index, self.plan.windows[window_index])
        for graph in self.graphs_of(window_index):
            yield from ((graph, self._to_stored(triple)) for triple in (*item.triples, *item.outside))
        if item.graph is not None:
            graph = graph_in_window(window, item.graph)
            yield from ((graph, self._to_stored(triple)) for triple in item.triples)

    def _note_graphs(self, window_index: int, items: Iterable[WindowItem]) -> None:
        """Enter and remove the names of graphs, according to whether they have triples now."""
        window = window_graph(window_index, self.plan.windows[window_index])
        known = self.graphs_in_windows.setdefault(window, {})
        for name in {item.graph for item in items if item.graph is not None}:
            graph = graph_in_window(window, name)
            if self._counts.get(graph):
                if name not in known:
                    known[name] = graph
                    self.store.add(Quad(graph, NAME, name, NAMES))
            elif known.pop(name, None) is not None:
                self.store.remove(Quad(graph, NAME, name, NAMES))
                self.store.remove_graph(graph)

    def change(self, window_index: int, entered: Iterable[WindowItem], left: Iterable[WindowItem]) -> bool:
        """Apply what entered and left a window; true where its content, as set or bag, is another one now."""
        came, went = list(entered), list(left)
        delta = Counter(placed for item in came for placed in self._placed_triples(window_index, item))
        delta.subtract(placed for item in went for placed in self._placed_triples(window_index, item))
        changed = False
        for (graph, triple), difference in delta.items():
            if not difference:
                continue
            counts = self._counts.setdefault(graph, Counter())
            before = counts[triple]
            after = counts[triple] = before + difference
            if after == 0:
                del counts[triple]
            if self.content is Content.BAG or (before == 0) != (after == 0):
                changed = True
            if before == 0:
                self.store.add(self._quad(triple, graph))
            elif after == 0 and not self._is_static(triple, graph):
                self.store.remove(self._quad(triple, graph))
        self._note_graphs(window_index, [*came, *went])
        return changed

    def count_collapsed(self, moves: Sequence[tuple[Sequence[WindowItem], Sequence[WindowItem]]]) -> None:
        """Before a change: count the triples that will enter the windows while an equal one stays, or with one."""
        entering: dict[NamedNode, Counter[Triple]] = {}
        leaving: dict[NamedNode, Counter[Triple]] = {}
        for window_index, (entered, left) in enumerate(moves):
            for items, counts in ((entered, entering), (left, leaving)):
                for graph, triple in (one for item in items for one in self._placed_triples(window_index, item)):
                    counts.setdefault(graph, Counter())[triple] += 1
        for graph, copies in entering.items():
            there, counted = self._counts.get(graph, Counter()), self.collapsed.setdefault(graph, Counter())
            for triple, count in copies.items():
                stays = there[triple] > leaving.get(graph, Counter())[triple] or self._is_static(triple, graph)
                counted[triple] += count if stays else count - 1

    def _to_stored(self, triple: Triple) -> Triple:
        """A triple as the store has to see it."""
        kept = to_stored_triple(triple)
        self.holds_stored_forms |= kept is not triple
        return kept

    def _quad(self, triple: Triple, graph: NamedNode) -> Quad:
        where = DefaultGraph() if graph == DEFAULT else graph
        return Quad(triple.subject, triple.predicate, triple.object, where)

    @property
    def has_duplicates(self) -> bool:
        """Whether a bag differs from the set of its triples just now."""
        if self.content is Content.SET:
            return False
        return any(
            count > 1 or self._is_static(triple, graph)
            for graph, counts in self._counts.items()
            for triple, count in counts.items()
        )

    def describe_occurrences(self, buffers: list[WindowBuffer]) -> None:
        """Write every occurrence in view, with its time, in place of those of the tick before."""
        for quad in self._occurrence_quads:
            self.store.remove(quad)
        self._occurrence_quads = list(self._make_occurrence_quads(buffers))
        self.store.extend(self._occurrence_quads)

    def _make_occurrence_quads(self, buffers: list[WindowBuffer]) -> Iterable[Quad]:
        """Each triple in a graph of its own, with quads for its window graph and its times."""
        times_by_occurrence: dict[tuple[NamedNode, Triple, tuple[int, ...]], list[tuple[int, NamedNode]]] = {}
        for window_index, buffer in enumerate(buffers):
            stream = self.plan.windows[window_index].stream
            for index, item in enumerate(buffer.shown):
                for place, (graph, triple) in enumerate(self._placed_triples(window_index, item)):
                    # In a set one occurrence stands for all; in a bag each stands for itself.
                    one: tuple[int, ...] = () if self.content is Content.SET else (window_index, index, place)
                    times_by_occurrence.setdefault((graph, triple, one), []).append((item.time, stream))
        for serial, ((graph, triple, _), times) in enumerate(times_by_occurrence.items()):
            occurrence = NamedNode(f"{INTERNAL}occurrence:{serial}")
            yield Quad(triple.subject, triple.predicate, triple.object, occurrence)
            yield Quad(occurrence, OF, graph, OCCURRENCES)
            yield Quad(occurrence, TIME, time_literal(max(time for time, _ in times)), OCCURRENCES)
            for stream in {stream for _, stream in times}:
                newest = max(time for time, its in times if its == stream)
                yield Quad(occurrence, stream_time(stream), time_literal(newest), OCCURRENCES)
