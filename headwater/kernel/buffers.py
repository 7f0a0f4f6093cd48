"""Window buffers: the triples of one window as columns of ids, in time order, and the view that ticks move over them.

A triple has entered when the view's end has passed it and has left when the view's beginning has: positions decide,
for time and count windows alike, and no timestamp is kept with any result (OA1, OA5).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from headwater.kernel.delta import Delta, no_rows
from headwater.kernel.index import Ints
from headwater.kernel.numbering import enlarged, grown
from headwater.reference.answers import WindowView
from headwater.windows import CountWindow, TimeWindow, Window


class TripleBuffer:
    """Items of a window, each one or more triples. `cap` bounds what an unbounded window may hold."""

    def __init__(self, definition: Window, cap: int) -> None:
        self.definition = definition
        self._cap = cap
        self._times: list[int] = []
        self._starts: list[int] = [0]
        """Where each item's triples begin; one more entry for the end of the last."""
        self._triples: Ints = no_rows(3)
        """Room for triples, filled as far as the last item goes."""
        self._low = 0
        self._high = 0
        self._taken = 0

    def add(self, times: Sequence[int], counts: Sequence[int], triples: Ints) -> None:
        """Items in time order: their times, how many triples each has, and the triples."""
        self._times.extend(times)
        begin = end = self._starts[-1]
        for count in counts:
            end += count
            self._starts.append(end)
        if end > self._triples.shape[0]:
            self._triples = enlarged(self._triples, grown(end, self._triples.shape[0]))
        self._triples[begin:end] = triples
        if end > self._cap:
            raise MemoryError(
                f"a window holds more than {self._cap} triples; bound it with RANGE or TRIPLES, or raise the cap"
            )

    def closings(self, tick: int) -> int:
        """How often a stepped count window closes at this very instant; 1 for all others."""
        window = self.definition
        if not isinstance(window, CountWindow) or window.step is None:
            return 1
        before = (self._taken + bisect_left(self._times, tick)) // window.step
        return max(1, (self._taken + bisect_left(self._times, tick + 1)) // window.step - before)

    def move(self, tick: int, part: int) -> Delta:
        """Move the view to a tick; gives the triples that entered and those that left."""
        low, high = self._view(tick, part)
        if low == self._low and high == self._high:
            return Delta.nothing(3)
        triples, starts = self._triples, self._starts
        entered = triples[starts[max(self._high, low)] : starts[max(high, low)]]
        left = triples[starts[self._low] : starts[min(low, self._high)]]
        self._low, self._high = low, high
        self._forget()
        return Delta(entered, left)

    def _view(self, tick: int, part: int) -> tuple[int, int]:
        window = self.definition
        if isinstance(window, TimeWindow):
            first, end = window.interval(tick)
            low, high = bisect_left(self._times, first), bisect_left(self._times, end)
        else:
            arrived = self._taken + bisect_left(self._times, tick + 1)
            if window.step is not None:
                closings = self.closings(tick)
                arrived -= arrived % window.step + (closings - 1 - min(part, closings - 1)) * window.step
            high = arrived - self._taken
            low = max(0, high - window.size)
        return max(low, self._low), max(high, self._high)

    def _forget(self) -> None:
        if self._low > 256 and self._low > len(self._times) // 2:
            cut = self._starts[self._low]
            self._triples = self._triples[cut : self._starts[-1]].copy()
            del self._times[: self._low]
            self._starts = [start - cut for start in self._starts[self._low :]]
            self._taken += self._low
            self._high -= self._low
            self._low = 0

    def view(self, label: str, tick: int) -> WindowView:
        """What the view covers, for the record of an answer."""
        if isinstance(self.definition, TimeWindow):
            first, end = self.definition.interval(tick)
        else:
            shown = self._times[self._low : self._high] or [tick]
            first, end = shown[0], shown[-1] + 1
        return WindowView(label, first, end, self._high - self._low)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is in view."""
        return self._low == self._high

    @property
    def shown(self) -> Ints:
        """The triples in view."""
        return self._triples[self._starts[self._low] : self._starts[self._high]]

    @property
    def ids(self) -> Ints:
        """All ids in the buffer, for the sweep of the vocabulary."""
        return self._triples[: self._starts[-1]]

    def trim(self) -> None:
        """Give back the room that is not filled, before the buffer is written somewhere."""
        self._triples = self.ids.copy()

    @property
    def nbytes(self) -> int:
        return self._triples.nbytes + 16 * len(self._times)
