"""Dates and date-times to the 58 bits of an inline id and back, zone and fraction digits included.

A zone takes 11 bits: 0 for none, 1 for `Z`, otherwise the minutes of the offset plus 842 (`+00:00` is not
`Z`: the two are different terms). Date-times are inline from about 1400 to 2540; others are hashed.
"""

from __future__ import annotations

import re
from datetime import date

from headwater.terms.ids.inline_layout import (
    INSTANT_BIAS,
    INSTANT_DIGIT_BITS,
    LARGEST_OFFSET,
    NO_ZONE,
    OFFSET_DIGIT_BITS,
    OFFSET_INSTANT_BIAS,
    UTC_ZONE,
    ZERO_OFFSET_ZONE,
    ZONE_BITS,
    InlineType,
)
from headwater.terms.ids.inline_numbers import InlineValue
from headwater.terms.model import MILLISECOND
from headwater.terms.timestamps import MINUTE, civil_time, format_time

_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})(Z|[+-][0-9]{2}:[0-9]{2})?")
_DATE_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9])(?:\.([0-9]{1,6}))?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?"
)
_SECONDS_LENGTH = len("2014-08-01T07:50:00")


def _zone_code(zone: str | None) -> int | None:
    if zone is None:
        return NO_ZONE
    if zone == "Z":
        return UTC_ZONE
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    offset = hours * 60 + minutes
    if minutes > 59 or offset > LARGEST_OFFSET or zone == "-00:00":
        return None
    return ZERO_OFFSET_ZONE + (-offset if zone[0] == "-" else offset)


def _zone_text(code: int) -> str:
    if code <= UTC_ZONE:
        return "Z" if code else ""
    offset = code - ZERO_OFFSET_ZONE
    return f"{'-' if offset < 0 else '+'}{abs(offset) // 60:02d}:{abs(offset) % 60:02d}"


def encode_date(lexical: str) -> InlineValue | None:
    """The inline value of an `xsd:date` of the years 0001 to 9999; None where only a hash can stand for it."""
    match = _DATE.fullmatch(lexical)
    if match is None:
        return None
    year, month, day, zone = match.groups()
    code = _zone_code(zone)
    if code is None:
        return None
    try:
        ordinal = date(int(year), int(month), int(day)).toordinal()
    except ValueError:
        return None
    return InlineType.DATE, ordinal << ZONE_BITS | code


def decode_date(value: int) -> str:
    return date.fromordinal(value >> ZONE_BITS).isoformat() + _zone_text(value & ((1 << ZONE_BITS) - 1))


def encode_date_time(lexical: str) -> InlineValue | None:
    """A date-time with up to six digits of fraction (three where it has an offset)."""
    match = _DATE_TIME.fullmatch(lexical)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    code = _zone_code(zone)
    if code is None:
        return None
    try:
        instant = civil_time(int(year), int(month), int(day), int(hour), int(minute), int(second), fraction)
    except ValueError:
        return None
    digits = len(fraction) if fraction else 0
    if code <= UTC_ZONE:
        if not -INSTANT_BIAS <= instant < INSTANT_BIAS:
            return None
        kind = InlineType.DATE_TIME_UTC if code else InlineType.DATE_TIME
        return kind, (instant + INSTANT_BIAS) << INSTANT_DIGIT_BITS | digits
    millis = (instant - (code - ZERO_OFFSET_ZONE) * MINUTE) // MILLISECOND
    if digits > 3 or not -OFFSET_INSTANT_BIAS <= millis < OFFSET_INSTANT_BIAS:
        return None
    packed = (millis + OFFSET_INSTANT_BIAS) << ZONE_BITS | code
    return InlineType.DATE_TIME_OFFSET, packed << OFFSET_DIGIT_BITS | digits


def decode_date_time(kind: InlineType, value: int) -> str:
    if kind is InlineType.DATE_TIME_OFFSET:
        digits = value & ((1 << OFFSET_DIGIT_BITS) - 1)
        code = value >> OFFSET_DIGIT_BITS & ((1 << ZONE_BITS) - 1)
        millis = (value >> (ZONE_BITS + OFFSET_DIGIT_BITS)) - OFFSET_INSTANT_BIAS
        instant = millis * MILLISECOND + (code - ZERO_OFFSET_ZONE) * MINUTE
    else:
        digits = value & ((1 << INSTANT_DIGIT_BITS) - 1)
        code = UTC_ZONE if kind is InlineType.DATE_TIME_UTC else NO_ZONE
        instant = (value >> INSTANT_DIGIT_BITS) - INSTANT_BIAS
    seconds = format_time(instant)[:_SECONDS_LENGTH]
    fraction = f".{instant % 1_000_000:06d}"[: digits + 1] if digits else ""
    return seconds + fraction + _zone_text(code)
