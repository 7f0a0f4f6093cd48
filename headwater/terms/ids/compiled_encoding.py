"""From values to inline ids (`headwater.terms.ids.inline_layout`), for compiled code.

`pack_*` put bits together; the caller has checked that the parts fit. `*_to_id` take a computed number and give
`NO_ID` where no id holds its text, or where it is not sure which text Python code would write:

- integers and decimals are exact. A quotient is cut after 18 digits; where it then has more digits than a decimal
  inside an id, the id holds the quotient itself.
- the text of a double or float is the shortest one that gives it back: the smallest number of decimals s for which
  round(x · 10^s) / 10^s = x. It is unique while x · 10^s stays below 2^52 (a double) or is exact (a float).
"""

from __future__ import annotations

import math

import numpy as np

from headwater.terms.compiled_code import compiled
from headwater.terms.ids.compiled_decoding import TWOS, can_scale
from headwater.terms.ids.inline_layout import (
    DENOMINATOR_BITS,
    DOUBLE_SIGN,
    FRACTION_BITS,
    IEEE_BIAS,
    INTEGER_BIAS,
    LOWEST_EXPONENT,
    MANTISSA_BIAS,
    NO_ID,
    NO_TERM,
    NUMERATOR_BIAS,
    POWERS,
    QUOTIENT_DIGITS,
    SCALE_BITS,
    SCALE_MASK,
    SINGLE_MANTISSA,
    SINGLE_SCALE,
    TENS,
    VALUE_BITS,
    InlineType,
    inline_id,
    pack_scaled,
)

_HIDDEN_BIT = np.int64(1) << np.int64(FRACTION_BITS)
_LARGEST_MANTISSA = float(MANTISSA_BIAS)
_LARGEST_SINGLE_MANTISSA = float(SINGLE_MANTISSA)
_DENSE_SINGLES = 2.0**24
"""Up to here floats are not further apart than whole numbers."""
_CERTAIN = 2.0**50
_FEW_BITS = 2.0**24
_INTEGER, _DECIMAL, _QUOTIENT = int(InlineType.INTEGER), int(InlineType.DECIMAL), int(InlineType.QUOTIENT)
_DOUBLE, _DOUBLE_BITS, _FLOAT = int(InlineType.DOUBLE), int(InlineType.DOUBLE_BITS), int(InlineType.FLOAT)
_DOUBLE_ZERO = np.int64(inline_id(InlineType.DOUBLE, pack_scaled(0, 0)))
_FLOAT_ZERO = np.int64(inline_id(InlineType.FLOAT, pack_scaled(0, 0)))
_UNKNOWN = np.int64(NO_ID)


@compiled
def pack_inline(kind, value):  # type: ignore[no-untyped-def]
    """The id of an inline type and its 58 bits of value."""
    return np.int64(NO_TERM) + ((np.int64(kind) << VALUE_BITS) | np.int64(value))


@compiled
def pack_digits(mantissa, scale):  # type: ignore[no-untyped-def]
    """58 bits for mantissa and scale (`inline_layout.pack_scaled`)."""
    return ((mantissa + MANTISSA_BIAS) << SCALE_BITS) | scale


@compiled
def pack_positive_double(bits):  # type: ignore[no-untyped-def]
    """57 bits for a positive double whose exponent fits (`inline_layout.pack_double`), given as IEEE bits."""
    exponent = (bits >> FRACTION_BITS) - IEEE_BIAS - LOWEST_EXPONENT
    return (exponent << FRACTION_BITS) | (bits & (_HIDDEN_BIT - 1))


@compiled
def integer_to_id(number):  # type: ignore[no-untyped-def]
    """The id of an xsd:integer."""
    if not -INTEGER_BIAS <= number < INTEGER_BIAS:
        return _UNKNOWN
    return pack_inline(_INTEGER, number + INTEGER_BIAS)


@compiled
def decimal_to_id(mantissa, scale):  # type: ignore[no-untyped-def]
    """The id of the decimal mantissa / 10^scale, written without zeros at its end."""
    while scale > 0 and mantissa % 10 == 0:
        mantissa //= 10
        scale -= 1
    if scale > SCALE_MASK or not -MANTISSA_BIAS <= mantissa < MANTISSA_BIAS:
        return _UNKNOWN
    return pack_inline(_DECIMAL, pack_digits(mantissa, scale))


