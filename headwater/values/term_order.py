"""A total order of terms that follows SPARQL's ORDER BY (section 15.1).

Blank nodes, then IRIs, then literals, then triple terms. Literals whose values SPARQL can compare stand in the order of
their values. What SPARQL leaves open is defined here, whatever else is compared, so that the least of some terms does
not depend on the order in which they are compared: numbers (NaN last), date-times, dates, times, durations,
strings, booleans, everything else by its text. Times without a zone are read as UTC.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import date
from fractions import Fraction
from typing import Any, TypeAlias

from headwater.terms.ids.term_ids import term_text
from headwater.terms.model import RDF, XSD, BlankNode, Literal, NamedNode, Term
from headwater.values.numeric import number_of

OrderKey: TypeAlias = tuple[Any, ...]

_ZONE = r"(Z|[+-][0-9]{2}:[0-9]{2})?"
_DAY = r"(-?(?:[1-9][0-9]{3,}|0[0-9]{3}))-([0-9]{2})-([0-9]{2})"
_CLOCK = r"([0-9]{2}):([0-9]{2}):([0-9]{2}(?:\.[0-9]+)?)"
_DATE_TIME = re.compile(f"{_DAY}T{_CLOCK}{_ZONE}")
_DATE = re.compile(_DAY + _ZONE)
_TIME = re.compile(_CLOCK + _ZONE)
_DURATION = re.compile(
    r"(-?)P(?=.)(?:([0-9]+)Y)?(?:([0-9]+)M)?(?:([0-9]+)D)?"
    r"(?:T(?=.)(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+(?:\.[0-9]+)?)S)?)?"
)
_SECONDS_OF_A_DAY = 86_400
_SECONDS_OF_A_MONTH = 2_629_746
"""A twelfth of the mean Gregorian year, for durations that mix months and seconds."""
_LONGEST_TIME = 1000
"""Longer texts are no times: Python refuses to read numbers with some thousand digits."""
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097

_BLANK, _IRI, NUMBERS, _INSTANT, _DATES, _TIMES, _DURATIONS, _STRING, _BOOLEAN, _OTHER, _TRIPLE = range(11)


def order_key(term: Term) -> OrderKey:
    """A key that sorts terms; equal for terms whose values SPARQL calls equal."""
    if isinstance(term, BlankNode):
        return (_BLANK, term.value)
    if isinstance(term, NamedNode):
        return (_IRI, term.value)
    if not isinstance(term, Literal):
        return (_TRIPLE, order_key(term.subject), order_key(term.predicate), order_key(term.object))
    number = number_of(term)
    if number is not None:
        value = number.value
        is_nan = isinstance(value, float) and math.isnan(value)
        return (NUMBERS, is_nan, 0 if is_nan else value)
    datatype = term.datatype.value
    if datatype in (XSD + "string", RDF + "langString", RDF + "dirLangString"):
        language = term.language
        return (_STRING, term.value, language is None, language or "")
    reader = _READERS.get(datatype)
    key = None if reader is None or len(term.value) > _LONGEST_TIME else reader(term.value)
    return (_OTHER, term.value, datatype) if key is None else key


def text_key(term: Term) -> str:
    """What decides between terms whose values are equal."""
    return term_text(term)


def _boolean(text: str) -> OrderKey | None:
    return (_BOOLEAN, text in ("true", "1")) if text in ("true", "false", "1", "0") else None


def _date_time(text: str) -> OrderKey | None:
    match = _DATE_TIME.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, zone = match.groups()
    return _key(_INSTANT, _day(year, month, day), _clock(hour, minute, second), zone)


def _date(text: str) -> OrderKey | None:
    match = _DATE.fullmatch(text)
    return None if match is None else _key(_DATES, _day(*match.groups()[:3]), Fraction(0), match[4])


def _time(text: str) -> OrderKey | None:
    match = _TIME.fullmatch(text)
    return None if match is None else _key(_TIMES, 0, _clock(*match.groups()[:3]), match[4])


def _key(rank: int, day: int | None, seconds: Fraction | None, zone: str | None) -> OrderKey | None:
    if day is None or seconds is None:
        return None
    offset = 0
    if zone is not None and zone != "Z":
        hours, minutes = int(zone[1:3]), int(zone[4:6])
        offset = (hours * 60 + minutes) * (-60 if zone[0] == "-" else 60)
        if minutes > 59 or abs(offset) > 14 * 3600:
            return None
    return (rank, day * _SECONDS_OF_A_DAY + seconds - offset)


def _day(year: str, month: str, day: str) -> int | None:
    """The number of a day in the Gregorian calendar, which repeats every 400 years."""
    cycle, year_of_cycle = divmod(int(year), _CYCLE_YEARS)
    try:
        ordinal = date(2000 + year_of_cycle, int(month), int(day)).toordinal()
    except ValueError:
        return None
    return ordinal + cycle * _CYCLE_DAYS


def _clock(hour: str, minute: str, second: str) -> Fraction | None:
    seconds = Fraction(second)
    midnight = hour == "24" and minute == "00" and seconds == 0
    if (int(hour) > 23 and not midnight) or int(minute) > 59 or seconds >= 60:
        return None
    return int(hour) * 3600 + int(minute) * 60 + seconds


def _duration(text: str) -> OrderKey | None:
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    years, months, days, hours, minutes = (int(part or 0) for part in match.groups()[1:6])
    seconds = ((days * 24 + hours) * 60 + minutes) * 60 + Fraction(match[7] or 0)
    length = (years * 12 + months) * _SECONDS_OF_A_MONTH + seconds
    return (_DURATIONS, -length if match[1] else length)


_READERS: dict[str, Callable[[str], OrderKey | None]] = {
    XSD + "boolean": _boolean,
    XSD + "dateTime": _date_time,
    XSD + "date": _date,
    XSD + "time": _time,
    XSD + "duration": _duration,
    XSD + "dayTimeDuration": _duration,
    XSD + "yearMonthDuration": _duration,
}
