"""Time, as the federation measures it: the system's clock, or one that moves only when it is told to.

Instants are whole microseconds since 1970, as everywhere in the project; durations of work are seconds.

    >>> clock = VirtualClock(now=0)
    >>> clock.pass_seconds(1.5)
    >>> clock.now()
    1500000
"""

from __future__ import annotations

import time
from typing import Protocol

from headwater.terms.model import SECOND


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


class VirtualClock:
    """Time for experiments: it stands still between two orders to move."""

    def __init__(self, now: int = 0) -> None:
        self._now = now

    def now(self) -> int:
        return self._now

    def pass_seconds(self, seconds: float) -> None:
        self._now += max(0, round(seconds * SECOND))

    def move_to(self, instant: int) -> None:
        """Go on to an instant; one that is over already changes nothing."""
        self._now = max(self._now, instant)
