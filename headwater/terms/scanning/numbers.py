"""Lexical forms of numbers, booleans and short strings to inline ids, for compiled code.

The same answers as `terms.ids.inline_numbers`, from bytes. Each function takes the addresses of a lexical form
and gives the id, `NOT_INLINE` where the term is to be hashed, or `UNSURE` where Python shall decide.
"""

from __future__ import annotations

import numpy as np

from headwater.terms.compiled_code import compiled
from headwater.terms.ids.compiled_encoding import pack_digits, pack_inline, pack_positive_double
from headwater.terms.ids.inline_layout import (
    DOUBLE_SIGN,
    FRACTION_BITS,
    IEEE_BIAS,
    INTEGER_BIAS,
    LOWEST_EXPONENT,
    MANTISSA_BIAS,
    NO_TERM,
    POWERS,
    QUOTIENT_DIGITS,
    SCALE_MASK,
    SCIENTIFIC_BIAS,
    SINGLE_MANTISSA,
    SINGLE_SCALE,
    STRING_BYTES,
    InlineType,
)
from headwater.terms.scanning.ascii_bytes import (
    BACKSLASH,
    BACKSPACE,
    CAPITAL_E,
    CARRIAGE_RETURN,
    DIGIT_0,
    DIGIT_1,
    DOT,
    FORM_FEED,
    LINE_FEED,
    MINUS,
    SMALL_B,
    SMALL_F,
    SMALL_N,
    SMALL_R,
    SMALL_T,
    TAB,
)
from headwater.terms.scanning.byte_hashes import low_bytes
from headwater.terms.scanning.memory import byte_at, double_bits, swap_bytes, word_at

NOT_INLINE = 0
UNSURE = NO_TERM

_NO_NUMBER = 0
_PLAIN = 1
_SCIENTIFIC = 2
_MOST_DIGITS = 18
_MOST_DOUBLE_DIGITS = 17
_LARGEST_SCALE = 22
_FIVES = np.array([5**power for power in range(_LARGEST_SCALE + 1)], dtype=np.int64)
_SMALLEST_DOUBLE = 2.0**LOWEST_EXPONENT
_DOUBLE_LIMIT = 2.0 ** (LOWEST_EXPONENT + 32)
_NEAR = 1e-9
_HIDDEN = 1 << FRACTION_BITS
_FALSE = np.uint64(int.from_bytes(b"false", "little"))
_TRUE = np.uint64(int.from_bytes(b"true", "little"))
_BYTE = np.uint64(8)

_STRING = int(InlineType.STRING)
_BOOLEAN = int(InlineType.BOOLEAN)
_DECIMAL = int(InlineType.DECIMAL)
_DOUBLE = int(InlineType.DOUBLE)
_DOUBLE_SCIENTIFIC = int(InlineType.DOUBLE_SCIENTIFIC)
_DOUBLE_BITS = int(InlineType.DOUBLE_BITS)
_DOUBLE_BITS_SCIENTIFIC = int(InlineType.DOUBLE_BITS_SCIENTIFIC)
_FLOAT = int(InlineType.FLOAT)
_FLOAT_SCIENTIFIC = int(InlineType.FLOAT_SCIENTIFIC)


@compiled
def scan_string(start, end):  # type: ignore[no-untyped-def]
    """A string of up to seven bytes; it must have no escapes and no zero byte."""
    length = end - start
    if length > STRING_BYTES:
        return np.int64(NOT_INLINE)
    return pack_inline(_STRING, np.int64(swap_bytes(low_bytes(word_at(start), length)) >> _BYTE))


@compiled
def scan_escaped_string(start, end):  # type: ignore[no-untyped-def]
    """The same of a string with canonical escapes, each of which is a backslash and a letter."""
    value = np.int64(0)
    length = 0
    at = start
    while at < end:
        found = byte_at(at)
        if found == BACKSLASH:
            at += 1
            found = _unescape(byte_at(at))
        length += 1
        if length > STRING_BYTES:
            return np.int64(NOT_INLINE)
        value = (value << 8) | found
        at += 1
    return pack_inline(_STRING, value << (8 * (STRING_BYTES - length)))


@compiled
def _unescape(letter):  # type: ignore[no-untyped-def]
    """The character that a letter behind a backslash stands for."""
    if letter == SMALL_N:
        return np.int64(LINE_FEED)
    if letter == SMALL_T:
        return np.int64(TAB)
    if letter == SMALL_R:
        return np.int64(CARRIAGE_RETURN)
    if letter == SMALL_B:
        return np.int64(BACKSPACE)
    return np.int64(FORM_FEED) if letter == SMALL_F else letter


@compiled
def scan_boolean(start, end):  # type: ignore[no-untyped-def]
    length = end - start
    if length == 4 and low_bytes(word_at(start), 4) == _TRUE:
        return pack_inline(_BOOLEAN, 1)
    if length == 5 and low_bytes(word_at(start), 5) == _FALSE:
        return pack_inline(_BOOLEAN, 0)
    if length == 1:
        first = byte_at(start)
        if first in (DIGIT_0, DIGIT_1):
            return pack_inline(_BOOLEAN, first - DIGIT_0 + 2)
    return np.int64(NOT_INLINE)


