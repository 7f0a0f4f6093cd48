"""Every query of the papers and benchmarks parses, except what is listed as broken, with its reason."""

from __future__ import annotations

import pytest

from headwater.language.errors import QueryError
from headwater.language.expressions import Operation, VariableReference
from headwater.language.parser import parse
from headwater.language.query import GroupKey, SelectQuery
from headwater.language.stream_clauses import Dialect, FromStream, FromWindow, RangeSpec
from headwater.terms.model import Variable
from tests.language import benchmark_queries, paper_queries

HOUR = 3_600_000_000


@pytest.mark.parametrize("name", paper_queries.PRINTED)
def test_paper_query_parses(name: str) -> None:
    query = parse(paper_queries.PRINTED[name])
    expected = {"C": Dialect.CSPARQL, "Q": Dialect.CQELS, "O": Dialect.RSPQL}
    if "static part" in name:
        assert query.dialect is Dialect.RSPQL
    else:
        assert query.dialect is expected["Q" if name.startswith("CQELS") else name[0]]


@pytest.mark.parametrize("name", paper_queries.BROKEN)
def test_broken_paper_query_is_explained(name: str) -> None:
    broken = paper_queries.BROKEN[name]
    with pytest.raises(QueryError) as caught:
        parse(broken.text)
    assert broken.message in caught.value.message
    assert broken.text[caught.value.offset :].startswith(broken.pointed_at)


def test_benchmark_files_parse_in_their_dialect() -> None:
    texts = benchmark_queries.query_files()
    assert len(texts) == 24 + 10 + 5 + 8
    for name, text in texts.items():
        dialect = parse(text).dialect
        assert dialect is (Dialect.CQELS if "cqels" in name else Dialect.CSPARQL), name


def test_collections_parse_or_are_listed_as_broken() -> None:
    texts = benchmark_queries.rspql_collections() | benchmark_queries.wukong_files()
    assert len(texts) == 8 + 4 + 6
    assert benchmark_queries.BROKEN.keys() <= texts.keys()
    for name, text in texts.items():
        broken = benchmark_queries.BROKEN.get(name)
        if broken is None:
            assert parse(text).dialect is Dialect.RSPQL, name
            continue
        with pytest.raises(QueryError) as caught:
            parse(text)
        assert text[caught.value.offset :].startswith(broken.pointed_at), (name, str(caught.value))


def test_paper_tree_of_the_broker_query() -> None:
    query = parse(paper_queries.CSPARQL["section 3.4, total amount per broker"])
    assert query.registration is not None
    assert query.registration.name == "TotalAmountPerDayAndBroker"
    (stream,) = [clause for clause in query.dataset if isinstance(clause, FromStream)]
    assert stream.window == RangeSpec(24 * HOUR, 24 * HOUR)
    (aggregate,) = query.aggregates
    assert (aggregate.variable, aggregate.function) == (Variable("total"), "SUM")
    assert (aggregate.argument, aggregate.group) == (Variable("amount"), (Variable("broker"),))
    assert isinstance(query.form, SelectQuery)
    condition = query.form.where.items[-1].condition  # type: ignore[attr-defined]
    assert isinstance(condition, Operation)
    assert condition.operator == "&&"
    assert [operand.operator for operand in condition.operands] == ["=", ">="]  # type: ignore[attr-defined]


def test_paper_tree_of_the_taxi_query() -> None:
    query = parse(paper_queries.PRINTED["Operator-aware taxi query"])
    first, second, third = query.dataset
    assert isinstance(first, FromWindow)
    assert first.window.size == 1000  # type: ignore[attr-defined]
    assert isinstance(second, FromWindow)
    assert isinstance(third, FromWindow)
    assert second.window.timestamp_predicate.value == "http://example.org/taxi#pickupTime"  # type: ignore[attr-defined]
    assert third.window == RangeSpec(HOUR, None, third.window.timestamp_predicate)  # type: ignore[attr-defined]


def test_hyphenated_variable_becomes_a_legal_one() -> None:
    query = parse(paper_queries.CSPARQL["section 2.2, sensors per street"])
    assert query.aggregates[0].variable == Variable("total_sensor")
    assert isinstance(query.form, SelectQuery)
    assert query.form.projections is not None
    assert query.form.projections[1].variable == Variable("total_sensor")


def test_srbench_query_5_groups_by_what_it_projects() -> None:
    query = parse(benchmark_queries.query_files()["srbench/queries/q5.rq"])
    assert query.form.modifiers.group_by == (GroupKey(VariableReference(Variable("sensor"))),)
