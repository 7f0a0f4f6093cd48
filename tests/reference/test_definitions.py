"""Where SPARQL's definition and what pyoxigraph does by itself part: GRAPH ?g, empty paths, BNODE(label)."""

from __future__ import annotations

import pytest
from pyoxigraph import Quad, Store

from headwater.algebra.build import plan_query
from headwater.execution.answers import Answer
from headwater.execution.registered import RegisteredQuery
from headwater.language.parser import parse
from headwater.terms.model import SECOND, Element, NamedNode, Triple
from headwater.windows.settings import Content, Options, resolve_settings
from tests.reference_programs import reference_program

STREAM = "http://example/stream"


def node(name: str) -> NamedNode:
    return NamedNode("http://example/" + name)


def answer(select: str, where: str, content: Content = Content.SET, twice: bool = False) -> Answer:
    """What a query says about :a :p :b in the stream, and about two named graphs beside it."""
    text = f"PREFIX : <http://example/> {select} FROM STREAM <{STREAM}> [RANGE 1s STEP 1s] WHERE {{ {where} }}"
    plan = plan_query(parse(text))
    static = Store()
    static.add(Quad(node("c"), node("p"), node("d"), node("g1")))
    static.add(Quad(node("e"), node("p"), node("f"), node("g2")))
    program = reference_program([RegisteredQuery(plan, resolve_settings(plan, Options(content=content)))], static)
    triple = Triple(node("a"), node("p"), node("b"))
    elements = [Element(SECOND, (triple,), position=(i,)) for i in range(2 if twice else 1)]
    (found,) = program.advance({STREAM: elements}, ended=[STREAM]).answers
    return found


def rows(select: str, where: str, **options: object) -> list[str]:
    found = answer(select, where, **options)  # type: ignore[arg-type]
    return sorted(
        " ".join(str(getattr(t, "value", "-")).removeprefix("http://example/") for t in r) for r in found.rows
    )


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("GRAPH ?g { ?x :p ?y }", ["g1 c", "g2 e", "stream a"]),
        ("GRAPH ?g { { SELECT ?x { ?x :p ?y } } }", ["g1 c", "g2 e", "stream a"]),
        ("GRAPH ?g { ?x :p ?y MINUS { ?z :p ?y } }", []),
        ("GRAPH ?g { ?x :p ?y MINUS { ?z :q ?y } }", ["g1 c", "g2 e", "stream a"]),
        ("GRAPH ?g { ?x :p ?y FILTER(!BOUND(?g)) }", ["g1 c", "g2 e", "stream a"]),
        ("GRAPH ?g { ?x :p ?y OPTIONAL { ?x :q ?g } }", ["g1 c", "g2 e", "stream a"]),
        ("GRAPH ?g { VALUES (?g ?x) { (UNDEF 1) (:g1 2) } }", ["g1 1", "g1 2", "g2 1", "stream 1"]),
        ("GRAPH ?g { VALUES ?x { :c } FILTER NOT EXISTS { ?x :p :d } }", ["g2 c", "stream c"]),
    ],
)
def test_a_graph_variable_means_one_graph_after_the_other(where: str, expected: list[str], twice: bool) -> None:
    content = Content.BAG if twice else Content.SET
    found = rows("SELECT DISTINCT ?g ?x", where, content=content, twice=twice)
    assert found == expected


def test_a_count_in_each_graph_counts_there() -> None:
    counted = "GRAPH ?g { SELECT (COUNT(*) AS ?n) { ?x :p :d } }"
    assert rows("SELECT ?g ?n", counted) == ["g1 1", "g2 0", "stream 0"]


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (":nowhere :p* ?x", ["nowhere"]),
        ("?x :p? :nowhere", ["nowhere"]),
        (":a :p* ?x", ["a", "b"]),
        (":a (:p|:q)* ?x", ["a", "b"]),
        ("?x ^(:p*) :nowhere", ["nowhere"]),
        (":nowhere (:p*)+ ?x", ["nowhere"]),
        (":nowhere (:p*|:q) ?x", ["nowhere"]),
        (":nowhere :p+ ?x", []),
        (":nowhere :p* :nowhere BIND(1 AS ?x)", ["1"]),
        (":a :p* :b BIND(1 AS ?x)", ["1"]),
        (":b :p* :a BIND(1 AS ?x)", []),
        ("GRAPH :g1 { :nowhere :p* ?x }", ["nowhere"]),
    ],
)
def test_an_empty_path_leads_to_where_it_began(where: str, expected: list[str], twice: bool) -> None:
    content = Content.BAG if twice else Content.SET
    assert rows("SELECT ?x", where, content=content, twice=twice) == expected


def test_a_label_makes_one_blank_node_in_each_solution() -> None:
    where = "{ BIND('l' AS ?l) } UNION { BIND('l' AS ?l) } UNION { BIND(1 AS ?l) }"
    found = answer("SELECT (BNODE(?l) AS ?x) (BNODE(CONCAT(?l, '')) AS ?y) (BNODE('other') AS ?z)", where).rows
    labelled = [row for row in found if row[0] is not None]
    assert len(labelled) == 2
    assert all(x == y != z for x, y, z in labelled)
    assert len({row[0] for row in labelled}) == 2


def test_a_group_concatenation_is_a_plain_string_of_any_terms() -> None:
    found = answer("SELECT (GROUP_CONCAT(?x; SEPARATOR='|') AS ?t)", "VALUES ?x { 'a'@en 1 :b }").rows
    assert sorted(str(found[0][0]).strip('"').split("|")) == ["1", "a", "http://example/b"]


def test_iri_resolves_against_the_base_of_the_query() -> None:
    text = f"BASE <http://base/x/> SELECT (IRI('../y') AS ?x) FROM STREAM <{STREAM}> [RANGE 1s STEP 1s] WHERE {{}}"
    plan = plan_query(parse(text))
    program = reference_program([RegisteredQuery(plan, resolve_settings(plan))], Store())
    elements = [Element(SECOND, (Triple(node("a"), node("p"), node("b")),))]
    (found,) = program.advance({STREAM: elements}, ended=[STREAM]).answers
    assert found.rows == ((NamedNode("http://base/y"),),)


def test_from_without_from_named_leaves_no_named_graphs() -> None:
    clauses = "SELECT ?g ?x FROM :g1"
    # After a plain FROM STREAM the graph of the stream has the static triples of the default graph, too.
    assert rows(clauses, "GRAPH ?g { ?x :p ?y }") == ["stream a", "stream c"]
    assert rows("SELECT ?x FROM :g1", "?x :p ?y") == ["a", "c"]
