"""How a template reads the time of a row: the `@time` line.

- `@time {TIMESTAMP}`: an xsd:dateTime, or an integer of milliseconds (see `headwater.terms.timestamps`).
- `@time {day}T{hour}:00:00Z`: text around one or several columns.
- `@time {ts} as seconds`: a number since 1970, in `seconds`, `milliseconds`, `microseconds` or `nanoseconds`
  (parts of a microsecond are cut off).
- `@time {day} as %d.%m.%Y %H:%M`: any form that `datetime.strptime` knows; UTC where it has no zone.
- `@time 2014-08-01T00:00:00Z every 5s`: for rows without a time. Row n is at the start + (n - 1) x 5 s.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import TypeAlias

from headwater.terms.durations import parse_duration
from headwater.terms.template_terms import Placeholders, RowError, TemplateRow, fill_text
from headwater.terms.timestamps import LATEST, check_in_calendar, format_time, parse_time

ROW_NUMBER = "row"
"""The built-in column that holds the number of the row, counted from 1."""

TimeRule: TypeAlias = Callable[[TemplateRow], int]

_EVERY = re.compile(r"(.+?)\s+every\s+(.+)")
_AS = re.compile(r"(.*\})\s+as\s+(.+)")
_UNITS = {
    "seconds": Decimal(1_000_000),
    "milliseconds": Decimal(1_000),
    "microseconds": Decimal(1),
    "nanoseconds": Decimal("0.001"),
}
_FAR_OUTSIDE_CALENDAR = 10**18
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_time_rule(text: str, placeholders: Placeholders) -> TimeRule:
    """The function that gives a row's time in microseconds; a `ValueError` where the text is no rule."""
    if "{" not in text:
        return _parse_every_rule(text, placeholders)
    as_match = _AS.fullmatch(text)
    column_text, form = as_match.groups() if as_match else (text, "")
    read = _parse_reader(form)
    parts = placeholders.split_parts(placeholders.hide(column_text))

    def rule(row: TemplateRow) -> int:
        cell = fill_text(parts, row)
        if cell is None:
            raise RowError(f"no time: {column_text} is empty or missing in this row")
        try:
            return read(cell)
        except ValueError as error:
            raise RowError(f"no time: {error}") from None

    return rule


def _parse_every_rule(text: str, placeholders: Placeholders) -> TimeRule:
    """The rule of `@time START every STEP`, which counts rows."""
    match = _EVERY.fullmatch(text)
    if match is None:
        raise ValueError(
            "@time needs a column in braces, such as @time {TIMESTAMP}, or a start and a step, such as "
            "@time 2014-08-01T00:00:00Z every 5s"
        )
    start, step = parse_time(match.group(1)), parse_duration(match.group(2))
    if step <= 0:
        raise ValueError("the step of @time is longer than nothing, such as every 5s")
    placeholders.hide(f"{{{ROW_NUMBER}}}")

    def rule(row: TemplateRow) -> int:
        time = start + (int(row.cell(ROW_NUMBER)) - 1) * step
        if time > LATEST:
            raise RowError(f"no time: the step leads beyond {format_time(LATEST)}")
        return time

    return rule


def _parse_reader(form: str) -> Callable[[str], int]:
    if not form:
        return lru_cache(maxsize=1024)(parse_time)
    if form in _UNITS:
        return lambda cell: _parse_number(cell, _UNITS[form])
    if "%" not in form:
        raise ValueError(f"@time … as {form}: expected {', '.join(_UNITS)} or a pattern such as %Y-%m-%d")

    def read(cell: str) -> int:
        time = datetime.strptime(cell, form)
        aware = time if time.tzinfo else time.replace(tzinfo=UTC)
        return check_in_calendar((aware - _EPOCH) // timedelta(microseconds=1), cell)

    return read


def _parse_number(cell: str, factor: Decimal) -> int:
    try:
        number = Decimal(cell) * factor
        small_enough = abs(number) < _FAR_OUTSIDE_CALENDAR
    except ArithmeticError:
        raise ValueError(f"{cell!r} is not a number") from None
    if not small_enough:
        raise ValueError(f"{cell!r} is not a time in the years 0001 to 9999")
    return check_in_calendar(math.floor(number), cell)
