"""Numbers, booleans and strings to the 58 bits of an inline id and back, lexical form included.

Every `encode_*` function takes a lexical form and gives `(type, value)`, or None when the form would not come back
exactly; every `decode_*` function takes a value and gives the lexical form.

>>> encode_integer("01", InlineType.INTEGER) is None
True
>>> kind, value = encode_decimal("-12.50", InlineType.DECIMAL)
>>> decode_scaled(value)
'-12.50'
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TypeAlias

from headwater.terms.ids.inline_layout import (
    DENOMINATOR_BITS,
    DENOMINATOR_MASK,
    INTEGER_BIAS,
    MANTISSA_BIAS,
    NUMERATOR_BIAS,
    QUOTIENT_DIGITS,
    SCALE_MASK,
    SCIENTIFIC_BIAS,
    SINGLE_MANTISSA,
    SINGLE_SCALE,
    STRING_BYTES,
    InlineType,
    pack_double,
    pack_scaled,
    unpack_double,
    unpack_scaled,
)

InlineValue: TypeAlias = tuple[InlineType, int]

_PLAIN = re.compile(r"(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?")
_SCIENTIFIC = re.compile(r"(-?[0-9])\.([0-9]+)E(-?[0-9]{1,3})")
_BOOLEANS = ("false", "true", "0", "1")
_LONGEST_INTEGER = len(str(-INTEGER_BIAS))
_LONGEST_PLAIN = 40
_QUOTIENT_UNIT = 10**QUOTIENT_DIGITS


def encode_integer(lexical: str, kind: InlineType) -> InlineValue | None:
    """A canonical integer below 2^57 in size."""
    if len(lexical) > _LONGEST_INTEGER:
        return None
    try:
        number = int(lexical)
    except ValueError:
        return None
    if str(number) != lexical or not -INTEGER_BIAS <= number < INTEGER_BIAS:
        return None
    return kind, number + INTEGER_BIAS


def decode_integer(value: int) -> str:
    return str(value - INTEGER_BIAS)


def encode_decimal(lexical: str, kind: InlineType) -> InlineValue | None:
    """Plain notation whose digits and scale fit; zeros at the end are kept, a sign before zero is not."""
    if len(lexical) > _LONGEST_PLAIN:
        return None
    match = _PLAIN.fullmatch(lexical)
    if match is None:
        return None
    sign, whole, fraction = match.groups(default="")
    mantissa = int(sign + whole + fraction)
    if (sign and mantissa == 0) or len(fraction) > SCALE_MASK:
        return None
    if not -MANTISSA_BIAS <= mantissa < MANTISSA_BIAS:
        return None
    return kind, pack_scaled(mantissa, len(fraction))


def decode_scaled(value: int) -> str:
    mantissa, scale = unpack_scaled(value)
    digits = str(abs(mantissa)).rjust(scale + 1, "0")
    sign = "-" if mantissa < 0 else ""
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}" if scale else sign + digits


def encode_decimal_or_quotient(lexical: str) -> InlineValue | None:
    """An xsd:decimal: by its digits or else, where it is an average, by what was divided."""
    return encode_decimal(lexical, InlineType.DECIMAL) or encode_quotient(lexical)


def encode_quotient(lexical: str) -> InlineValue | None:
    """A decimal with more digits than `encode_decimal` takes that is the quotient of two small numbers, cut.

    A quotient that is this near to the decimal is one of the convergents of its continued fraction, and the last with
    a denominator of 20 bits; so there is never more than one.
    """
    match = _PLAIN.fullmatch(lexical) if len(lexical) <= _LONGEST_PLAIN else None
    if match is None:
        return None
    sign, whole, fraction = match.groups(default="")
    if not SCALE_MASK < len(fraction) <= QUOTIENT_DIGITS or fraction.endswith("0"):
        return None
    left, right = int(whole + fraction), 10 ** len(fraction)
    numerators, denominators = (0, 1), (1, 0)
    while right:
        step, rest = divmod(left, right)
        numerator, denominator = (step * y + x for x, y in (numerators, denominators))
        if denominator > DENOMINATOR_MASK:
            break
        left, right = right, rest
        numerators, denominators = (numerators[1], numerator), (denominators[1], denominator)
    if numerators[1] >= NUMERATOR_BIAS:
        return None
    signed = -numerators[1] if sign else numerators[1]
    value = (signed + NUMERATOR_BIAS) << DENOMINATOR_BITS | denominators[1]
    return (InlineType.QUOTIENT, value) if decode_quotient(value) == lexical else None


def decode_quotient(value: int) -> str:
    numerator = (value >> DENOMINATOR_BITS) - NUMERATOR_BIAS
    whole, fraction = divmod(abs(numerator) * _QUOTIENT_UNIT // (value & DENOMINATOR_MASK), _QUOTIENT_UNIT)
    digits = f"{fraction:018d}".rstrip("0")
    return f"{'-' if numerator < 0 else ''}{whole}{'.' if digits else ''}{digits}"


def encode_scientific(lexical: str, kind: InlineType) -> InlineValue | None:
    """The canonical XML Schema form (`1.25E2`), for powers that keep mantissa x 10^power exact to compute."""
    match = _SCIENTIFIC.fullmatch(lexical)
    if match is None:
        return None
    first, rest, exponent = match.groups()
    rest = rest.rstrip("0")
    mantissa = int(first + rest)
    scale = int(exponent) - len(rest) + SCIENTIFIC_BIAS
    if not (0 <= scale <= SCALE_MASK and -MANTISSA_BIAS <= mantissa < MANTISSA_BIAS):
        return None
    value = pack_scaled(mantissa, scale)
    return (kind, value) if decode_scientific(value) == lexical else None


def decode_scientific(value: int) -> str:
    mantissa, scale = unpack_scaled(value)
    return _canonical(mantissa, scale - SCIENTIFIC_BIAS)


def _canonical(mantissa: int, power: int) -> str:
    if mantissa == 0:
        return "0.0E0"
    digits = str(abs(mantissa))
    exponent = power + len(digits) - 1
    sign = "-" if mantissa < 0 else ""
    return f"{sign}{digits[0]}.{digits[1:].rstrip('0') or '0'}E{exponent}"


def encode_double(lexical: str) -> InlineValue | None:
    """A double in plain or canonical scientific notation, by its digits or else by its bits."""
    by_digits = encode_decimal(lexical, InlineType.DOUBLE) or encode_scientific(lexical, InlineType.DOUBLE_SCIENTIFIC)
    if by_digits is not None:
        return by_digits
    if not _PLAIN.fullmatch(lexical) and not _SCIENTIFIC.fullmatch(lexical):
        return None
    number = float(lexical)
    value = pack_double(number)
    if value is None:
        return None
    if repr(number) == lexical:
        return InlineType.DOUBLE_BITS, value
    if decode_double_bits_scientific(value) == lexical:
        return InlineType.DOUBLE_BITS_SCIENTIFIC, value
    return None


def decode_double_bits(value: int) -> str:
    return repr(unpack_double(value))


def decode_double_bits_scientific(value: int) -> str:
    sign, digits, power = Decimal(repr(unpack_double(value))).as_tuple()
    mantissa = int("".join(map(str, digits)))
    return _canonical(-mantissa if sign else mantissa, int(power))


def encode_float(lexical: str) -> InlineValue | None:
    """A float whose digits and power of ten are so small that its value can be computed with doubles.

    Rounding a quotient m / 10^s to a double and on to a float goes wrong only where the double is the middle between
    two floats and the quotient is not. Such a middle has 25 bits, so the two differ at least by one part in 2^25 x 5^s,
    which for s up to 12 is more than half of the distance between doubles.
    """
    found = encode_decimal(lexical, InlineType.FLOAT) or encode_scientific(lexical, InlineType.FLOAT_SCIENTIFIC)
    if found is None:
        return None
    mantissa, scale = unpack_scaled(found[1])
    if abs(mantissa) > SINGLE_MANTISSA:
        return None
    return None if found[0] is InlineType.FLOAT and scale > SINGLE_SCALE else found


def encode_boolean(lexical: str) -> InlineValue | None:
    return (InlineType.BOOLEAN, _BOOLEANS.index(lexical)) if lexical in _BOOLEANS else None


def decode_boolean(value: int) -> str:
    return _BOOLEANS[value]


def encode_string(lexical: str) -> InlineValue | None:
    """A string of up to seven bytes without a zero byte, which the padding could not be told from."""
    if len(lexical) > STRING_BYTES:
        return None
    data = lexical.encode()
    if len(data) > STRING_BYTES or b"\0" in data:
        return None
    return InlineType.STRING, int.from_bytes(data.ljust(STRING_BYTES, b"\0"), "big")


def decode_string(value: int) -> str:
    return value.to_bytes(STRING_BYTES, "big").rstrip(b"\0").decode()