@compiled
def scan_integer(start, end, kind):  # type: ignore[no-untyped-def]
    """A canonical integer below 2^57 in size."""
    at = start
    negative = at < end and byte_at(at) == MINUS
    if negative:
        at += 1
    digits = end - at
    if digits < 1 or digits > _MOST_DIGITS or (byte_at(at) == DIGIT_0 and (digits > 1 or negative)):
        return np.int64(NOT_INLINE)
    number = np.int64(0)
    while at < end:
        digit = byte_at(at) - DIGIT_0
        if digit < 0 or digit > 9:
            return np.int64(NOT_INLINE)
        number = number * 10 + digit
        at += 1
    if negative:
        number = -number
    if number < -INTEGER_BIAS or number >= INTEGER_BIAS:
        return np.int64(NOT_INLINE)
    return pack_inline(kind, number + INTEGER_BIAS)


@compiled
def _scan_number(start, end):  # type: ignore[no-untyped-def]
    """The parts of a number in plain or in canonical scientific notation.

    Gives the notation, whether there is a minus, the digits as one integer (with the zeros at their end, for which a
    scientific notation has one place at most), how many of them count, how many stand behind the dot, and the exponent.
    """
    nothing = (_NO_NUMBER, False, np.int64(0), np.int64(0), np.int64(0), np.int64(0))
    at = start
    negative = at < end and byte_at(at) == MINUS
    if negative:
        at += 1
    mantissa = np.int64(0)
    digits = np.int64(0)
    whole_start = at
    while at < end:
        digit = byte_at(at) - DIGIT_0
        if digit < 0 or digit > 9:
            break
        if digits > 0 or digit > 0:
            digits += 1
            if digits <= _MOST_DIGITS:
                mantissa = mantissa * 10 + digit
        at += 1
    whole = at - whole_start
    if whole == 0 or (whole > 1 and byte_at(whole_start) == DIGIT_0):
        return nothing
    if at == end:
        return (_PLAIN, negative, mantissa, digits, np.int64(0), np.int64(0))
    if byte_at(at) != DOT:
        return nothing
    at += 1
    fraction_start = at
    while at < end:
        digit = byte_at(at) - DIGIT_0
        if digit < 0 or digit > 9:
            break
        if digits > 0 or digit > 0:
            digits += 1
            if digits <= _MOST_DIGITS:
                mantissa = mantissa * 10 + digit
        at += 1
    fraction = at - fraction_start
    if fraction == 0:
        return nothing
    if at == end:
        return (_PLAIN, negative, mantissa, digits, fraction, np.int64(0))
    if byte_at(at) != CAPITAL_E or whole != 1:
        return nothing
    last_is_zero = byte_at(at - 1) == DIGIT_0
    if (fraction > 1 and last_is_zero) or (byte_at(whole_start) == DIGIT_0 and (digits > 0 or negative)):
        return nothing
    at += 1
    below_zero = at < end and byte_at(at) == MINUS
    if below_zero:
        at += 1
    places = end - at
    if places < 1 or places > 3 or (byte_at(at) == DIGIT_0 and (places > 1 or below_zero)):
        return nothing
    exponent = np.int64(0)
    while at < end:
        digit = byte_at(at) - DIGIT_0
        if digit < 0 or digit > 9:
            return nothing
        exponent = exponent * 10 + digit
        at += 1
    if digits == 0 and exponent != 0:
        return nothing
    return (_SCIENTIFIC, negative, mantissa, digits, fraction, -exponent if below_zero else exponent)


@compiled
def _can_pack(negative, mantissa, digits):  # type: ignore[no-untyped-def]
    limit = MANTISSA_BIAS if negative else MANTISSA_BIAS - 1
    return digits <= _MOST_DIGITS and mantissa <= limit


@compiled
def _pack_signed(negative, mantissa, scale):  # type: ignore[no-untyped-def]
    return pack_digits(-mantissa if negative else mantissa, scale)


@compiled
def scan_decimal(start, end):  # type: ignore[no-untyped-def]
    notation, negative, mantissa, digits, fraction, _ = _scan_number(start, end)
    if notation == _PLAIN and SCALE_MASK < fraction <= QUOTIENT_DIGITS and byte_at(end - 1) != DIGIT_0:
        # It may be an average, which is kept as a quotient.
        return np.int64(UNSURE)
    if notation != _PLAIN or fraction > SCALE_MASK or (negative and digits == 0):
        return np.int64(NOT_INLINE)
    if not _can_pack(negative, mantissa, digits):
        return np.int64(NOT_INLINE)
    return pack_inline(_DECIMAL, _pack_signed(negative, mantissa, fraction))


@compiled
def _without_last_zero(mantissa, fraction):  # type: ignore[no-untyped-def]
    """Of a scientific notation: the digits and how many stand behind the dot, where a lone zero does not count."""
    if fraction == 1 and mantissa % 10 == 0:
        return mantissa // 10, np.int64(0)
    return mantissa, fraction


