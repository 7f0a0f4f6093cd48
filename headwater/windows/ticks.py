"""The ticks of a query: the instants at which it is evaluated, from timestamps alone.

A `Ticker` is told which timestamps reached which window (in time order) and, when the watermark has moved, gives the
ticks before it. Stepped windows and periods give arithmetic progressions, so a million ticks over a gap cost a
`range`; windows that advance at every instant give the instants at which an element enters or leaves.

Reports begin with the first window that can hold the first element (windows that opened before it included), or with
the first window after t0 where t0 is given; in a finite stream they end with the last window that still holds the
last element.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from headwater.windows.model import CountWindow, TimeWindow
from headwater.windows.settings import QuerySettings, Report

_ETERNITY = 1 << 62


@dataclass
class Ticker:
    """Enumerates the ticks of one query. The state is small and can be pickled."""

    settings: QuerySettings
    _first: dict[int, int] = field(default_factory=dict)
    _last: dict[int, int] = field(default_factory=dict)
    _counts: dict[int, int] = field(default_factory=dict)
    _events: list[int] = field(default_factory=list)
    _newest_event: int | None = None
    _answered: int | None = None
    _begin: int | None = None
    """Where the query came in the middle of its streams: ticks before this instant are none of its own."""

    @property
    def answered(self) -> int | None:
        """The newest tick given out."""
        return self._answered

    @property
    def _past(self) -> int | None:
        """No tick up to this instant will be given any more."""
        return self._answered if self._answered is not None or self._begin is None else self._begin - 1

    def begin(self, instant: int | None, firsts: Mapping[int, int]) -> None:
        """Begin in the middle: with the first tick at or after an instant, or with the first of all.

        `firsts` has the first timestamps ever.
        """
        self._begin = instant
        self._first |= firsts

    def count(self, window: int) -> int:
        """How many items a count window has seen."""
        return self._counts.get(window, 0)

    def observe(self, window: int, timestamps: Sequence[int] | npt.NDArray[np.int64]) -> None:
        """Items that reached a window, in time order and never older than an earlier call's."""
        if not len(timestamps):
            return
        definition = self.settings.windows[window]
        last = int(timestamps[-1])
        if window not in self._first:
            self._first[window] = int(timestamps[0])
        self._last[window] = last
        if isinstance(definition, CountWindow):
            self._count(window, definition, timestamps)
        elif ticks_by_events(definition, self.settings.report):
            for timestamp in _instants(timestamps) if len(timestamps) > 1 else (last,):
                self._enter_and_leave(definition, timestamp)

    def _enter_and_leave(self, window: TimeWindow, timestamp: int) -> None:
        entered, left = window.enter(timestamp), window.leave(timestamp)
        low, high = window.interval(entered)
        if low <= timestamp < high:
            self._event(entered)
            if left is not None:
                self._event(left)

    def _count(self, window: int, definition: CountWindow, timestamps: Sequence[int] | npt.NDArray[np.int64]) -> None:
        before = self._counts.get(window, 0)
        self._counts[window] = before + len(timestamps)
        if self.settings.report is not Report.PERIODIC:
            step = definition.step or 1
            # The first item of the batch that completes a step, and from there each step's last.
            for timestamp in _instants(timestamps[(-before - 1) % step :: step]):
                self._event(timestamp)

    def _event(self, instant: int) -> None:
        if instant == self._newest_event or ((past := self._past) is not None and instant <= past):
            return
        self._newest_event = instant
        heapq.heappush(self._events, instant)

    def due(self, watermark: int | None, floor: int | None = None, until: int | None = None) -> Iterator[int]:
        """The ticks before the watermark that were not given before, in order; with `until`, those before that instant.

        With no watermark the streams have ended and all that remain are due; `floor` is then the instant up to which
        they are known to have been silent.
        """
        until = _ETERNITY if until is None else until
        sources: list[Iterable[int]] = [*self._progressions(min(until, self._end(watermark, floor)))]
        if events := self._due_events(until if watermark is None else min(until, watermark)):
            sources.append(events)
        for tick in sources[0] if len(sources) == 1 else heapq.merge(*sources):
            if (past := self._past) is None or tick > past:
                self._answered = tick
                yield tick

    def next(self, watermark: int | None, floor: int | None = None) -> int | None:
        """The first tick that is due, if there is one."""
        found = [progression[0] for progression in self._progressions(self._end(watermark, floor))]
        if self._events and (watermark is None or self._events[0] < watermark):
            found.append(self._events[0])
        return min(found, default=None)

    def _end(self, watermark: int | None, floor: int | None) -> int:
        """Ticks of a rhythm are due before this instant."""
        return watermark if watermark is not None else max(self._horizon(), floor or self._horizon())

    def _due_events(self, end: int) -> list[int]:
        events: list[int] = []
        while self._events and self._events[0] < end:
            events.append(heapq.heappop(self._events))
        return events

    def _progressions(self, end: int) -> Iterator[range]:
        """The ticks of a rhythm before an instant, those that were not given before."""
        for first, step in self._lines():
            if line := self._progression(first, step, end):
                yield line

    def _lines(self) -> Iterator[tuple[int, int]]:
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
                    yield window.enter(self._first[number]), window.slide

    def _first_period(self, period: int) -> int:
        if self.settings.t0 is not None:
            return self.settings.t0 + period
        start = min(self._enter(number, first) for number, first in self._first.items())
        return start + -start % period

    def _enter(self, number: int, timestamp: int) -> int:
        window = self.settings.windows[number]
        return window.enter(timestamp) if isinstance(window, TimeWindow) else timestamp

    def _progression(self, start: int, step: int, end: int) -> range:
        if (past := self._past) is not None and past >= start:
            start += (past - start) // step * step + step
        return range(start, end, step)

    def _horizon(self) -> int:
        """The instant before which a finite stream still has something to report."""
        ends: list[int] = []
        for number, last in self._last.items():
            window = self.settings.windows[number]
            left = window.leave(last) if isinstance(window, TimeWindow) else None
            ends.append(left if left is not None else self._stays_until(number, last))
        return max(ends, default=-_ETERNITY)

    def _stays_until(self, number: int, last: int) -> int:
        """Where nothing ever leaves, the first tick at or after the last element is the last to report."""
        entered = self._enter(number, last)
        period = self.settings.period
        return entered + 1 if period is None else max(entered, self._first_period(period)) + period


def ticks_by_events(window: TimeWindow, report: Report) -> bool:
    """Whether there is a tick whenever an element enters or leaves a window, and not by a rhythm of its own."""
    return report is not Report.PERIODIC and (window.slide is None or report is Report.EAGER)


def _instants(timestamps: Sequence[int] | npt.NDArray[np.int64]) -> Iterable[int]:
    """The different ones among timestamps that are in order."""
    listed: list[int] = timestamps.tolist() if isinstance(timestamps, np.ndarray) else list(timestamps)
    return dict.fromkeys(listed)
