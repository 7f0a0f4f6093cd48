"""Arithmetic on ids, for numbers that are inside their id (`headwater.terms.ids.inline_layout`).

Kinds are promoted as in the general way: integer, then decimal, then float, then double. A result is given where it is
sure which text the general way would write, and where that text fits into an id; every other row is left to it:

- integers and decimals are computed exactly. A quotient is cut after 18 digits; where it then has more digits than a
  decimal inside an id, the id holds the quotient itself.
- the text of a double or float is the shortest one that gives it back: the smallest number of decimals s for which
  round(x · 10^s) / 10^s = x. It is unique while x · 10^s stays below 2^52 (a double) or is exact (a float).
- a float computed as a double and then rounded is what computing with floats gives: 53 bits are more than twice 24.
"""

from __future__ import annotations

import math

import numpy as np

from headwater.kernel.expressions.comparison import NO_ID
from headwater.terms.compiled_code import compiled
from headwater.terms.ids.inline_layout import (
    DENOMINATOR_BITS,
    FRACTION_BITS,
    INTEGER_BIAS,
    MANTISSA_BIAS,
    NO_TERM,
    NUMERATOR_BIAS,
    SCALE_BITS,
    SCALE_MASK,
    VALUE_BITS,
    VALUE_MASK,
    InlineType,
)
from headwater.terms.ids.inline_numbers import SINGLE_MANTISSA, SINGLE_SCALE
from headwater.terms.ids.inline_values import (
    DOUBLE,
    DOUBLE_BITS,
    FLOAT_SCIENTIFIC,
    INTEGER,
    POWERS,
    TENS,
    TWOS,
    double_value,
    exact_value,
    family_of,
    fits,
    single_value,
)

_ADD, _SUBTRACT, _MULTIPLY, _DIVIDE, _NEGATE, _ABS, _CEIL, _FLOOR, _ROUND = range(9)
ARITHMETIC = {"+": _ADD, "-": _SUBTRACT, "*": _MULTIPLY, "/": _DIVIDE, "unary -": _NEGATE}
ROUNDING = {"ABS": _ABS, "CEIL": _CEIL, "FLOOR": _FLOOR, "ROUND": _ROUND}
"""Functions of one number whose result is of the same kind."""

_FRACTION = np.int64(1) << np.int64(FRACTION_BITS)
_LARGEST_MANTISSA = float(MANTISSA_BIAS)
_LARGEST_SINGLE_MANTISSA = float(SINGLE_MANTISSA)
_DENSE_SINGLES = 2.0**24
"""Up to here floats are not further apart than whole numbers."""
_CERTAIN = 2.0**50
_FEW_BITS = 2.0**24
_LARGEST_PRODUCT = 2.0**56
_LARGEST_DIVISOR = np.int64(1) << 31
_QUOTIENT_DIGITS = 18
_BILLION = np.int64(10**9)
_DECIMAL_TYPE = np.int64(NO_TERM + (InlineType.DECIMAL << VALUE_BITS))
_INTEGER_TYPE = np.int64(NO_TERM + (InlineType.INTEGER << VALUE_BITS))
_FLOAT_TYPE = np.int64(NO_TERM + (InlineType.FLOAT << VALUE_BITS))
_DOUBLE_TYPE = np.int64(NO_TERM + (InlineType.DOUBLE << VALUE_BITS))
_BITS_TYPE = np.int64(NO_TERM + (InlineType.DOUBLE_BITS << VALUE_BITS))
_QUOTIENT_TYPE = np.int64(NO_TERM + (InlineType.QUOTIENT << VALUE_BITS))
_ZERO = np.int64(MANTISSA_BIAS << SCALE_BITS)
_UNKNOWN = np.int64(NO_ID)
_NEVER = np.int64(NO_TERM)


