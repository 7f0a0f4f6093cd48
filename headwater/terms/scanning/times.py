"""Dates, date-times and timestamps from bytes, for compiled code.

The same answers as `headwater.terms.ids.inline_times` and, for the timestamps of `.tnq` lines in their usual forms,
`headwater.terms.timestamps.parse_time`.
"""

from __future__ import annotations

from datetime import date

import numpy as np

from headwater.terms.compiled_code import compiled
from headwater.terms.ids.compiled_encoding import pack_inline
from headwater.terms.ids.inline_layout import (
    INSTANT_BIAS,
    INSTANT_DIGIT_BITS,
    LARGEST_OFFSET,
    NO_TERM,
    NO_ZONE,
    OFFSET_DIGIT_BITS,
    OFFSET_INSTANT_BIAS,
    UTC_ZONE,
    ZERO_OFFSET_ZONE,
    ZONE_BITS,
    InlineType,
)
from headwater.terms.model import MILLISECOND, SECOND
from headwater.terms.scanning.ascii_bytes import CAPITAL_T, CAPITAL_Z, COLON, DIGIT_0, DOT, MINUS, PLUS
from headwater.terms.scanning.memory import byte_at
from headwater.terms.scanning.numbers import NOT_INLINE
from headwater.terms.timestamps import DAY, EARLIEST, HOUR, LATEST, MINUTE

NO_TIME = NO_TERM
"""What the functions for instants give where there is none, or where Python shall decide."""

_DATE = int(InlineType.DATE)
_DATE_TIME = int(InlineType.DATE_TIME)
_DATE_TIME_UTC = int(InlineType.DATE_TIME_UTC)
_DATE_TIME_OFFSET = int(InlineType.DATE_TIME_OFFSET)
_DATE_LENGTH = len("2014-08-01")
_CLOCK_LENGTH = len("2014-08-01T07:50:00")
_MOST_MILLISECOND_DIGITS = 15
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_DAYS_BEFORE_MONTH = np.array([0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365], dtype=np.int64)


@compiled
def _scan_two_digits(at):  # type: ignore[no-untyped-def]
    """The number of two digits at an address; a negative one where there are none."""
    tens = byte_at(at) - DIGIT_0
    ones = byte_at(at + 1) - DIGIT_0
    if tens < 0 or tens > 9 or ones < 0 or ones > 9:
        return np.int64(-10_000)
    return tens * 10 + ones


@compiled
def _scan_day(at):  # type: ignore[no-untyped-def]
    """The number of the day `YYYY-MM-DD` at an address, 1 for the first of the year 0001; 0 where there is none."""
    year = _scan_two_digits(at) * 100 + _scan_two_digits(at + 2)
    month = _scan_two_digits(at + 5)
    day = _scan_two_digits(at + 8)
    if year < 1 or month < 1 or month > 12 or day < 1 or byte_at(at + 4) != MINUS or byte_at(at + 7) != MINUS:
        return np.int64(0)
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    length = _DAYS_BEFORE_MONTH[month] - _DAYS_BEFORE_MONTH[month - 1]
    if leap and month == 2:
        length += 1
    if day > length:
        return np.int64(0)
    before = year - 1
    days = before * 365 + before // 4 - before // 100 + before // 400 + _DAYS_BEFORE_MONTH[month - 1] + day
    return days + 1 if leap and month > 2 else days


@compiled
def _scan_zone(at, end):  # type: ignore[no-untyped-def]
    """The zone code of what stands between two addresses; -1 where it is no zone."""
    if at == end:
        return np.int64(NO_ZONE)
    sign = byte_at(at)
    if sign == CAPITAL_Z and at + 1 == end:
        return np.int64(UTC_ZONE)
    if end - at != 6 or byte_at(at + 3) != COLON or (sign != PLUS and sign != MINUS):
        return np.int64(-1)
    hours = _scan_two_digits(at + 1)
    minutes = _scan_two_digits(at + 4)
    offset = hours * 60 + minutes
    if hours < 0 or minutes < 0 or minutes > 59 or offset > LARGEST_OFFSET or (sign == MINUS and offset == 0):
        return np.int64(-1)
    return np.int64(ZERO_OFFSET_ZONE) + (-offset if sign == MINUS else offset)


