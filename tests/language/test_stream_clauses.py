"""The clauses of the three stream languages, in every spelling that is accepted."""

from __future__ import annotations

import pytest

from headwater.language.errors import QueryError
from headwater.language.expressions import Operation, Timestamp
from headwater.language.parser import parse
from headwater.language.patterns import FilterItem, GroupPattern, StreamPattern, SubSelect, WindowPattern
from headwater.language.query import Projection, SelectQuery
from headwater.language.stream_clauses import (
    AggregateClause,
    AllSpec,
    CountSpec,
    Dialect,
    FromGraph,
    FromStream,
    FromWindow,
    IntervalSpec,
    LandmarkSpec,
    NowSpec,
    RangeSpec,
    Registration,
    RegistrationKind,
    StreamOperator,
    WindowSpec,
)
from headwater.terms.model import NamedNode, Variable

PREFIX = "PREFIX : <http://e/> PREFIX ex: <http://ex/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
MS, S, M, H, D = 1_000, 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000


def iri(local: str) -> NamedNode:
    return NamedNode("http://e/" + local)


WINDOWS: list[tuple[str, WindowSpec]] = [
    ("RANGE 10m STEP 1m", RangeSpec(10 * M, M)),
    ("range 10M slide 1 Min", RangeSpec(10 * M, M)),
    ("  RANGE\n10 m\tSTEP 1m  ", RangeSpec(10 * M, M)),
    ("RANGE 24 hours TUMBLING", RangeSpec(24 * H, 24 * H)),
    ("RANGE 1h STEP", RangeSpec(H, H)),
    ("RANGE 3000ms", RangeSpec(3 * S)),
    ("RANGE 3000", RangeSpec(3 * S)),
    ("RANGE 3000 STEP 500", RangeSpec(3 * S, 500 * MS)),
    ("RANGE 1h30m SLIDE 1d12h", RangeSpec(90 * M, 36 * H)),
    ("RANGE 5000ns", RangeSpec(5)),
    ("RANGE 7us", RangeSpec(7)),
    ("RANGE 1.5s", RangeSpec(1_500_000)),
    ("RANGE PT1H STEP PT10M", RangeSpec(H, 10 * M)),
    ("RANGE pt1h step PT0.5S", RangeSpec(H, S // 2)),
    ("RANGE P1DT2H", RangeSpec(26 * H)),
    ("RANGE P2W", RangeSpec(14 * D)),
    ("RANGE PT2H @:time", RangeSpec(2 * H, None, iri("time"))),
    ("RANGE PT2H @ex:time STEP PT1H", RangeSpec(2 * H, H, NamedNode("http://ex/time"))),
    ("RANGE PT2H STEP PT1H @<http://e/time>", RangeSpec(2 * H, H, iri("time"))),
    ("RANGE PT2H STEP @:time", RangeSpec(2 * H, 2 * H, iri("time"))),
    ("RANGE TRIPLES 100", CountSpec(100)),
    ("RANGE TRIPLES 100 STEP 10", CountSpec(100, 10)),
    ("RANGE TRIPLES 100 TUMBLING", CountSpec(100, 100)),
    ("TRIPLES 100 SLIDE 10", CountSpec(100, 10)),
    ("COUNT 5 STEP 2", CountSpec(5, 2, "elements")),
    ("ELEMENTS 5 STEP", CountSpec(5, 5, "elements")),
    ("ELEMENTS 5 @:time", CountSpec(5, None, "elements", iri("time"))),
    ("NOW", NowSpec()),
    ("ALL", AllSpec()),
    ("FROM NOW-PT1H TO NOW-PT30M STEP PT10M", IntervalSpec(H, H // 2, 10 * M)),
    ("FROM NOW - 1h TO NOW", IntervalSpec(H, 0)),
    ("FROM NOW-1h TO NOW-30m TUMBLING", IntervalSpec(H, H // 2, H // 2)),
    ('FROM "1970-01-01T00:00:01Z"^^xsd:dateTime TO NOW STEP PT1M', LandmarkSpec(S, M)),
    ('FROM "1969-12-31T23:59:59"^^xsd:dateTime', LandmarkSpec(-S)),
    ('FROM "1970-01-01T01:00:00.5+01:00"^^xsd:dateTime TO NOW', LandmarkSpec(S // 2)),
]


@pytest.mark.parametrize(("text", "window"), WINDOWS, ids=[text for text, _ in WINDOWS])
def test_every_window_in_every_clause(text: str, window: WindowSpec) -> None:
    stream = parse(f"{PREFIX} SELECT * FROM STREAM :s [{text}] {{ ?x a ?y }}")
    assert stream.dataset == (FromStream(iri("s"), window),)
    named = parse(f"{PREFIX} SELECT * FROM NAMED WINDOW :w ON :s [{text}] {{ WINDOW :w {{ ?x a ?y }} }}")
    assert named.dataset == (FromWindow(iri("w"), iri("s"), window),)
    pattern = parse(f"{PREFIX} SELECT * {{ STREAM :s [{text}] {{ ?x a ?y }} }}").form.where
    assert pattern is not None
    (item,) = pattern.items
    assert isinstance(item, StreamPattern)
    assert (item.stream, item.window) == (iri("s"), window)


@pytest.mark.parametrize(
    ("text", "registration", "operator"),
    [
        ("QUERY q", Registration(RegistrationKind.QUERY, "q"), None),
        ("query my-query computed every 5 m", Registration(RegistrationKind.QUERY, "my-query", 5 * M), None),
        ("STREAM <http://e/out> COMPUTED EVERY PT1M", Registration(RegistrationKind.STREAM, "http://e/out", M), None),
        ("RSTREAM :out", Registration(RegistrationKind.STREAM, "http://e/out"), StreamOperator.RSTREAM),
        ("ISTREAM 'out'", Registration(RegistrationKind.STREAM, "out"), StreamOperator.ISTREAM),
        ("DSTREAM stream", Registration(RegistrationKind.STREAM, "stream"), StreamOperator.DSTREAM),
    ],
)
def test_registration(text: str, registration: Registration, operator: StreamOperator | None) -> None:
    for query in (f"{PREFIX} REGISTER {text} AS ASK {{ }}", f"REGISTER {text} AS {PREFIX} ASK {{ }}"):
        parsed = parse(query)
        assert parsed.registration == registration
        assert parsed.stream_operator is operator


def test_stream_operators_in_the_form() -> None:
    for text in ("SELECT ISTREAM * { }", "CONSTRUCT istream { } WHERE { }", "DESCRIBE ISTREAM ?x { ?x a ?y }"):
        query = parse(text)
        assert query.stream_operator is StreamOperator.ISTREAM
        assert query.dialect is Dialect.RSPQL
    assert parse("REGISTER ISTREAM x AS SELECT ISTREAM * { }").stream_operator is StreamOperator.ISTREAM


def test_dataset_clauses_in_any_order_and_before_select() -> None:
    dataset = (
        FromGraph(iri("g")),
        FromStream(iri("s"), NowSpec(), True),
        FromGraph(iri("h"), True),
        FromWindow(iri("w"), iri("t"), AllSpec()),
        FromGraph(iri("i")),
    )
    clauses = (
        "FROM :g FROM NAMED STREAM :s [NOW] FROM NAMED :h FROM NAMED WINDOW ON STREAM :t [ALL] AS :w FROM GRAPH :i"
    )
    assert parse(f"{PREFIX} SELECT * {clauses} WHERE {{ }}").dataset == dataset
    assert parse(f"{PREFIX} {clauses} SELECT * WHERE {{ }}").dataset == dataset


def test_commas_and_bare_expressions_in_select() -> None:
    query = parse(PREFIX + "SELECT ?a, COUNT(?b) AS ?n, (?a) AS ?c FROM STREAM :s [NOW] { ?a :p ?b } GROUP BY ?a")
    assert isinstance(query.form, SelectQuery)
    assert query.form.projections is not None
    assert [projection.variable.value for projection in query.form.projections] == ["a", "n", "c"]
    tight = parse(PREFIX + "SELECT ?a - ?b AS ?c (?a)/(?b) AS ?d FROM STREAM :s [NOW] { ?a :p ?b }").form
    assert isinstance(tight, SelectQuery)
    assert tight.projections is not None
    assert [projection.expression.operator for projection in tight.projections] == ["-", "/"]  # type: ignore[union-attr]


def test_stream_pattern_with_the_window_first_and_a_variable() -> None:
    where = parse(PREFIX + "SELECT * { STREAM [NOW] ?s { ?x a ?y } }").form.where
    assert where is not None
    (item,) = where.items
    assert isinstance(item, StreamPattern)
    assert (item.stream, item.window) == (Variable("s"), NowSpec())


def test_window_pattern_holds_any_group() -> None:
    query = parse(
        PREFIX + "SELECT * FROM NAMED WINDOW :w ON :s [NOW] { WINDOW :w { SELECT ?x { ?x a ?y } } "
        "WINDOW ?any { OPTIONAL { ?x a ?z } } }"
    )
    assert query.form.where is not None
    first, second = query.form.where.items
    assert isinstance(first, WindowPattern)
    assert isinstance(first.pattern.items[0], SubSelect)
    assert isinstance(second, WindowPattern)
    assert second.name == Variable("any")


def test_aggregate_clauses() -> None:
    query = parse(
        PREFIX + "SELECT * { ?x :p ?y } "
        "AGGREGATE { (?n, COUNT, {?x}) FILTER(?n > 1) (?m, count(distinct ?y), ?x) } "
        "AGGREGATE { (?a, AVERAGE(?y), {?x ?y}) } ORDER BY ?n"
    )
    n, m, a = query.aggregates
    x, y = Variable("x"), Variable("y")
    assert isinstance(n.condition, Operation)
    assert n == AggregateClause(Variable("n"), "COUNT", None, (x,), n.condition)
    assert m == AggregateClause(Variable("m"), "COUNT", y, (x,), distinct=True)
    assert a == AggregateClause(Variable("a"), "AVG", y, (x, y))
    assert query.form.modifiers.order_by


def test_hyphens_join_only_the_variables_that_aggregate_introduces() -> None:
    query = parse(PREFIX + "SELECT ?t-s { ?x :p ?t, ?s FILTER(?t-?s > ?t-s) } AGGREGATE { (?t-s, COUNT, {?x}) }")
    assert isinstance(query.form, SelectQuery)
    assert query.form.projections == (Projection(Variable("t_s")),)
    item = query.form.where.items[-1]
    assert isinstance(item, FilterItem)
    assert isinstance(item.condition, Operation)
    assert isinstance(item.condition.operands[0], Operation)
    assert item.condition.operands[0].operator == "-"
    with pytest.raises(QueryError):
        parse(PREFIX + "SELECT ?t-s { ?x :p ?t }")


def test_timestamp() -> None:
    (item,) = parse(PREFIX + "ASK { FILTER(TimeStamp(?x) > timestamp(?y, :s)) }").form.where.items  # type: ignore[union-attr]
    assert isinstance(item, FilterItem)
    assert isinstance(item.condition, Operation)
    assert item.condition.operands == (Timestamp(Variable("x")), Timestamp(Variable("y"), iri("s")))


RECOGNISED = [
    ("SELECT * { }", Dialect.RSPQL),
    ("SELECT * FROM STREAM :s [NOW] { }", Dialect.CSPARQL),
    ("SELECT * { ?x a ?y } AGGREGATE { (?n, COUNT, {?x}) }", Dialect.CSPARQL),
    ("REGISTER QUERY q AS SELECT * { }", Dialect.CSPARQL),
    ("REGISTER STREAM q COMPUTED EVERY 1s AS SELECT * { }", Dialect.CSPARQL),
    ("REGISTER STREAM q AS CONSTRUCT { } FROM STREAM :s [NOW] WHERE { }", Dialect.CSPARQL),
    ("SELECT * { STREAM :s [NOW] { } }", Dialect.CQELS),
    ("REGISTER QUERY q AS SELECT * { STREAM :s [NOW] { } }", Dialect.CQELS),
    ("SELECT * FROM NAMED WINDOW :w ON :s [NOW] { }", Dialect.RSPQL),
    ("REGISTER QUERY q AS SELECT * FROM NAMED WINDOW :w ON STREAM :s [NOW] { }", Dialect.RSPQL),
    ("SELECT * { WINDOW ?w { } }", Dialect.RSPQL),
    ("REGISTER STREAM q AS SELECT * { }", Dialect.RSPQL),
    ("REGISTER RSTREAM q AS SELECT * { }", Dialect.RSPQL),
    ("SELECT ISTREAM * { }", Dialect.RSPQL),
    ("REGISTER QUERY stream AS SELECT * FROM NAMED WINDOW :w ON :s [NOW] { }", Dialect.RSPQL),
]


@pytest.mark.parametrize(("text", "dialect"), RECOGNISED)
def test_the_dialect_is_recognised_and_can_be_given(text: str, dialect: Dialect) -> None:
    assert parse(PREFIX + text).dialect is dialect
    for given in Dialect:
        assert parse(PREFIX + text, given).dialect is given


def test_what_is_liberal_for_streams_stays_strict_without() -> None:
    for text in ("SELECT ?x, ?y { ?x a ?y }", "SELECT COUNT(?x) AS ?n { ?x a ?y }", "FROM <http://g> SELECT * { }"):
        with pytest.raises(QueryError):
            parse(text)


def test_an_empty_window_pattern_keeps_its_place() -> None:
    where = parse("SELECT * { WINDOW ?w { } }").form.where
    assert where == GroupPattern((WindowPattern(Variable("w"), GroupPattern(())),))
