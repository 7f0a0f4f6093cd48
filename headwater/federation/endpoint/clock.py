"""Clocks: what ages are measured by, and what deadlines and waiting are measured by.

Ages (of entries, up to their best-before times, and between changes) are those of a `Clock` that a SERVICE clause
chooses: the machine's (`CLOCK WALL`), or the stream's (`CLOCK STREAM`) where a recording is replayed. The latency of
requests, and deadlines, are always the machine's.

Instants of a `Clock` are whole microseconds since 1970, as everywhere in the project; durations of work are seconds.
Both can be replaced, so that tests and experiments need not wait.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Gives the present instant."""

    def now(self) -> int:
        """Microseconds since 1970; it never goes back."""


class SystemClock:
    """The machine's time, made monotonic: it ignores later changes of the machine's date."""

    def __init__(self) -> None:
        self._offset = time.time_ns() - time.monotonic_ns()

    def now(self) -> int:
        return (time.monotonic_ns() + self._offset) // 1000


class EventTimeClock:
    """The time of the streams: the instant of the tick that is evaluated. It stands still during a tick."""

    def __init__(self) -> None:
        self._now = 0

    def now(self) -> int:
        return self._now

    def move_to(self, tick: int) -> None:
        """Go on to the next tick."""
        self._now = tick


class RequestClock:
    """The clock of one endpoint's deadlines, pauses and back-off."""

    def now(self) -> float:
        """Seconds of a clock that never goes back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def date(self) -> datetime:
        """The present date, which HTTP dates are compared with."""
        return datetime.now(UTC)