@compiled
def scan_date(start, end):  # type: ignore[no-untyped-def]
    if end - start < _DATE_LENGTH:
        return np.int64(NOT_INLINE)
    day = _scan_day(start)
    zone = _scan_zone(start + _DATE_LENGTH, end)
    if day == 0 or zone < 0:
        return np.int64(NOT_INLINE)
    return pack_inline(_DATE, (day << ZONE_BITS) | zone)


@compiled
def _scan_instant(start, end):  # type: ignore[no-untyped-def]
    """Microseconds of a date-time as if in UTC, the digits of its fraction, its zone code; `NO_TIME` if it is none."""
    nothing = (np.int64(NO_TIME), np.int64(0), np.int64(0))
    if end - start < _CLOCK_LENGTH:
        return nothing
    day = _scan_day(start)
    hour = _scan_two_digits(start + 11)
    minute = _scan_two_digits(start + 14)
    second = _scan_two_digits(start + 17)
    if day == 0 or byte_at(start + 10) != CAPITAL_T or byte_at(start + 13) != COLON or byte_at(start + 16) != COLON:
        return nothing
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 59:
        return nothing
    at = start + _CLOCK_LENGTH
    micros = np.int64(0)
    digits = np.int64(0)
    if at < end and byte_at(at) == DOT:
        at += 1
        place = np.int64(100_000)
        while at < end:
            digit = byte_at(at) - DIGIT_0
            if digit < 0 or digit > 9:
                break
            micros += digit * place
            place //= 10
            digits += 1
            at += 1
        if digits == 0 or digits > 6:
            return nothing
    zone = _scan_zone(at, end)
    if zone < 0:
        return nothing
    instant = (day - _EPOCH_ORDINAL) * DAY + hour * HOUR + minute * MINUTE + second * SECOND + micros
    return (instant, digits, zone)


@compiled
def scan_date_time(start, end):  # type: ignore[no-untyped-def]
    instant, digits, zone = _scan_instant(start, end)
    if instant == NO_TIME:
        return np.int64(NOT_INLINE)
    if zone <= UTC_ZONE:
        if instant < -INSTANT_BIAS or instant >= INSTANT_BIAS:
            return np.int64(NOT_INLINE)
        kind = _DATE_TIME_UTC if zone == UTC_ZONE else _DATE_TIME
        return pack_inline(kind, ((instant + INSTANT_BIAS) << INSTANT_DIGIT_BITS) | digits)
    millis = (instant - (zone - ZERO_OFFSET_ZONE) * MINUTE) // MILLISECOND
    if digits > 3 or millis < -OFFSET_INSTANT_BIAS or millis >= OFFSET_INSTANT_BIAS:
        return np.int64(NOT_INLINE)
    packed = ((millis + OFFSET_INSTANT_BIAS) << ZONE_BITS) | zone
    return pack_inline(_DATE_TIME_OFFSET, (packed << OFFSET_DIGIT_BITS) | digits)


@compiled
def scan_timestamp(start, end):  # type: ignore[no-untyped-def]
    """Microseconds of a timestamp: milliseconds as an integer, or a date-time with T and a zone or none."""
    at = start
    negative = at < end and byte_at(at) == MINUS
    if negative:
        at += 1
    digits = end - at
    if digits < 1:
        return np.int64(NO_TIME)
    number = np.int64(0)
    while at < end and digits <= _MOST_MILLISECOND_DIGITS:
        digit = byte_at(at) - DIGIT_0
        if digit < 0 or digit > 9:
            break
        number = number * 10 + digit
        at += 1
    if at == end:
        instant = (-number if negative else number) * MILLISECOND
    else:
        instant, _, zone = _scan_instant(start, end)
        if instant != NO_TIME and zone > UTC_ZONE:
            instant -= (zone - ZERO_OFFSET_ZONE) * MINUTE
    return instant if EARLIEST <= instant <= LATEST else np.int64(NO_TIME)
