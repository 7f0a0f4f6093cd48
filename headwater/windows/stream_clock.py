"""How far a stream has come: its watermark, and which elements came too late.

The watermark of a stream is the highest timestamp seen minus the allowed delay; nothing older is still expected.
Whether an element is late depends on the elements that stood before it in its stream and on nothing else, so
neither batches nor the progress of other streams change the answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from headwater.terms.ids.term_texts import Ints
from headwater.windows.element_sequences import Elements, select_elements, times_of


@dataclass
class StreamClock:
    """The progress of one stream; `ended` when its source says that nothing more will come."""

    delay: int = 0
    highest: int | None = None
    ended: bool = False
    lowest: int | None = None
    late: int = 0
    seen: int = 0
    closed: int | None = None
    """Everything before this was answered for good: the stream was drained before its end, or others went on."""
    idle: int | None = None
    """How far, in event time, other streams may be ahead before this one is taken to be silent."""

    @property
    def watermark(self) -> int | None:
        """No element below this is still expected; None before the first one."""
        return None if self.highest is None else self.highest - self.delay

    @property
    def passed(self) -> int | None:
        """All ticks before this instant can be answered."""
        return self.watermark

    def admit(self, elements: Elements) -> tuple[Elements, Elements]:
        """Elements in arrival order, parted into those in time and those too late."""
        if not len(elements):
            return elements, []
        times = times_of(elements)
        highest = np.maximum.accumulate(times)
        # An element is compared with those before it; one that is above them all is in time in any case.
        before = highest if self.highest is None else np.maximum(highest, self.highest)
        is_late = times < before - self.delay
        if self.closed is not None:
            is_late |= times < self.closed
        self.seen += len(elements)
        if not is_late.any():
            self.highest = int(before[-1])
            self._note(times)
            return elements, []
        admitted = select_elements(elements, ~is_late)
        self._note(times[~is_late])
        if len(admitted):
            newest = int(times_of(admitted).max())
            self.highest = newest if self.highest is None else max(self.highest, newest)
        late = select_elements(elements, is_late)
        self.late += len(late)
        return admitted, late

    def with_limits_of(self, other: StreamClock) -> StreamClock:
        """The same clock, which from now on allows what another one allows; what is past stays past."""
        if self.watermark is not None and other.delay != self.delay:
            self.close(self.watermark)
        self.delay, self.idle = other.delay, other.idle
        return self

    def _note(self, admitted: Ints) -> None:
        """Remember how far back the stream goes."""
        if len(admitted):
            oldest = int(admitted.min())
            self.lowest = oldest if self.lowest is None else min(self.lowest, oldest)

    def close(self, before: int) -> None:
        """Nothing older than this instant may come any more."""
        self.closed = before if self.closed is None else max(self.closed, before)


@dataclass
class FedClock(StreamClock):
    """The progress of a stream that a query feeds: all that it says at one instant comes at once."""

    @property
    def passed(self) -> int | None:
        return None if self.highest is None else self.highest + 1


def combined(clocks: Iterable[StreamClock]) -> tuple[int | None, bool]:
    """The watermark of a query over several streams, and whether all of them have ended.

    Streams that ended do not hold the others back. The watermark is None while a stream that has not ended has
    shown nothing yet. A stream with an `idle` time holds the others back by no more than that: it is then closed up to
    where they are, and what it still brings from before is late.
    """
    running = [clock for clock in clocks if not clock.ended]
    if not running:
        return None, True
    marks = [clock.passed for clock in running]
    newest = max((mark for mark in marks if mark is not None), default=None)
    if newest is not None:
        for number, clock in enumerate(running):
            mark = marks[number]
            if clock.idle is not None and (mark is None or mark < newest - clock.idle):
                marks[number] = newest - clock.idle
                clock.close(newest - clock.idle)
    return (None if None in marks else min(mark for mark in marks if mark is not None)), False
