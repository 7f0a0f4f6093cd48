"""SUM and AVG as ids written in compiled code are those of the definition, for every kind of number and any size."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headwater.kernel.aggregation.sums import SumAccumulator
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.terms.ids.inline_layout import InlineType, inline_type
from headwater.terms.model import XSD, Literal, NamedNode, Term
from headwater.values.aggregates import average, partial_sum, total


def typed(text: str, datatype: str) -> Literal:
    return Literal(text, datatype=NamedNode(XSD + datatype))


def results(values: list[Literal], gone: list[Literal]) -> tuple[Term | None, Term | None, int]:
    """SUM and AVG of values among which others have been, and the id of AVG."""
    vocabulary = Vocabulary()
    sums = SumAccumulator(vocabulary)
    sums.grow(3)
    for terms, sign in ((gone + values, 1), (gone, -1)):
        numbers = np.array([vocabulary.id_of(term) for term in terms], dtype=np.int64)
        sums.change(np.ones(len(terms), dtype=np.int64), numbers, sign)
    (whole,) = sums.sums(np.array([1])).tolist()
    (mean,) = sums.averages(np.array([1])).tolist()
    return vocabulary.term_of(whole), vocabulary.term_of(mean), mean


integers = st.integers(-(10**6), 10**6) | st.integers(-(2**57), 2**57 - 1)
decimals = (
    st.decimals(-(10**6), 10**6, places=3) | st.decimals(-1, 1, places=15) | st.decimals(-(10**15), 10**15, places=0)
)
doubles = st.floats(-1e6, 1e6) | st.floats(-(2.0**69), 2.0**69)
literals = st.one_of(
    integers.map(lambda n: typed(str(n), "integer")),
    decimals.map(lambda d: typed(f"{d:f}", "decimal")),
)
floating = doubles.map(lambda x: typed(repr(x), "double"))


@given(st.lists(literals, min_size=1, max_size=12), st.lists(literals | floating, max_size=4))
@example([typed("1", "integer"), typed("2", "integer"), typed("2", "integer")], [])
@example([typed("-0.5", "decimal")] * 3, [typed("0.25", "decimal")])
@example([typed("-0.000000000000001", "decimal")] * 3, [])
@example([typed(str(2**57 - 1), "integer")] * 3, [])
@example([typed("1", "integer")] + [typed("0", "integer")] * 15, [typed("1e308", "double")])
def test_integers_and_decimals(values: list[Literal], gone: list[Literal]) -> None:
    whole, mean, _ = results(values, gone)
    assert (whole, mean) == (total(Counter(values)), average(Counter(values)))


@given(st.lists(floating, min_size=1, max_size=12), st.lists(literals | floating, max_size=4))
@example([typed("0.1", "double")] * 3, [])
@example([typed("1e16", "double"), typed("-1e16", "double")], [typed("7", "integer")])
@example([typed("0.0001", "double"), typed("0.00000001", "double")], [])
@example([typed("9007199254740991", "double"), typed("2", "double")], [])
def test_doubles(values: list[Literal], gone: list[Literal]) -> None:
    whole, mean, _ = results(values, gone)
    assert (whole, mean) == (total(Counter(values)), average(Counter(values)))


singles = (
    st.decimals(-(10**5), 10**5, places=2).map(lambda d: typed(f"{d:f}", "float"))
    | st.sampled_from(["0.5", "2", "-0.25", "0", "16777216", "0.0009", "1e10", "0.1", "33554432"]).map(
        lambda text: typed(text, "float")
    )
    | st.floats(width=32, allow_nan=False, allow_infinity=False).map(lambda x: typed(str(np.float32(x)), "float"))
)


@given(st.lists(singles, min_size=1, max_size=12), st.lists(literals | floating, max_size=3))
@example([typed("0.1", "float")] * 3, [])
@example([typed("16777216", "float"), typed("1", "float")], [])
@example([typed("16777216", "float"), typed("1", "float"), typed("0.001", "float")], [])
@example([typed("8388610", "float"), typed("0.5", "float"), typed("0.0000000001", "float")], [])
@example([typed("8.5", "float"), typed("-8.5", "float")], [typed("7", "integer")])
@example([typed("12345.67", "float"), typed("0.0123", "float")], [])
def test_floats(values: list[Literal], gone: list[Literal]) -> None:
    whole, mean, mean_id = results(values, gone)
    expected = average(Counter(values))
    assert (whole, mean) == (total(Counter(values)), expected)
    assert expected is None or mean_id == Vocabulary().id_of(expected)


def test_each_small_float_has_the_id_that_it_has_as_a_term() -> None:
    vocabulary = Vocabulary()
    sums, terms = SumAccumulator(vocabulary), [typed(f"{number / 8}", "float") for number in range(-2000, 2000)]
    terms += [typed(f"{number / 1000}", "float") for number in range(1, 4000)]
    groups = np.arange(len(terms))
    sums.grow(len(terms))
    sums.change(groups, np.array([vocabulary.id_of(term) for term in terms]), 1)
    for found, term in zip(sums.sums(groups).tolist(), terms, strict=True):
        expected = total(Counter([term]))
        assert expected is not None and found == vocabulary.id_of(expected), term


@given(st.lists(literals | floating | singles, min_size=1, max_size=8))
def test_mixed_kinds(values: list[Literal]) -> None:
    whole, mean, _ = results(values, [])
    assert (whole, mean) == (total(Counter(values)), average(Counter(values)))


@given(st.lists(st.lists(literals | floating, min_size=1, max_size=5), min_size=1, max_size=4))
def test_partial_sums(parts: list[list[Literal]]) -> None:
    """A group per part, then one group of what they gave, after something was taken away again."""
    vocabulary = Vocabulary()
    sums = SumAccumulator(vocabulary)
    sums.grow(len(parts))
    for group, part in enumerate(parts):
        numbers = np.array([vocabulary.id_of(term) for term in part], dtype=np.int64)
        sums.change(np.full(len(part), group), numbers, 1)
    partial = [vocabulary.term_of(found) for found in sums.partial_sums(np.arange(len(parts))).tolist()]
    assert partial == [partial_sum(Counter(part)) for part in parts]
    given_parts = [term for term in partial if isinstance(term, Literal)]
    values: Counter[Term | None] = Counter(value for part in parts for value in part)
    whole, mean, _ = results(given_parts, given_parts[:1])
    assert (whole, mean) == (total(values), average(values))


@pytest.mark.parametrize(("number", "count"), [(number, count) for number in (0, 1, -7, 100) for count in range(1, 60)])
def test_each_small_average_is_inside_its_id(number: int, count: int) -> None:
    values = [typed(str(number), "integer"), *[typed("0", "integer")] * (count - 1)]
    whole, mean, mean_id = results(values, [])
    assert (whole, mean) == (total(Counter(values)), average(Counter(values)))
    assert inline_type(mean_id) in (InlineType.DECIMAL, InlineType.QUOTIENT)


def test_averages_can_be_added_up_in_turn() -> None:
    third = typed("0.333333333333333333", "decimal")
    whole, mean, _ = results([third, third, third], [third])
    assert (whole, mean) == (typed("0.999999999999999999", "decimal"), third)
