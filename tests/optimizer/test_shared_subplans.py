"""Which parts of plans are the same, whatever their variables are called and whichever query they stand in."""

from __future__ import annotations

from headwater.algebra.build import plan_query
from headwater.algebra.nodes import Bgp, Filter, Join
from headwater.algebra.plan import QueryPlan
from headwater.language.parser import parse
from headwater.optimizer.shared_subplans import SharedSubplan, shared_subplans
from headwater.terms.model import Variable

PREFIX = "PREFIX : <http://example/> "


def plan(
    where: str, windows: str = "FROM NAMED WINDOW :w0 ON :s0 [RANGE 10s TUMBLING]", select: str = "*"
) -> QueryPlan:
    return plan_query(parse(f"{PREFIX}SELECT {select} {windows} WHERE {{ {where} }}"))


def places(found: SharedSubplan) -> list[tuple[int, tuple[str, ...]]]:
    return [(place.plan, tuple(v.value for v in place.columns)) for place in found.occurrences]


def test_the_same_pattern_in_two_queries_under_other_names() -> None:
    one = plan("WINDOW :w0 { ?a :p ?b FILTER(?b > 1) } ?a :q ?c", select="?a ?c")
    other = plan("WINDOW :w0 { ?x :p ?y FILTER(?y > 1) } ?z :r ?x", select="?z")
    (found,) = shared_subplans([one, other])
    assert places(found) == [(0, ("a", "b")), (1, ("x", "y"))]
    assert isinstance(found.occurrences[0].node.children[0], Filter)


def test_a_window_is_what_it_says_not_its_number() -> None:
    first = "FROM NAMED WINDOW :w0 ON :s0 [RANGE 10s TUMBLING] FROM NAMED WINDOW :w1 ON :s1 [RANGE 5s TUMBLING]"
    second = "FROM NAMED WINDOW :w1 ON :s1 [RANGE 5s TUMBLING] FROM NAMED WINDOW :w0 ON :s0 [RANGE 10s TUMBLING]"
    same = shared_subplans(
        [plan("WINDOW :w0 { ?x :p ?v }", first, "?x"), plan("WINDOW :w0 { ?x :p ?v }", second, "?v")]
    )
    assert [places(found) for found in same] == [[(0, ("x", "v")), (1, ("x", "v"))]]
    assert not shared_subplans([plan("WINDOW :w0 { ?x :p ?v }", first), plan("WINDOW :w1 { ?x :p ?v }", first)])


def test_another_dataset_is_another_meaning() -> None:
    loaded, chosen = plan("?x :p ?v", ""), plan("?x :p ?v", "FROM :g1")
    assert not shared_subplans([loaded, chosen])
    assert shared_subplans([loaded, plan("?x :p ?v", "")])


def test_other_settings_keep_apart() -> None:
    twice = [plan("WINDOW :w0 { ?x :p ?v }"), plan("WINDOW :w0 { ?x :p ?v }")]
    assert shared_subplans(twice, ["set", "set"])
    assert not shared_subplans(twice, ["set", "bag"])


def test_variables_that_meet_elsewhere_are_not_the_same() -> None:
    assert not shared_subplans([plan("?x :p ?x", select="?x"), plan("?x :p ?y", select="?x")])


def test_only_the_largest_part_is_named() -> None:
    one = plan("{ ?x :p ?v OPTIONAL { ?x :q ?w } } UNION { ?y :p ?v OPTIONAL { ?y :q ?w } }")
    (found,) = shared_subplans([one])
    assert places(found) == [(0, ("x", "v", "w")), (0, ("y", "v", "w"))]


def test_a_part_that_also_stands_alone_is_named_too() -> None:
    one = plan(
        "{ ?x :p ?v MINUS { ?x :q 1 } } UNION { ?y :p ?v MINUS { ?y :q 1 } } UNION { ?z :p ?v OPTIONAL { ?z :q 2 } }"
    )
    whole, pattern = sorted(shared_subplans([one]), key=lambda found: len(found.occurrences))
    assert len(whole.occurrences) == 2
    assert [type(place.node) for place in pattern.occurrences] == [Bgp, Bgp, Bgp]


def test_chance_is_not_shared() -> None:
    assert not shared_subplans([plan("BIND(RAND() AS ?r)"), plan("BIND(RAND() AS ?r)")])
    one = plan("?x :p ?v FILTER(RAND() < 0.5)")
    assert [type(found.occurrences[0].node) for found in shared_subplans([one, one])] == [Bgp]


def test_service_is_left_alone() -> None:
    one = plan("SERVICE <http://end/point> { ?x :p ?v } ?x :q ?w", "")
    (found,) = shared_subplans([one, one])
    assert found.occurrences[0].node == Bgp((next(t for t in _triples(one) if t.object == Variable("w")),))


def _triples(given: QueryPlan):
    root = given.root
    assert isinstance(root.children[0], Join)
    return root.children[0].right.triples  # type: ignore[attr-defined]
