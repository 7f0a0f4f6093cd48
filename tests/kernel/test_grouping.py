"""Incremental aggregates equal those of the current bag, after every step of every history."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.kernel.aggregation.grouping import AggregateSpec, GroupOperator
from headwater.kernel.columns.delta import UNBOUND
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.terms.ids.term_ids import is_inline
from headwater.terms.model import XSD, BlankNode, Literal, NamedNode, Term
from headwater.values.aggregates import aggregate
from tests.kernel.manual_input import ManualInput, ResultBag

Value = Term | None
FUNCTIONS = ("COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT")
SPECS = tuple(
    (f"r{number}", AggregateSpec(function, "v", distinct, separator))
    for number, (function, distinct, separator) in enumerate(
        (f, d, s)
        for f, d in product(FUNCTIONS, (False, True))
        for s in ((None, ", ") if f == "GROUP_CONCAT" else (None,))
    )
)


def typed(text: str, datatype: str) -> Literal:
    return Literal(text, datatype=NamedNode(XSD + datatype))


def double(number: float) -> Literal:
    return typed(repr(number), "double")


SPECIAL = (
    *(double(x) for x in (1e308, -1e308, 5e-324, 1e16, 1.0, -1e16, 0.1, 1e-15, 2.0**70, 1e22, -0.0, 1 / 3)),
    *(typed(t, "double") for t in ("INF", "-INF", "NaN", "1.5E2", "9.007199254740991E20", "-1.0E-5", "01")),
    *(typed(t, "float") for t in ("0.1", "16777217", "1.0E-3", "3.4E38", "1e40", "-0.5", "0.3333333333")),
    *(
        typed(t, "decimal")
        for t in ("0.1", "-12.50", "0.000000000000001", "0.000000000000000001", "99999999999999999999.5")
    ),
    *(typed(t, "integer") for t in ("0", "1", "-1", "01", "9223372036854775807", "144115188075855871", "x", "1.0")),
    *(typed(t, "int") for t in ("7", "-8", "07")),
    *(typed(t, "dateTime") for t in ("2020-01-01T00:00:00Z", "2020-01-01T01:00:00+01:00", "2020-13-01T00:00:00Z")),
    *(typed(t, "boolean") for t in ("true", "0", "yes")),
    *(Literal("a", language=language) for language in ("en", "de")),
    Literal("a"),
    typed("-9007199254740991", "decimal"),
    typed("900719925474099.1", "decimal"),
    Literal("a longer text"),
    typed("P1D", "dayTimeDuration"),
    NamedNode("http://example.org/a"),
    BlankNode("b"),
    None,
)
integers = st.integers(-(2**60), 2**60).map(lambda n: typed(str(n), "integer"))
small_integers = st.integers(-5, 5).map(lambda n: typed(str(n), "integer"))
decimals = st.builds(
    lambda mantissa, scale: typed(f"{Decimal(mantissa).scaleb(-scale):f}", "decimal"),
    st.integers(-(2**53), 2**53),
    st.integers(0, 18),
)
doubles = st.floats(allow_nan=False).map(double)
floats = st.floats(width=32, allow_nan=False).map(lambda x: typed(repr(x), "float"))
texts = st.text("abcß", max_size=9).map(Literal)
numbers = st.one_of(small_integers, integers, decimals, doubles, floats)
anything: st.SearchStrategy[Value] = st.one_of(numbers, texts, st.sampled_from(SPECIAL))
rows_of_numbers = st.tuples(st.integers(0, 2), numbers)
rows_of_anything = st.tuples(st.integers(0, 2), anything)


@st.composite
def histories(draw: st.DrawFn, rows: st.SearchStrategy[tuple[int, Value]]) -> list[tuple[list, list]]:  # type: ignore[type-arg]
    """Steps of added and removed rows; only rows that are there, or were just added, can be removed."""
    present: list[tuple[int, Value]] = []
    steps = []
    for _ in range(draw(st.integers(1, 5))):
        added = draw(st.lists(rows, max_size=6))
        present += added
        chosen = draw(st.sets(st.integers(0, max(0, len(present) - 1)), max_size=len(present)))
        removed = [present[i] for i in chosen if i < len(present)]
        present = [row for i, row in enumerate(present) if i not in chosen]
        steps.append((added, removed))
    return steps


def key_term(key: int) -> Literal:
    return typed(str(key), "integer")


Specs = tuple[tuple[str, AggregateSpec], ...]
COMPILED: Specs = tuple(one for one in SPECS if one[1].function in ("COUNT", "SUM", "AVG"))
"""Those that a run of ticks finds in compiled code."""


def expected(present: Counter[tuple[int, Value]], keyed: bool, specs: Specs = SPECS) -> Counter[tuple[Value, ...]]:
    """The aggregates of the current bag, by definition."""
    groups: dict[int, Counter[Value]] = {} if keyed else {0: Counter()}
    for (key, value), times in present.items():
        groups.setdefault(key if keyed else 0, Counter())[value] += times
    found: Counter[tuple[Value, ...]] = Counter()
    for key, values in groups.items():
        results = (
            aggregate(spec.function, values, distinct=spec.distinct, separator=spec.separator) for _, spec in specs
        )
        found[(*((key_term(key),) if keyed else ()), *results)] += 1
    return found


def check(steps: list[tuple[list[tuple[int, Value]], list[tuple[int, Value]]]], keyed: bool) -> None:
    vocabulary = Vocabulary()
    source = ManualInput("k", "v")
    results = ResultBag(GroupOperator(source, ("k",) if keyed else (), SPECS, vocabulary))
    present: Counter[tuple[int, Value]] = Counter()

    def ids(rows: list[tuple[int, Value]]) -> list[tuple[int, int]]:
        return [(vocabulary.id_of(key_term(key)), vocabulary.id_of(value)) for key, value in rows]

    for added, removed in steps:
        source.feed(ids(added), ids(removed))
        present.update(added)
        present.subtract(removed)
        present = +present
        bag = results.advance()
        shown = Counter({tuple(vocabulary.term_of(i) for i in row): times for row, times in bag.items()})
        assert shown == expected(present, keyed)
    check_run(steps, keyed, SPECS)
    check_run(steps, keyed, COMPILED)


def check_run(steps: list[tuple[list[tuple[int, Value]], list[tuple[int, Value]]]], keyed: bool, specs: Specs) -> None:
    """The first step alone, all others as one run of ticks."""
    vocabulary = Vocabulary()
    source = ManualInput("k", "v")
    results = ResultBag(GroupOperator(source, ("k",) if keyed else (), specs, vocabulary))
    results.advance()
    present: Counter[tuple[int, Value]] = Counter()
    wanted = []
    for added, removed in steps:
        source.feed(
            [(vocabulary.id_of(key_term(key)), vocabulary.id_of(value)) for key, value in added],
            [(vocabulary.id_of(key_term(key)), vocabulary.id_of(value)) for key, value in removed],
        )
        source.end_tick()
        present.update(added)
        present.subtract(removed)
        present = +present
        wanted.append(expected(present, keyed, specs))
    bags = results.advance_run(len(steps))
    assert [Counter({tuple(map(vocabulary.term_of, row)): n for row, n in bag.items()}) for bag in bags] == wanted


@settings(max_examples=150, deadline=None)
@given(histories(rows_of_anything), st.booleans())
def test_any_values(steps: list[tuple[list, list]], keyed: bool) -> None:  # type: ignore[type-arg]
    check(steps, keyed)


@settings(max_examples=150, deadline=None)
@given(histories(rows_of_numbers), st.booleans())
def test_numbers(steps: list[tuple[list, list]], keyed: bool) -> None:  # type: ignore[type-arg]
    check(steps, keyed)


@pytest.mark.parametrize("value", SPECIAL, ids=str)
def test_each_special_value_alone_and_beside_one(value: Value) -> None:
    one = typed("1", "integer")
    check([([(0, value)], []), ([(0, one)], []), ([], [(0, value)]), ([], [(0, one)])], keyed=True)
    check([([(0, value)], []), ([(0, one)], []), ([], [(0, value)]), ([], [(0, one)])], keyed=False)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(-(2.0**70), 2.0**70), max_size=30))
def test_the_sum_of_doubles_is_the_correctly_rounded_one(values: list[float]) -> None:
    vocabulary = Vocabulary()
    source = ManualInput("v")
    grouping = GroupOperator(source, (), (("s", AggregateSpec("SUM", "v")),), vocabulary)
    source.feed([(vocabulary.id_of(double(x)),) for x in values])
    (row,) = vocabulary.terms_of_rows(grouping.advance().added)
    assert isinstance(row[0], Literal)
    assert float(row[0].value) == math.fsum(values)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("beyond", [(), (2.0**-11 + 2.0**-63, -(2.0**-11)), (-(2.0**-11) - 2.0**-63, 2.0**-11)])
@pytest.mark.parametrize("halves", range(8))
def test_ties_go_to_even_and_the_smallest_number_decides(halves: int, beyond: tuple[float, ...], sign: int) -> None:
    """The sum lies 0, 1/2, 1, ... steps above two; all numbers are inside their ids."""
    values = [sign * x for x in (1 + halves * 2.0**-52, 1.0, *beyond)]
    vocabulary = Vocabulary()
    source = ManualInput("v")
    grouping = GroupOperator(source, (), (("s", AggregateSpec("SUM", "v")),), vocabulary)
    ids = [vocabulary.id_of(double(x)) for x in values]
    assert all(is_inline(i) for i in ids)
    source.feed([(i,) for i in ids])
    (row,) = vocabulary.terms_of_rows(grouping.advance().added)
    assert isinstance(row[0], Literal)
    assert float(row[0].value) == math.fsum(values)


def test_no_keys_means_one_group_even_of_nothing() -> None:
    vocabulary = Vocabulary()
    specs = (("n", AggregateSpec("COUNT", None)), ("s", AggregateSpec("SUM", "v")), ("m", AggregateSpec("MIN", "v")))
    grouping = GroupOperator(ManualInput("v"), (), specs, vocabulary)
    first = grouping.advance()
    assert vocabulary.terms_of_rows(first.added) == [(key_term(0), key_term(0), None)]
    assert not first.removed.shape[0]
    assert grouping.advance().is_empty


def test_only_groups_that_changed_are_given() -> None:
    vocabulary = Vocabulary()
    source = ManualInput("k", "v")
    grouping = GroupOperator(source, ("k",), (("m", AggregateSpec("MAX", "v")),), vocabulary)
    one, two, nine = (vocabulary.id_of(key_term(n)) for n in (1, 2, 9))
    source.feed([(one, nine), (two, nine)])
    assert grouping.advance().added.shape == (2, 2)
    source.feed([(one, two)])
    assert grouping.advance().is_empty
    source.feed([], [(one, nine)])
    delta = grouping.advance()
    assert delta.added.tolist() == [[one, two]]
    assert delta.removed.tolist() == [[one, nine]]
    source.feed([], [(one, two)])
    delta = grouping.advance()
    assert not delta.added.shape[0]
    assert delta.removed.tolist() == [[one, two]]


def test_count_of_rows_and_of_different_rows() -> None:
    vocabulary = Vocabulary()
    source = ManualInput("k", "v")
    specs = (("n", AggregateSpec("COUNT", None)), ("d", AggregateSpec("COUNT", None, True)))
    results = ResultBag(GroupOperator(source, ("k",), specs, vocabulary))
    one, two, three = (vocabulary.id_of(key_term(n)) for n in (1, 2, 3))
    source.feed([(one, two), (one, two), (one, UNBOUND)])
    assert list(results.advance()) == [(one, three, two)]
    source.feed([], [(one, two)])
    assert list(results.advance()) == [(one, two, two)]
    source.feed([], [(one, two)])
    assert list(results.advance()) == [(one, one, one)]


def test_the_sweep_keeps_what_the_groups_hold() -> None:
    vocabulary = Vocabulary()
    source = ManualInput("v")
    grouping = GroupOperator(source, (), SPECS, vocabulary)
    text = Literal("a text that is too long for an id")
    source.feed([(vocabulary.id_of(text),), (vocabulary.id_of(double(1e300)),)])
    before = vocabulary.terms_of_rows(grouping.advance().added)
    vocabulary.sweep(grouping.ids())
    assert vocabulary.terms_of_rows(grouping._shown) == before
    source.feed([(vocabulary.id_of(key_term(1)),)])
    after = vocabulary.terms_of_rows(grouping.advance().added)
    values: Counter[Value] = Counter([text, double(1e300), key_term(1)])
    assert after[0][-1] == aggregate("GROUP_CONCAT", values, distinct=True, separator=", ")
