"""The clock of a stream that comes in partitions, each in its own order: a topic of Kafka.

Between partitions there is no order, so they are not compared with each other: an element is late if it is older than
the newest one before it in its own partition allows, and the stream has come as far as its slowest partition. So it
does not matter how the partitions were interleaved when they were read.

    partition 0:  10 11 12        the stream has come to 4: 5 and 6 of partition 1 are in time,
    partition 1:   3  4           and so would be 12 after them

Two things bound the waiting. A partition is known from its first element on. And one that is more than `skew` behind
the fastest is not waited for: what it still brings from before is late.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from headwater.terms.element_columns import ElementColumns
from headwater.terms.ids.term_texts import Ints
from headwater.windows.element_sequences import Elements, select_elements, times_of
from headwater.windows.stream_clock import StreamClock


@dataclass
class PartedClock(StreamClock):
    """The progress of a stream in partitions; the first number of an element's position names its partition."""

    skew: int = 0
    parts: dict[int, int] = field(default_factory=dict)
    reached: int | None = None
    """The highest watermark so far: it never goes back, not even when a new partition begins behind it."""

    @property
    def watermark(self) -> int | None:
        return self.reached

    def with_limits_of(self, other: StreamClock) -> StreamClock:
        if isinstance(other, PartedClock):
            self.skew = other.skew
        return super().with_limits_of(other)

    def admit(self, elements: Elements) -> tuple[Elements, Elements]:
        if not len(elements):
            return elements, []
        times, numbers = times_of(elements), _parts_of(elements)
        is_late = np.zeros(len(elements), dtype=np.bool_)
        for floor in (self.reached, self.closed):
            if floor is not None:
                is_late |= times < floor
        for part in np.unique(numbers).tolist():
            mine = np.flatnonzero((numbers == part) & ~is_late)
            if not len(mine):
                continue
            newest = np.maximum.accumulate(times[mine])
            if part in self.parts:
                newest = np.maximum(newest, self.parts[part])
            is_late[mine] = times[mine] < newest - self.delay
            self.parts[part] = int(newest[-1])
        self.seen += len(elements)
        self._move()
        self._note(times[~is_late])
        if not is_late.any():
            return elements, []
        self.late += int(is_late.sum())
        return select_elements(elements, ~is_late), select_elements(elements, is_late)

    def _move(self) -> None:
        if not self.parts:
            return
        slowest, fastest = min(self.parts.values()), max(self.parts.values())
        self.highest = fastest
        mark = max(slowest, fastest - self.skew) - self.delay
        self.reached = mark if self.reached is None else max(self.reached, mark)


def _parts_of(elements: Elements) -> Ints:
    if isinstance(elements, ElementColumns):
        return elements.positions[:, 0] if elements.positions.shape[1] else np.zeros(len(elements), dtype=np.int64)
    return np.array([element.position[0] if element.position else 0 for element in elements], dtype=np.int64)
