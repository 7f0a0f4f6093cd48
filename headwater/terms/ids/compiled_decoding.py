"""From inline ids (`headwater.terms.ids.inline_layout`) to numbers and times, for compiled code.

Types whose values are read alike form a value class: `INT` and `LONG` are integers, and so on. Only numbers and what
has an order among ids have one; the classes of numbers are the first, exact ones before doubles before floats.
"""

from __future__ import annotations

import numpy as np

from headwater.terms.compiled_code import compiled
from headwater.terms.ids.inline_layout import (
    DENOMINATOR_BITS,
    DENOMINATOR_MASK,
    DOUBLE_SIGN,
    FRACTION_BITS,
    INSTANT_BIAS,
    INSTANT_DIGIT_BITS,
    INTEGER_BIAS,
    LOWEST_EXPONENT,
    MANTISSA_BIAS,
    NUMERATOR_BIAS,
    OFFSET_DIGIT_BITS,
    OFFSET_INSTANT_BIAS,
    POWERS,
    SCALE_BITS,
    SCALE_MASK,
    SCIENTIFIC_BIAS,
    SINGLE_MANTISSA,
    SINGLE_SCALE,
    VALUE_BITS,
    VALUE_MASK,
    ZONE_BITS,
    InlineType,
)

INTEGER, DECIMAL, DOUBLE, _DOUBLE_SCIENTIFIC, DOUBLE_BITS, FLOAT, FLOAT_SCIENTIFIC, QUOTIENT = range(1, 9)
STRING, LOCAL_TIME, UTC_TIME, OFFSET_TIME = range(9, 13)

_CLASSES_BY_TYPE = {
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
VALUE_CLASSES = np.zeros(32, dtype=np.int64)
"""By type; 0 where it has none."""
for _type, _class in _CLASSES_BY_TYPE.items():
    VALUE_CLASSES[_type] = _class

TWOS = 2.0 ** (np.arange(32) + LOWEST_EXPONENT - FRACTION_BITS)
_FRACTION = np.int64(1) << np.int64(FRACTION_BITS)
_PLACES = SCIENTIFIC_BIAS


@compiled
def type_of_id(term_id):  # type: ignore[no-untyped-def]
    """The `InlineType` of an inline id, as a number."""
    return (term_id >> VALUE_BITS) & 31


@compiled
def value_of_id(term_id):  # type: ignore[no-untyped-def]
    """The 58 bits of value of an inline id."""
    return term_id & VALUE_MASK


@compiled
def value_class_of(term_id):  # type: ignore[no-untyped-def]
    """The value class of an inline id; 0 where it has none."""
    return VALUE_CLASSES[type_of_id(term_id)]


@compiled
def split_double_bits(value):  # type: ignore[no-untyped-def]
    """Of double bits: whether they are negative, and size and exponent of the number ± size x 2^exponent."""
    size = _FRACTION | (value & (_FRACTION - 1))
    exponent = ((value >> FRACTION_BITS) & 31) + LOWEST_EXPONENT - FRACTION_BITS
    return value & DOUBLE_SIGN != 0, size, exponent


@compiled
def value_to_double(value_class, value):  # type: ignore[no-untyped-def]
    """A number as a double, correctly rounded; a quotient as it is before it is cut."""
    if value_class == INTEGER:
        return np.float64(value - INTEGER_BIAS)
    if value_class == DOUBLE_BITS:
        size = np.float64(_FRACTION | (value & (_FRACTION - 1))) * TWOS[(value >> FRACTION_BITS) & 31]
        return -size if value & DOUBLE_SIGN else size
    if value_class == QUOTIENT:
        return np.float64((value >> DENOMINATOR_BITS) - NUMERATOR_BIAS) / np.float64(value & DENOMINATOR_MASK)
    mantissa = np.float64((value >> SCALE_BITS) - MANTISSA_BIAS)
    scale = value & SCALE_MASK
    if value_class in (_DOUBLE_SCIENTIFIC, FLOAT_SCIENTIFIC):
        number = mantissa * POWERS[scale - _PLACES] if scale >= _PLACES else mantissa / POWERS[_PLACES - scale]
    else:
        number = mantissa / POWERS[scale]
    if value_class >= FLOAT:
        return np.float64(np.float32(number))
    return number


@compiled
def value_to_single(value_class, value):  # type: ignore[no-untyped-def]
    """An integer, a decimal or a float rounded to a float, as a double; NaN where rounding twice could go wrong."""
    if value_class in (INTEGER, DECIMAL):
        mantissa, scale = value_to_decimal(value_class, value)
        if abs(mantissa) > SINGLE_MANTISSA or scale > SINGLE_SCALE:
            return np.nan
        return np.float64(np.float32(np.float64(mantissa) / POWERS[scale]))
    return value_to_double(value_class, value)


@compiled
def value_to_decimal(value_class, value):  # type: ignore[no-untyped-def]
    """Mantissa and scale of an integer or decimal."""
    if value_class == INTEGER:
        return value - INTEGER_BIAS, np.int64(0)
    return (value >> SCALE_BITS) - MANTISSA_BIAS, value & SCALE_MASK


@compiled
def can_scale(mantissa, places):  # type: ignore[no-untyped-def]
    """Whether a number can be multiplied by this power of ten."""
    return abs(np.float64(mantissa)) * POWERS[places] < 2.0**62


@compiled
def value_to_instant(value_class, value):  # type: ignore[no-untyped-def]
    """Microseconds since 1970; no zone is read as UTC."""
    if value_class == OFFSET_TIME:
        return ((value >> (ZONE_BITS + OFFSET_DIGIT_BITS)) - OFFSET_INSTANT_BIAS) * 1_000
    return (value >> INSTANT_DIGIT_BITS) - INSTANT_BIAS
