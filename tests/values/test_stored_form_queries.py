"""Terms are answered as they were written and compared by value where SPARQL compares values."""

from __future__ import annotations

import pytest
from pyoxigraph import Quad, Store

from headwater.algebra.build import plan_query
from headwater.execution.registered import RegisteredQuery
from headwater.language.parser import parse
from headwater.terms.model import SECOND, XSD, Element, Literal, NamedNode, Triple
from headwater.terms.stored_forms import to_stored_quad
from headwater.windows.settings import Content, Options, resolve_settings
from tests.reference_programs import reference_program

STREAM = "http://example/stream"
P = NamedNode("http://example/p")


def number(text: str, datatype: str = "integer") -> Literal:
    return Literal(text, datatype=NamedNode(XSD + datatype))


def fact(subject: str, value: Literal) -> Triple:
    return Triple(NamedNode("http://example/" + subject), P, value)


ELEMENTS = [
    Element(1 * SECOND, (fact("a", number("01")),)),
    Element(2 * SECOND, (fact("b", number("1")), fact("a", number("1")))),
    Element(3 * SECOND, (fact("c", number("+2", "byte")), fact("d", number("2.50", "decimal")))),
]


def answers(
    select: str, where: str, width: int = 10, content: Content = Content.SET, static: Store | None = None
) -> list[list[str]]:
    text = (
        f"PREFIX : <http://example/> PREFIX xsd: <{XSD}> {select} "
        f"FROM STREAM <{STREAM}> [RANGE {width}s STEP 1s] WHERE {{ {where} }}"
    )
    plan = plan_query(parse(text))
    program = reference_program(
        [RegisteredQuery(plan, resolve_settings(plan, Options(content=content)))], static or Store()
    )
    found = program.advance({STREAM: ELEMENTS}, ended=[STREAM]).answers
    return [sorted(" ".join(shown(term) for term in row) for row in answer.rows) for answer in found]


def shown(term: object) -> str:
    if isinstance(term, Literal):
        return f"{term.value}^{term.datatype.value.removeprefix(XSD)}"
    return "-" if term is None else getattr(term, "value", str(term)).removeprefix("http://example/")


@pytest.mark.parametrize("content", list(Content))
def test_terms_come_out_as_they_went_in(content: Content) -> None:
    at_three = answers("SELECT ?x ?v", "?x :p ?v", content=content)[2]
    assert at_three == ["a 01^integer", "a 1^integer", "b 1^integer", "c +2^byte", "d 2.50^decimal"]


def test_one_way_to_write_a_number_leaves_without_the_other() -> None:
    assert answers("SELECT ?v", ":a :p ?v", width=1)[:3] == [["01^integer"], ["1^integer"], []]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("?x :p ?v FILTER(?v = 1)", ["a", "a", "b"]),
        ("?x :p ?v FILTER(?v > 1)", ["c", "d"]),
        ("?x :p ?v FILTER(?v + 1 = 3)", ["c"]),
        ("?x :p ?v FILTER(?v IN (2, 2.5))", ["c", "d"]),
        ("?x :p ?v FILTER(STR(?v) = '01')", ["a"]),
        ("?x :p ?v FILTER(DATATYPE(?v) = xsd:byte)", ["c"]),
        ("?x :p ?v FILTER(sameTerm(?v, 01))", ["a"]),
        ("?x :p ?v FILTER(isNumeric(?v))", ["a", "a", "b", "c", "d"]),
        ("?x :p 01", ["a"]),
        ("?x :p ?v VALUES ?v { 1 2.50 }", ["a", "b", "d"]),
        ("?x :p ?v . ?y :p ?v FILTER(?x != ?y)", ["a", "b"]),
        ("?x :p ?v FILTER EXISTS { ?y :p ?w FILTER(?w - 1 = ?v) }", ["a", "a", "b"]),
        ("?x :p ?v FILTER(IF(?v = 1, true, false))", ["a", "a", "b"]),
        ("?x :p ?v OPTIONAL { ?x :p ?w FILTER(?w < ?v) } FILTER(!BOUND(?w) && ?v > 2)", ["d"]),
    ],
)
def test_conditions_see_terms_or_values_as_sparql_says(where: str, expected: list[str]) -> None:
    assert answers("SELECT ?x", where)[2] == expected


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        ("SELECT (COUNT(DISTINCT ?v) AS ?n)", ["4^integer"]),
        ("SELECT (SUM(?v) AS ?n)", ["7.5^decimal"]),
        ("SELECT DISTINCT ?v", ["+2^byte", "01^integer", "1^integer", "2.50^decimal"]),
        ("SELECT (?v * 2 AS ?w)", ["2^integer", "2^integer", "2^integer", "4^integer", "5^decimal"]),
        ("SELECT (COALESCE(?v, 0) AS ?w)", ["+2^byte", "01^integer", "1^integer", "1^integer", "2.50^decimal"]),
    ],
)
def test_what_is_computed_is_computed_from_values(select: str, expected: list[str]) -> None:
    assert answers(select, "?x :p ?v")[2] == expected


def test_a_static_graph_keeps_its_terms_too() -> None:
    static = Store()
    static.add(to_stored_quad(Quad(NamedNode("http://example/s"), NamedNode("http://example/q"), number("01"))))
    assert answers("SELECT ?x ?v", "?x :p ?v . :s :q ?v", static=static)[2] == ["a 01^integer"]
    assert answers("SELECT ?v", ":s :q ?v FILTER(?v = 1)", static=static)[2] == ["01^integer"]


def test_a_literal_that_only_the_query_writes_is_answered_as_written() -> None:
    assert answers("SELECT ?x", "BIND(007 AS ?x)")[0] == ["007^integer"]
