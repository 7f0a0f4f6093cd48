"""Averages as ids: a decimal that is the quotient of two small numbers, cut after 18 digits, is inside its id."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headwater.terms.ids.inline_layout import (
    DENOMINATOR_BITS,
    DENOMINATOR_MASK,
    NUMERATOR_BIAS,
    VALUE_MASK,
    InlineType,
    inline_type,
)
from headwater.terms.ids.term_ids import decode_inline, encode, is_inline
from headwater.terms.model import XSD, Literal, NamedNode
from headwater.values.numeric import DECIMAL_UNIT, decimal_literal


def decimal(lexical: str) -> Literal:
    return Literal(lexical, datatype=NamedNode(XSD + "decimal"))


def cut(numerator: int, denominator: int) -> Literal:
    """The quotient as AVG gives it."""
    size = abs(numerator) * DECIMAL_UNIT // denominator
    found = decimal_literal(-size if numerator < 0 else size)
    assert found is not None
    return found


numerators = st.integers(1 - NUMERATOR_BIAS, NUMERATOR_BIAS - 1)
denominators = st.integers(1, DENOMINATOR_MASK)


@given(numerators, denominators)
@example(1, 3)
@example(-2, 3)
@example(1 - NUMERATOR_BIAS, DENOMINATOR_MASK)
@example(1, DENOMINATOR_MASK)
@example(1, 1 << 16)
def test_every_quotient_of_small_numbers_is_inline_and_comes_back(numerator: int, denominator: int) -> None:
    term = cut(numerator, denominator)
    number = encode(term)
    digits = len(term.value.partition(".")[2])
    if digits > 15:
        exact = Fraction(numerator, denominator)
        assert inline_type(number) is InlineType.QUOTIENT
        assert ((number & VALUE_MASK) >> DENOMINATOR_BITS) - NUMERATOR_BIAS == exact.numerator
        assert number & DENOMINATOR_MASK == exact.denominator
    if is_inline(number):
        assert decode_inline(number) == term


@given(numerators, denominators, st.integers(-2, 2))
def test_neighbours_of_quotients_are_other_terms_with_other_ids(numerator: int, denominator: int, step: int) -> None:
    whole, _, digits = cut(numerator, denominator).value.partition(".")
    if len(digits) == 18:
        beside = decimal(f"{whole}.{int(digits) + step:018d}")
        number = encode(beside)
        assert not is_inline(number) or decode_inline(number) == beside
        assert (number == encode(cut(numerator, denominator))) == (step == 0)


@given(st.from_regex(r"-?(0|[1-9][0-9]{0,20})\.[0-9]{1,20}", fullmatch=True))
def test_any_decimal_comes_back_as_it_was_written(lexical: str) -> None:
    number = encode(decimal(lexical))
    if is_inline(number):
        assert decode_inline(number).value == lexical


@pytest.mark.parametrize(
    "lexical",
    [
        "0.3333333333333333",  # cut too early
        "0.333333333333333334",  # rounded, not cut
        "0.3333333333333333330",
        "0.3333333333333333333",
        "00.333333333333333333",
        "1.000000000000000001",
        "99999999999999999999.333333333333333333",
        "-0.000000000000000000",
    ],
)
def test_what_only_looks_like_an_average_is_hashed(lexical: str) -> None:
    assert not is_inline(encode(decimal(lexical)))
