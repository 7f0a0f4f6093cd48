"""Joins with comparisons between their inputs: ordered indexes give the same results as all pairs (OA13)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.explain.notation import Notation
from headwater.kernel.columns.order_keys import domain_of, find_interval, write_order_keys
from headwater.kernel.columns.ordered_index import OrderedIndex
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.compiling.range_filters import RangeFinder
from headwater.kernel.expressions.compiled_expressions import CompiledExpression
from headwater.kernel.joins import join_runs, range_choice
from headwater.kernel.joins.range_conditions import RangeCondition
from headwater.kernel.operators.multiway_join import MultiwayJoinOperator
from headwater.kernel.operators.operator import Operator
from headwater.language.expressions import Constant, Expression, Operation, VariableReference
from headwater.terms.ids.inline_layout import INTEGER_ZERO
from headwater.terms.model import XSD, Literal, NamedNode, Term, Variable
from tests.kernel.manual_input import ManualInput, ResultBag


def literal(text: str, kind: str) -> Literal:
    return Literal(text, datatype=NamedNode(XSD + kind))


TERMS: list[Term] = [
    *(literal(text, "integer") for text in ("-1", "0", "1", "2", "007", "16777217", "123456789012345678901234567890")),
    *(literal(text, "decimal") for text in ("1.0", "1.5", "0.1", "16777216.5", "0.000000000000000000001")),
    *(literal(text, "double") for text in ("1.0E0", "-0.0", "0.1", "1.0000000000000002", "1e300", "INF", "NaN", "2")),
    *(literal(text, "float") for text in ("16777216", "0.1", "1.5", "1e30", "NaN", "-INF")),
    *(literal(text, "int") for text in ("1", "2")),
    *(literal(text, "double") for text in ("1e-17", "-1e-17")),
    *(
        literal(text, "dateTime")
        for text in (
            "2026-01-01T00:00:00Z",
            "2026-01-01T01:00:00+01:00",
            "2026-01-01T00:00:00",
            "2026-01-01T13:30:00",
            "2026-01-02T00:00:00.001Z",
            "2026-01-01T00:00:00.000001",
            "9999-12-31T23:59:59.999999Z",
        )
    ),
    literal("2026-01-01", "date"),
    literal("true", "boolean"),
    Literal("abc"),
    Literal("a long string that is no inline id"),
    NamedNode("urn:x"),
]


def compare(operator: str, left: Expression, right: Expression) -> Expression:
    return Operation(operator, (left, right))


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">=", "="])
def test_every_term_that_satisfies_a_comparison_is_within_the_bounds(operator: str) -> None:
    """All pairs of terms, as SPARQL compares them; an order key that excluded one would lose a result."""
    vocabulary = Vocabulary()
    pairs = vocabulary.ids_of_rows([(a, b) for a in TERMS for b in TERMS], 2)
    x, y = (VariableReference(Variable(name)) for name in "xy")
    holds = CompiledExpression(compare(operator, x, y), ("x", "y"), vocabulary).test_rows(pairs)
    keys = np.empty_like(pairs)
    write_order_keys(pairs[:, 0], keys, 0)
    write_order_keys(pairs[:, 1], keys, 1)
    counts = {"<": (0, 1), "<=": (0, 1), ">": (1, 0), ">=": (1, 0), "=": (1, 1)}[operator]
    excluded = 0
    for (own, bound), is_true in zip(keys.tolist(), holds.tolist(), strict=True):
        low, high = find_interval(np.array([bound, bound]), *counts, domain_of(own))
        is_within = low <= own <= high
        assert is_within or not is_true
        excluded += not is_within
    assert excluded > 300


@settings(max_examples=60)
@given(st.data())
def test_an_ordered_index_finds_what_a_scan_finds(data: st.DataObject) -> None:
    index = OrderedIndex((0, 1))
    rows = np.zeros((40, 2), dtype=np.int64)
    live: set[int] = set()
    for _ in range(data.draw(st.integers(1, 60))):
        row = data.draw(st.integers(0, 39))
        if row in live:
            index.remove(rows, np.array([row]))
            live.remove(row)
        else:
            ids = np.array([INTEGER_ZERO + data.draw(st.integers(0, 9))])
            rows[row, 0] = data.draw(st.integers(0, 2))
            write_order_keys(ids, rows[row : row + 1], 1)
            index.insert(rows, np.array([row]))
            live.add(row)
    for key in range(3):
        ends = np.array([INTEGER_ZERO + data.draw(st.integers(0, 9)) for _ in range(2)])
        bounds = np.empty((2, 1), dtype=np.int64)
        write_order_keys(ends, bounds, 0)
        probes = np.array([[key, bounds[0, 0], bounds[1, 0]]])
        found = index.expand(rows, probes, (1, 1), np.zeros((1, 2), dtype=np.int64), 1)[:, 1]
        expected = [r for r in live if rows[r, 0] == key and bounds[0, 0] - 2 <= rows[r, 1] <= bounds[1, 0] + 2]
        assert sorted(found.tolist()) == sorted(expected)


VALUES: list[Term | None] = [*TERMS[:4], *TERMS[7:9], TERMS[12], *TERMS[16:20], *TERMS[28:36], NamedNode("urn:y"), None]


def range_join(
    shapes: Sequence[tuple[str, ...]], conditions: Sequence[Expression], *, has_ranges: bool, vocabulary: Vocabulary
) -> tuple[list[ManualInput], MultiwayJoinOperator]:
    """A join with conditions, each a comparison of one input with another."""
    inputs = [ManualInput(*shape) for shape in shapes]
    variables = tuple(dict.fromkeys(v for shape in shapes for v in shape))
    whole = conditions[0]
    for one in conditions[1:]:
        whole = Operation("&&", (whole, one))
    return inputs, MultiwayJoinOperator(
        inputs,
        variables,
        condition=CompiledExpression(whole, variables, vocabulary).test_rows,
        ranges=find_ranges(conditions, inputs, vocabulary) if has_ranges else (),
    )


def find_ranges(
    conditions: Sequence[Expression], inputs: Sequence[Operator], vocabulary: Vocabulary
) -> list[RangeCondition]:
    def compile_expression(expression: Expression, variables: tuple[str, ...]) -> CompiledExpression:
        return CompiledExpression(expression, variables, vocabulary)

    return RangeFinder(inputs, frozenset(), Notation(), compile_expression).find(conditions)


def variable(name: str) -> VariableReference:
    return VariableReference(Variable(name))


ONE = Constant(literal("1", "integer"))
CASES: dict[str, tuple[list[tuple[str, ...]], list[Expression]]] = {
    "band": (
        [("k", "t"), ("k", "u")],
        [
            compare(">", variable("u"), variable("t")),
            compare("<=", variable("u"), Operation("+", (variable("t"), ONE))),
        ],
    ),
    "difference": ([("k", "t"), ("k", "u")], [compare("<", Operation("-", (variable("u"), variable("t"))), ONE)]),
    "no shared variable": ([("a", "t"), ("b", "u")], [compare("<", variable("t"), variable("u"))]),
    "equal values": ([("a", "t"), ("b", "u")], [compare("=", variable("t"), variable("u"))]),
    "three inputs": (
        [("k", "t"), ("k", "u"), ("k", "v")],
        [compare("<=", variable("t"), variable("u")), compare("<", variable("u"), variable("v"))],
    ),
    "a chain without shared variables": (
        [("t",), ("u",), ("v",)],
        [compare(">=", variable("t"), variable("u")), compare(">=", variable("u"), variable("v"))],
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("is_run", [False, True])
@settings(max_examples=40)
@given(data=st.data())
def test_section_3_4_an_ordered_index_changes_no_result(case: str, is_run: bool, data: st.DataObject) -> None:
    """Deltas and runs, numbers, times and terms without order; the join begins and ceases to keep order at any time."""
    vocabulary = Vocabulary()
    shapes, conditions = CASES[case]
    joins = [range_join(shapes, conditions, has_ranges=flag, vocabulary=vocabulary) for flag in (False, True)]
    with pytest.MonkeyPatch.context() as patch:
        # Calls may end in the middle of a change.
        patch.setattr(join_runs, "_MANY_RESULTS", data.draw(st.sampled_from([1, 2, 1000])))
        check_range_join(joins, shapes, vocabulary, is_run, data)


def check_range_join(
    joins: Sequence[tuple[list[ManualInput], MultiwayJoinOperator]],
    shapes: Sequence[tuple[str, ...]],
    vocabulary: Vocabulary,
    is_run: bool,
    data: st.DataObject,
) -> None:
    """The second join, which may keep order, has the results of the first one."""
    results = [ResultBag(join) for _, join in joins]
    ids = vocabulary.ids_of_rows([(value,) for value in VALUES], 1)[:, 0].tolist()
    bags = [Counter[tuple[int, ...]]() for _ in shapes]
    assert joins[1][1].ranges.conditions
    for tick in range(data.draw(st.integers(2, 5))):
        if data.draw(st.booleans()):
            joins[1][1].switch_order()
        size = data.draw(st.integers(1, 4)) if is_run and tick else 0
        for _ in range(max(1, size)):
            for number, (shape, bag) in enumerate(zip(shapes, bags, strict=True)):
                row = st.tuples(*(st.sampled_from((1, 2) if v == "k" else ids) for v in shape))
                added = data.draw(st.lists(row, max_size=5))
                there = sorted(bag.elements())
                gone = (
                    [there[i] for i in data.draw(st.sets(st.integers(0, len(there) - 1), max_size=4))] if there else []
                )
                is_reset = not size and data.draw(st.integers(0, 6)) == 0
                for inputs, _ in joins:
                    if is_reset:
                        inputs[number].replace_all(added, there)
                    else:
                        inputs[number].feed(added, gone)
                    if size:
                        inputs[number].end_tick()
                bag.update(added)
                bag.subtract(there if is_reset else gone)
        answers = [one.advance_run(size) if size else one.advance() for one in results]
        assert answers[0] == answers[1]


def has_order(join: MultiwayJoinOperator) -> bool:
    return join.range_choice.is_ordered


def feed_numbers(source: ManualInput, numbers: Sequence[int], gone: Sequence[int] = ()) -> None:
    """Rows of a number and the key 1."""
    source.feed([(1, INTEGER_ZERO + n) for n in numbers], [(1, INTEGER_ZERO + n) for n in gone])


def advance_many(
    join: MultiwayJoinOperator, inputs: Sequence[ManualInput], ticks: int, numbers: Callable[[int], int], is_run: bool
) -> None:
    """Windows of 200 rows that get one row at each tick."""
    for tick in range(ticks):
        for one in inputs:
            feed_numbers(one, [numbers(tick)], [numbers(tick - 200)] if tick >= 200 else [])
            if is_run and tick:
                one.end_tick()
        if not is_run or not tick:
            join.advance()
    if is_run:
        join.advance_run()


@pytest.mark.parametrize("is_run", [False, True])
def test_section_3_4_order_is_kept_where_few_pairs_are_within_bounds(is_run: bool) -> None:
    vocabulary = Vocabulary()
    inputs, join = range_join(*CASES["band"], has_ranges=True, vocabulary=vocabulary)
    assert not has_order(join)
    advance_many(join, inputs, 1200, lambda tick: tick, is_run)
    assert has_order(join)
    assert any(use.is_ordered for uses in join.index_uses().values() for use in uses)
    assert join.result_count == 199


@pytest.mark.parametrize("is_run", [False, True])
def test_section_3_4_order_is_given_up_where_all_pairs_are_within_bounds(
    is_run: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(range_choice, "_CHANGES_TO_REVIEW", 256)
    vocabulary = Vocabulary()
    inputs, join = range_join(*CASES["no shared variable"], has_ranges=True, vocabulary=vocabulary)
    assert has_order(join)
    left, right = inputs
    right.feed([(1, INTEGER_ZERO + 10_000 + n) for n in range(50)])
    join.advance()
    for block in range(6):
        for tick in range(200):
            left.feed([(1, INTEGER_ZERO + 200 * block + tick)])
            if is_run:
                left.end_tick()
            else:
                join.advance()
        if is_run:
            join.advance_run()
    assert not has_order(join)
    assert join.result_count == 1200 * 50
