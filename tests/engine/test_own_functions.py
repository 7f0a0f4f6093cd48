"""Functions of users in queries: by both evaluators, on Spark, and when they fail."""

from __future__ import annotations

import logging
import statistics
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyoxigraph import Literal, NamedNode, Triple

import headwater as hw
from headwater.terms import own_functions
from headwater.values.own_function_calls import to_python, to_term

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECOND = 1_000_000
FROM = "FROM STREAM <s> [RANGE 10s STEP 5s]"
TWICE = f"SELECT ?x (<urn:f:twice>(?v) AS ?n) {FROM} WHERE {{ ?x <urn:v> ?v FILTER(<urn:f:twice>(?v) > 4) }}"
MEDIAN = f"SELECT ?x (<urn:f:median>(?v) AS ?n) (COUNT(?v) AS ?c) {FROM} WHERE {{ ?x <urn:v> ?v }} GROUP BY ?x"
QUERIES = [
    TWICE,
    MEDIAN,
    f"SELECT (<urn:f:median>(DISTINCT ?v) AS ?n) {FROM} WHERE {{ ?x <urn:v> ?v }}",
    f"SELECT (<urn:f:median>(?v + 1) * 2 AS ?n) {FROM} WHERE {{ ?x <urn:v> ?v }} HAVING(<urn:f:median>(?v) > 0)",
    f"SELECT ?x (<urn:f:join>(STR(?x), ?v) AS ?n) {FROM} WHERE {{ ?x <urn:v> ?v }} ORDER BY <urn:f:twice>(?v) ?x",
    f"SELECT (<urn:f:twice>(21) AS ?n) (COUNT(*) AS ?c) {FROM} WHERE {{ ?x <urn:v> ?v }}",
    f"SELECT ?x ?n {FROM} WHERE {{ ?x <urn:v> ?v BIND(<urn:f:term>(?x, ?v) AS ?n) }}",
    f"SELECT ?x ?n {FROM} WHERE {{ ?x <urn:v> ?v OPTIONAL {{ ?x <urn:w> ?w }} BIND(<urn:f:twice>(?w) AS ?n) }}",
]


@pytest.fixture(autouse=True)
def functions() -> Iterator[None]:
    before = own_functions.own_functions()
    engine = hw.Engine(in_process=True)
    engine.function("urn:f:twice", lambda value: 2 * value)
    engine.function("urn:f:median", statistics.median, aggregate=True)
    engine.function("urn:f:join", lambda one, other: f"{one}/{other}")
    engine.function("urn:f:term", lambda one, other: Literal(f"{one} {other}"), terms=True)
    yield
    own_functions._FUNCTIONS = before


def elements() -> list[hw.Element]:
    predicate = NamedNode("urn:v")
    return [
        hw.Element(i * SECOND, (Triple(NamedNode(f"urn:x{i % 3}"), predicate, Literal(i * i % 7)),)) for i in range(25)
    ]


def answers_of(text: str, **settings: Any) -> list[hw.Answer]:
    engine = hw.Engine(in_process=True, **settings)
    engine.stream("s", hw.memory(elements()))
    return list(engine.register(text).answers())


@pytest.mark.parametrize("text", QUERIES)
def test_both_evaluators_call_them(text: str) -> None:
    found = answers_of(text)
    assert found == answers_of(text, evaluator="reference")
    assert any(answer.rows for answer in found)
    engine = hw.Engine(in_process=True)
    engine.stream("s", hw.memory([]))
    assert "kernel (incremental)" in engine.register(text).explain()


def test_an_aggregate_gets_the_values_of_its_group() -> None:
    for answer in answers_of(MEDIAN):
        low, high = answer.inputs[0].low, answer.inputs[0].high
        inside = [one for one in elements() if low <= one.time <= high]
        for subject, median, count in answer.rows:
            values = [int(str(to_python(one.triples[0].object))) for one in inside if one.triples[0].subject == subject]
            expected = statistics.median(set(values))
            assert count is not None and int(str(count.value)) == len(set(values))  # type: ignore[union-attr]
            assert median is not None and float(str(median.value)) == expected  # type: ignore[union-attr]


