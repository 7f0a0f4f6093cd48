"""Answers that are still columns are the answers that they become, in memory, in tables and in another process."""

from __future__ import annotations

import gc
import pickle
from collections import Counter
from dataclasses import replace
from random import Random
from typing import cast

import pyarrow as pa
import pytest
from pyoxigraph import Store

from headwater.algebra.build import plan_query
from headwater.algebra.plan import QueryKind
from headwater.execution.answer_batch import AnswerBatch, merge_answers
from headwater.execution.answer_bytes import pack_answers, unpack_answers
from headwater.execution.answer_columns import AnswerColumns, union_columns
from headwater.execution.answers import Answer
from headwater.execution.program import Program
from headwater.execution.registered import RegisteredQuery
from headwater.execution.typed_cells import plain_text
from headwater.kernel import moving_windows
from headwater.language.parser import parse
from headwater.language.stream_clauses import StreamOperator
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.terms.model import SECOND, XSD, Element, Literal, NamedNode, Triple
from headwater.windows.settings import Options, resolve_settings
from tests.kernel.generated_queries import STREAMS, a_case
from tests.kernel.generated_runs import compared
from tests.optimised_evaluators import make_optimised_evaluator

EX = "http://ex/"
LISTED = "SELECT ?s ?v WHERE { STREAM :s [RANGE 3s SLIDE 1s] { ?s :p ?v } }"
MEANS = "SELECT ?s (AVG(?v) AS ?m) (COUNT(*) AS ?n) WHERE { STREAM :s [RANGE 3s] { ?s :p ?v } } GROUP BY ?s"


def elements(count: int) -> list[Element]:
    """Values of some subjects, one every half second."""
    p = NamedNode(EX + "p")
    return [
        Element(
            i * SECOND // 2, (Triple(NamedNode(f"{EX}s{i % 7}"), p, Literal(i * 0.75 if i % 3 else i)),), None, (i,)
        )
        for i in range(count)
    ]


def answers_of(text: str, *, emit: StreamOperator | None = None, reference: bool = False) -> AnswerBatch:
    plan = plan_query(parse(f"PREFIX : <{EX}> {text}"))
    registered = RegisteredQuery(plan, resolve_settings(plan, Options(emit=emit)))
    program = Program([registered], Store(), 0, ReferenceEvaluator if reference else make_optimised_evaluator)
    return program.advance({EX + "s": elements(200)}, ended=[EX + "s"]).answers


@pytest.mark.parametrize("text", [LISTED, MEANS])
@pytest.mark.parametrize("emit", list(StreamOperator))
def test_columns_are_the_answers_of_the_reference(text: str, emit: StreamOperator) -> None:
    found = answers_of(text, emit=emit)
    assert any(isinstance(part, AnswerColumns) for part in found.parts)
    truth = answers_of(text, emit=emit, reference=True)
    assert len(found) == len(truth) > 50
    assert found == truth
    # One by one, from the end, each makes its own terms.
    again = answers_of(text, emit=emit)
    assert [again[-i] for i in range(1, len(again) + 1)] == list(reversed(truth))
    assert [answer.inputs for answer in found] == [answer.inputs for answer in truth]
    assert found.row_count == sum(len(answer.rows) for answer in truth)


def test_counting_makes_no_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    found = answers_of(LISTED)

    def fail(*_: object) -> None:
        raise AssertionError("terms were made")

    monkeypatch.setattr(AnswerColumns, "term_of", fail)
    monkeypatch.setattr(AnswerColumns, "decode_rows", fail)
    assert found.row_count == sum(found[i].row_count for i in range(len(found))) == 200
    assert not found[5].is_empty
    assert repr(found) == f"AnswerBatch({len(found)} answers, {found.row_count} rows)"


def test_answers_and_columns_travel() -> None:
    found = answers_of(MEANS)
    parts = [unpack_answers(pack_answers(part)) for part in found.parts]
    assert AnswerBatch(parts, found.order) == found
    lazy = next(part for part in found.parts if isinstance(part, AnswerColumns))[3]
    assert lazy.source is not None
    small = pickle.dumps(lazy)
    assert len(small) < 2_000
    assert pickle.loads(small) == lazy
    assert replace(lazy, complete=False).rows == lazy.rows


def test_an_answer_has_no_other_fields() -> None:
    with pytest.raises(AttributeError, match="no 'row'"):
        _ = answers_of(MEANS)[0].row  # type: ignore[attr-defined]


@pytest.mark.parametrize("terms", [False, True])
@pytest.mark.parametrize("text", [LISTED, MEANS])
def test_a_table_has_the_rows_of_the_answers(text: str, terms: bool) -> None:
    found = answers_of(text)
    table = found.to_arrow(terms=terms)
    names = table.column_names[2:]
    rows = Counter(zip(*(table.column(name).to_pylist() for name in ("time", *names)), strict=True))
    expected: Counter[tuple[object, ...]] = Counter()
    for answer in found:
        moment = pa.scalar(answer.time, pa.timestamp("us", tz="UTC")).as_py()
        for row in answer.rows:
            cells = [str(term) if terms else plain_text(term) for term in row]
            if not terms:
                cells = [cell if i == 0 else float(cell or "nan") for i, cell in enumerate(cells)]  # type: ignore[misc]
            expected[moment, *cells] += 1
    assert rows == expected
    assert table.column("time").to_pylist() == sorted(table.column("time").to_pylist())


