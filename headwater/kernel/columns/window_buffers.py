"""Window buffers: the triples of one window as columns of ids, in time order, and the view that ticks move over them.

    triples a b c d e      in view at tick 1: a b c      at tick 2: c d e      delta: + d e   − a b

A triple has entered once the end of the view has passed it, and has left once the beginning has. Positions decide, for
time and count windows alike: no timestamp is kept with any result (OA1, OA5).
"""

from __future__ import annotations

import numpy as np

from headwater.execution.answers import WindowView
from headwater.kernel.columns.delta import Delta, no_rows
from headwater.kernel.columns.delta_run import DeltaRun, Signs
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.row_ids import enlarge, grow_capacity
from headwater.kernel.columns.subject_runs import SubjectRuns
from headwater.terms.element_columns import ElementColumns
from headwater.windows.caps import check_cap
from headwater.windows.model import CountWindow, TimeWindow, Window

_WORTH_COMPACTING = 256


class TripleBuffer:
    """The items of a window, each one or more triples. `cap` bounds what an unbounded window may hold.

    With `has_graphs`, triples have the name of their graph as a fourth column; with `has_times`, the time of their item
    as the last one, in microseconds.
    """

    def __init__(
        self, definition: Window, label: str, cap: int, has_times: bool = False, has_graphs: bool = False
    ) -> None:
        self.definition = definition
        self._label = label
        self._cap = cap
        self._has_times = has_times
        width = 4 if has_graphs else 3
        self._nothing = Delta.empty(width + 1 if has_times else width)
        self._times: Ints = no_rows(1)[:, 0]
        self._starts: Ints = no_rows(1)[:, 0]
        """Where the triples of each item begin. Arrays have room for more items than there are."""
        self._triples: Ints = no_rows(width)
        self._items = 0
        self._end = 0
        """The number of triples."""
        self._low = 0
        self._high = 0
        self._dropped_items = 0
        self._interval_tick: int | None = None
        self._interval = (0, 0)
        self.run_views: tuple[Ints, Ints, Ints] = (self._times, self._times, self._times)
        """For each tick of the last run, the first timestamp of the view, the one behind it, and the items in it."""
        self._runs = SubjectRuns()
        self._next_view: tuple[int, int, int] | None = None
        """The tick of `is_empty_at`, and the view at it."""

    def add(self, times: Ints, starts: Ints, triples: Ints) -> None:
        """Add items in time order: their times, where the triples of each begin, and the triples."""
        self._next_view = None
        items, end = self._items + times.shape[0], self._end + triples.shape[0]
        if items > self._times.shape[0]:
            room = grow_capacity(items, self._times.shape[0])
            self._times, self._starts = enlarge(self._times, room), enlarge(self._starts, room)
        if end > self._triples.shape[0]:
            self._triples = enlarge(self._triples, grow_capacity(end, self._triples.shape[0]))
        if items == self._items + 1:
            self._times[self._items] = times.item()
            self._starts[self._items] = self._end
        else:
            self._times[self._items : items] = times
            self._starts[self._items : items] = starts[: times.shape[0]] + self._end
        self._triples[self._end : end] = triples
        self._items, self._end = items, end

    def has_single_runs(self, added: ElementColumns) -> bool:
        """Whether no subject has two runs, after these elements were added last (`subject_runs`)."""
        if not self._runs.has_room(added.triples):
            low, begin = self._low, self._start(self._low)
            starts = np.append(self._starts[low : self._items], self._end) - begin
            triples = self._triples[begin : self._end]
            self._runs.clear(triples)
            self._runs.add(self._times[low : self._items], starts, triples)
        else:
            self._runs.add(added.times, added.starts, added.triples)
        return self._runs.has_single_runs

    def refill(self, counted: int, tick: int | None) -> None:
        """After the retained ones of `counted` items were added: move the view to the last tick."""
        self._dropped_items = counted - self._items if isinstance(self.definition, CountWindow) else 0
        if tick is not None:
            self._low, self._high = self._view(tick, self.closings(tick) - 1)

    def needed_from(self, tick: int | None) -> int | None:
        """The time of the oldest item that a view can still show; None: any item."""
        if tick is None:
            return None
        if isinstance(self.definition, TimeWindow):
            return self.definition.interval(tick)[0]
        return int(self._times[self._low]) if self._low < self._items else None

    def _count_before(self, instant: int) -> int:
        """The number of items before an instant."""
        items = self._items
        if not items or self._times.item(items - 1) < instant:
            return items
        return int(self._times[:items].searchsorted(instant))

    def _start(self, item: int) -> int:
        """Where the triples of an item begin; for the item behind the last, the end."""
        return self._starts.item(item) if item < self._items else self._end

    def _starts_of(self, items: Ints) -> Ints:
        """Where the triples of some items begin, without a look at the others; behind the last item: the end."""
        if not self._items:
            return np.zeros_like(items)
        starts: Ints = self._starts[np.minimum(items, self._items - 1)]
        starts[items == self._items] = self._end
        return starts

    def closings(self, tick: int) -> int:
        """How often a stepped count window closes at this very instant; 1 for all others."""
        window = self.definition
        if not isinstance(window, CountWindow) or window.step is None:
            return 1
        before = (self._dropped_items + self._count_before(tick)) // window.step
        return max(1, (self._dropped_items + self._count_before(tick + 1)) // window.step - before)

    def count_single_closings(self, instants: Ints) -> int:
        """How many of some ticks come before the first one at which the window closes more than once."""
        window, times = self.definition, self._times[: self._items]
        if not isinstance(window, CountWindow) or window.step is None:
            return len(instants)
        before = (self._dropped_items + times.searchsorted(instants)) // window.step
        is_several = (self._dropped_items + times.searchsorted(instants, side="right")) // window.step - before > 1
        return int(is_several.argmax() if is_several.any() else is_several.shape[0])

    def is_empty_at(self, tick: int) -> bool:
        """Whether the view at a tick will be empty."""
        self._next_view = tick, *self._view(tick, 0)
        return self._next_view[1] == self._next_view[2]

    def move(self, tick: int, closing: int) -> Delta:
        """Move the view to a tick, or to one of its closings; gives the triples that entered and those that left."""
        known, self._next_view = self._next_view, None
        low, high = self._view(tick, closing) if closing or known is None or known[0] != tick else known[1:]
        before_low, before_high = self._low, self._high
        if low == before_low and high == before_high:
            return self._nothing
        if self._end > self._cap:
            check_cap(self._label, self._start(high) - self._start(low), self._cap)
        nothing = self._nothing.added
        first = before_high if before_high > low else low
        entered = self._triples_between(first, high) if high > first else nothing
        end = low if low < before_high else before_high
        left = self._triples_between(before_low, end) if end > before_low else nothing
        is_reset = low >= before_high and left.shape[0] > 0
        self._low, self._high = low, high
        if low > _WORTH_COMPACTING:
            self._compact()
        return Delta(entered, left, is_reset=is_reset)

    @property
    def waiting_count(self) -> int:
        """How many triples are behind the view."""
        return self._end - self._start(self._high)

    def entering_until(self, instant: int) -> int:
        """How many triples are behind the view, and arrived up to an instant."""
        return self._start(max(self._high, self._count_before(instant + 1))) - self._start(self._high)

    def instant_after(self, triples: int) -> int | None:
        """The instant at which so many triples have come behind the view; None where there are fewer."""
        item = int(self._starts[: self._items].searchsorted(self._start(self._high) + triples))
        return int(self._times[item]) if item < self._items else None

    def move_run(self, instants: Ints) -> DeltaRun:
        """Move the view over many ticks; gives the triples that leave and enter at each, and sets `run_views`."""
        self._next_view = None
        lows, highs = self.record_run_views(instants)
        if self._end > self._cap:
            check_cap(self._label, int((self._starts_of(highs) - self._starts_of(lows)).max()), self._cap)
        before_lows, before_highs = np.append(self._low, lows[:-1]), np.append(self._high, highs[:-1])
        # At each tick the items from the old beginning to the new one leave, and those behind the old end enter.
        firsts = np.stack((before_lows, np.maximum(before_highs, lows)), axis=1).ravel()
        ends = np.stack((np.minimum(lows, before_highs), highs), axis=1).ravel()
        begins = self._starts_of(firsts)
        sizes = self._starts_of(np.maximum(firsts, ends)) - begins
        triples = np.arange(sizes.sum()) + np.repeat(begins - (np.cumsum(sizes) - sizes), sizes)
        rows = self._triples[triples]
        if self._has_times:
            rows = np.column_stack(
                (rows, self._times[self._starts[: self._items].searchsorted(triples, side="right") - 1])
            )
        ticks = np.repeat(np.arange(lows.shape[0]), 2).repeat(sizes)
        signs: Signs = np.tile(np.array([-1, 1], np.int8), lows.shape[0]).repeat(sizes)
        self._low, self._high = int(lows[-1]), int(highs[-1])
        self._compact()
        return DeltaRun(rows, ticks, signs)

    def record_run_views(self, instants: Ints) -> tuple[Ints, Ints]:
        """Set `run_views` for some ticks; gives the first item in view at each, and the one behind the last."""
        window, times = self.definition, self._times[: self._items]
        if isinstance(window, TimeWindow):
            firsts, ends = window.intervals(instants)
            lows, highs = times.searchsorted(firsts), times.searchsorted(ends)
        else:
            highs = times.searchsorted(instants, side="right")
            if window.step is not None:
                # Each tick has at most one closing, see `count_single_closings`.
                highs = np.maximum(0, highs - (self._dropped_items + highs) % window.step)
            lows = np.maximum(0, highs - window.size)
        lows = np.maximum.accumulate(np.maximum(lows, self._low))
        highs = np.maximum.accumulate(np.maximum(highs, self._high))
        if isinstance(window, CountWindow):
            firsts, ends = instants.copy(), instants + 1
            has_items = np.flatnonzero(lows < highs)
            firsts[has_items] = times[lows[has_items]]
            ends[has_items] = times[highs[has_items] - 1] + 1
        self.run_views = firsts, ends, highs - lows
        return lows, highs

    def _view(self, tick: int, closing: int) -> tuple[int, int]:
        window = self.definition
        if isinstance(window, TimeWindow):
            first, end = self._interval_at(window, tick)
            is_unmoved = self._low < self._items and self._times.item(self._low) >= first
            low, high = self._low if is_unmoved else self._count_before(first), self._count_before(end)
        else:
            arrived = self._dropped_items + self._count_before(tick + 1)
            if window.step is not None:
                closings = self.closings(tick)
                arrived -= arrived % window.step + (closings - 1 - min(closing, closings - 1)) * window.step
            high = arrived - self._dropped_items
            low = max(0, high - window.size)
        return max(low, self._low), max(high, self._high)

    def _interval_at(self, window: TimeWindow, tick: int) -> tuple[int, int]:
        """The interval of the window at a tick; cached, because an answer needs it again."""
        if tick != self._interval_tick:
            self._interval_tick, self._interval = tick, window.interval(tick)
        return self._interval

    def _compact(self) -> None:
        if self._low > _WORTH_COMPACTING and self._low > self._items // 2:
            low, cut = self._low, self._start(self._low)
            self._triples = self._triples[cut : self._end].copy()
            self._times = self._times[low : self._items].copy()
            self._starts = self._starts[low : self._items] - cut
            self._items -= low
            self._end -= cut
            self._dropped_items += low
            self._high -= low
            self._low = 0

    def view(self, tick: int) -> WindowView:
        """The view as an answer records it."""
        if isinstance(self.definition, TimeWindow):
            first, end = self._interval_at(self.definition, tick)
        elif self._high > self._low:
            first, end = int(self._times[self._low]), int(self._times[self._high - 1]) + 1
        else:
            first, end = tick, tick + 1
        return WindowView(self._label, first, end, self._high - self._low)

    @property
    def is_empty(self) -> bool:
        """Whether the view is empty."""
        return self._low == self._high

    @property
    def triple_count(self) -> int:
        """The number of triples in the view."""
        return self._start(self._high) - self._start(self._low)

    @property
    def triples(self) -> Ints:
        """The triples in the view."""
        return self._triples_between(self._low, self._high)

    def _triples_between(self, low: int, high: int) -> Ints:
        """The triples of some items."""
        start, end = self._starts.item(low) if low < self._items else self._end, self._start(high)
        triples = self._triples[start:end]
        if not self._has_times:
            return triples
        with_times = np.empty((end - start, triples.shape[1] + 1), dtype=np.int64)
        with_times[:, :-1] = triples
        with_times[:, -1] = np.repeat(self._times[low:high], np.diff(self._starts[low:high], append=end))
        return with_times

    @property
    def ids(self) -> Ints:
        """All ids of triples in the view or behind it, for the sweep of the vocabulary."""
        return self._triples[self._start(self._low) : self._end]

    @property
    def nbytes(self) -> int:
        return self._triples.nbytes + self._times.nbytes + self._starts.nbytes
