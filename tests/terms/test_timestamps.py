"""Instants and durations as text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.terms.durations import parse_duration
from headwater.terms.model import XSD, BlankNode, Literal, NamedNode
from headwater.terms.timestamps import EARLIEST, LATEST, format_time, parse_time

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("0", 0),
        ("1500", 1_500_000),
        ("-1", -1_000),
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00", 0),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T23:59:59.5Z", -500_000),
        ("1970-01-01T00:00:00.1234569Z", 123_456),
        ("1969-12-31T24:00:00Z", 0),
        ("2013-01-01 15:11:48", 1_357_053_108_000_000),
        ("2004-08-08 06:05:00.000000+0:00", 1_091_945_100_000_000),
        ("2014-05-22 09:09:04.145", 1_400_749_744_145_000),
        ("0001-01-01T00:00:00Z", EARLIEST),
        ("9999-12-31T23:59:59.999999Z", LATEST),
        (" 1500 ", 1_500_000),
    ],
)
def test_times(text: str, micros: int) -> None:
    assert parse_time(text) == micros
    assert parse_time(Literal(text)) == micros


def test_terms_and_integers() -> None:
    assert parse_time(12) == 12_000
    assert parse_time(Literal("12", datatype=NamedNode(XSD + "long"))) == 12_000
    assert parse_time(Literal("1970-01-01T00:00:01Z", datatype=NamedNode(XSD + "dateTime"))) == 1_000_000
    for term in (NamedNode("http://example.org/"), BlankNode("a")):
        with pytest.raises(ValueError, match="is not a time"):
            parse_time(term)


@pytest.mark.parametrize(
    "text",
    [
        *("", "now", "1.5", "1e3", "2014-08-01", "07:50:00", "2014-13-01T00:00:00Z", "2015-02-29T00:00:00Z"),
        *("2014-08-01T25:00:00Z", "2014-08-01T24:00:01Z", "2014-08-01T00:60:00Z", "2014-08-01T00:00:60Z"),
        *(
            "2014-08-01T00:00:00+15:00",
            "2014-08-01T00:00:00+01:60",
            "0000-01-01T00:00:00Z",
            "-0001-01-01T00:00:00Z",
        ),
        *(
            "12014-08-01T00:00:00Z",
            "2014-08-01T00:00:00ZZ",
            "2014-08-01T00:00:00.Z",
            "0001-01-01T00:00:00+14:00",
        ),
        *("1400749744145000", "99999999999999999999999999", "٢٠١٤-08-01T00:00:00Z"),
    ],
)
def test_no_times(text: str) -> None:
    with pytest.raises(ValueError, match=r"time|years"):
        parse_time(text)


@given(st.datetimes(timezones=st.integers(-840, 840).map(lambda m: timezone(timedelta(minutes=m)))))
def test_times_agree_with_datetime(moment: datetime) -> None:
    micros = (moment - EPOCH) // timedelta(microseconds=1)
    text = moment.isoformat()
    if EARLIEST <= micros <= LATEST:
        assert parse_time(text) == micros
    else:
        with pytest.raises(ValueError):
            parse_time(text)


@given(st.integers(EARLIEST, LATEST))
def test_formatted_times_come_back(micros: int) -> None:
    assert parse_time(format_time(micros)) == micros


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1_500_000, "1970-01-01T00:00:01.5Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
        (120_000, "1970-01-01T00:00:00.12Z"),
        (LATEST + 1, "10000-01-01T00:00:00Z"),
        (EARLIEST - 1, "0000-12-31T23:59:59.999999Z"),
        (-(2**63), "-290308-12-21T19:59:05.224192Z"),
    ],
)
def test_format(micros: int, text: str) -> None:
    assert format_time(micros) == text


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("PT1H30M", 5_400_000_000),
        ("P1DT2S", 86_402_000_000),
        ("PT0.5S", 500_000),
        ("P1W", 7 * 86_400_000_000),
        ("pt10s", 10_000_000),
        ("PT0S", 0),
        ("5s", 5_000_000),
        ("1h30m", 5_400_000_000),
        ("100ms", 100_000),
        ("24 hours", 86_400_000_000),
        ("10 min", 600_000_000),
        ("1 day", 86_400_000_000),
        ("3 SECONDS", 3_000_000),
        ("0.5 sec", 500_000),
        ("7us", 7),
        ("2000ns", 2),
        ("1 minute", 60_000_000),
    ],
)
def test_durations(text: str, micros: int) -> None:
    assert parse_duration(text) == micros


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("P1Y", "years and months"),
        ("P1M", "years and months"),
        ("P1Y2DT3S", "years and months"),
        ("P", "is not a duration"),
        ("P1DT", "is not a duration"),
        ("PT", "is not a duration"),
        ("1ns", "whole number of microseconds"),
        ("PT0.0000001S", "whole number of microseconds"),
        ("5", "is not a duration"),
        ("", "is not a duration"),
        ("-5s", "is not a duration"),
        ("5 parsecs", "is not a duration"),
        ("5s later", "is not a duration"),
        ("1h 30m", "is not a duration"),
        ("PT1S1H", "is not a duration"),
        ("P1H", "is not a duration"),
        ("PT1.2.3S", "is not a duration"),
        ("1,5s", "is not a duration"),
    ],
)
def test_no_durations(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_duration(text)


@given(st.integers(0, 10**15))
def test_durations_of_many_units(micros: int) -> None:
    seconds, rest = divmod(micros, 1_000_000)
    hours, seconds = divmod(seconds, 3600)
    assert parse_duration(f"{hours}h{seconds}s{rest}us") == micros
    assert parse_duration(f"PT{hours}H{seconds}.{rest:06d}S") == micros