@compiled
def decimal_id(mantissa, scale):  # type: ignore[no-untyped-def]
    while scale > 0 and mantissa % 10 == 0:
        mantissa //= 10
        scale -= 1
    if scale > SCALE_MASK or not -MANTISSA_BIAS <= mantissa < MANTISSA_BIAS:
        return _UNKNOWN
    return _DECIMAL_TYPE + ((mantissa + MANTISSA_BIAS) << SCALE_BITS | scale)


@compiled
def double_id(number):  # type: ignore[no-untyped-def]
    """The id of a double as the general way would write it: by its shortest digits, else by its bits."""
    size = abs(number)
    if number == 0.0:
        return _DOUBLE_TYPE + _ZERO if math.copysign(1.0, number) > 0.0 else _UNKNOWN
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
            return _DOUBLE_TYPE + ((signed + MANTISSA_BIAS) << SCALE_BITS | scale)
    if not TWOS[0] * _FRACTION <= size < TWOS[31] * _FRACTION * 2.0:
        return _UNKNOWN
    if size * _FEW_BITS == np.floor(size * _FEW_BITS):
        # It may lie in the middle between two shortest texts, of which there is no telling which one is written.
        return _UNKNOWN
    exponent = 0
    while TWOS[exponent] * _FRACTION * 2.0 <= size:
        exponent += 1
    fraction = np.int64(size / TWOS[exponent]) - _FRACTION
    bits = np.int64(exponent) << FRACTION_BITS | fraction
    if number < 0:
        bits |= np.int64(1) << 57
    return _BITS_TYPE + bits


@compiled
def float_id(number):  # type: ignore[no-untyped-def]
    """The id of a float as the general way would write it, if its shortest digits fit into one; and whether that is
    sure.

    A float times a power of ten up to 10^12 is exact as a double, and so are the comparisons. Below a power of two
    floats are closer than above, so that other digits than the nearest might do; none of those few is written so (a
    test has them all).
    """
    size = abs(np.float64(number))
    if size == 0.0:
        is_plain = math.copysign(1.0, np.float64(number)) > 0.0
        return _FLOAT_TYPE + _ZERO if is_plain else _UNKNOWN, is_plain
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
            return _FLOAT_TYPE + ((signed + MANTISSA_BIAS) << SCALE_BITS | scale), True
    return _UNKNOWN, True


@compiled
def quotient_id(negative, before, after, numerator, denominator):  # type: ignore[no-untyped-def]
    """The id of a decimal that was cut: its whole part, 18 digits after the point, and the quotient that it was.

    All without the sign; a part of the quotient that is too large to be known is negative.
    """
    places = _QUOTIENT_DIGITS
    while places > 0 and after % 10 == 0:
        after //= 10
        places -= 1
    if places <= SCALE_MASK:
        if not fits(before, places):
            return _UNKNOWN
        mantissa = before * TENS[places] + after
        return decimal_id(-mantissa if negative else mantissa, places)
    if numerator < 0 or denominator < 0:
        return _UNKNOWN
    common, rest = numerator, denominator
    while rest:
        common, rest = rest, common % rest
    numerator, denominator = numerator // common, denominator // common
    if numerator >= NUMERATOR_BIAS or denominator >> DENOMINATOR_BITS:
        return _UNKNOWN
    signed = -numerator if negative else numerator
    return _QUOTIENT_TYPE + ((signed + NUMERATOR_BIAS) << DENOMINATOR_BITS | denominator)


@compiled
def _cut_quotient(m, n):  # type: ignore[no-untyped-def]
    """m / n as a decimal, which is cut after 18 digits."""
    numerator, denominator = abs(m), abs(n)
    if denominator == 0 or denominator >= _LARGEST_DIVISOR:
        return _UNKNOWN
    before = numerator // denominator
    left = (numerator - before * denominator) * _BILLION
    high = left // denominator
    low = (left - high * denominator) * _BILLION // denominator
    return quotient_id((m < 0) != (n < 0), before, high * _BILLION + low, numerator, denominator)


