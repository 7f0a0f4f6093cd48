"""How far an element may be ahead of those before it in its stream: as given, or by what the run reads."""

from __future__ import annotations

from typing import Final

from headwater.terms.arguments import check_duration

OFF: Final = "off"
DAY = 86_400_000_000
"""The limit of runs that follow their sources, where none is given: longer pauses are rarer than wrong clocks."""


def check_max_ahead(given: int | str | None) -> int | str | None:
    """The setting `max_ahead`: microseconds, `off`, or None where it is not given."""
    return given if given is None or given == OFF else check_duration("max_ahead", given)


def choose_max_ahead(given: int | str | None, *, is_live: bool) -> int | None:
    """The limit in microseconds; None where there is none. A recording is taken as it is."""
    if given is None:
        return DAY if is_live else None
    return None if isinstance(given, str) else given
