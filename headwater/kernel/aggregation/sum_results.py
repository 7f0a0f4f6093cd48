"""SUM and AVG as ids, from the digits of `sum_digits`, for results whose term is inside its id.

The kinds of a group's numbers decide the datatype (`headwater.values.numeric`): integers alone give an integer, with
decimals a decimal, floats alone a float, doubles alone a double. An average of integers or decimals is cut after 18
digits. Other mixtures, and results that do not fit into an id, are left to the caller as `NO_ID`. For a float that
certainly does not fit, the value is given too, because most floats have more digits than an id holds.

    1 + 2 + 2   AVG: 5 / 3   →   1.666666666666666666      the id holds the quotient itself
    0.5 + 1     AVG: 1.5 / 2 →   0.75
"""

from __future__ import annotations

import numpy as np

from headwater.kernel.aggregation.sum_digits import (
    BINARY,
    BINARY_DIGITS,
    ERRORS,
    FRACTION,
    FRACTION_DIGITS,
    KINDS,
    WHOLE,
    add_number,
    carry,
    round_to_double,
    round_to_float,
)
from headwater.terms.compiled_code import compiled
from headwater.terms.ids.compiled_encoding import decimal_to_id, double_to_id, float_to_id, quotient_to_id
from headwater.terms.ids.inline_layout import INTEGER_ZERO, NO_ID, TENS

_NO_ID = np.int64(NO_ID)
_ZERO = np.int64(INTEGER_ZERO)
_UNIT = np.int64(10**FRACTION_DIGITS)
_BILLION = np.int64(10**9)
_LARGEST_WHOLE = np.int64(1) << 25
_LARGEST_COUNT = np.int64(1) << 31
_LARGEST_NUMERATOR = 2.0**62
_INTEGERS, _DECIMALS, _FLOATS, _DOUBLES, _OTHERS = 0, 1, 2, 3, -1


@compiled(inline="always")
def _carry_and_classify(table, group, has_rest):  # type: ignore[no-untyped-def]
    """Carry the digits; gives the kind of the sum, `_OTHERS` if it is left to the caller."""
    carry(table, group, WHOLE, WHOLE + 1)
    carry(table, group, BINARY, BINARY + BINARY_DIGITS - 1)
    if has_rest or table[group, ERRORS]:
        return _OTHERS
    if table[group, KINDS + 2] or table[group, KINDS + 3]:
        if table[group, KINDS] or table[group, KINDS + 1] or (table[group, KINDS + 2] and table[group, KINDS + 3]):
            return _OTHERS
        return _DOUBLES if table[group, KINDS + 3] else _FLOATS
    if not -_LARGEST_WHOLE <= table[group, WHOLE + 1] < _LARGEST_WHOLE:
        return _OTHERS
    return _DECIMALS if table[group, KINDS + 1] else _INTEGERS


@compiled(inline="always")
def _whole(table, group):  # type: ignore[no-untyped-def]
    return (table[group, WHOLE + 1] << 32) + table[group, WHOLE]


@compiled(inline="always")
def _absolute(whole, fraction):  # type: ignore[no-untyped-def]
    """The absolute value of a whole number plus a fraction."""
    if whole >= 0:
        return whole, fraction
    if fraction == 0:
        return -whole, fraction
    return -whole - 1, _UNIT - fraction


@compiled(inline="always")
def _strip_zeros(number, places):  # type: ignore[no-untyped-def]
    """The digits after the point without trailing zeros, and their number."""
    if number == 0:
        return number, 0
    while number % 10 == 0:
        number //= 10
        places -= 1
    return number, places


@compiled(inline="always")
def _scale(whole, fraction, places):  # type: ignore[no-untyped-def]
    """whole x 10^places + fraction; negative if that is too large."""
    power = TENS[places]
    if np.float64(whole) * np.float64(power) > _LARGEST_NUMERATOR:
        return np.int64(-1)
    return whole * power + fraction


@compiled(inline="always")
def _decimal(whole, fraction):  # type: ignore[no-untyped-def]
    size, part = _absolute(whole, fraction)
    part, places = _strip_zeros(part, FRACTION_DIGITS)
    mantissa = _scale(size, part, places)
    if mantissa < 0:
        return _NO_ID
    return decimal_to_id(-mantissa if whole < 0 else mantissa, places)