@compiled
def double_to_id(number):  # type: ignore[no-untyped-def]
    """The id of a double as Python code would write it: by its shortest digits, else by its bits."""
    size = abs(number)
    if number == 0.0:
        return _DOUBLE_ZERO if math.copysign(1.0, number) > 0.0 else _UNKNOWN
    if not size < _LARGEST_MANTISSA:
        return _UNKNOWN
    for scale in range(SCALE_MASK + 1):
        scaled = size * POWERS[scale]
        if scaled > _LARGEST_MANTISSA + 4.0:
            break
        nearest = np.int64(np.rint(scaled))
        reach = 0 if scaled < _CERTAIN else 2
        found = np.int64(-1)
        for mantissa in range(nearest - reach, nearest + reach + 1):
            if np.float64(mantissa) / POWERS[scale] == size:
                if found >= 0 or mantissa >= MANTISSA_BIAS:
                    return _UNKNOWN
                found = np.int64(mantissa)
        if found >= 0:
            signed = -found if number < 0 else found
            return pack_inline(_DOUBLE, pack_digits(signed, scale))
    if not TWOS[0] * _HIDDEN_BIT <= size < TWOS[31] * _HIDDEN_BIT * 2.0:
        return _UNKNOWN
    if size * _FEW_BITS == np.floor(size * _FEW_BITS):
        # It may lie in the middle between two shortest texts, of which there is no telling which one is written.
        return _UNKNOWN
    exponent = 0
    while TWOS[exponent] * _HIDDEN_BIT * 2.0 <= size:
        exponent += 1
    fraction = np.int64(size / TWOS[exponent]) - _HIDDEN_BIT
    bits = np.int64(exponent) << FRACTION_BITS | fraction
    if number < 0:
        bits |= DOUBLE_SIGN
    return pack_inline(_DOUBLE_BITS, bits)


@compiled
def float_to_id(number):  # type: ignore[no-untyped-def]
    """The id of a float as Python code would write it, if its shortest digits fit into one; and whether that is
    sure.

    A float times a power of ten up to 10^12 is exact as a double, and so are the comparisons. Below a power of two
    floats are closer than above, so that other digits than the nearest might do; none of those few is written so (a
    test has them all).
    """
    size = abs(np.float64(number))
    if size == 0.0:
        is_plain = math.copysign(1.0, np.float64(number)) > 0.0
        return _FLOAT_ZERO if is_plain else _UNKNOWN, is_plain
    if not size <= _DENSE_SINGLES:
        return _UNKNOWN, False
    for scale in range(SINGLE_SCALE + 1):
        scaled = size * POWERS[scale]
        nearest = np.rint(scaled)
        if nearest > _LARGEST_SINGLE_MANTISSA:
            break
        if np.float64(np.float32(nearest / POWERS[scale])) == size:
            if abs(scaled - nearest) == 0.5:
                return _UNKNOWN, False
            signed = np.int64(-nearest if number < 0 else nearest)
            return pack_inline(_FLOAT, pack_digits(signed, scale)), True
    return _UNKNOWN, True


@compiled
def quotient_to_id(negative, before, after, numerator, denominator):  # type: ignore[no-untyped-def]
    """The id of a decimal that was cut: its whole part, 18 digits after the point, and the quotient that it was.

    All without the sign; a part of the quotient that is too large to be known is negative.
    """
    places = QUOTIENT_DIGITS
    while places > 0 and after % 10 == 0:
        after //= 10
        places -= 1
    if places <= SCALE_MASK:
        if not can_scale(before, places):
            return _UNKNOWN
        mantissa = before * TENS[places] + after
        return decimal_to_id(-mantissa if negative else mantissa, places)
    if numerator < 0 or denominator < 0:
        return _UNKNOWN
    common, rest = numerator, denominator
    while rest:
        common, rest = rest, common % rest
    numerator, denominator = numerator // common, denominator // common
    if numerator >= NUMERATOR_BIAS or denominator >> DENOMINATOR_BITS:
        return _UNKNOWN
    signed = -numerator if negative else numerator
    return pack_inline(_QUOTIENT, (signed + NUMERATOR_BIAS) << DENOMINATOR_BITS | denominator)
