"""The numbers of a group, added in digits of whole words: nothing is rounded, and every number can be subtracted again.

    sum  =  whole  +  fraction / 10^15  +  binary / 2^104

`whole` and `binary` have several digits of 32 bits, each in a word of 64, so that carrying can wait until the value is
needed. `whole` has the integers and the integer parts of decimals, rounded down; `fraction` has the fractional parts
and is never negative: -0.25 is -1 and 0.75. Numbers that are inside their ids fit: integers have at most 58 bits,
decimals at most 15 digits after the point, and doubles lie between 10^-15 and 2^70.
"""

from __future__ import annotations

import math

import numpy as np

from headwater.terms.compiled_code import compiled
from headwater.terms.ids.compiled_decoding import (
    DECIMAL,
    VALUE_CLASSES,
    split_double_bits,
    type_of_id,
    value_of_id,
    value_to_decimal,
    value_to_double,
)
from headwater.terms.ids.inline_layout import (
    INTEGER_BIAS,
    TENS,
    InlineType,
)
from headwater.values.numeric import NumericKind

WHOLE = 0
FRACTION = 2
BINARY = 3
BINARY_DIGITS = 7
KINDS = BINARY + BINARY_DIGITS
ERRORS = KINDS + len(NumericKind)
"""Columns in the row of a group: the digits, then the number of values of each kind, then the number of errors."""
WIDTH = ERRORS + 1
FRACTION_DIGITS = 15
BINARY_SCALE = 104

DIGIT = np.int64(0xFFFFFFFF)
_UNIT = np.int64(10**FRACTION_DIGITS)
_INTEGER, _LAST_INTEGER, _DECIMAL = int(InlineType.INTEGER), int(InlineType.LONG), int(InlineType.DECIMAL)
_FLOAT, _FLOAT_SCIENTIFIC = int(InlineType.FLOAT), int(InlineType.FLOAT_SCIENTIFIC)
_BITS, _LAST_BITS, _QUOTIENT = (
    int(InlineType.DOUBLE_BITS),
    int(InlineType.DOUBLE_BITS_SCIENTIFIC),
    int(InlineType.QUOTIENT),
)


@compiled(inline="always")
def _add_whole(table, group, whole):  # type: ignore[no-untyped-def]
    table[group, WHOLE] += whole & DIGIT
    table[group, WHOLE + 1] += whole >> 32


@compiled(inline="always")
def _add_decimal(table, group, mantissa, scale):  # type: ignore[no-untyped-def]
    whole = mantissa // TENS[scale]
    fraction = table[group, FRACTION] + (mantissa - whole * TENS[scale]) * TENS[FRACTION_DIGITS - scale]
    if fraction >= _UNIT:
        fraction -= _UNIT
        whole += 1
    table[group, FRACTION] = fraction
    _add_whole(table, group, whole)


@compiled(inline="always")
def _add_shifted(table, group, sign, size, exponent):  # type: ignore[no-untyped-def]
    """Add size x 2^exponent, the size positive and below 2^54."""
    place = exponent + BINARY_SCALE
    digit, shift = BINARY + (place >> 5), place & 31
    low = (size & DIGIT) << shift
    high = (size >> 32) << shift
    table[group, digit] += sign * (low & DIGIT)
    table[group, digit + 1] += sign * ((low >> 32) + (high & DIGIT))
    table[group, digit + 2] += sign * (high >> 32)


@compiled(inline="always")
def _add_floating(table, group, sign, kind, value):  # type: ignore[no-untyped-def]
    if kind >= _BITS:
        is_negative, size, exponent = split_double_bits(value)
        _add_shifted(table, group, -sign if is_negative else sign, size, exponent)
        return
    number = value_to_double(VALUE_CLASSES[kind], value)
    if number == 0.0:
        return
    fraction, exponent = math.frexp(abs(number))
    size = np.int64(fraction * 9007199254740992.0)
    _add_shifted(table, group, -sign if number < 0 else sign, size, np.int64(exponent) - 53)


@compiled(inline="always")
def is_rest(number):  # type: ignore[no-untyped-def]
    """Whether a number is left to the caller: it is not inside its id, or a quotient."""
    return number >= 0 or type_of_id(number) == _QUOTIENT


