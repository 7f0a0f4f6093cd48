"""Durations as people write them, in windows and on the command line, in microseconds.

`10m`, `24 hours`, `3000ms`, `1h30m`, `PT1H30M`, `P1D`, and a bare integer for milliseconds. Units may be written in
any case and as words. The parts of a compound duration touch each other, so that `RANGE 1h 30m`, a forgotten STEP, is
not taken for ninety minutes.
"""

from __future__ import annotations

import re
from fractions import Fraction

from headwater.errors import HeadwaterError, SettingError

_UNITS: dict[str, Fraction] = {
    **dict.fromkeys(("ns", "nanosecond", "nanoseconds"), Fraction(1, 1000)),
    **dict.fromkeys(("us", "\u00b5s", "\u03bcs", "microsecond", "microseconds"), Fraction(1)),
    **dict.fromkeys(("ms", "milli", "millis", "millisecond", "milliseconds"), Fraction(1_000)),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), Fraction(1_000_000)),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), Fraction(60_000_000)),
    **dict.fromkeys(("h", "hour", "hours"), Fraction(3_600_000_000)),
    **dict.fromkeys(("d", "day", "days"), Fraction(86_400_000_000)),
    **dict.fromkeys(("w", "week", "weeks"), Fraction(604_800_000_000)),
}
_NUMBER = r"[0-9]{1,18}(?:\.[0-9]{1,18})?"
_PART = re.compile(rf"({_NUMBER})([ \t\r\n]*)([A-Za-z\u00b5\u03bc]+)?")
_ISO = re.compile(
    rf"P(?:({_NUMBER})Y)?(?:({_NUMBER})M)?(?:({_NUMBER})W)?(?:({_NUMBER})D)?"
    rf"(?:T(?=[0-9])(?:({_NUMBER})H)?(?:({_NUMBER})M)?(?:({_NUMBER})S)?)?(?![\w:])",
    re.IGNORECASE,
)
_LONGEST = 2**62
_ISO_UNITS = (None, None, "w", "d", "h", "m", "s")
KNOWN_UNITS = "ns, us, ms, s, m, h, d"


class DurationError(HeadwaterError, ValueError):
    """A duration that cannot be read; `offset` says where in the text."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


def read_duration(text: str, start: int, words_after: frozenset[str]) -> tuple[int, int] | None:
    """The duration that begins at `start` and the position after it; None where none begins.

    `words_after` are the (upper-case) keywords that may follow a bare number and are not units.
    """
    iso = _ISO.match(text, start)
    if iso is not None and iso.end() > start + 1 and any(iso.groups()):
        return _parse_iso_duration(iso), iso.end()
    total = Fraction(0)
    position = start
    smallest: Fraction | None = None
    while (part := _PART.match(text, position)) is not None:
        unit = part[3]
        if unit is None or unit.upper() in words_after:
            if smallest is not None:
                raise DurationError("this number has no unit", part.start())
            return _to_whole_microseconds(Fraction(part[1]) * _UNITS["ms"], start), part.end(1)
        factor = _UNITS.get(unit.lower())
        if factor is None:
            raise DurationError(f"{unit} is no unit of time; use one of {KNOWN_UNITS}", part.start(3))
        if smallest is not None and factor >= smallest:
            raise DurationError("the units of a duration go from large to small", part.start())
        total += Fraction(part[1]) * factor
        smallest = factor
        position = part.end()
    return (_to_whole_microseconds(total, start), position) if smallest is not None else None


def _parse_iso_duration(match: re.Match[str]) -> int:
    total = Fraction(0)
    for number, unit in zip(match.groups(), _ISO_UNITS, strict=True):
        if number is None:
            continue
        if unit is None:
            raise DurationError("years and months have no fixed length; use days", match.start())
        total += Fraction(number) * _UNITS[unit]
    return _to_whole_microseconds(total, match.start())


def _to_whole_microseconds(duration: Fraction, start: int) -> int:
    if duration.denominator != 1:
        raise DurationError("a duration is a whole number of microseconds", start)
    if duration > _LONGEST:
        raise DurationError("this duration is too long", start)
    return int(duration)


def parse_duration(text: str) -> int:
    """Microseconds of a duration that stands alone: `PT1H30M`, `1h30m`, `24 hours`. A bare number is none."""
    stripped = text.strip()
    try:
        found = None if stripped.isdigit() else read_duration(stripped, 0, frozenset())
    except DurationError as error:
        raise SettingError(f"{text!r} is not a duration: {error}") from error
    if found is None or found[1] != len(stripped):
        raise SettingError(
            f"{text!r} is not a duration: write an ISO 8601 duration such as PT1H30M, or amounts with units "
            "such as 5s, 1h30m, 100ms, 24 hours"
        )
    return found[0]
