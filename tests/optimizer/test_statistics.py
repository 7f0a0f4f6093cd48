"""Counts per predicate and place, and the order of joins that follows from them."""

from __future__ import annotations

from pyoxigraph import Quad

from headwater.algebra.active_graphs import ActiveGraph, StaticGraph, default_active_graph
from headwater.algebra.build import plan_query
from headwater.algebra.nodes import Bgp
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import nodes_of
from headwater.language.parser import parse
from headwater.optimizer.optimise import optimise
from headwater.optimizer.statistics import DEFAULT_COUNTS, PredicateCounts, Statistics
from headwater.terms.model import Literal, NamedNode

EX = "http://example/"


def node(name: str) -> NamedNode:
    return NamedNode(EX + name)


def quads(predicate: str, pairs: str, graph: str | None = None) -> list[Quad]:
    made = [(node(s), node(predicate), node(o)) for s, o in (pair for pair in map(tuple, pairs.split()))]
    return [Quad(*triple, node(graph)) if graph else Quad(*triple) for triple in made]


COUNTED = Statistics.of(
    [*quads("p", "ab ac ab bc"), *quads("q", "ab"), *quads("p", "aa ab", "g1")], {0: quads("p", "ab")}
)


def plan(where: str) -> QueryPlan:
    windows = "FROM NAMED WINDOW :w0 ON :s0 [RANGE 10s TUMBLING]"
    return plan_query(parse(f"PREFIX : <{EX}> SELECT * {windows} WHERE {{ {where} }}"))


def test_triples_subjects_and_objects_are_counted_once() -> None:
    assert COUNTED.graphs[None] == {
        node("p"): PredicateCounts(3, 2, 2, has_literals=False),
        node("q"): PredicateCounts(1, 1, 1, has_literals=False),
    }
    assert COUNTED.graphs[node("g1")][node("p")].triples == 2
    assert COUNTED.windows[0][node("p")].triples == 1


def test_it_is_told_where_objects_are_literals() -> None:
    named = [Quad(node("a"), node("name"), Literal("Ann")), *quads("p", "ab")]
    counted = Statistics.of(named).graphs[None]
    assert counted[node("name")].has_literals and not counted[node("p")].has_literals
    assert (counted[node("name")] + counted[node("p")]).has_literals


def test_each_place_has_its_own_counts() -> None:
    some = plan("?x :p ?v")
    default = default_active_graph(some)
    assert COUNTED.counts(some, default, node("p")).triples == 3
    assert COUNTED.counts(some, default, node("absent")).triples == 0
    assert COUNTED.counts(some, ActiveGraph((0,)), node("p")).triples == 1
    assert COUNTED.counts(some, ActiveGraph((1,)), node("p")) == DEFAULT_COUNTS
    assert COUNTED.counts(some, ActiveGraph((), (StaticGraph("GRAPH", node("g1")),)), node("p")).triples == 2
    assert COUNTED.counts(some, ActiveGraph((0,), default.static_graphs), node("p")).triples == 4


def order(where: str, statistics: Statistics | None) -> list[str]:
    """The predicates in the order of the patterns."""
    found = [n for n in nodes_of(optimise(plan(where), statistics).plan.root) if isinstance(n, Bgp)]
    return [
        t.predicate.value.removeprefix(EX) for bgp in found for t in bgp.triples if isinstance(t.predicate, NamedNode)
    ]


def test_without_statistics_the_order_stays() -> None:
    assert order("?x :p ?v . ?x :q ?w", None) == ["p", "q"]
    assert order("?x :p ?v . ?x :q ?w", COUNTED) == ["q", "p"]


def test_ordering_again_changes_nothing() -> None:
    once = optimise(plan("?x :p ?v . ?v :p ?w . ?x :q ?w . ?y :p ?y"), COUNTED).plan
    assert optimise(once, COUNTED).plan == once


def test_an_endpoint_keeps_its_place() -> None:
    """What it is asked about stands before it; what it is sent is not ours to order."""
    assert order("?x :p ?v SERVICE <http://end/point> { ?v :r ?w } ?x :q ?w", COUNTED)[-1] == "r"
    assert order("?x :p ?v SERVICE <http://end/point> { ?w :r ?v . ?v :q ?w }", COUNTED) == ["p", "r", "q"]
