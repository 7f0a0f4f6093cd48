"""Comparison with a constant as an interval of values for each inline type, computed once when a filter is compiled.

Within one type and scale the values inside ids grow with the numbers that they mean, so a comparison with a constant is
an interval of values: `?v > 80` holds for a decimal of scale 2 if its mantissa is above 8000. A comparison then costs a
shift, a table look-up and two integer comparisons for each row, whatever the types.

>>> from headwater.terms.model import NamedNode
>>> tables = comparison_tables(">", Literal("80", datatype=NamedNode(XSD + "integer")))
>>> int(tables.lowest[InlineType.DECIMAL * CELLS_PER_TYPE + 2]) - MANTISSA_BIAS
8001
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor
from typing import NamedTuple

import numpy as np

from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.expressions.comparison import CELLS, CELLS_PER_TYPE, FALSE, TRUE, UNDECIDED, Truths
from headwater.terms.ids.inline_layout import (
    BITS_TYPES,
    INSTANT_BIAS,
    INTEGER_BIAS,
    INTEGER_TYPES,
    MANTISSA_BIAS,
    OFFSET_INSTANT_BIAS,
    SCALE_MASK,
    SCIENTIFIC_BIAS,
    SCIENTIFIC_TYPES,
    SINGLE_MANTISSA,
    SINGLE_SCALE,
    VALUE_MASK,
    InlineType,
    id_to_instant,
    id_to_number,
    inline_type,
    is_inline,
    unpack_double,
)
from headwater.terms.ids.term_ids import encode
from headwater.terms.model import XSD, Literal

_INTEGER_FORM = re.compile(r"[+-]?[0-9]{1,18}")
_DECIMAL_FORM = re.compile(r"[+-]?(?:[0-9]{1,18}(?:\.[0-9]{0,15})?|\.[0-9]{1,15})")
_DOUBLE_FORM = re.compile(r"[+-]?(?:[0-9]{1,18}(?:\.[0-9]{0,18})?|\.[0-9]{1,18})(?:[eE][+-]?[0-9]{1,2})?")
_LEAST, _MOST = -(1 << 62), 1 << 62
_HALF_OF_BITS = 1 << 57
_ALL_BITS = range(-_HALF_OF_BITS, _HALF_OF_BITS)
_ALL_MANTISSAS = range(-MANTISSA_BIAS, MANTISSA_BIAS)
_SCALES = range(SCALE_MASK + 1)
_FLOATS = (InlineType.FLOAT, InlineType.FLOAT_SCIENTIFIC)


class ComparisonTables(NamedTuple):
    """For each type and scale: the interval of values, and the truth inside and outside of it."""

    lowest: Ints
    highest: Ints
    inside: Truths
    outside: Truths


def id_of_value(literal: Literal) -> int:
    """The id of a literal of the same value, inline where possible: `1.5e2` is read like `150`."""
    lexical, datatype = literal.value, literal.datatype
    type_name = datatype.value.removeprefix(XSD)
    if type_name in ("integer", "int", "long") and _INTEGER_FORM.fullmatch(lexical):
        return encode(Literal(str(int(lexical)), datatype=datatype))
    if type_name == "decimal" and _DECIMAL_FORM.fullmatch(lexical):
        return encode(Literal(_plain_text(Decimal(lexical)), datatype=datatype))
    if type_name == "double" and _DOUBLE_FORM.fullmatch(lexical) and (number := float(lexical)):
        return encode(Literal(_plain_text(Decimal(repr(number))), datatype=datatype))
    return encode(literal)


def _plain_text(number: Decimal) -> str:
    text = format(number, "f")
    return (text.rstrip("0").rstrip(".") if "." in text else text) if number else "0"


@lru_cache(maxsize=512)
def comparison_tables(operator: str, constant: Literal) -> ComparisonTables | None:
    """The tables for `?v operator constant`; None if ids of the constant's type have no order."""
    constant_id = id_of_value(constant)
    if not is_inline(constant_id):
        return None
    tables = ComparisonTables(
        np.zeros(CELLS, dtype=np.int64),
        np.zeros(CELLS, dtype=np.int64),
        np.full(CELLS, UNDECIDED, dtype=np.uint8),
        np.full(CELLS, UNDECIDED, dtype=np.uint8),
    )
    has_cells = False
    for kind, cell, first, after in _intervals(constant_id):
        place = kind * CELLS_PER_TYPE + cell
        low, high = {
            "<": (_LEAST, first - 1),
            "<=": (_LEAST, after - 1),
            ">": (after, _MOST),
            ">=": (first, _MOST),
        }.get(operator, (first, after - 1))
        tables.lowest[place], tables.highest[place] = _clip(low), _clip(high)
        tables.inside[place], tables.outside[place] = (FALSE, TRUE) if operator == "!=" else (TRUE, FALSE)
        has_cells = True
    return tables if has_cells else None


