"""What is inside an id that holds its value itself (`headwater.terms.ids.inline_layout`), for compiled code.

Types whose values are read alike are a family: `INT` and `LONG` are integers, and so on. Only numbers and what has an
order among ids have one; the families of numbers are the first, exact ones before doubles before floats.
"""

from __future__ import annotations

import numpy as np

from headwater.terms.compiled_code import compiled
from headwater.terms.ids.inline_layout import (
    DENOMINATOR_BITS,
    DENOMINATOR_MASK,
    FRACTION_BITS,
    INSTANT_BIAS,
    INSTANT_DIGIT_BITS,
    INTEGER_BIAS,
    LOWEST_EXPONENT,
    MANTISSA_BIAS,
    NUMERATOR_BIAS,
    OFFSET_DIGIT_BITS,
    OFFSET_INSTANT_BIAS,
    SCALE_BITS,
    SCALE_MASK,
    SCIENTIFIC_BIAS,
    VALUE_BITS,
    ZONE_BITS,
    InlineType,
)
from headwater.terms.ids.inline_numbers import SINGLE_MANTISSA, SINGLE_SCALE

INTEGER, DECIMAL, DOUBLE, _DOUBLE_SCIENTIFIC, DOUBLE_BITS, FLOAT, FLOAT_SCIENTIFIC, QUOTIENT = range(1, 9)
STRING, LOCAL_TIME, UTC_TIME, OFFSET_TIME = range(9, 13)

_FAMILIES = {
    InlineType.INTEGER: INTEGER,
    InlineType.INT: INTEGER,
    InlineType.LONG: INTEGER,
    InlineType.DECIMAL: DECIMAL,
    InlineType.DOUBLE: DOUBLE,
    InlineType.DOUBLE_SCIENTIFIC: _DOUBLE_SCIENTIFIC,
    InlineType.DOUBLE_BITS: DOUBLE_BITS,
    InlineType.DOUBLE_BITS_SCIENTIFIC: DOUBLE_BITS,
    InlineType.FLOAT: FLOAT,
    InlineType.FLOAT_SCIENTIFIC: FLOAT_SCIENTIFIC,
    InlineType.QUOTIENT: QUOTIENT,
    InlineType.STRING: STRING,
    InlineType.DATE_TIME: LOCAL_TIME,
    InlineType.DATE_TIME_UTC: UTC_TIME,
    InlineType.DATE_TIME_OFFSET: OFFSET_TIME,
}
FAMILY = np.zeros(32, dtype=np.int64)
"""By type; 0 where it has none."""
for _type, _family in _FAMILIES.items():
    FAMILY[_type] = _family

TENS = np.array([10**k for k in range(19)], dtype=np.int64)
POWERS = 10.0 ** np.arange(19)
TWOS = 2.0 ** (np.arange(32) + LOWEST_EXPONENT - FRACTION_BITS)
_FRACTION = np.int64(1) << np.int64(FRACTION_BITS)
_PLACES = SCIENTIFIC_BIAS


@compiled
def family_of(number):  # type: ignore[no-untyped-def]
    return FAMILY[(number >> VALUE_BITS) & 31]


@compiled
def double_value(family, value):  # type: ignore[no-untyped-def]
    """A number as a double, correctly rounded; a quotient as it is before it is cut."""
    if family == INTEGER:
        return np.float64(value - INTEGER_BIAS)
    if family == DOUBLE_BITS:
        size = np.float64(_FRACTION | (value & (_FRACTION - 1))) * TWOS[(value >> FRACTION_BITS) & 31]
        return -size if value >> 57 else size
    if family == QUOTIENT:
        return np.float64((value >> DENOMINATOR_BITS) - NUMERATOR_BIAS) / np.float64(value & DENOMINATOR_MASK)
    mantissa = np.float64((value >> SCALE_BITS) - MANTISSA_BIAS)
    scale = value & SCALE_MASK
    if family in (_DOUBLE_SCIENTIFIC, FLOAT_SCIENTIFIC):
        number = mantissa * POWERS[scale - _PLACES] if scale >= _PLACES else mantissa / POWERS[_PLACES - scale]
    else:
        number = mantissa / POWERS[scale]
    if family >= FLOAT:
        return np.float64(np.float32(number))
    return number


@compiled
def double_of(kind, value):  # type: ignore[no-untyped-def]
    """The nearest double of the number that an inline type of numbers and its value mean."""
    return double_value(FAMILY[kind], value)


@compiled
def single_value(family, value):  # type: ignore[no-untyped-def]
    """An integer, a decimal or a float rounded to a float, as a double; NaN where rounding twice could go wrong."""
    if family in (INTEGER, DECIMAL):
        mantissa, scale = exact_value(family, value)
        if abs(mantissa) > SINGLE_MANTISSA or scale > SINGLE_SCALE:
            return np.nan
        return np.float64(np.float32(np.float64(mantissa) / POWERS[scale]))
    return double_value(family, value)


@compiled
def exact_value(family, value):  # type: ignore[no-untyped-def]
    """Mantissa and scale of an integer or decimal."""
    if family == INTEGER:
        return value - INTEGER_BIAS, np.int64(0)
    return (value >> SCALE_BITS) - MANTISSA_BIAS, value & SCALE_MASK


@compiled
def fits(mantissa, places):  # type: ignore[no-untyped-def]
    """Whether a number can be multiplied by this power of ten."""
    return abs(np.float64(mantissa)) * POWERS[places] < 2.0**62


@compiled
def instant(family, value):  # type: ignore[no-untyped-def]
    """Microseconds since 1970; no zone is read as UTC."""
    if family == OFFSET_TIME:
        return ((value >> (ZONE_BITS + OFFSET_DIGIT_BITS)) - OFFSET_INSTANT_BIAS) * 1_000
    return (value >> INSTANT_DIGIT_BITS) - INSTANT_BIAS
