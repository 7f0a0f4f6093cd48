"""The bits of a 64-bit term id (CQ5), and the numbers inside it.

```
 bit 63        62 … 58        57 … 0
 ┌───────────┬──────────────┬─────────────────────────────────────────────┐
 │ 1: inline │ InlineType   │ value, 58 bits                              │
 ├───────────┼──────────────┴─────────────────────────────────────────────┤
 │ 0: hashed │ the low 63 bits of a hash of the term's N-Triples text     │
 └───────────┴────────────────────────────────────────────────────────────┘
```

Read as a signed int64, an inline id is negative and a hashed id is not. `NO_TERM`, the smallest int64, is
the id of no term at all; the kernel uses it for an unbound variable.

Values, by type (`biased` means that half of the range is added, so ids sort as their numbers do):

- integer types: biased integer of 58 bits.
- decimal and the plain notation of double and float (`-12.50`): biased mantissa of 54 bits, 4 bits of scale;
  the number is mantissa / 10^scale. Both are exact as doubles, so one division rounds correctly.
- scientific notation of double and float (`1.25E2`): biased mantissa, 4 bits k; mantissa x 10^(k - 10).
- double bits: sign, 5 bits of exponent, 52 bits of fraction: every double with 2^-11 <= |x| < 2^21.
- boolean: bit 0 is the truth value, bit 1 is set where it was written `1` or `0`.
- string: up to seven bytes of UTF-8, left aligned, padded with zero bytes (so ids sort as the strings do).
- date: day number of the calendar, 11 bits of zone.
- dateTime, without zone or in UTC: biased microseconds of 55 bits, 3 bits for the digits of the fraction.
- dateTime with an offset: biased milliseconds of 45 bits (UTC), 11 bits of zone, 2 bits for the digits.
- quotient: biased numerator of 38 bits, denominator of 20 bits, without a common divisor. It is the decimal that comes
  of cutting their quotient after 18 digits, as averages do, where that is no inline decimal: `1.666666666666666666`.
"""

from __future__ import annotations

import struct
from decimal import Decimal
from enum import IntEnum

import numpy as np

ID_FORMAT = 3
"""The version of the mapping from terms to ids, written beside ids on disk. 3: hashes have a key."""

VALUE_BITS = 58
VALUE_MASK = (1 << VALUE_BITS) - 1
PAYLOAD_MASK = (1 << 63) - 1
NO_TERM = -(1 << 63)
NO_ID = -1
"""In place of an id: not computed here. No id of a term, because no inline type has this number."""
INTEGER_BIAS = 1 << 57
MANTISSA_BIAS = 1 << 53
SCALE_BITS = 4
SCALE_MASK = (1 << SCALE_BITS) - 1
SCIENTIFIC_BIAS = 10
SINGLE_MANTISSA = 1 << 30
SINGLE_SCALE = 12
"""Floats are inline up to this mantissa and scale: all nine digits that tell a float from its neighbours."""
FRACTION_BITS = 52
DOUBLE_SIGN = 1 << 57
IEEE_BIAS = 1023
LOWEST_EXPONENT = -11
"""Double bits keep the exponents from here to `LOWEST_EXPONENT + 31`."""
INSTANT_BIAS = 1 << 54
INSTANT_DIGIT_BITS = 3
OFFSET_INSTANT_BIAS = 1 << 44
OFFSET_DIGIT_BITS = 2
ZONE_BITS = 11
NO_ZONE, UTC_ZONE, ZERO_OFFSET_ZONE = 0, 1, 842
"""Zones: none, `Z`, `+00:00`; the others are the last with their minutes added."""
LARGEST_OFFSET = 14 * 60
NUMERATOR_BIAS = 1 << 37
DENOMINATOR_BITS = 20
DENOMINATOR_MASK = (1 << DENOMINATOR_BITS) - 1
QUOTIENT_DIGITS = 18
STRING_BYTES = 7
TENS = np.array([10**k for k in range(19)], dtype=np.int64)
POWERS = np.array([float(10**k) for k in range(23)])


class InlineType(IntEnum):
    """What an inline id holds; 0 is never used, so that `NO_TERM` is no term."""

    INTEGER = 1
    INT = 2
    LONG = 3
    DECIMAL = 4
    DOUBLE = 5
    FLOAT = 6
    DOUBLE_SCIENTIFIC = 7
    FLOAT_SCIENTIFIC = 8
    DOUBLE_BITS = 9
    DOUBLE_BITS_SCIENTIFIC = 10
    BOOLEAN = 11
    STRING = 12
    DATE = 13
    DATE_TIME = 14
    DATE_TIME_UTC = 15
    DATE_TIME_OFFSET = 16
    QUOTIENT = 17