def test_columns_of_numbers_have_their_type() -> None:
    table = answers_of(MEANS).to_arrow()
    assert [str(field.type) for field in table.schema] == [
        "timestamp[us, tz=UTC]",
        "int32",
        "string",
        "double",
        "int64",
    ]
    assert [str(field.type) for field in answers_of(MEANS).to_arrow(terms=True).schema][2:] == ["string"] * 3


def select(time: int, *values: object, part: int = 0) -> Answer:
    rows = tuple((None if value is None else Literal(value),) for value in values)  # type: ignore[arg-type]
    return Answer("q", time, QueryKind.SELECT, variables=("x",), rows=rows, part=part)


@pytest.mark.parametrize(
    ("values", "kind", "cells"),
    [
        ([1, None], "int64", [1, None]),
        ([1, 2.5], "double", [1.0, 2.5]),
        ([True, False], "bool", [True, False]),
        ([1, "one"], "string", ["1", "one"]),
        ([None], "string", [None]),
        ([1 << 70], "string", [str(1 << 70)]),
    ],
)
def test_single_answers_make_a_table_too(values: list[object], kind: str, cells: list[object]) -> None:
    column = AnswerBatch([[select(1, *values)]]).to_arrow().column("x")
    assert (str(column.type), column.to_pylist()) == (kind, cells)


def test_a_table_of_several_parts_has_common_types() -> None:
    parts: list[list[Answer]] = [[select(1, 1)], [select(2, 2.5)]]
    mixed = AnswerBatch()
    mixed.parts = [*parts]
    assert mixed.to_arrow().column("x").to_pylist() == [1.0, 2.5]
    mixed.parts = [[select(1, 1)], [select(2, "b")]]
    assert mixed.to_arrow().column("x").to_pylist() == ["1", "b"]
    assert AnswerBatch().to_arrow().num_rows == 0


def test_collecting_cycles_is_as_it_was() -> None:
    list(answers_of(LISTED))
    assert gc.isenabled()
    gc.disable()
    try:
        list(answers_of(LISTED))
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_answers_of_several_evaluators_are_in_order() -> None:
    one, other = answers_of(LISTED), answers_of(MEANS)
    named = AnswerBatch([[replace(answer, query="later") for answer in other]])
    order = {one[0].query: 1, "later": 0}
    merged = merge_answers([one, named], order)
    expected = sorted([*one, *named], key=lambda answer: (answer.time, order[answer.query], answer.part))
    assert merged == expected
    assert [merged[i] for i in range(0, len(merged), 17)] == expected[::17]
    assert merged[3:5] == expected[3:5]
    assert {name: list(own) for name, own in merged.by_query().items()} == {one[0].query: [*one], "later": [*named]}


def test_the_union_of_columns_has_one_answer_for_each_time() -> None:
    columns = next(part for part in answers_of(LISTED).parts if isinstance(part, AnswerColumns))
    double = union_columns([columns, columns], ("s", "v"))
    assert [answer.time for answer in double] == columns.times.tolist()
    for single, both in zip(columns, double, strict=True):
        assert sorted(map(str, both.rows)) == sorted(map(str, single.rows * 2))
        assert both.inputs == single.inputs


@pytest.mark.parametrize("block", range(4))
def test_generated_queries_say_the_same_in_one_batch_and_in_three(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving_windows, "_WORTH_A_RUN", 1)
    in_columns = 0
    for number in range(block * 1_000, block * 1_000 + 60):
        case = a_case(Random(number))
        registered = RegisteredQuery(*case.plan())
        program = Program([registered], case.store(), 10_000_000, make_optimised_evaluator)
        whole = program.advance({stream: list(some) for stream, some in case.elements.items()}, list(STREAMS)).answers
        in_columns += sum(isinstance(part, AnswerColumns) for part in whole.parts)
        program = Program([registered], case.store(), 10_000_000, make_optimised_evaluator)
        pieces: list[Answer] = []
        for third in range(3):
            pieces += program.advance({stream: list(some[third::3]) for stream, some in case.elements.items()}).answers
        pieces += program.advance({}, ended=list(STREAMS)).answers
        assert [*map(compared, whole)] == [*map(compared, pieces)], f"case {number}: {case.text}"
    assert in_columns > 3


def test_numbers_that_no_double_holds_are_texts_where_others_are_doubles() -> None:
    """Each value in a batch of its own."""
    values = [
        Literal("9007199254740993", datatype=NamedNode(XSD + "integer")),
        Literal("1.5", datatype=NamedNode(XSD + "decimal")),
        Literal("INF", datatype=NamedNode(XSD + "double")),
        Literal("01", datatype=NamedNode(XSD + "integer")),
    ]

    def column_of(some: list[Literal]) -> list[object]:
        answers = [
            Answer("q", time, QueryKind.SELECT, StreamOperator.RSTREAM, ("v",), ((value,),))
            for time, value in enumerate(some)
        ]
        batch = AnswerBatch([[one] for one in answers])
        return cast("list[object]", batch.to_arrow()["v"].to_pylist())

    assert column_of(values[:2]) == ["9007199254740993", "1.5"]
    assert column_of(values[1:3]) == [1.5, float("inf")]
    assert column_of([*values, Literal("a")]) == ["9007199254740993", "1.5", "INF", "01", "a"]
