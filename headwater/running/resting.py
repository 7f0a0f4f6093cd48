"""How a run waits while nothing comes: briefly enough that an element is seen at once, at little cost.

Whoever receives a stream wakes the run. Nobody says that a file has grown, so the files are glanced at every few
milliseconds: only whether they are there, how large they are and when they changed. Where a glance takes long, in a
folder of many files, there are fewer of them. After a while the run looks at everything, for what no file tells.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event

from headwater.sources.feed import Feed

LOOK_SECONDS = 1.0
"""How often a run looks at everything, where nobody says how often."""
_SHORTEST_PAUSE = 0.002
_LONGEST_PAUSE = 0.004
"""Between two glances, where they cost nothing: at first, and when nothing has come for some seconds."""
_WAKEFUL_SECONDS = 5.0
_SHARE = 0.02
"""Glances take at most this part of the time."""


class Rest:
    """Waits between two looks at the sources, for `seconds` at most, or until `woken` (else `stop`) is set."""

    def __init__(
        self,
        woken: Event | None,
        stop: Event | None,
        seconds: float | None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._woken = woken or stop
        # The event that stops a run stays set.
        self._clears = woken is not None
        self._seconds = LOOK_SECONDS if seconds is None else seconds
        self._clock = clock
        self._cost = 0.0
        self._last_news = clock()

    def note_news(self) -> None:
        """Something has come: more may follow soon."""
        self._last_news = self._clock()

    def wait(self, feed: Feed, least: float = 0.0) -> None:
        """Wait until there may be something new, but at least so many seconds, unless the run is woken."""
        begin = self._clock()
        end = begin + self._seconds
        next_glance = min(end, begin + max(least, self._pause()))
        while (now := self._clock()) < end:
            if self._is_woken(max(0.0, (next_glance if feed.is_polled else end) - now)):
                return
            if feed.is_polled and (now := self._clock()) >= next_glance:
                if feed.has_changed():
                    return
                # The mean of some glances: the first one after a pause of the process says little.
                self._cost += (self._clock() - now - self._cost) / 8
                next_glance = min(end, now + self._pause())

    def _is_woken(self, seconds: float) -> bool:
        """Sleep; whether somebody has ended that."""
        if self._woken is None:
            time.sleep(seconds)
            return False
        is_woken = self._woken.wait(seconds)
        if is_woken and self._clears:
            self._woken.clear()
        return is_woken

    def _pause(self) -> float:
        is_wakeful = self._clock() - self._last_news < _WAKEFUL_SECONDS
        return max(_SHORTEST_PAUSE if is_wakeful else _LONGEST_PAUSE, self._cost / _SHARE)
