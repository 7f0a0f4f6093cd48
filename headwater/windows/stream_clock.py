"""The clock of a stream: its watermark, and which of its elements are late.

The watermark of a stream is the highest timestamp so far minus the allowed delay; no older element is expected. Whether
an element is late depends only on the elements before it in its stream, so neither batches nor the progress of other
streams change the answers.

Live streams also have heartbeats (`heartbeat`). A stream that was silent for its `idle` time is taken to have come to
the present of the query that reads it, less that time:

    present     of streams that are read together: the largest sum of a newest timestamp and the silence since then
    watermark   of a silent one: at least the present minus its idle time minus the delay

A stream whose elements are stamped when they arrive needs no such guess: its heartbeats say what has settled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from headwater.terms.ids.term_texts import Ints
from headwater.windows.element_sequences import Elements, select_elements, times_of
from headwater.windows.heartbeat import Heartbeat
from headwater.windows.time_jumps import NO_JUMP, Jump, find_jumps


@dataclass
class StreamClock:
    """The progress of one stream in event time. `has_ended` is set when its source has no more elements."""

    delay: int = 0
    highest_time: int | None = None
    has_ended: bool = False
    lowest_time: int | None = None
    late_count: int = 0
    element_count: int = 0
    closed_before: int | None = None
    """Ticks before this instant are final; older elements are late. Set at the end of a run, and by heartbeats."""
    idle_limit: int | None = None
    """After so much silence, by the machine's clock, the stream is not waited for; None: it always is."""
    heard_at: int | None = None
    """When it was last seen to have brought something, by the machine's clock; None where no heartbeat came since."""
    silence: int = 0
    """For how long it had brought nothing at the last heartbeat."""
    max_ahead: int | None = None
    """How far an element may be ahead of those before it; None: as far as it likes."""
    jumps: dict[int, Jump] = field(default_factory=dict)
    """By partition, the last elements that were ahead (`time_jumps`)."""
    late_by: int = 0
    """How far late elements of the last call of `admit` were behind an element before them, at most."""
    unawaited: int = 0
    """How many elements of that call were late only because of `closed_before`."""
    admitted_until: int | None = None
    """The highest time that a clock before this one admitted, where that one was ahead: such elements wait."""

    @property
    def newest_time(self) -> int | None:
        """The highest time of the elements that were admitted, by this clock or by one before it."""
        known = [time for time in (self.highest_time, self.admitted_until) if time is not None]
        return max(known, default=None)

    @property
    def watermark(self) -> int | None:
        """No element before this instant is expected; None before the first element."""
        return self._at_least_closed(self._element_watermark)

    @property
    def reached(self) -> int | None:
        """How far the stream has come, for people; one that has ended has come to its last element."""
        return self._element_watermark if self.has_ended else self.watermark

    @property
    def _element_watermark(self) -> int | None:
        """The watermark that elements have set, without heartbeats."""
        return None if self.highest_time is None else self.highest_time - self.delay

    @property
    def complete_before(self) -> int | None:
        """All ticks before this instant can be evaluated."""
        return self.watermark

    def _at_least_closed(self, mark: int | None) -> int | None:
        closed = self.closed_before
        return mark if closed is None or (mark is not None and mark > closed) else closed

    @property
    def present(self) -> int | None:
        """Where the stream would be if it had gone on at the speed of the machine's clock since its newest element."""
        return None if self.highest_time is None else self.highest_time + self.silence

    @property
    def is_silent(self) -> bool:
        """Whether it has brought nothing for its idle time."""
        return self.idle_limit is not None and self.heard_at is not None and self.silence >= self.idle_limit

    def beat(self, heartbeat: Heartbeat) -> None:
        """Take a heartbeat, which comes behind the elements of its batch."""
        if self.heard_at is None:
            self.heard_at = heartbeat.until
        self.silence = heartbeat.until - max(self.heard_at, heartbeat.since)
        if heartbeat.settled is not None:
            self.close(heartbeat.settled - (self.idle_limit or 0))

    def split_ahead(self, elements: Elements) -> tuple[Elements, Elements]:
        """Split elements, given in arrival order, into those that are in time or late, and those too far ahead."""
        if self.max_ahead is None or not len(elements):
            return elements, []
        is_ahead = self._find_jumps(elements, self.max_ahead)
        if not is_ahead.any():
            return elements, []
        return select_elements(elements, ~is_ahead), select_elements(elements, is_ahead)

    def _find_jumps(self, elements: Elements, limit: int) -> npt.NDArray[np.bool_]:
        times = times_of(elements)
        is_ahead, self.jumps[0] = find_jumps(times, self.highest_time, limit, self.jumps.get(0, NO_JUMP))
        return is_ahead

    def admit(self, elements: Elements) -> tuple[Elements, Elements]:
        """Split elements, given in arrival order, into admitted and late ones."""
        if not len(elements):
            return elements, []
        self.heard_at, self.silence = None, 0
        self.late_by = self.unawaited = 0
        times = times_of(elements)
        highest = np.maximum.accumulate(times)
        # An element is compared with those before it; a new highest one is never late.
        before = highest if self.highest_time is None else np.maximum(highest, self.highest_time)
        is_late = times < before - self.delay
        self.late_by = int((before - times).max(where=is_late, initial=0))
        if self.closed_before is not None:
            is_unawaited = (times < self.closed_before) & ~is_late
            self.unawaited = int(is_unawaited.sum())
            is_late |= is_unawaited
        self.element_count += len(elements)
        if not is_late.any():
            self.highest_time = int(before[-1])
            self._note_lowest(times)
            return elements, []
        admitted = select_elements(elements, ~is_late)
        self._note_lowest(times[~is_late])
        if len(admitted):
            newest = int(times_of(admitted).max())
            self.highest_time = newest if self.highest_time is None else max(self.highest_time, newest)
        late = select_elements(elements, is_late)
        self.late_count += len(late)
        return admitted, late

    def take_limits_of(self, other: StreamClock) -> StreamClock:
        """Take delay and limits of another clock for what comes; the watermark does not go back."""
        if self.watermark is not None and other.delay != self.delay:
            self.close(self.watermark)
        self.delay, self.idle_limit, self.max_ahead = other.delay, other.idle_limit, other.max_ahead
        return self

    def _note_lowest(self, admitted: Ints) -> None:
        """Remember the oldest admitted timestamp."""
        if len(admitted):
            oldest = int(admitted.min())
            self.lowest_time = oldest if self.lowest_time is None else min(self.lowest_time, oldest)

    def close(self, before: int) -> None:
        """Declare elements before this instant late."""
        self.closed_before = before if self.closed_before is None else max(self.closed_before, before)


@dataclass
class DerivedStreamClock(StreamClock):
    """The clock of a stream that a query produces: all elements of one instant arrive together."""

    @property
    def complete_before(self) -> int | None:
        return self._at_least_closed(None if self.highest_time is None else self.highest_time + 1)


def combine_clocks(clocks: Iterable[StreamClock]) -> tuple[int | None, bool]:
    """The watermark of a query over several streams, and whether all of them have ended.

    Streams that have ended do not hold the others back. The watermark is None while a stream that has not ended has no
    element yet. Streams that are silent are closed up to the present minus their idle time: their older elements are
    late.
    """
    running = [clock for clock in clocks if not clock.has_ended]
    if not running:
        return None, True
    silent = [clock for clock in running if clock.is_silent]
    if silent and (present := max((c.present for c in running if c.present is not None), default=None)) is not None:
        for clock in silent:
            clock.close(present - (clock.idle_limit or 0) - clock.delay)
    marks = [clock.complete_before for clock in running]
    return (None if None in marks else min(mark for mark in marks if mark is not None)), False