@compiled(inline="always")
def add_number(table, group, number, sign):  # type: ignore[no-untyped-def]
    """Add a number to a group, or subtract it; gives whether it was left to the caller."""
    if is_rest(number):
        return True
    kind, value = type_of_id(number), value_of_id(number)
    if kind >= _INTEGER and kind <= _LAST_INTEGER:
        _add_whole(table, group, sign * (value - INTEGER_BIAS))
        table[group, KINDS] += sign
    elif kind == _DECIMAL:
        mantissa, scale = value_to_decimal(DECIMAL, value)
        _add_decimal(table, group, sign * mantissa, scale)
        table[group, KINDS + 1] += sign
    elif kind > _DECIMAL and kind <= _LAST_BITS:
        _add_floating(table, group, sign, kind, value)
        is_single = kind in (_FLOAT, _FLOAT_SCIENTIFIC)
        table[group, KINDS + (2 if is_single else 3)] += sign
    else:
        table[group, ERRORS] += sign
    return False


@compiled
def add_numbers(table, groups, ids, sign, rest):  # type: ignore[no-untyped-def]
    """Add numbers to groups, or subtract them; gives how many are left to the caller, whose places are in `rest`."""
    rest_count = 0
    for i in range(ids.shape[0]):
        if add_number(table, groups[i], ids[i], sign):
            rest[rest_count] = i
            rest_count += 1
    return rest_count


@compiled(inline="always")
def carry(table, group, first, last):  # type: ignore[no-untyped-def]
    """Carry, so that each digit but the last is below 2^32; the last keeps the sign."""
    for place in range(first, last):
        carried = table[group, place] >> 32
        table[group, place] &= DIGIT
        table[group, place + 1] += carried


@compiled(inline="always")
def _bit_length(number):  # type: ignore[no-untyped-def]
    bits = 0
    while number:
        number >>= 1
        bits += 1
    return bits


@compiled
def _leading_bits(table, group, magnitude):  # type: ignore[no-untyped-def]
    """The sign and first 53 bits of the binary digits, how many bits are cut off, the first of these, and whether any
    other of them is set. `magnitude` is room for the absolute value."""
    last = BINARY_DIGITS - 1
    negative = table[group, BINARY + last] < 0
    borrowed = np.int64(0)
    top = -1
    for place in range(last + 1):
        digit = table[group, BINARY + place]
        if negative:
            digit = -digit - borrowed
            borrowed = np.int64(digit < 0 and place < last)
            digit += borrowed << 32
        magnitude[place] = digit
        if digit:
            top = place
    if top < 0:
        return negative, np.int64(0), 0, False, False
    cut = 32 * top + _bit_length(magnitude[top]) - 53
    if cut <= 0:
        return negative, magnitude[0] | magnitude[1] << 32, 0, False, False
    place, shift = cut >> 5, cut & 31
    size = magnitude[place] >> shift | magnitude[place + 1] << (32 - shift)
    if place + 2 <= last and shift > 10:
        size |= magnitude[place + 2] << (64 - shift)
    half, below = (cut - 1) >> 5, (cut - 1) & 31
    rest = magnitude[half] & ((np.int64(1) << below) - 1)
    for lower in range(half):
        rest |= magnitude[lower]
    return negative, size, cut, (magnitude[half] >> below & 1) != 0, rest != 0


@compiled
def round_to_double(table, group, magnitude):  # type: ignore[no-untyped-def]
    """The double nearest to the binary digits, ties to even."""
    negative, size, cut, half, rest = _leading_bits(table, group, magnitude)
    if half and (rest or size & 1):
        size += 1
    number = math.ldexp(np.float64(size), cut - BINARY_SCALE)
    return -number if negative else number


@compiled
def round_to_float(table, group, magnitude):  # type: ignore[no-untyped-def]
    """The 32-bit float nearest to the binary digits, ties to even."""
    negative, size, cut, half, rest = _leading_bits(table, group, magnitude)
    if half or rest:
        # An odd last bit marks that bits were cut off, so that the second rounding sees no false tie.
        size |= 1
    number = math.ldexp(np.float64(size), cut - BINARY_SCALE)
    return np.float32(-number if negative else number)