@compiled
def _quotient(whole, fraction, count):  # type: ignore[no-untyped-def]
    """The decimal (whole + fraction / 10^15) / count, cut after 18 digits."""
    if count >= _LARGEST_COUNT:
        return _NO_ID
    size, part = _absolute(whole, fraction)
    before = size // count
    remainder = (size - before * count) * 1_000_000 + part // _BILLION
    after = remainder // count
    remainder = (remainder - after * count) * _BILLION + part % _BILLION
    more = remainder // count
    remainder = (remainder - more * count) * 1_000
    after = (after * _BILLION + more) * 1_000 + remainder // count
    part, places = _strip_zeros(part, FRACTION_DIGITS)
    numerator, denominator = _scale(size, part, places), _scale(count, np.int64(0), places)
    return quotient_to_id(whole < 0, before, after, numerator, denominator)


@compiled(inline="always")
def _float_result(number):  # type: ignore[no-untyped-def]
    """The id of a float, and the float itself if it certainly has this id or none."""
    result, is_sure = float_to_id(number)
    return result, number if is_sure else np.float32(np.nan)


@compiled(inline="always")
def _write_sum(table, group, has_rest, ids, singles, i, magnitude):  # type: ignore[no-untyped-def]
    """Write the SUM of a group; gives whether it is left to the caller."""
    kind = _carry_and_classify(table, group, has_rest)
    result = _NO_ID
    if kind == _INTEGERS:
        result = _ZERO + _whole(table, group)
    elif kind == _DECIMALS:
        result = _decimal(_whole(table, group), table[group, FRACTION])
    elif kind == _DOUBLES:
        result = double_to_id(round_to_double(table, group, magnitude))
    elif kind == _FLOATS:
        result, singles[i] = _float_result(round_to_float(table, group, magnitude))
    ids[i] = result
    return result == _NO_ID


@compiled(inline="always")
def _write_average(table, group, has_rest, ids, singles, i, magnitude):  # type: ignore[no-untyped-def]
    """Write the AVG of a group; gives whether it is left to the caller."""
    kind = _carry_and_classify(table, group, has_rest)
    result = _NO_ID
    if kind in (_INTEGERS, _DECIMALS):
        count = table[group, KINDS] + table[group, KINDS + 1]
        result = _quotient(_whole(table, group), table[group, FRACTION], count) if count else _ZERO
    elif kind == _DOUBLES:
        result = double_to_id(round_to_double(table, group, magnitude) / np.float64(table[group, KINDS + 3]))
    elif kind == _FLOATS:
        total = np.float64(round_to_float(table, group, magnitude))
        result, singles[i] = _float_result(np.float32(total / np.float64(np.float32(table[group, KINDS + 2]))))
    ids[i] = result
    return result == _NO_ID


@compiled
def write_sums(table, groups, has_rest, ids, singles, magnitude):  # type: ignore[no-untyped-def]
    """Write the SUM of some groups to `ids`, and of floats to `singles`, too; gives how many are left to the caller.

    `magnitude` is room for the digits of one number.
    """
    open_count = 0
    for i in range(groups.shape[0]):
        open_count += _write_sum(table, groups[i], has_rest[groups[i]], ids, singles, i, magnitude)
    return open_count


@compiled
def write_averages(table, groups, has_rest, ids, singles, magnitude):  # type: ignore[no-untyped-def]
    """The same for the AVG of some groups."""
    open_count = 0
    for i in range(groups.shape[0]):
        open_count += _write_average(table, groups[i], has_rest[groups[i]], ids, singles, i, magnitude)
    return open_count


@compiled
def sum_in_turn(  # type: ignore[no-untyped-def]
    table, groups, ids, signs, is_end, has_rest, start, written, sums, averages, singles, magnitude
):
    """Add numbers, one after the other, and write SUM and AVG of the group (if there is room) where `is_end` is set.

    Stops at a number or a result that is left to the caller; gives its place, and how many results are written before.
    """
    for i in range(start, groups.shape[0]):
        group = groups[i]
        if signs[i] != 0 and add_number(table, group, ids[i], np.int64(signs[i])):
            return i, written
        if is_end[i]:
            is_open = sums.shape[0] > 0 and _write_sum(table, group, has_rest[group], sums, singles, written, magnitude)
            if averages.shape[0] > 0 and not is_open:
                is_open = _write_average(table, group, has_rest[group], averages, singles, written, magnitude)
            if is_open:
                return i, written
            written += 1
    return groups.shape[0], written
