"""The different ids of a column, and columns of ids as numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

from headwater.terms.ids.distinct_ids import DistinctIds
from headwater.terms.ids.inline_layout import NO_TERM
from headwater.terms.ids.number_columns import decode_numbers
from headwater.terms.ids.term_ids import encode
from headwater.terms.model import XSD, Term

IDS = st.one_of(st.integers(0, 50), st.integers(-(2**63), 2**63 - 1), st.sampled_from([0, 1 << 40, 1 << 50, -1]))


@given(st.lists(IDS), st.booleans())
def test_each_id_once_in_order(listed: list[int], only_hashes: bool) -> None:
    ids = np.array(listed, dtype=np.int64)
    distinct = DistinctIds(ids, only_hashes=only_hashes)
    wanted = [one for one in listed if one >= 0 or not only_hashes]
    assert distinct.ids.tolist() == list(dict.fromkeys(wanted))
    placed = [distinct.ids[place] for one, place in zip(listed, distinct.places, strict=True) if one in wanted]
    assert placed == wanted


@given(st.lists(IDS), st.lists(st.lists(IDS)))
def test_each_id_is_taken_once(listed: list[int], tables: list[list[int]]) -> None:
    distinct = DistinctIds(np.array(listed, dtype=np.int64))
    left = set(listed)
    for table in tables:
        expected = []
        for one in table:
            expected.append(one in left)
            left.discard(one)
        assert distinct.take(np.array(table, dtype=np.int64)).tolist() == expected


def test_many_ids_need_more_slots() -> None:
    ids = np.random.default_rng(3).integers(0, 1 << 62, 20_000)
    distinct = DistinctIds(np.concatenate((ids, ids[::-1])))
    assert distinct.ids.tolist() == list(dict.fromkeys(ids.tolist()))
    assert (distinct.ids[distinct.places] == np.concatenate((ids, ids[::-1]))).all()
    assert distinct.take(ids[::-1]).all()
    assert not distinct.take(ids).any()


def literal(text: str, datatype: str) -> Literal:
    return Literal(text, datatype=NamedNode(XSD + datatype))


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ([Literal(1), None, literal("-7", "long")], [1, 0, -7]),
        ([Literal(1), literal("2.50", "decimal"), literal("1.5E0", "double")], [1.0, 2.5, 1.5]),
        ([literal("0.1", "float"), None], [float(np.float32(0.1)), float("nan")]),
        ([literal("true", "boolean"), literal("0", "boolean")], [True, False]),
        ([Literal(1), Literal("a")], None),
        ([NamedNode("http://ex/a")], None),
        ([literal("true", "boolean"), Literal(1)], None),
        ([None], None),
    ],
)
def test_columns_of_numbers(terms: list[Term | None], expected: list[object] | None) -> None:
    found = decode_numbers(np.array([NO_TERM if term is None else encode(term) for term in terms], dtype=np.int64))
    if expected is None:
        assert found is None
    else:
        assert found is not None
        np.testing.assert_array_equal(found, np.array(expected))


@given(st.lists(st.one_of(st.integers(-(2**40), 2**40), st.integers(-900, 900).map(lambda n: n / 8)), min_size=1))
def test_numbers_are_those_of_the_literals(numbers: list[int | float]) -> None:
    found = decode_numbers(np.array([encode(Literal(number)) for number in numbers], dtype=np.int64))
    assert found is not None
    assert found.tolist() == numbers
