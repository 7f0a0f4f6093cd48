"""How many triples there are: what the order of joins is chosen by.

Counts are per predicate and per place: the default graph, a named graph, a window of the query. A data set counts its
graphs when it is loaded; windows are counted while they live. What nobody counted is guessed.

>>> from headwater.terms.model import NamedNode, Quad
>>> likes, a, b, c = (NamedNode("http://example/" + name) for name in ("likes", "a", "b", "c"))
>>> counted = Statistics.of([Quad(a, likes, b), Quad(a, likes, c)])
>>> counted.graphs[None][likes]
PredicateCounts(triples=2, subjects=1, objects=2, literals=False)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol, TypeAlias

from pyoxigraph import DefaultGraph

from headwater.algebra.active_graphs import Source
from headwater.algebra.nodes import Bgp
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import nodes
from headwater.terms.model import Literal, NamedNode, Quad, Term, Variable


@dataclass(frozen=True, slots=True)
class PredicateCounts:
    """The triples of a predicate, how many different subjects and objects they have, and whether literals were seen."""

    triples: int
    subjects: int
    objects: int
    literals: bool = True

    def __add__(self, other: PredicateCounts) -> PredicateCounts:
        """Both together, as if they had nothing in common."""
        return PredicateCounts(
            self.triples + other.triples,
            self.subjects + other.subjects,
            self.objects + other.objects,
            self.literals or other.literals,
        )


class Countable(Protocol):
    """Statements in graphs, such as a pyoxigraph store."""

    def quads_for_pattern(self, subject: Any, predicate: Any, object: Any, graph_name: Any = None, /) -> Iterator[Quad]:
        """The statements that match; None stands for anything."""

    def named_graphs(self) -> Iterator[Any]:
        """The names of the graphs."""


Counts: TypeAlias = Mapping[NamedNode, PredicateCounts]
"""What one graph, or one window, holds."""

GUESS = PredicateCounts(triples=1000, subjects=100, objects=100)
"""What is assumed of a place that nobody counted."""
NOTHING = PredicateCounts(0, 0, 0, literals=False)
MOST_COUNTED = 10_000
"""So many triples of a predicate are looked at in a graph; that there are more makes no other order of joins."""
MOST_GRAPHS = 16
"""In so many named graphs triples are counted; what is in more of them is guessed."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts of the static graphs (None is the default graph) and of the windows, by number."""

    graphs: Mapping[NamedNode | None, Counts] = field(default_factory=dict)
    windows: Mapping[int, Counts] = field(default_factory=dict)

    @classmethod
    def of(cls, quads: Iterable[Quad], windows: Mapping[int, Iterable[Quad]] | None = None) -> Statistics:
        """Counts what is there. The graph names of what a window holds do not matter."""
        places: dict[NamedNode | None, list[Quad]] = {}
        for quad in quads:
            name = quad.graph_name if isinstance(quad.graph_name, NamedNode) else None
            places.setdefault(name, []).append(quad)
        held = {number: counts_of(content) for number, content in (windows or {}).items()}
        return cls({name: counts_of(content) for name, content in places.items()}, held)

    @classmethod
    def of_store(cls, store: Countable, plans: Iterable[QueryPlan]) -> Statistics:
        """Counts what patterns of some plans can match in the graphs of a store, without looking at all of it."""
        named = _named(plans)
        graphs = [graph for graph in store.named_graphs() if isinstance(graph, NamedNode)]
        places: list[NamedNode | None] = [None, *(graphs if len(graphs) <= MOST_GRAPHS else ())]
        return cls({place: _counted(store, place, named) for place in places})

    @classmethod
    def of_counts(cls, counted: Iterable[Mapping[NamedNode | None, Counts]], plans: Iterable[QueryPlan]) -> Statistics:
        """What data sets counted when they were loaded, of the predicates that some plans name."""
        named = _named(plans)
        graphs: dict[NamedNode | None, dict[NamedNode, PredicateCounts]] = {None: {}}
        for by_graph in counted:
            for graph, counts in by_graph.items():
                found = graphs.setdefault(graph, {})
                for predicate in named & counts.keys():
                    found[predicate] = found.get(predicate, NOTHING) + counts[predicate]
        return cls(graphs if len(graphs) <= MOST_GRAPHS + 1 else {None: graphs[None]})

    def counts(self, plan: QueryPlan, source: Source, predicate: NamedNode | Variable) -> PredicateCounts:
        """What a pattern with this predicate may match in its active graph."""
        places: list[Counts | None] = [self.windows.get(number) for number in source.windows]
        for graph in source.graphs:
            places += self._static(plan, graph.name, graph.clause)
        found = [GUESS if place is None else _matching(place, predicate) for place in places]
        return sum(found, NOTHING)

    def _static(self, plan: QueryPlan, name: NamedNode | Variable | None, clause: str) -> list[Counts | None]:
        if clause == "named graphs":
            return [counts for graph, counts in self.graphs.items() if graph is not None] or [None]
        if isinstance(name, Variable):
            return [None]
        return [self.graphs.get(name)]


def _named(plans: Iterable[QueryPlan]) -> set[NamedNode]:
    """The predicates that stand in patterns."""
    return {
        triple.predicate
        for plan in plans
        for node in nodes(plan.root)
        if isinstance(node, Bgp)
        for triple in node.triples
        if isinstance(triple.predicate, NamedNode)
    }


def _counted(store: Countable, graph: NamedNode | None, predicates: Iterable[NamedNode]) -> Counts:
    found: dict[NamedNode, PredicateCounts] = {}
    for predicate in predicates:
        quads = store.quads_for_pattern(None, predicate, None, graph or DefaultGraph())
        found |= counts_of(islice(quads, MOST_COUNTED))
    return found


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


def _matching(place: Counts, predicate: NamedNode | Variable) -> PredicateCounts:
    if isinstance(predicate, NamedNode):
        return place.get(predicate, NOTHING)
    return sum(place.values(), NOTHING)