def test_they_run_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    lines = [f"{one.time // 1000}\t{one.triples[0]} .\n" for one in elements()]
    (tmp_path / "s.tnq").write_text("".join(lines))
    engine = hw.Engine(spark)
    engine.stream("s", hw.files(tmp_path / "s.tnq"))
    found: dict[str, list[hw.Answer]] = {"twice": [], "median": []}
    engine.register(TWICE, name="twice")
    engine.register(MEDIAN, name="median")
    engine.run(on_answer=lambda answer: found[answer.query].append(answer))
    for name, text in (("twice", TWICE), ("median", MEDIAN)):
        assert [(one.time, one.rows) for one in found[name]] == [(one.time, one.rows) for one in answers_of(text)]


def test_what_a_function_raises_is_an_error_of_the_expression_and_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def inverse(value: int) -> float:
        return 1 / value

    hw.Engine(in_process=True).function("urn:f:inverse", inverse)
    with caplog.at_level(logging.WARNING, "headwater"):
        found = answers_of(f"SELECT ?v (<urn:f:inverse>(?v) AS ?n) {FROM} WHERE {{ ?x <urn:v> ?v }}")
    told = [record.getMessage() for record in caplog.records if "urn:f:inverse" in record.getMessage()]
    assert told == [
        "<urn:f:inverse>(0) has no value (ZeroDivisionError: division by zero); further ones are not reported"
    ]
    zeros = [row for answer in found for row in answer.rows if row[0] == Literal(0)]
    assert zeros and all(row[1] is None for row in zeros)


def test_another_kind_of_error_is_told_too(caplog: pytest.LogCaptureFixture) -> None:
    for function in (lambda value: value.missing, lambda: 1):
        hw.Engine(in_process=True).function("urn:f:mended", function)
        with caplog.at_level(logging.WARNING, "headwater"):
            answers_of(f"SELECT (<urn:f:mended>(?v) AS ?n) {FROM} WHERE {{ ?x <urn:v> ?v }}")
    assert [word for word in ("AttributeError", "TypeError") if word in caplog.text] == ["AttributeError", "TypeError"]


@pytest.mark.parametrize(
    ("iri", "function", "words"),
    [
        ("distance", len, "absolute IRI"),
        ("urn:a b", len, "absolute IRI"),
        ("", len, "absolute IRI"),
        ("http://www.w3.org/2001/XMLSchema#integer", int, "is a cast of SPARQL"),
        ("urn:f:x", 5, "must be callable"),
    ],
)
def test_what_is_no_function_is_refused(iri: str, function: Any, words: str) -> None:
    with pytest.raises(hw.SettingError, match=words):
        hw.Engine(in_process=True).function(iri, function)


def test_aggregates_stand_where_aggregates_may() -> None:
    engine = hw.Engine(in_process=True)
    for wrong, words in (
        (f"SELECT ?v {FROM} WHERE {{ ?x <urn:v> ?v FILTER(<urn:f:median>(?v) > 1) }}", "aggregates belong into"),
        (f"SELECT (<urn:f:median>(COUNT(?v)) AS ?n) {FROM} WHERE {{ ?x <urn:v> ?v }}", "do not nest"),
        (f"SELECT (<urn:f:median>(?v, ?x) AS ?n) {FROM} WHERE {{ ?x <urn:v> ?v }}", "takes 1 argument"),
        (f"SELECT (<urn:f:unknown>(?v) AS ?n) {FROM} WHERE {{ ?x <urn:v> ?v }}", "what engine.function"),
    ):
        with pytest.raises(hw.QueryError, match=words):
            engine.register(wrong)


def test_values_of_python_and_terms() -> None:
    moment = datetime(2026, 3, 2, 7, 5, tzinfo=UTC)
    for value in (5, 2.5, True, "a", Decimal("1.5"), moment):
        term = to_term(value)
        assert term is not None
        assert to_python(term) == value
        assert type(to_python(term)) is type(value)
    assert to_term(None) is None
    assert to_term(NamedNode("urn:a")) == NamedNode("urn:a")
    assert to_python(NamedNode("urn:a")) == "urn:a"
    with pytest.raises(TypeError, match="which is no term"):
        to_term([1])
    with pytest.raises(TypeError):
        to_term(timedelta(1))