@compiled
def scan_double(start, end):  # type: ignore[no-untyped-def]
    """The inline id of a double; `NOT_INLINE`, or `UNSURE` where Python must decide."""
    notation, negative, mantissa, digits, fraction, exponent = _scan_number(start, end)
    if notation == _NO_NUMBER or (digits == 0 and negative):
        return np.int64(NOT_INLINE)
    if notation == _PLAIN:
        if fraction <= SCALE_MASK and _can_pack(negative, mantissa, digits):
            return pack_inline(_DOUBLE, _pack_signed(negative, mantissa, fraction))
        kind, scale = _DOUBLE_BITS, fraction
    else:
        mantissa, fraction = _without_last_zero(mantissa, fraction)
        scale = exponent - fraction + SCIENTIFIC_BIAS
        if 0 <= scale <= SCALE_MASK and _can_pack(negative, mantissa, digits):
            return pack_inline(_DOUBLE_SCIENTIFIC, _pack_signed(negative, mantissa, scale))
        kind, scale = _DOUBLE_BITS_SCIENTIFIC, fraction - exponent
    if digits == 0 or digits > _MOST_DOUBLE_DIGITS:
        return np.int64(NOT_INLINE)
    bits = _shortest_bits(mantissa, scale)
    if bits < 0:
        return np.int64(UNSURE) if bits == UNSURE else np.int64(NOT_INLINE)
    return pack_inline(kind, bits | (np.int64(negative) * DOUBLE_SIGN))


@compiled
def scan_float(start, end):  # type: ignore[no-untyped-def]
    notation, negative, mantissa, digits, fraction, exponent = _scan_number(start, end)
    if notation == _NO_NUMBER or (digits == 0 and negative) or digits > _MOST_DIGITS:
        return np.int64(NOT_INLINE)
    if notation == _PLAIN:
        if fraction > SINGLE_SCALE or mantissa > SINGLE_MANTISSA:
            return np.int64(NOT_INLINE)
        return pack_inline(_FLOAT, _pack_signed(negative, mantissa, fraction))
    mantissa, fraction = _without_last_zero(mantissa, fraction)
    scale = exponent - fraction + SCIENTIFIC_BIAS
    if scale < 0 or scale > SCALE_MASK or mantissa > SINGLE_MANTISSA:
        return np.int64(NOT_INLINE)
    return pack_inline(_FLOAT_SCIENTIFIC, _pack_signed(negative, mantissa, scale))


@compiled
def _shortest_bits(mantissa, scale):  # type: ignore[no-untyped-def]
    """The 57 bits of the double nearest to mantissa / 10^scale, if no shorter or nearer decimal would give it too.

    That is, if Python's `repr` of the double has just these digits; -1 if not.

    Let the double be f x 2^(e-52). Times 5^scale x 2^(52-e), the decimal is the integer `mantissa << k`, the double is
    f x 5^scale, the doubles beside it are 5^scale away and the decimals with as many digits 2^k. The difference is
    small however large the two are, so 64 bits that wrap around hold it exactly. It cannot be half of 5^scale, which is
    odd: nothing lies on the border between two doubles.
    """
    if scale < 0:
        # A whole number below 2^21 that ends in six zeros or more: it is exact and has one digit.
        if mantissa > 2 or scale != -6:
            return np.int64(-1)
        number = mantissa * 1e6
        return pack_positive_double(np.int64(double_bits(number)))
    if scale > _LARGEST_SCALE:
        return np.int64(-1)
    number = mantissa / POWERS[scale]
    if abs(number / _SMALLEST_DOUBLE - 1.0) < _NEAR or abs(number / _DOUBLE_LIMIT - 1.0) < _NEAR:
        return np.int64(UNSURE)
    if number < _SMALLEST_DOUBLE or number >= _DOUBLE_LIMIT:
        return np.int64(-1)
    last = mantissa % 10
    if last == 0:
        return np.int64(-1)
    bits = np.int64(double_bits(number))
    whole = (bits & (_HIDDEN - 1)) | _HIDDEN
    if whole < _HIDDEN + 4 or whole > 2 * _HIDDEN - 4:
        # Beside a power of two the distances differ; Python knows.
        return np.int64(UNSURE)
    shift = FRACTION_BITS - ((bits >> FRACTION_BITS) - IEEE_BIAS) - scale
    step = _FIVES[scale]
    unit = np.int64(1) << shift
    difference = (mantissa << shift) - whole * step
    while 2 * difference > step:
        difference -= step
        bits += 1
    while 2 * difference < -step:
        difference += step
        bits -= 1
    if 2 * abs(difference) == unit:
        return np.int64(UNSURE)
    if 2 * abs(difference) > unit:
        return np.int64(-1)
    shorter = 2 * abs(difference - last * unit) < step or 2 * abs(difference + (10 - last) * unit) < step
    return np.int64(-1) if shorter else pack_positive_double(bits)
