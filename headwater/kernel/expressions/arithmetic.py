"""Arithmetic on ids, for numbers that are inside their ids (`headwater.terms.ids.inline_layout`).

    1 + 2.5   →   3.5        5 / 3   →   1.666666666666666666 (cut after 18 digits)

Types are promoted as pyoxigraph does: integer, then decimal, then float, then double. A result is computed here if it
is certain which text pyoxigraph would write, and if that text fits into an id (`terms.ids.compiled_encoding`); all
other rows are left to `pyoxigraph_evaluation`. Integers and decimals are exact. A float that is computed as a double
and then rounded is what arithmetic on floats gives: 53 bits are more than twice 24.
"""

from __future__ import annotations

import math

import numpy as np

from headwater.terms.compiled_code import compiled
from headwater.terms.ids.compiled_decoding import (
    DOUBLE,
    DOUBLE_BITS,
    FLOAT_SCIENTIFIC,
    INTEGER,
    can_scale,
    value_class_of,
    value_of_id,
    value_to_decimal,
    value_to_double,
    value_to_single,
)
from headwater.terms.ids.compiled_encoding import (
    decimal_to_id,
    double_to_id,
    float_to_id,
    integer_to_id,
    quotient_to_id,
)
from headwater.terms.ids.inline_layout import NO_ID, NO_TERM, TENS

_ADD, _SUBTRACT, _MULTIPLY, _DIVIDE, _NEGATE, _ABS, _CEIL, _FLOOR, _ROUND = range(9)
ARITHMETIC = {"+": _ADD, "-": _SUBTRACT, "*": _MULTIPLY, "/": _DIVIDE, "unary -": _NEGATE}
ROUNDING = {"ABS": _ABS, "CEIL": _CEIL, "FLOOR": _FLOOR, "ROUND": _ROUND}
"""Functions of one number whose result has the same type."""

_LARGEST_PRODUCT = 2.0**56
_LARGEST_DIVISOR = np.int64(1) << 31
_BILLION = np.int64(10**9)
_NO_ID = np.int64(NO_ID)
_UNBOUND = np.int64(NO_TERM)


@compiled
def _cut_quotient(m, n):  # type: ignore[no-untyped-def]
    """m / n as a decimal, cut after 18 digits."""
    numerator, denominator = abs(m), abs(n)
    if denominator == 0 or denominator >= _LARGEST_DIVISOR:
        return _NO_ID
    before = numerator // denominator
    left = (numerator - before * denominator) * _BILLION
    high = left // denominator
    low = (left - high * denominator) * _BILLION // denominator
    return quotient_to_id((m < 0) != (n < 0), before, high * _BILLION + low, numerator, denominator)


@compiled
def _compute_double(operation, p, q):  # type: ignore[no-untyped-def]
    """The result as a double; NaN if it is left to pyoxigraph."""
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
        # A half is rounded up: -0.5 to a negative zero.
        return math.copysign(below + 1.0, p)
    return below


@compiled
def _compute_decimal(operation, m, s, n, t):  # type: ignore[no-untyped-def]
    """The mantissa and scale of a result that is no quotient; a negative scale if it would be too large."""
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
        if not can_scale(m, t - s):
            return m, np.int64(-1)
        m, s = m * TENS[t - s], t
    elif t < s:
        if not can_scale(n, s - t):
            return m, np.int64(-1)
        n = n * TENS[s - t]
    return (m + n if operation == _ADD else m - n), s


@compiled
def _compute(operation, left, right):  # type: ignore[no-untyped-def]
    """The id of the result of one operation; `_NO_ID` where it is left to pyoxigraph."""
    if left >= 0 or right >= 0:
        return _NO_ID
    a, b = value_class_of(left), value_class_of(right)
    if not (INTEGER <= a <= FLOAT_SCIENTIFIC and INTEGER <= b <= FLOAT_SCIENTIFIC):
        return _NO_ID
    x, y = value_of_id(left), value_of_id(right)
    if DOUBLE <= a <= DOUBLE_BITS or DOUBLE <= b <= DOUBLE_BITS:
        return double_to_id(_compute_double(operation, value_to_double(a, x), value_to_double(b, y)))
    if a > DOUBLE_BITS or b > DOUBLE_BITS:
        result, _ = float_to_id(np.float32(_compute_double(operation, value_to_single(a, x), value_to_single(b, y))))
        return result
    m, s = value_to_decimal(a, x)
    n, t = value_to_decimal(b, y)
    if operation == _DIVIDE:
        places = t - s
        if places > 0 and can_scale(m, places):
            return _cut_quotient(m * TENS[places], n)
        if places <= 0 and can_scale(n, -places):
            return _cut_quotient(m, n * TENS[-places])
        return _NO_ID
    m, s = _compute_decimal(operation, m, s, n, t)
    if s < 0:
        return _NO_ID
    if a <= INTEGER and b <= INTEGER:
        return integer_to_id(m)
    return decimal_to_id(m, s)


@compiled
def calculate(operation, left, left_column, left_step, right, right_column, right_step, ids):  # type: ignore[no-untyped-def]
    """Compute an operation row by row; a step of 0 repeats the first row of an operand.

    Writes into `ids`: the id of the result, `UNBOUND` for an unbound operand, `NO_ID` where pyoxigraph
    must compute it. Returns how many of these there are.
    """
    open_count = 0
    for i in range(ids.shape[0]):
        a = left[i * left_step, left_column]
        b = right[i * right_step, right_column]
        if a == _UNBOUND or b == _UNBOUND:
            ids[i] = _UNBOUND
            continue
        ids[i] = _compute(operation, a, b)
        open_count += ids[i] == _NO_ID
    return open_count