@compiled
def _of_doubles(operation, p, q):  # type: ignore[no-untyped-def]
    """The result as a double; NaN where it is left to the general way."""
    if operation == _ADD:
        return p + q
    if operation == _SUBTRACT:
        return p - q
    if operation == _MULTIPLY:
        return p * q
    if operation == _DIVIDE:
        return np.nan if q == 0.0 else p / q
    if operation == _NEGATE:
        return -p
    if operation == _ABS:
        return abs(p)
    if operation == _CEIL:
        return np.ceil(p)
    below = np.floor(p)
    if operation == _ROUND and p - below >= 0.5:
        # A half goes up; of -0.5 that is a zero with a sign.
        return math.copysign(below + 1.0, p)
    return below


@compiled
def _of_decimals(operation, m, s, n, t):  # type: ignore[no-untyped-def]
    """The mantissa and scale of a result that is no quotient; a negative scale where it would be too large."""
    if operation == _MULTIPLY:
        if abs(np.float64(m) * np.float64(n)) > _LARGEST_PRODUCT or s + t > 18:
            return m, np.int64(-1)
        return m * n, s + t
    if operation == _NEGATE:
        return -m, s
    if operation == _ABS:
        return abs(m), s
    if operation > _ABS:
        whole = m // TENS[s]
        rest = m - whole * TENS[s]
        if (operation == _CEIL and rest > 0) or (operation == _ROUND and 2 * rest >= TENS[s]):
            whole += 1
        return whole, np.int64(0)
    if s < t:
        if not fits(m, t - s):
            return m, np.int64(-1)
        m, s = m * TENS[t - s], t
    elif t < s:
        if not fits(n, s - t):
            return m, np.int64(-1)
        n = n * TENS[s - t]
    return (m + n if operation == _ADD else m - n), s


@compiled
def _result(operation, left, right):  # type: ignore[no-untyped-def]
    if left >= 0 or right >= 0:
        return _UNKNOWN
    a, b = family_of(left), family_of(right)
    if not (INTEGER <= a <= FLOAT_SCIENTIFIC and INTEGER <= b <= FLOAT_SCIENTIFIC):
        return _UNKNOWN
    x, y = left & VALUE_MASK, right & VALUE_MASK
    if DOUBLE <= a <= DOUBLE_BITS or DOUBLE <= b <= DOUBLE_BITS:
        return double_id(_of_doubles(operation, double_value(a, x), double_value(b, y)))
    if a > DOUBLE_BITS or b > DOUBLE_BITS:
        found, _ = float_id(np.float32(_of_doubles(operation, single_value(a, x), single_value(b, y))))
        return found
    m, s = exact_value(a, x)
    n, t = exact_value(b, y)
    if operation == _DIVIDE:
        places = t - s
        if places > 0 and fits(m, places):
            return _cut_quotient(m * TENS[places], n)
        if places <= 0 and fits(n, -places):
            return _cut_quotient(m, n * TENS[-places])
        return _UNKNOWN
    m, s = _of_decimals(operation, m, s, n, t)
    if s < 0:
        return _UNKNOWN
    if a <= INTEGER and b <= INTEGER:
        if not -INTEGER_BIAS <= m < INTEGER_BIAS:
            return _UNKNOWN
        return _INTEGER_TYPE + (m + INTEGER_BIAS)
    return decimal_id(m, s)


@compiled
def calculate(operation, left, left_column, left_step, right, right_column, right_step, ids):  # type: ignore[no-untyped-def]
    """The ids of the results, `NO_ID` where they are not computed here; gives how many those are."""
    unknown = 0
    for i in range(ids.shape[0]):
        a = left[i * left_step, left_column]
        b = right[i * right_step, right_column]
        if a == _NEVER or b == _NEVER:
            ids[i] = _NEVER
            continue
        ids[i] = _result(operation, a, b)
        unknown += ids[i] == _UNKNOWN
    return unknown
