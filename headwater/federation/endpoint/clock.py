"""The clock that ages of entries and latencies of requests are measured by.

Instants are whole microseconds since 1970, as everywhere in the project; durations of work are seconds.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the instant."""

    def now(self) -> int:
        """Microseconds since 1970; it never goes back."""


class SystemClock:
    """The machine's time, made steady: set back or forward by someone, it goes on as it was."""

    def __init__(self) -> None:
        self._offset = time.time_ns() - time.monotonic_ns()

    def now(self) -> int:
        return (time.monotonic_ns() + self._offset) // 1000
