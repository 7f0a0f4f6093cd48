"""Instants and durations as text, and as whole microseconds.

An instant is an `int` of microseconds since 1970-01-01T00:00:00Z, negative before it. `parse_time` reads what
streams carry in practice: an integer counts *milliseconds*; anything else is an `xsd:dateTime`, with a blank
instead of the `T` allowed and with UTC assumed where no zone is given.

>>> parse_time("1500")
1500000
>>> parse_time("2013-01-01 15:11:48") == parse_time("2013-01-01T16:11:48+01:00")
True
>>> format_time(1_500_000)
'1970-01-01T00:00:01.5Z'
>>> parse_duration("PT1H30M") == parse_duration("90 min")
True
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

from headwater.errors import SettingError
from headwater.terms.model import MILLISECOND, SECOND, Literal, Term

MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_GREGORIAN_CYCLE_YEARS = 400
_GREGORIAN_CYCLE_DAYS = 146_097

EARLIEST = (1 - _EPOCH_ORDINAL) * DAY
"""The first instant of the year 0001: `parse_time` gives nothing before it."""
LATEST = (date.max.toordinal() + 1 - _EPOCH_ORDINAL) * DAY - 1
"""The last microsecond of the year 9999: `parse_time` gives nothing after it."""

_DATE_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[T ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"[ ]?(?:(Z)|([+-])([0-9]{1,2}):?([0-9]{2}))?"
)
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


def parse_time(value: str | int | Term) -> int:
    """Microseconds since 1970 of an instant given as text, as an integer of milliseconds, or as a literal.

    Digits of a second beyond the sixth are cut off. Raises `SettingError` for anything that is not an instant
    in the years 0001 to 9999.
    """
    if isinstance(value, int):
        return check_in_calendar(value * MILLISECOND, str(value))
    if isinstance(value, Literal):
        text = value.value.strip()
    elif isinstance(value, str):
        text = value.strip()
    else:
        raise SettingError(f"{value} is not a time: expected a literal such as an xsd:dateTime")
    match = _DATE_TIME.fullmatch(text)
    if match is None:
        if _INTEGER.fullmatch(text):
            return check_in_calendar(int(text) * MILLISECOND, text)
        raise SettingError(
            f"{text!r} is not a time: expected an xsd:dateTime such as 2014-08-01T07:50:00Z, "
            "or an integer of milliseconds since 1970"
        )
    year, month, day, hour, minute, second, fraction, _, sign, zone_hours, zone_minutes = match.groups()
    try:
        instant = civil_time(int(year), int(month), int(day), int(hour), int(minute), int(second), fraction)
    except ValueError as error:
        raise SettingError(f"{text!r} is not a time: {error}") from None
    if sign:
        offset = int(zone_hours) * HOUR + int(zone_minutes) * MINUTE
        if int(zone_minutes) > 59 or offset > 14 * HOUR:
            raise SettingError(f"{text!r} is not a time: the zone must lie between -14:00 and +14:00")
        instant += -offset if sign == "+" else offset
    return check_in_calendar(instant, text)


def civil_time(
    year: int, month: int, day: int, hour: int, minute: int, second: int, fraction: str | None = None
) -> int:
    """Microseconds since 1970 of a calendar time in UTC; `fraction` holds the digits after the second's dot.

    24:00:00 is the midnight that ends the day, as in XML Schema. Raises `ValueError` for other times that do
    not exist.
    """
    days = date(year, month, day).toordinal() - _EPOCH_ORDINAL
    micros = int(fraction[:6].ljust(6, "0")) if fraction else 0
    if hour > 23 and (hour, minute, second, micros) != (24, 0, 0, 0):
        raise SettingError("hour must be in 0..23")
    if minute > 59:
        raise SettingError("minute must be in 0..59")
    if second > 59:
        raise SettingError("second must be in 0..59")
    return days * DAY + hour * HOUR + minute * MINUTE + second * SECOND + micros


def check_in_calendar(instant: int, text: str) -> int:
    """The instant itself; a `SettingError` that names the text where it is not in the years 0001 to 9999."""
    if EARLIEST <= instant <= LATEST:
        return instant
    raise SettingError(f"{text!r} lies outside the years 0001 to 9999 (an integer counts milliseconds since 1970)")


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def time_to_datetime(instant: int) -> datetime:
    """The instant as Python's datetime in UTC; a `SettingError` where its year is not one of 0001 to 9999."""
    return _EPOCH + timedelta(microseconds=check_in_calendar(instant, str(instant)))


def datetime_to_time(value: datetime) -> int:
    """Microseconds since 1970; a `SettingError` for a datetime without a time zone, which may mean any of them."""
    if value.tzinfo is None:
        raise SettingError(f"{value} has no time zone: give one, such as datetime(…, tzinfo=UTC)")
    return (value - _EPOCH) // timedelta(microseconds=1)


def format_time(instant: int) -> str:
    """ISO 8601 in UTC with `Z`; a fraction of a second only where there is one, without trailing zeros.

    Total: instants outside the years 0001 to 9999 get a year of more digits or a minus sign.
    """
    days, micros_of_day = divmod(instant, DAY)
    seconds, micros = divmod(micros_of_day, SECOND)
    cycle, day_of_cycle = divmod(days + _EPOCH_ORDINAL - 1, _GREGORIAN_CYCLE_DAYS)
    day = date.fromordinal(day_of_cycle + 1)
    year = day.year + cycle * _GREGORIAN_CYCLE_YEARS
    sign = "-" if year < 0 else ""
    fraction = f".{micros:06d}".rstrip("0") if micros else ""
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{sign}{abs(year):04d}-{day.month:02d}-{day.day:02d}T{clock}{fraction}Z"
