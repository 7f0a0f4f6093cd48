"""Columns of answers have the types that the query says, in every table; `schema` says others."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from pyoxigraph import Literal, NamedNode, Triple

import headwater as hw
from headwater.algebra.build import plan_query
from headwater.algebra.column_types import ColumnType, column_types
from headwater.algebra.plan import QueryKind
from headwater.execution.registered import RegisteredQuery
from headwater.execution.typed_cells import typed_values
from headwater.language.parser import parse
from headwater.terms.model import XSD, Term
from tests.kernel.generated_queries import a_case
from tests.kernel.generated_runs import reference_answers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECOND = 1_000_000
FROM = "FROM STREAM <s> [RANGE 10s STEP 10s]"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("COUNT(?v)", "integer"),
        ("SUM(?v)", "double"),
        ("SUM(STRLEN(STR(?v)))", "integer"),
        ("AVG(?v)", "double"),
        ("MIN(?v)", None),
        ("MAX(xsd:integer(?v))", "integer"),
        ("SAMPLE(?x)", "string"),
        ("GROUP_CONCAT(STR(?v))", "string"),
        ("COUNT(?v) > 3", "boolean"),
        ("COUNT(?v) * 2 + 1", "integer"),
        ("COUNT(?v) / 2", "double"),
        ("ROUND(AVG(?v))", "double"),
        ("xsd:dateTime(MAX(?v))", "timestamp"),
        ("xsd:boolean(MIN(?v))", "boolean"),
        ("xsd:date(MIN(?v))", None),
        ("IF(COUNT(?v) > 1, 1, 2.5)", "double"),
        ("IF(COUNT(?v) > 1, 1, 'a')", None),
        ("COALESCE(SUM(?v), 0)", "double"),
        ("NOW()", "timestamp"),
        ("-COUNT(?v)", "integer"),
    ],
)
def test_the_algebra_knows_types(expression: str, expected: str | None) -> None:
    text = f"PREFIX xsd: <{XSD}> SELECT ({expression} AS ?n) {FROM} WHERE {{ ?x <urn:v> ?v }}"
    assert column_types(plan_query(parse(text))) == (expected,)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("?x <urn:v> ?n", None),
        ("?n <urn:v> ?x", "string"),
        ("?x ?n ?y", "string"),
        ("?x <urn:v> ?n . ?n <urn:w> ?y", "string"),
        ("VALUES ?n { 1 2 }", "integer"),
        ("VALUES ?n { 1 2.5 UNDEF }", "double"),
        ("VALUES ?n { 1 'a' }", None),
        ("VALUES ?n { 1 2 } ?x <urn:v> ?n", "integer"),
        ("{ BIND(1 AS ?n) } UNION { BIND(true AS ?n) }", None),
        ("{ BIND(1 AS ?n) } UNION { ?x <urn:v> ?n }", None),
        ("{ BIND(1 AS ?n) } UNION { BIND(2 AS ?m) }", "integer"),
        ("OPTIONAL { BIND(1 AS ?n) } ?x <urn:v> ?y", "integer"),
        ("?x <urn:v> ?y BIND(?y + ?z AS ?n)", None),
        ("?x <urn:v> ?y BIND(?y * ?z AS ?n)", "double"),
        ("?x <urn:v> ?y BIND(?y + 1 AS ?n)", "double"),
        ("{ SELECT (COUNT(*) AS ?n) { ?x <urn:v> ?y } }", "integer"),
        ("?x <urn:v>* ?n", None),
        ("?x <urn:v> ?y BIND(EXISTS { ?x <urn:w> ?z } AS ?n)", "boolean"),
        ("?x <urn:v> ?y MINUS { BIND(1 AS ?n) }", None),
    ],
)
def test_patterns_know_what_they_can(pattern: str, expected: str | None) -> None:
    assert column_types(plan_query(parse(f"SELECT ?n {FROM} WHERE {{ {pattern} }}"))) == (expected,)


def fits(term: Term | None, wanted: ColumnType | None) -> bool:
    if term is None or wanted is None:
        return True
    if wanted is ColumnType.STRING:
        return not isinstance(term, Literal) or bool(term.language) or term.datatype.value == XSD + "string"
    return typed_values([term], wanted, "generated") != [None]


def test_no_generated_query_has_a_value_of_another_type_than_it_says() -> None:
    known = 0
    for number in range(150):
        case = a_case(Random(number))
        plan, settings = case.plan()
        if plan.kind is not QueryKind.SELECT:
            continue
        types = column_types(plan)
        for answer in reference_answers(case, RegisteredQuery(plan, settings)):
            for row in answer.rows:
                known += sum(wanted not in (None, ColumnType.STRING) for wanted in types)
                assert all(map(fits, row, types)), (case.text, types, row)
    assert known > 100


def triples(*values: Literal) -> hw.Element:
    subject, predicate = NamedNode("urn:x"), NamedNode("urn:v")
    return hw.Element(SECOND, tuple(Triple(subject, predicate, value) for value in values))


def engine_over(*values: Literal) -> hw.Engine:
    engine = hw.Engine(in_process=True)
    engine.stream("s", hw.memory([triples(*values)]))
    return engine


LISTED = f"SELECT ?x ?v (?v > 1 AS ?large) {FROM} WHERE {{ ?x <urn:v> ?v }}"


@pytest.mark.parametrize("evaluator", ["auto", "reference"])
def test_tables_are_typed_in_all_answers(evaluator: str) -> None:
    engine = hw.Engine(in_process=True, evaluator=evaluator)  # type: ignore[arg-type]
    engine.stream("s", hw.memory([triples(Literal(3))]))
    counts = engine.register(f"SELECT (SUM(?v) AS ?n) (COUNT(?v) AS ?c) {FROM} WHERE {{ ?x <urn:v> ?v }}", name="sums")
    listed = engine.register(LISTED, name="listed")
    taken, rows = counts.answers(), listed.answers()
    for answer in taken:
        assert answer.datetime == datetime.fromtimestamp(answer.time / SECOND, UTC)
        assert str(answer.to_arrow().schema.field("n").type) == "double"
        assert str(answer.to_arrow().schema.field("c").type) == "int64"
        assert [str(kind) for kind in answer.to_pandas().dtypes] == ["float64", "int64"]
    for answer in rows:
        table = answer.to_arrow(schema={"v": "integer"})
        assert [str(field.type) for field in table.schema][2:] == ["string", "int64", "bool"]
        assert str(answer.to_pandas()["large"].dtype) == "bool"
        assert [str(field.type) for field in answer.to_arrow(terms=True).schema][2:] == ["string"] * 3
        assert answer.to_pandas(terms=True)["x"].tolist() == [row[0] for row in answer.rows]


def test_a_schema_types_what_the_query_does_not(caplog: pytest.LogCaptureFixture) -> None:
    date = NamedNode(XSD + "dateTime")
    engine = engine_over(Literal("2026-03-02T07:05:00Z", datatype=date), Literal("7"), Literal("none"))
    answers = list(engine.register(f"SELECT ?v {FROM} WHERE {{ ?x <urn:v> ?v }} ORDER BY ?v").answers())
    answer = next(one for one in answers if one.rows)
    when = datetime(2026, 3, 2, 7, 5, tzinfo=UTC)
    with caplog.at_level(logging.WARNING, "headwater"):
        assert set(answer.to_arrow(schema={"v": "timestamp"})["v"].to_pylist()) == {
            when,
            None,
            datetime.fromtimestamp(0.007, UTC),
        }
    assert [record.getMessage() for record in caplog.records] == [
        'the column v holds "none", which is no timestamp: such values are null there'
    ]
    assert set(answer.to_arrow(schema={"v": int})["v"].to_pylist()) == {7, None}
    frame = answer.to_pandas(schema={"v": "integer"})
    assert str(frame["v"].dtype) == "Int64"
    for wrong, words in (
        ({"w": "integer"}, "the columns are v"),
        ({"v": "number"}, "use one of integer, double, boolean, timestamp, string"),
        ({"v": []}, "use one of"),
        ("v", "schema must be a mapping"),
    ):
        with pytest.raises(hw.SettingError, match=words):
            answer.to_pandas(schema=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "wanted", "value"),
    [
        ("5", "integer", 5),
        ("5.0", "integer", 5),
        ("5.5", "integer", None),
        ("1e400", "integer", None),
        ("99999999999999999999", "integer", None),
        ("INF", "double", float("inf")),
        (" 2.5 ", "double", 2.5),
        ("true", "boolean", True),
        ("0", "boolean", False),
        ("yes", "boolean", None),
        ("1500", "timestamp", 1_500_000),
        ("soon", "timestamp", None),
    ],
)
def test_values_of_texts(text: str, wanted: str, value: object) -> None:
    assert typed_values([Literal(text)], ColumnType(wanted), "texts") == [value]
    assert typed_values([None, NamedNode("urn:a")], ColumnType(wanted), "texts") == [None, None]


def test_parquet_files_have_the_types(tmp_path: Path) -> None:
    engine = engine_over(Literal(3), Literal("4", datatype=NamedNode(XSD + "decimal")))
    engine.register(
        f"SELECT ?x (COUNT(?v) AS ?n) (AVG(?v) AS ?m) (MAX(?v) AS ?top) {FROM} WHERE {{ ?x <urn:v> ?v }} GROUP BY ?x",
        name="q",
    )
    engine.run(
        sinks=[
            hw.FileSink(tmp_path / "plain", format="parquet"),
            hw.FileSink(tmp_path / "said", format="parquet", schema={"top": "double", "elsewhere": int}),
        ]
    )
    plain, said = (pq.read_table(next((tmp_path / name).rglob("*.parquet"))) for name in ("plain", "said"))
    assert [str(field.type) for field in plain.schema][2:] == ["string", "int64", "double", "string"]
    assert [str(field.type) for field in said.schema][2:] == ["string", "int64", "double", "double"]
    assert said["top"].to_pylist()[0] == 4.0
    with pytest.raises(hw.SettingError, match="use one of"):
        hw.FileSink(tmp_path, format="parquet", schema={"top": "number"})


def test_dataframes_of_spark_have_the_types(spark: SparkSession, tmp_path: Path) -> None:
    kind = f"<{XSD}double>"
    lines = [f'{second * 1000}\t<urn:x> <urn:v> "{second}.5"^^{kind} .\n' for second in range(12)]
    (tmp_path / "s.tnq").write_text("".join(lines))
    engine = hw.Engine(spark)
    engine.stream("s", hw.files(tmp_path / "s.tnq"))
    columns = "?x (COUNT(?v) AS ?n) (MAX(?v) AS ?top) (COUNT(?v) > 3 AS ?busy)"
    query = engine.register(f"SELECT {columns} {FROM} WHERE {{ ?x <urn:v> ?v }} GROUP BY ?x")
    frame = query.to_dataframe(schema={"top": float})
    assert frame.dtypes == [
        ("time", "timestamp"),
        ("x", "string"),
        ("n", "bigint"),
        ("top", "double"),
        ("busy", "boolean"),
    ]
    assert dict(query.to_dataframe(terms=True).dtypes)["n"] == "string"
    with pytest.raises(hw.SettingError, match="the columns are x, n, top, busy"):
        query.to_dataframe(schema={"speed": float})
    written = frame.writeStream.format("memory").queryName("typed").trigger(availableNow=True).start()
    written.awaitTermination(120)
    rows = spark.sql("SELECT n, top, busy FROM typed ORDER BY time").collect()
    assert tuple(rows[-1])[2] in (True, False)
    assert sum(row.n for row in rows) == 12
    assert max(row.top for row in rows) == 11.5