INTEGER_TYPES = frozenset({InlineType.INTEGER, InlineType.INT, InlineType.LONG})
SCALED_TYPES = frozenset({InlineType.DECIMAL, InlineType.DOUBLE, InlineType.FLOAT})
SCIENTIFIC_TYPES = frozenset({InlineType.DOUBLE_SCIENTIFIC, InlineType.FLOAT_SCIENTIFIC})
BITS_TYPES = frozenset({InlineType.DOUBLE_BITS, InlineType.DOUBLE_BITS_SCIENTIFIC})


def inline_id(kind: InlineType, value: int) -> int:
    """The id of an inline type and its 58 bits of value."""
    return NO_TERM + (kind << VALUE_BITS | value)


INTEGER_ZERO = inline_id(InlineType.INTEGER, INTEGER_BIAS)
"""The id of the integer 0; `INTEGER_ZERO + n` is that of n."""


def is_inline(term_id: int) -> bool:
    """Whether the id holds its term itself, so that no dictionary is needed."""
    return NO_TERM < term_id < 0


def inline_type(term_id: int) -> InlineType:
    """The type of an inline id; a `ValueError` where the id is not an inline one."""
    if term_id >= 0:
        raise ValueError(f"id {term_id} is a hash: its term is in a dictionary, not in the id")
    return InlineType((term_id & PAYLOAD_MASK) >> VALUE_BITS)


def pack_scaled(mantissa: int, scale: int) -> int:
    """58 bits for mantissa and scale; the caller has checked that both fit."""
    return (mantissa + MANTISSA_BIAS) << SCALE_BITS | scale


def unpack_scaled(value: int) -> tuple[int, int]:
    """Mantissa and scale of a decimal, or mantissa and biased power of a scientific notation."""
    return (value >> SCALE_BITS) - MANTISSA_BIAS, value & SCALE_MASK


def pack_double(number: float) -> int | None:
    """58 bits for a double, or None when its exponent does not fit into five bits."""
    bits: int = struct.unpack("<Q", struct.pack("<d", number))[0]
    exponent = (bits >> FRACTION_BITS & 0x7FF) - IEEE_BIAS - LOWEST_EXPONENT
    if not 0 <= exponent < 32:
        return None
    return (bits >> 63) * DOUBLE_SIGN | exponent << FRACTION_BITS | bits & ((1 << FRACTION_BITS) - 1)


def unpack_double(value: int) -> float:
    """The double that `pack_double` took."""
    exponent = (value >> FRACTION_BITS & 31) + LOWEST_EXPONENT + IEEE_BIAS
    bits = (value >> 57) << 63 | exponent << FRACTION_BITS | value & ((1 << FRACTION_BITS) - 1)
    number: float = struct.unpack("<d", struct.pack("<Q", bits))[0]
    return number


def id_to_number(term_id: int) -> int | float | Decimal | None:
    """The number of an inline numeric id: int, Decimal or float as its datatype says; None if not numeric."""
    kind = inline_type(term_id)
    value = term_id & VALUE_MASK
    if kind in INTEGER_TYPES:
        return value - INTEGER_BIAS
    if kind in BITS_TYPES:
        return unpack_double(value)
    if kind not in SCALED_TYPES and kind not in SCIENTIFIC_TYPES:
        return None
    mantissa, scale = unpack_scaled(value)
    if kind is InlineType.DECIMAL:
        return Decimal(mantissa).scaleb(-scale)
    power = scale - SCIENTIFIC_BIAS if kind in SCIENTIFIC_TYPES else -scale
    number = mantissa * 10.0**power if power >= 0 else mantissa / 10.0**-power
    if kind is InlineType.FLOAT or kind is InlineType.FLOAT_SCIENTIFIC:
        single: float = struct.unpack("<f", struct.pack("<f", number))[0]
        return single
    return number


def id_to_instant(term_id: int) -> int | None:
    """Microseconds since 1970 of an inline dateTime (no zone is read as UTC); None for other types."""
    kind = inline_type(term_id)
    value = term_id & VALUE_MASK
    if kind is InlineType.DATE_TIME or kind is InlineType.DATE_TIME_UTC:
        return (value >> INSTANT_DIGIT_BITS) - INSTANT_BIAS
    if kind is InlineType.DATE_TIME_OFFSET:
        return ((value >> (ZONE_BITS + OFFSET_DIGIT_BITS)) - OFFSET_INSTANT_BIAS) * 1_000
    return None
