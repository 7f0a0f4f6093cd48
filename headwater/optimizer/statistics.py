"""Counts of triples, by which the order of joins is chosen.

Counts are per predicate and graph: the default graph, a named graph, a window of the query. A data set counts its
graphs when it is loaded; windows are counted while they are read. Defaults stand in for what was not counted.

>>> from headwater.terms.model import NamedNode, Quad
>>> likes, a, b, c = (NamedNode("http://example/" + name) for name in ("likes", "a", "b", "c"))
>>> counted = Statistics.of([Quad(a, likes, b), Quad(a, likes, c)])
>>> counted.graphs[None][likes]
PredicateCounts(triples=2, subjects=1, objects=2, has_literals=False)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from headwater.algebra.active_graphs import ActiveGraph
from headwater.algebra.nodes import Bgp
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import nodes_of
from headwater.errors import warn_old_name
from headwater.terms.model import Literal, NamedNode, Quad, Term, Variable


@dataclass(frozen=True, slots=True)
class PredicateCounts:
    """Numbers of triples, distinct subjects and distinct objects of a predicate, and whether literals occur."""

    triples: int
    subjects: int
    objects: int
    has_literals: bool = True

    def __add__(self, other: PredicateCounts) -> PredicateCounts:
        """The sum, as if both were disjoint."""
        return PredicateCounts(
            self.triples + other.triples,
            self.subjects + other.subjects,
            self.objects + other.objects,
            self.has_literals or other.has_literals,
        )

    @property
    def literals(self) -> bool:
        """Deprecated: `has_literals`."""
        warn_old_name("PredicateCounts.literals", "has_literals")
        return self.has_literals


Counts: TypeAlias = Mapping[NamedNode, PredicateCounts]
"""The counts of one graph or one window."""

DEFAULT_COUNTS = PredicateCounts(triples=1000, subjects=100, objects=100)
"""What is assumed of a graph that was not counted."""
NO_COUNTS = PredicateCounts(0, 0, 0, has_literals=False)
MAX_COUNTED_GRAPHS = 16
"""With more named graphs than this only the default graph is counted."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts of the static graphs (None is the default graph) and of the windows, by window index."""

    graphs: Mapping[NamedNode | None, Counts] = field(default_factory=dict)
    windows: Mapping[int, Counts] = field(default_factory=dict)

    @classmethod
    def of(cls, quads: Iterable[Quad], windows: Mapping[int, Iterable[Quad]] | None = None) -> Statistics:
        """Count quads by graph, and the content of windows whatever its graph names."""
        places: dict[NamedNode | None, list[Quad]] = {}
        for quad in quads:
            name = quad.graph_name if isinstance(quad.graph_name, NamedNode) else None
            places.setdefault(name, []).append(quad)
        held = {window: counts_of(content) for window, content in (windows or {}).items()}
        return cls({name: counts_of(content) for name, content in places.items()}, held)

    @classmethod
    def of_counts(cls, counted: Iterable[Mapping[NamedNode | None, Counts]], plans: Iterable[QueryPlan]) -> Statistics:
        """The counts of data sets, restricted to the predicates of some plans."""
        named = _predicates_of(plans)
        graphs: dict[NamedNode | None, dict[NamedNode, PredicateCounts]] = {None: {}}
        for by_graph in counted:
            for graph, counts in by_graph.items():
                counts_in_graph = graphs.setdefault(graph, {})
                for predicate in named & counts.keys():
                    counts_in_graph[predicate] = counts_in_graph.get(predicate, NO_COUNTS) + counts[predicate]
        return cls(graphs if len(graphs) <= MAX_COUNTED_GRAPHS + 1 else {None: graphs[None]})

    def counts(self, plan: QueryPlan, active_graph: ActiveGraph, predicate: NamedNode | Variable) -> PredicateCounts:
        """The counts of a predicate in the active graph of a pattern."""
        places: list[Counts | None] = [self.windows.get(window) for window in active_graph.windows]
        for graph in active_graph.static_graphs:
            places += self._static(plan, graph.name, graph.clause)
        counts = [DEFAULT_COUNTS if place is None else _counts_of_predicate(place, predicate) for place in places]
        return sum(counts, NO_COUNTS)

    def _static(self, plan: QueryPlan, name: NamedNode | Variable | None, clause: str) -> list[Counts | None]:
        if clause == "named graphs":
            return [counts for graph, counts in self.graphs.items() if graph is not None] or [None]
        if isinstance(name, Variable):
            return [None]
        return [self.graphs.get(name)]


def _predicates_of(plans: Iterable[QueryPlan]) -> set[NamedNode]:
    """The predicates in the patterns of some plans."""
    return {
        triple.predicate
        for plan in plans
        for node in nodes_of(plan.root)
        if isinstance(node, Bgp)
        for triple in node.triples
        if isinstance(triple.predicate, NamedNode)
    }


def counts_of(quads: Iterable[Quad]) -> dict[NamedNode, PredicateCounts]:
    """The counts of some triples, whatever their graphs."""
    seen: dict[NamedNode, tuple[set[tuple[Term, Term]], set[Term], set[Term]]] = {}
    for quad in quads:
        pairs, subjects, objects = seen.setdefault(quad.predicate, (set(), set(), set()))
        pairs.add((quad.subject, quad.object))
        subjects.add(quad.subject)
        objects.add(quad.object)
    return {
        p: PredicateCounts(len(pairs), len(ss), len(os), any(isinstance(o, Literal) for o in os))
        for p, (pairs, ss, os) in seen.items()
    }


def _counts_of_predicate(place: Counts, predicate: NamedNode | Variable) -> PredicateCounts:
    if isinstance(predicate, NamedNode):
        return place.get(predicate, NO_COUNTS)
    return sum(place.values(), NO_COUNTS)
