"""The ticks of a query: the instants at which it is evaluated, from timestamps alone.

A `Ticker` observes the timestamps that reach each window, in time order, and gives the ticks before the watermark.
Windows with a slide and periods give arithmetic progressions, so a million ticks over a gap cost a `range`; windows
that advance at every instant give the instants at which an element enters or leaves.

Ticks begin with the first window that can hold the first element (windows that opened before it included), or with the
first window after t0 where t0 is given; in a finite stream they end with the last window that holds the last element.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from headwater.terms.packing import Plain
from headwater.windows.model import CountWindow, TimeWindow
from headwater.windows.settings import QuerySettings, Report

_ETERNITY = 1 << 62
_MANY = 64
"""From so many instants on, they are added and taken as arrays."""


@dataclass
class Ticker:
    """Enumerates the ticks of one query. Its state is small."""

    settings: QuerySettings
    _first: dict[int, int] = field(default_factory=dict)
    _last: dict[int, int] = field(default_factory=dict)
    _counts: dict[int, int] = field(default_factory=dict)
    _events: list[int] = field(default_factory=list)
    _newest_event: int | None = None
    _last_tick: int | None = None
    _begin_instant: int | None = None
    """For a query registered after its streams began: ticks before this instant do not belong to it."""

    def to_plain(self) -> Plain:
        """The state as plain values. The settings are those of the query, which has them."""
        return [
            self._first,
            self._last,
            self._counts,
            self._events,
            self._newest_event,
            self._last_tick,
            self._begin_instant,
        ]

    @classmethod
    def from_plain(cls, settings: QuerySettings, value: Plain) -> Ticker:
        """A ticker with the state that `to_plain` gave."""
        first, last, counts, events, newest, last_tick, begin = value
        return cls(settings, dict(first), dict(last), dict(counts), list(events), newest, last_tick, begin)

    @property
    def last_tick(self) -> int | None:
        """The newest tick given so far."""
        return self._last_tick

    @property
    def _last_passed(self) -> int | None:
        """No tick up to this instant will be given."""
        return (
            self._last_tick if self._last_tick is not None or self._begin_instant is None else self._begin_instant - 1
        )

    def begin_at(self, instant: int | None, firsts: Mapping[int, int]) -> None:
        """Begin with the first tick at or after an instant (None: with the first tick of all).

        `firsts` are the first timestamps of the streams, by window index.
        """
        self._begin_instant = instant
        self._first |= firsts

    def item_count(self, window: int) -> int:
        """How many items have reached a count window."""
        return self._counts.get(window, 0)

    def observe(self, window: int, timestamps: Sequence[int] | npt.NDArray[np.int64]) -> None:
        """Note items that reach a window, in time order across all calls."""
        if not len(timestamps):
            return
        definition = self.settings.windows[window]
        last = int(timestamps[-1])
        if window not in self._first:
            self._first[window] = int(timestamps[0])
        self._last[window] = last
        if isinstance(definition, CountWindow):
            self._observe_counts(window, definition, timestamps)
        elif is_event_driven(definition, self.settings.report):
            if len(timestamps) >= _MANY:
                self._add_entries_and_exits(definition, np.unique(np.asarray(timestamps, dtype=np.int64)))
                return
            for timestamp in _distinct_instants(timestamps) if len(timestamps) > 1 else (last,):
                self._add_entry_and_exit(definition, timestamp)

    def _add_entry_and_exit(self, window: TimeWindow, timestamp: int) -> None:
        entered, left = window.entry_instant(timestamp), window.exit_instant(timestamp)
        is_always_covered = window.slide is None and window.t0 is None and window.landmark is None
        low, high = (timestamp, timestamp + 1) if is_always_covered else window.interval(entered)
        if low <= timestamp < high:
            self._add_event(entered)
            if left is not None:
                self._add_event(left)

    def _add_entries_and_exits(self, window: TimeWindow, timestamps: npt.NDArray[np.int64]) -> None:
        """The same for many timestamps at once."""
        entered, left = window.entry_instants(timestamps), window.exit_instants(timestamps)
        lows, highs = window.intervals(entered)
        is_covered = (lows <= timestamps) & (timestamps < highs)
        instants = entered[is_covered]
        self._add_events(instants if left is None else np.concatenate((instants, left[is_covered])))

    def _observe_counts(
        self, window: int, definition: CountWindow, timestamps: Sequence[int] | npt.NDArray[np.int64]
    ) -> None:
        before = self._counts.get(window, 0)
        self._counts[window] = before + len(timestamps)
        if self.settings.report is not Report.PERIODIC:
            step = definition.step or 1
            if len(timestamps) == 1:
                if step == 1 or not (before + 1) % step:
                    self._add_event(int(timestamps[0]))
                return
            # The first item of the batch that completes a step, and from there the last of each step.
            completing = timestamps[(-before - 1) % step :: step]
            if len(completing) >= _MANY:
                self._add_events(np.asarray(completing, dtype=np.int64))
                return
            for timestamp in _distinct_instants(completing):
                self._add_event(timestamp)

    def _add_events(self, instants: npt.NDArray[np.int64]) -> None:
        """Add many events at once."""
        past = self._last_passed
        coming = instants if past is None else instants[instants > past]
        if coming.shape[0]:
            # A sorted list is a heap.
            self._events = _sorted_instants(np.array(self._events, dtype=np.int64), coming).tolist()
            self._newest_event = int(coming[-1])

    def _add_event(self, instant: int) -> None:
        if instant == self._newest_event or ((past := self._last_passed) is not None and instant <= past):
            return
        self._newest_event = instant
        heapq.heappush(self._events, instant)

    def due_ticks(self, watermark: int | None, floor: int | None = None, until: int | None = None) -> Iterator[int]:
        """The ticks before the watermark (and before `until`, if given) that were not given yet, in order.

        Without a watermark the streams have ended and all remaining ticks are due; `floor` is then the instant up to
        which the streams are known to be empty.
        """
        until = _ETERNITY if until is None else until
        sources: list[Iterable[int]] = [*self._progressions(min(until, self._end(watermark, floor)))]
        if events := self._pop_due_events(until if watermark is None else min(until, watermark)):
            sources.append(events)
        for tick in sources[0] if len(sources) == 1 else heapq.merge(*sources):
            if (past := self._last_passed) is None or tick > past:
                self._last_tick = tick
                yield tick

    def take_due_ticks(self, watermark: int | None, floor: int | None, until: int | None) -> list[int]:
        """All of them at once; the last one counts as passed."""
        if self.settings.report is not Report.EAGER:
            return list(self.due_ticks(watermark, floor, until))
        end = _ETERNITY if watermark is None else watermark
        events = self._pop_due_events(end if until is None else min(end, until))
        if (past := self._last_passed) is not None:
            del events[: bisect_right(events, past)]
        # The same instant may be there for several windows.
        if len(events) > 1:
            events = list(dict.fromkeys(events))
        if events:
            self._last_tick = events[-1]
        return events

    def count_ticks(self, watermark: int | None, floor: int | None = None, until: int | None = None) -> int:
        """How many ticks are due that come by the clock, at most; those that are events are not counted."""
        end = self._end(watermark, floor)
        return sum(map(len, self._progressions(end if until is None else min(until, end))))

    def next_tick(self, watermark: int | None, floor: int | None = None) -> int | None:
        """The first tick that is due, if there is one."""
        candidates = [progression[0] for progression in self._progressions(self._end(watermark, floor))]
        if self._events and (watermark is None or self._events[0] < watermark):
            candidates.append(self._events[0])
        return min(candidates, default=None)

    def tick_after(self, count: int, watermark: int | None, floor: int | None = None) -> int | None:
        """The last of the next `count` ticks that are due, or one before it; None where none is due."""
        lines: list[Sequence[int]] = [*self._progressions(self._end(watermark, floor))]
        if self._events and (watermark is None or self._events[0] < watermark):
            # A sorted list is a heap.
            self._events.sort()
            lines.append(
                self._events[: len(self._events) if watermark is None else bisect_left(self._events, watermark)]
            )
        return min((line[min(count, len(line)) - 1] for line in lines), default=None)

    def _end(self, watermark: int | None, floor: int | None) -> int:
        """Ticks of progressions are due before this instant."""
        return watermark if watermark is not None else max(self._horizon(), floor or self._horizon())

    def _pop_due_events(self, end: int) -> list[int]:
        events: list[int] = []
        while self._events and self._events[0] < end:
            if len(events) == _MANY:
                self._events.sort()
                due = bisect_left(self._events, end)
                events += self._events[:due]
                del self._events[:due]
                break
            events.append(heapq.heappop(self._events))
        return events

    def _progressions(self, end: int) -> Iterator[range]:
        """The ticks of each progression before an instant that were not given yet."""
        for first, step in self._progression_starts():
            if line := self._progression(first, step, end):
                yield line

    def _progression_starts(self) -> Iterator[tuple[int, int]]:
        """The first instant and the step of each arithmetic progression of ticks."""
        settings = self.settings
        if settings.report is Report.PERIODIC:
            if settings.period is not None and (self._first or settings.t0 is not None):
                yield self._first_period(settings.period), settings.period
            return
        if settings.report is Report.EAGER:
            return
        for number, window in enumerate(settings.windows):
            if isinstance(window, TimeWindow) and window.slide is not None:
                if window.first_advance is not None:
                    yield window.first_advance, window.slide
                elif number in self._first:
                    yield window.entry_instant(self._first[number]), window.slide

    def _first_period(self, period: int) -> int:
        if self.settings.t0 is not None:
            return self.settings.t0 + period
        start = min(self._entry_instant(number, first) for number, first in self._first.items())
        return start + -start % period

    def _entry_instant(self, number: int, timestamp: int) -> int:
        window = self.settings.windows[number]
        return window.entry_instant(timestamp) if isinstance(window, TimeWindow) else timestamp

    def _progression(self, start: int, step: int, end: int) -> range:
        if (past := self._last_passed) is not None and past >= start:
            start += (past - start) // step * step + step
        return range(start, end, step)

    def _horizon(self) -> int:
        """The instant before which the windows of a finite stream still hold elements."""
        ends: list[int] = []
        for number, last in self._last.items():
            window = self.settings.windows[number]
            left = window.exit_instant(last) if isinstance(window, TimeWindow) else None
            ends.append(left if left is not None else self._stays_until(number, last))
        return max(ends, default=-_ETERNITY)

    def _stays_until(self, number: int, last: int) -> int:
        """For a window that nothing leaves: the first tick at or after the last element is the last one."""
        entered = self._entry_instant(number, last)
        period = self.settings.period
        return entered + 1 if period is None else max(entered, self._first_period(period)) + period


def is_event_driven(window: TimeWindow, report: Report) -> bool:
    """Whether a window has a tick whenever an element enters or leaves it, and no progression of ticks."""
    return report is not Report.PERIODIC and (window.slide is None or report is Report.EAGER)


def _sorted_instants(one: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The instants of both in order, each once."""
    listed = np.concatenate((one, other))
    if not (listed[1:] > listed[:-1]).all():
        # Sorting is faster than numpy.unique, above all where most of it is in order.
        listed.sort(kind="stable")
        listed = listed[np.append(True, listed[1:] != listed[:-1])]
    return listed


def _distinct_instants(timestamps: Sequence[int] | npt.NDArray[np.int64]) -> Iterable[int]:
    """The distinct timestamps of a sorted sequence."""
    listed: list[int] = timestamps.tolist() if isinstance(timestamps, np.ndarray) else list(timestamps)
    return dict.fromkeys(listed)
