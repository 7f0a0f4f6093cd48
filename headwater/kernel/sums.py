"""Sums per group that forget: whatever is added can be taken away again, and nothing is ever rounded on the way.

A group has whole numbers in digits of 32 bits, each in a word of 64, so that carries can wait until the value is asked
for:

    sum  =  integers  +  decimals / 10^15  +  binaries / 2^104  +  rest

Numbers that are inside their ids fit there: integers and decimals have at most 58 bits and 15 digits after the point,
and the doubles lie between 10^-15 and 2^70. All others (the `rest`) are found through the vocabulary and kept as
Python's integers. The value is that of `headwater.reference.numeric`, hence the same for every history.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numba as nb
import numpy as np
import numpy.typing as npt

from headwater.kernel.delta import UNBOUND
from headwater.kernel.index import Ints
from headwater.kernel.numbering import enlarged
from headwater.kernel.relation import NOTHING
from headwater.kernel.vocabulary import Vocabulary
from headwater.reference.numeric import (
    BINARY_BITS,
    DECIMAL_DIGITS,
    DECIMAL_UNIT,
    ExactSum,
    Kind,
    decimal_literal,
    floating_literal,
    number_of,
)
from headwater.terms.inline_layout import (
    FRACTION_BITS,
    INTEGER_BIAS,
    LOWEST_EXPONENT,
    MANTISSA_BIAS,
    PAYLOAD_MASK,
    SCALE_BITS,
    SCALE_MASK,
    SCIENTIFIC_BIAS,
    VALUE_BITS,
    VALUE_MASK,
    InlineType,
    inline_id,
    pack_scaled,
)

Doubles = npt.NDArray[np.float64]

_ZERO = inline_id(InlineType.INTEGER, INTEGER_BIAS)
_INTEGER, _LAST_INTEGER, _DECIMAL = int(InlineType.INTEGER), int(InlineType.LONG), int(InlineType.DECIMAL)
_FLOAT, _FLOAT_SCIENTIFIC = int(InlineType.FLOAT), int(InlineType.FLOAT_SCIENTIFIC)
_SCIENTIFIC, _BITS, _LAST_BITS = (
    int(InlineType.DOUBLE_SCIENTIFIC),
    int(InlineType.DOUBLE_BITS),
    int(InlineType.DOUBLE_BITS_SCIENTIFIC),
)
_DIGIT = np.int64(0xFFFFFFFF)
_DECIMAL_SCALE = 15
_BINARY_SCALE = 104
_INTEGER_DIGITS, _DECIMAL_DIGITS, _BINARY_DIGITS = 2, 5, 7
_DECIMALS = _INTEGER_DIGITS
_BINARIES = _DECIMALS + _DECIMAL_DIGITS
_KINDS = _BINARIES + _BINARY_DIGITS
"""In the row of a group: where its digits begin, then how many numbers of each kind, then how many errors."""
_ERRORS = _KINDS + len(Kind)
_WIDTH = _ERRORS + 1
_POWERS = np.array([10**i for i in range(_DECIMAL_SCALE + 1)], dtype=np.int64)
_FLOAT_POWERS = np.array([10.0**i for i in range(_DECIMAL_SCALE + 1)], dtype=np.float64)


@nb.njit(cache=True, inline="always")
def _add_product(digits, sign, size, power):  # type: ignore[no-untyped-def]
    """Add the product of two positive numbers, the first below 2^58 and the second below 2^50."""
    low, high = size & _DIGIT, size >> 32
    low_power, high_power = power & _DIGIT, power >> 32
    first = np.uint64(low) * np.uint64(low_power)
    left, right = low * high_power, high * low_power
    last = high * high_power
    digits[_DECIMALS] += sign * np.int64(first & np.uint64(_DIGIT))
    digits[_DECIMALS + 1] += sign * (np.int64(first >> np.uint64(32)) + (left & _DIGIT) + (right & _DIGIT))
    digits[_DECIMALS + 2] += sign * ((left >> 32) + (right >> 32) + (last & _DIGIT))
    digits[_DECIMALS + 3] += sign * (last >> 32)


@nb.njit(cache=True, inline="always")
def _add_shifted(digits, sign, size, exponent):  # type: ignore[no-untyped-def]
    """Add size x 2^exponent, the size positive and below 2^54."""
    place = exponent + _BINARY_SCALE
    digit, shift = _BINARIES + (place >> 5), place & 31
    low = (size & _DIGIT) << shift
    high = (size >> 32) << shift
    digits[digit] += sign * (low & _DIGIT)
    digits[digit + 1] += sign * ((low >> 32) + (high & _DIGIT))
    digits[digit + 2] += sign * (high >> 32)


@nb.njit(cache=True, inline="always")
def _add_floating(digits, sign, kind, value):  # type: ignore[no-untyped-def]
    if kind >= _BITS:
        size = np.int64(1) << FRACTION_BITS | value & ((np.int64(1) << FRACTION_BITS) - 1)
        exponent = (value >> FRACTION_BITS & 31) + LOWEST_EXPONENT - FRACTION_BITS
        _add_shifted(digits, -sign if value >> (VALUE_BITS - 1) else sign, size, exponent)
        return
    mantissa = (value >> SCALE_BITS) - MANTISSA_BIAS
    if mantissa == 0:
        return
    scale = value & SCALE_MASK
    if kind < _SCIENTIFIC:
        number = mantissa / _FLOAT_POWERS[scale]
    elif scale < SCIENTIFIC_BIAS:
        number = mantissa / _FLOAT_POWERS[SCIENTIFIC_BIAS - scale]
    else:
        number = mantissa * _FLOAT_POWERS[scale - SCIENTIFIC_BIAS]
    if kind in (_FLOAT, _FLOAT_SCIENTIFIC):
        number = np.float64(np.float32(number))
    fraction, exponent = math.frexp(abs(number))
    size = np.int64(fraction * 9007199254740992.0)
    _add_shifted(digits, -sign if number < 0 else sign, size, np.int64(exponent) - 53)


@nb.njit(cache=True)
def _add(table, groups, ids, sign, rest):  # type: ignore[no-untyped-def]
    """Add numbers to groups, or take them away; gives how many had to be left to the caller, listed in `rest`."""
    left = 0
    for i in range(ids.shape[0]):
        number = ids[i]
        if number >= 0:
            rest[left] = i
            left += 1
            continue
        digits = table[groups[i]]
        kind = (number & PAYLOAD_MASK) >> VALUE_BITS
        value = number & VALUE_MASK
        if kind >= _INTEGER and kind <= _LAST_INTEGER:
            whole = value - INTEGER_BIAS
            digits[0] += sign * (whole & _DIGIT)
            digits[1] += sign * (whole >> 32)
            digits[_KINDS] += sign
        elif kind == _DECIMAL:
            mantissa = (value >> SCALE_BITS) - MANTISSA_BIAS
            power = _POWERS[_DECIMAL_SCALE - (value & SCALE_MASK)]
            _add_product(digits, -sign if mantissa < 0 else sign, abs(mantissa), power)
            digits[_KINDS + 1] += sign
        elif kind > _DECIMAL and kind <= _LAST_BITS:
            _add_floating(digits, sign, kind, value)
            is_single = kind in (_FLOAT, _FLOAT_SCIENTIFIC)
            digits[_KINDS + (2 if is_single else 3)] += sign
        else:
            digits[_ERRORS] += sign
    return left


@nb.njit(cache=True, inline="always")
def _carry(digits, first, last):  # type: ignore[no-untyped-def]
    for place in range(first, last):
        over = digits[place] >> 32
        digits[place] &= _DIGIT
        digits[place + 1] += over


@nb.njit(cache=True, inline="always")
def _size_of(number):  # type: ignore[no-untyped-def]
    bits = 0
    while number:
        number >>= 1
        bits += 1
    return bits


@nb.njit(cache=True)
def _rounded(digits, magnitude):  # type: ignore[no-untyped-def]
    """The nearest double of the binary digits, ties to even; `magnitude` is room for their absolute value."""
    last = _BINARY_DIGITS - 1
    negative = digits[_BINARIES + last] < 0
    borrowed = np.int64(0)
    top = -1
    for place in range(last + 1):
        digit = digits[_BINARIES + place]
        if negative:
            digit = -digit - borrowed
            borrowed = np.int64(digit < 0 and place < last)
            digit += borrowed << 32
        magnitude[place] = digit
        if digit:
            top = place
    if top < 0:
        return 0.0
    length = 32 * top + _size_of(magnitude[top])
    cut = length - 53
    size = np.int64(0)
    if cut <= 0:
        cut = 0
        size = magnitude[0] | magnitude[1] << 32
    else:
        place, shift = cut >> 5, cut & 31
        size = magnitude[place] >> shift | magnitude[place + 1] << (32 - shift)
        if place + 2 <= last and shift > 10:
            size |= magnitude[place + 2] << (64 - shift)
        half, below = (cut - 1) >> 5, (cut - 1) & 31
        if magnitude[half] >> below & 1:
            rest = magnitude[half] & ((np.int64(1) << below) - 1)
            for lower in range(half):
                rest |= magnitude[lower]
            if rest or size & 1:
                size += 1
    number = math.ldexp(np.float64(size), cut - _BINARY_SCALE)
    return -number if negative else number


@nb.njit(cache=True)
def _settle(table, groups, has_rest, kinds, wholes, doubles, counts):  # type: ignore[no-untyped-def]
    """Carry; then sort groups into those of small integers alone (0), of doubles alone (3) and all others (-1)."""
    magnitude = np.zeros(_BINARY_DIGITS + 1, dtype=np.int64)
    for i in range(groups.shape[0]):
        digits = table[groups[i]]
        _carry(digits, 0, _INTEGER_DIGITS - 1)
        _carry(digits, _DECIMALS, _DECIMALS + _DECIMAL_DIGITS - 1)
        _carry(digits, _BINARIES, _BINARIES + _BINARY_DIGITS - 1)
        kinds[i] = -1
        if has_rest[i] or digits[_ERRORS] or digits[_KINDS + 1] or digits[_KINDS + 2]:
            continue
        if digits[_KINDS + 3] == 0 and -(1 << 25) <= digits[1] < (1 << 25):
            kinds[i] = 0
            wholes[i] = (digits[1] << 32) + digits[0]
            counts[i] = digits[_KINDS]
        elif digits[_KINDS] == 0 and digits[_KINDS + 3]:
            kinds[i] = 3
            doubles[i] = _rounded(digits, magnitude)
            counts[i] = digits[_KINDS + 3]


class Sums:
    """The sum of the numbers of each group, and how many there are."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._table: Ints = np.zeros((0, _WIDTH), dtype=np.int64)
        self._rest: dict[int, ExactSum] = {}

    def grow(self, capacity: int) -> None:
        """Make room for groups."""
        before = self._table.shape[0]
        self._table = enlarged(self._table, capacity)
        self._table[before:] = 0

    def change(self, groups: Ints, ids: Ints, sign: int) -> None:
        """Add values to groups, or take them away."""
        rest = np.empty(ids.shape[0], dtype=np.int64)
        left = _add(self._table, groups, ids, sign, rest)
        for i in rest[:left].tolist():
            self._change_rest(int(groups[i]), int(ids[i]), sign)

    def _change_rest(self, group: int, number: int, sign: int) -> None:
        term = self._vocabulary.term_of(number)
        found = None if term is None else number_of(term)
        if found is None:
            self._table[group, _ERRORS] += sign
            return
        rest = self._rest.get(group)
        if rest is None:
            rest = self._rest[group] = ExactSum()
        rest.add(found, sign)
        if not any(rest.counts):
            del self._rest[group]

    def sums(self, groups: Ints) -> Ints:
        """SUM of some groups."""
        kinds, wholes, doubles, _ = self._settled(groups)
        found: Ints = wholes + _ZERO
        for i in np.flatnonzero(kinds).tolist():
            if kinds[i] == Kind.DOUBLE:
                found[i] = self._vocabulary.id_of(floating_literal(Kind.DOUBLE, float(doubles[i])))
            else:
                exact = self._exact(int(groups[i]))
                found[i] = UNBOUND if exact is None else self._vocabulary.id_of(exact.sum())
        return found

    def averages(self, groups: Ints) -> Ints:
        """AVG of some groups."""
        kinds, wholes, doubles, counts = self._settled(groups)
        quotients = (doubles / np.maximum(counts, 1)).tolist()
        found = np.empty(groups.shape[0], dtype=np.int64)
        id_of = self._vocabulary.id_of
        listed = zip(groups.tolist(), kinds.tolist(), wholes.tolist(), counts.tolist(), strict=True)
        for i, (group, kind, whole, count) in enumerate(listed):
            if kind == Kind.DOUBLE:
                found[i] = id_of(floating_literal(Kind.DOUBLE, quotients[i]))
            elif kind == Kind.INTEGER and count:
                found[i] = self._integer_average(whole, count)
            else:
                exact = self._exact(group)
                found[i] = UNBOUND if exact is None else id_of(exact.average())
        return found

    def _integer_average(self, whole: int, count: int) -> int:
        quotient, remainder = divmod(whole, count)
        if not remainder and -MANTISSA_BIAS <= quotient < MANTISSA_BIAS:
            return inline_id(InlineType.DECIMAL, pack_scaled(quotient, 0))
        cut = abs(whole) * DECIMAL_UNIT // count
        return self._vocabulary.id_of(decimal_literal(-cut if whole < 0 else cut))

    def _settled(self, groups: Ints) -> tuple[Ints, Ints, Doubles, Ints]:
        """For some groups the kind of their sum, where it is known at once, the sum as integer or double, the count."""
        n = groups.shape[0]
        kinds, wholes, counts = np.empty(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
        doubles = np.zeros(n, np.float64)
        has_rest = np.zeros(n, np.bool_)
        if self._rest:
            has_rest[:] = [group in self._rest for group in groups.tolist()]
        _settle(self._table, groups, has_rest, kinds, wholes, doubles, counts)
        return kinds, wholes, doubles, counts

    def _exact(self, group: int) -> ExactSum | None:
        """All parts together; None where some value is no number."""
        digits = self._table[group].tolist()
        if digits[_ERRORS]:
            return None
        rest = self._rest.get(group)
        exact = ExactSum() if rest is None else replace(rest)
        exact.decimal += (digits[0] + (digits[1] << 32)) * 10**DECIMAL_DIGITS
        decimals = _joined(digits[_DECIMALS:_BINARIES])
        exact.decimal += decimals * 10 ** (DECIMAL_DIGITS - _DECIMAL_SCALE)
        exact.binary += _joined(digits[_BINARIES:_KINDS]) << (BINARY_BITS - _BINARY_SCALE)
        exact.counts = [a + b for a, b in zip(exact.counts, digits[_KINDS:_ERRORS], strict=True)]
        return exact

    def ids(self) -> Ints:
        """Sums hold numbers, not terms."""
        return NOTHING

    @property
    def nbytes(self) -> int:
        return self._table.nbytes + 600 * len(self._rest)


def _joined(digits: list[int]) -> int:
    """A number from its digits of 32 bits, the last of which has the sign."""
    whole = 0
    for digit in reversed(digits):
        whole = (whole << 32) + digit
    return whole
