"""Window definitions: which timestamps a window covers at an instant, as pure functions of time.

All times are integers of microseconds, so every interval, whatever its bounds, is a half-open range `[low, high)` of
integers: `(o, c]` is `[o+1, c+1)` and `[o, c)` is itself. A time window is advanced by its slide; between two advances
its content stays as it was at the last one. A window without a slide is advanced at every instant.

    >>> window = TimeWindow(width=10, slide=5)
    >>> window.interval(12)     # advanced last at 10: (0, 10]
    (1, 11)
    >>> window.entry_instant(3), window.exit_instant(3)
    (5, 15)
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


class Bounds(Enum):
    """Which end of a time window belongs to it."""

    LEFT_OPEN = "(]"
    RIGHT_OPEN = "[)"


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """At instant t, with c the last advance at or before t: the elements from c−offset−width to c−offset.

    With `width` None the window reaches back to `landmark`, or to the beginning of the stream. `offset` is the distance
    of the younger end from now (`TO NOW-PT1H`). `t0` is the instant at which the first window opens; None: windows open
    at all multiples of the slide.
    """

    width: int | None
    slide: int | None = None
    offset: int = 0
    t0: int | None = None
    bounds: Bounds = Bounds.LEFT_OPEN
    landmark: int | None = None

    @property
    def _grid(self) -> int:
        """One instant at which the window advances; all others are a multiple of the slide away."""
        return (self.t0 or 0) + (self.width or 0) + self.offset

    def advance_at_or_before(self, instant: int) -> int:
        """The last instant, not after this one, at which the window advances."""
        return instant if self.slide is None else instant - (instant - self._grid) % self.slide

    def advance_at_or_after(self, instant: int) -> int:
        """The first instant, not before this one, at which the window advances."""
        return instant if self.slide is None else instant + (self._grid - instant) % self.slide

    @property
    def first_advance(self) -> int | None:
        """The first advance after t0; None without t0."""
        return None if self.t0 is None or self.slide is None else self._grid

    def interval(self, instant: int) -> tuple[int, int]:
        """The timestamps covered at an instant, as `[low, high)`."""
        last = instant if self.slide is None else self.advance_at_or_before(instant)
        shift = 1 if self.bounds is Bounds.LEFT_OPEN else 0
        if self.t0 is not None and self.first_advance is not None and last < self.first_advance:
            return (self.t0 + shift, self.t0 + shift)
        high = last - self.offset + shift
        if self.width is not None:
            low = high - self.width
        else:
            low = self.landmark if self.landmark is not None else -(1 << 62)
        if self.t0 is not None:
            low = max(low, self.t0 + shift)
        return (low if low < high else high, high)

    def intervals(self, instants: Ints) -> tuple[Ints, Ints]:
        """The `interval` at each of some instants, as arrays of lows and highs."""
        last = instants if self.slide is None else instants - (instants - self._grid) % self.slide
        shift = 1 if self.bounds is Bounds.LEFT_OPEN else 0
        highs = last - (self.offset - shift)
        if self.width is not None:
            lows = highs - self.width
        else:
            lows = np.full_like(highs, self.landmark if self.landmark is not None else -(1 << 62))
        if self.t0 is not None:
            opening = self.t0 + shift
            lows = np.maximum(lows, opening)
            if self.first_advance is not None:
                is_closed = last < self.first_advance
                lows, highs = np.where(is_closed, opening, lows), np.where(is_closed, opening, highs)
        return np.minimum(lows, highs), highs

    def entry_instant(self, timestamp: int) -> int:
        """The first instant at which an element of this timestamp can be in the window."""
        shift = 0 if self.bounds is Bounds.LEFT_OPEN else 1
        entered = timestamp + self.offset + shift
        if self.slide is None:
            return entered
        entered = self.advance_at_or_after(entered)
        return entered if self.first_advance is None else max(entered, self.first_advance)

    def entry_instants(self, timestamps: Ints) -> Ints:
        """The `entry_instant` of each of some timestamps."""
        entered = timestamps + (self.offset + (0 if self.bounds is Bounds.LEFT_OPEN else 1))
        if self.slide is None:
            return entered
        entered = entered + (self._grid - entered) % self.slide
        return entered if self.first_advance is None else np.maximum(entered, self.first_advance)

    def exit_instants(self, timestamps: Ints) -> Ints | None:
        """The `exit_instant` of each of some timestamps; None: they stay forever."""
        if self.width is None:
            return None
        left = timestamps + (self.offset + self.width + (0 if self.bounds is Bounds.LEFT_OPEN else 1))
        return left if self.slide is None else left + (self._grid - left) % self.slide

    def exit_instant(self, timestamp: int) -> int | None:
        """The first instant at which it has left the window; None: it stays forever."""
        if self.width is None:
            return None
        shift = 0 if self.bounds is Bounds.LEFT_OPEN else 1
        left = timestamp + self.offset + self.width + shift
        return left if self.slide is None else self.advance_at_or_after(left)


@dataclass(frozen=True, slots=True)
class CountWindow:
    """The last `size` triples or elements (`unit`), advanced after each `step` new ones (None: at every new instant).

    Triples of one instant are ordered by their text, so that their arrival order does not matter.
    """

    size: int
    step: int | None = None
    unit: str = "triples"


Window = TimeWindow | CountWindow

NOW = TimeWindow(width=1)
"""CQELS `[NOW]`: the elements that carry the evaluation time itself."""

ALL = TimeWindow(width=None)
"""CQELS `[ALL]`: everything so far."""