def _clip(bound: int) -> int:
    """Clip a bound to an int64; no value inside an id is that large."""
    return max(_LEAST, min(bound, _MOST))


def _intervals(constant_id: int) -> Iterator[tuple[InlineType, int, int, int]]:
    """For each type and scale: the first value that is not below the constant, and the first value above it."""
    kind = inline_type(constant_id)
    number = id_to_number(constant_id)
    if number is not None:
        yield from _number_intervals(kind, number)
    elif kind is InlineType.STRING:
        value = constant_id & VALUE_MASK
        yield kind, 0, value, value + 1
    elif kind is InlineType.DATE_TIME:
        instant = _instant_of(constant_id) + INSTANT_BIAS
        yield kind, 0, instant, instant + 1
    elif kind is InlineType.DATE_TIME_UTC or kind is InlineType.DATE_TIME_OFFSET:
        instant = _instant_of(constant_id)
        yield InlineType.DATE_TIME_UTC, 0, instant + INSTANT_BIAS, instant + INSTANT_BIAS + 1
        millis = -(-instant // 1_000) + OFFSET_INSTANT_BIAS
        yield InlineType.DATE_TIME_OFFSET, 0, millis, instant // 1_000 + 1 + OFFSET_INSTANT_BIAS


def _instant_of(constant_id: int) -> int:
    instant = id_to_instant(constant_id)
    assert instant is not None
    return instant


def _number_intervals(kind: InlineType, constant: int | float | Decimal) -> Iterator[tuple[InlineType, int, int, int]]:
    """`_intervals` for a number: values of each numeric type are compared with it as SPARQL promotes them."""
    is_float = kind in _FLOATS
    if not isinstance(constant, float):
        exact = Fraction(constant)
        first, after = _bounds_of(exact)
        for integer in INTEGER_TYPES:
            yield integer, 0, first + INTEGER_BIAS, after + INTEGER_BIAS
        for scale in _SCALES:
            first, after = _bounds_of(exact * 10**scale)
            yield InlineType.DECIMAL, scale, first + MANTISSA_BIAS, after + MANTISSA_BIAS
    elif not is_float:
        integers = range(-INTEGER_BIAS, INTEGER_BIAS)
        first, after = bisect_left(integers, constant, key=float), bisect_right(integers, constant, key=float)
        for integer in INTEGER_TYPES:
            yield integer, 0, first, after
        yield from _scaled_intervals(InlineType.DECIMAL, constant)
    number = float(constant)
    for doubles in (InlineType.DOUBLE, InlineType.DOUBLE_SCIENTIFIC):
        yield from _scaled_intervals(doubles, number)
    first, after = (
        bisect_left(_ALL_BITS, number, key=_bits_to_number),
        bisect_right(_ALL_BITS, number, key=_bits_to_number),
    )
    for bits in BITS_TYPES:
        yield bits, 0, first - _HALF_OF_BITS, after - _HALF_OF_BITS
    if isinstance(constant, float) or _is_exact_single(constant):
        single = number if isinstance(constant, float) else float(np.float32(number))
        for floats in _FLOATS:
            yield from _scaled_intervals(floats, single)


def _bounds_of(exact: Fraction) -> tuple[int, int]:
    """The first integer that is not below, and the first that is above."""
    return ceil(exact), floor(exact) + 1


def _scaled_intervals(kind: InlineType, constant: float) -> Iterator[tuple[InlineType, int, int, int]]:
    """The intervals among the mantissas of a type, compared as doubles."""
    for scale in _SCALES:
        number = _mantissa_to_number(kind, scale)
        first = bisect_left(_ALL_MANTISSAS, constant, key=number)
        yield kind, scale, first, bisect_right(_ALL_MANTISSAS, constant, key=number)


def _mantissa_to_number(kind: InlineType, scale: int) -> Callable[[int], float]:
    power = scale - SCIENTIFIC_BIAS if kind in SCIENTIFIC_TYPES else -scale
    factor = 10.0 ** abs(power)
    if kind in _FLOATS:
        return lambda mantissa: float(np.float32(mantissa * factor if power >= 0 else mantissa / factor))
    return lambda mantissa: mantissa * factor if power >= 0 else mantissa / factor


def _bits_to_number(ordered: int) -> float:
    return unpack_double(ordered) if ordered >= 0 else -unpack_double(-1 - ordered)


def _is_exact_single(constant: int | Decimal) -> bool:
    """Whether digits and exponent are so small that rounding twice equals rounding once (`encode_float`)."""
    _, digits, power = Decimal(constant).normalize().as_tuple()
    mantissa = int("".join(map(str, digits)))
    assert isinstance(power, int)
    return mantissa * 10 ** max(power, 0) <= SINGLE_MANTISSA and -power <= SINGLE_SCALE
