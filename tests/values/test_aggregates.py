"""Aggregates are functions of the multiset: pyoxigraph's where it has one answer, and the same for every order."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Quad, QuerySolutions, Store

from headwater.algebra.build import plan_query
from headwater.execution.registered import RegisteredQuery
from headwater.language.parser import parse
from headwater.terms.model import SECOND, XSD, BlankNode, Element, Literal, NamedNode, Term, Triple
from headwater.values.aggregates import aggregate
from headwater.values.numeric import as_single
from headwater.windows.settings import Options, resolve_settings
from tests.reference_programs import reference_program

STREAM = "http://example/stream"
P = NamedNode("http://example/p")
FUNCTIONS = ("SUM", "AVG", "MIN", "MAX", "COUNT")


def typed(text: str, datatype: str = "integer") -> Literal:
    return Literal(text, datatype=NamedNode(XSD + datatype))


def shown(term: Term | None) -> str:
    if term is None:
        return "-"
    return f"{term.value}^{term.datatype.value.removeprefix(XSD)}" if isinstance(term, Literal) else str(term)


def by_pyoxigraph(function: str, values: list[Literal | None], distinct: bool) -> Term | None:
    listed = " ".join("UNDEF" if value is None else str(value) for value in values)
    called = f"{function}({'DISTINCT ' if distinct else ''}?x)"
    found = Store().query(f"SELECT ({called} AS ?r) WHERE {{ VALUES ?x {{ {listed} }} }}")
    assert isinstance(found, QuerySolutions)
    term: Term | None = next(iter(found))[0]
    return term


integers = st.integers(-(10**9), 10**9).map(lambda n: typed(str(n)))
decimals = st.integers(-(10**9), 10**9).map(lambda n: typed(f"{n // 4}.{25 * (n % 4) or 5}", "decimal"))
doubles = st.integers(-(10**9), 10**9).map(lambda n: typed(repr(n / 4).removesuffix(".0"), "double"))
singles = st.integers(-(10**4), 10**4).map(lambda n: typed(repr(n / 4).removesuffix(".0"), "float"))
bad = st.sampled_from([None, Literal("a"), typed("x"), typed("true", "boolean"), typed("9223372036854775808")])


@settings(max_examples=200, deadline=None)
@given(
    st.one_of(
        st.lists(st.one_of(integers, decimals, doubles), max_size=8),
        st.lists(st.one_of(integers, decimals), max_size=8),
        st.lists(integers, max_size=8),
        st.lists(singles, max_size=8),
    ),
    st.lists(bad, max_size=1),
    st.sampled_from(FUNCTIONS),
    st.booleans(),
)
def test_where_nothing_is_rounded_pyoxigraph_says_the_same(
    values: list[Literal], errors: list[Literal | None], function: str, distinct: bool
) -> None:
    if errors and function in ("MIN", "MAX") and errors != [None]:
        errors = []
    everything: list[Literal | None] = [*values, *errors]
    mine = aggregate(function, Counter(everything), distinct=distinct)
    theirs = by_pyoxigraph(function, everything, distinct)
    if function in ("MIN", "MAX") and mine != theirs:
        assert isinstance(mine, Literal) and isinstance(theirs, Literal)
        assert Fraction(mine.value) == Fraction(theirs.value), "only the choice between equal values may differ"
        return
    assert shown(mine) == shown(theirs)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=20))
def test_doubles_sum_to_what_fsum_gives(values: list[float]) -> None:
    terms: Counter[Term | None] = Counter(typed(repr(x), "double") for x in values)
    total, mean = aggregate("SUM", terms), aggregate("AVG", terms)
    assert isinstance(total, Literal) and isinstance(mean, Literal)
    assert float(total.value) == math.fsum(values)
    assert float(mean.value) == math.fsum(values) / len(values)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.integers(-3, 3))
def test_rounding_to_single_precision_happens_once(single: float, eighths: int) -> None:
    exact = Fraction(single) + Fraction(eighths, 8) * Fraction(1, 2**150)
    assert as_single(exact) == single


def test_just_above_the_middle_between_two_singles() -> None:
    middle = Fraction(1) + Fraction(1, 2**24)
    assert as_single(middle) == 1.0
    assert as_single(middle + Fraction(1, 2**80)) == 1 + 2.0**-23
    assert as_single(middle - Fraction(1, 2**80)) == 1.0


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        ("SUM", [], "0^integer"),
        ("AVG", [], "0^integer"),
        ("MIN", [], "-"),
        ("SAMPLE", [], "-"),
        ("GROUP_CONCAT", [], "^string"),
        ("SUM", [typed("1"), None], "-"),
        ("SAMPLE", [typed("1"), None], "1^integer"),
        ("SAMPLE", [None], "-"),
        ("GROUP_CONCAT", [typed("1"), None], "-"),
        ("GROUP_CONCAT", [BlankNode("b")], "-"),
        (
            "GROUP_CONCAT",
            [Literal("b", language="en"), NamedNode("a:a"), typed("10"), typed("10")],
            "10 10 a:a b^string",
        ),
        ("SUM", [typed("9223372036854775807"), typed("1")], "-"),
        ("SUM", [typed("9223372036854775807"), typed("1"), typed("-1")], "9223372036854775807^integer"),
        ("AVG", [typed("-2"), typed("0"), typed("0")], "-0.666666666666666666^decimal"),
        ("SUM", [typed(t, "double") for t in ("1e308", "1e308", "-1e308")], f"1{'0' * 308}^double"),
        ("SUM", [typed("1e308", "double"), typed("1.0e308", "double")], "INF^double"),
        ("SUM", [typed("INF", "double"), typed("-INF", "float")], "NaN^double"),
        ("SUM", [typed("0.1", "float"), typed("1.1", "double")], "1.2000000014901162^double"),
        ("MIN", [typed("1.0", "decimal"), typed("1"), typed("01")], "01^integer"),
        ("MAX", [typed("1.0", "decimal"), typed("1"), typed("01")], "01^integer"),
        ("MIN", [Literal("b"), Literal("a", language="en"), typed("5")], "5^integer"),
        ("MAX", [typed("NaN", "double"), typed("INF", "double")], "NaN^double"),
        ("MIN", [typed("10:00:00+02:00", "time"), typed("09:00:00Z", "time")], "10:00:00+02:00^time"),
        ("MAX", [typed("P1M", "yearMonthDuration"), typed("P40D", "dayTimeDuration")], "P40D^dayTimeDuration"),
        ("PARTIAL_SUM", [typed("1"), None], "-"),
        ("COUNT", [typed("1"), None, Literal("a")], "2^integer"),
        ("MAX", [typed("-0044-03-15", "date"), typed("2020-02-29", "date")], "2020-02-29^date"),
    ],
)
def test_cases(function: str, values: list[Term | None], expected: str) -> None:
    assert shown(aggregate(function, Counter(values))) == expected


def answer(select: str, values: list[Literal]) -> list[str]:
    """The answer of a continuous query over values that came in this order."""
    text = f"PREFIX : <http://example/> {select} FROM STREAM <{STREAM}> [RANGE 10s STEP 10s] WHERE {{ ?s :p ?v }}"
    plan = plan_query(parse(text))
    program = reference_program([RegisteredQuery(plan, resolve_settings(plan, Options()))], Store())
    facts = [Triple(NamedNode(f"http://example/{i}"), P, value) for i, value in enumerate(values)]
    elements = [Element(SECOND, (fact,)) for fact in facts]
    first = program.advance({STREAM: elements}, ended=[STREAM]).answers[0]
    return [shown(term) for row in first.rows for term in row]


SELECT = (
    "SELECT (SUM(?v) AS ?a) (AVG(?v) AS ?b) (MIN(?v) AS ?c) (MAX(DISTINCT ?v) AS ?d) (SAMPLE(?v) AS ?e) "
    "(GROUP_CONCAT(?v; SEPARATOR='|') AS ?f) (SUM(DISTINCT ?v) AS ?g) (COUNT(?v) AS ?h)"
)


def test_no_answer_depends_on_the_order_of_arrival() -> None:
    values = [typed(t, "double") for t in ("1.0E16", "0.1", "-1.0E16", "0.2", "0.1", "1e-9", "7")]
    expected = answer(SELECT, values)
    assert expected[0] == "7.400000001^double"
    random = Random(7)
    for _ in range(10):
        random.shuffle(values)
        assert answer(SELECT, values) == expected


def test_terms_as_written_are_what_is_aggregated() -> None:
    values = [typed("01"), typed("1"), typed("2.50", "decimal"), typed("1")]
    assert answer(SELECT, values) == [
        "5.5^decimal",
        "1.375^decimal",
        "01^integer",
        "2.50^decimal",
        "01^integer",
        "01|1|1|2.50^string",
        "4.5^decimal",
        "4^integer",
    ]


def test_an_aggregate_with_an_error_is_unbound_and_having_sees_it() -> None:
    values = [typed("1"), typed("2"), Literal("x")]
    assert answer("SELECT (SUM(?v) AS ?a) (SUM(COALESCE(?v + 0, 0)) AS ?b)", values) == ["-", "3^integer"]
    assert answer("SELECT (MAX(STRLEN(STR(?v))) AS ?a) (AVG(?v / 0) AS ?b)", values) == ["1^integer", "-"]


def test_count_passes_over_errors() -> None:
    values = [typed("1"), typed("2"), typed("2"), Literal("x")]
    asked = "SELECT (COUNT(?v + 1) AS ?a) (COUNT(DISTINCT ?v + 1) AS ?b) (COUNT(?w + 1) AS ?c) (COUNT(*) AS ?d)"
    assert answer(asked, values) == ["3^integer", "2^integer", "0^integer", "4^integer"]


every_number = st.one_of(
    integers,
    decimals,
    st.floats().map(lambda x: typed("INF" if x == math.inf else "-INF" if x == -math.inf else repr(x), "double")),
    st.floats(width=32, allow_infinity=False).map(lambda x: typed(repr(x), "float")),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(every_number | bad, min_size=1, max_size=5), max_size=4))
def test_partial_sums_lead_to_the_sum_of_all(parts: list[list[Literal | None]]) -> None:
    partial = Counter(aggregate("PARTIAL_SUM", Counter(part)) for part in parts)
    whole: Counter[Term | None] = Counter(value for part in parts for value in part)
    for function in ("SUM", "AVG", "PARTIAL_SUM"):
        assert shown(aggregate(function, partial)) == shown(aggregate(function, whole))


@pytest.mark.parametrize("text", ["", "1", "1 1@9999999 0,0,0,1 0,0,0", "1 1@1 0,0,0,1 0,0,-1", "9" * 5000, "\u0663"])
def test_what_is_no_sum_is_an_error(text: str) -> None:
    literal = Literal(text, datatype=NamedNode("urn:headwater:sum"))
    assert aggregate("SUM", Counter([literal])) is None


def test_static_data_is_aggregated_alike() -> None:
    store = Store()
    for i, text in enumerate(("0.1", "0.2", "0.3")):
        store.add(Quad(NamedNode(f"http://example/{i}"), P, typed(text, "double")))
    plan = plan_query(parse("SELECT (SUM(?v) AS ?a) WHERE { ?s <http://example/p> ?v }"))
    program = reference_program([RegisteredQuery(plan, resolve_settings(plan, Options()))], store)
    (found,) = program.advance({}, ended=[]).answers
    assert shown(found.rows[0][0]) == f"{math.fsum((0.1, 0.2, 0.3))!r}^double"
