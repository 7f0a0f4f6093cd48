"""The clock of a stream with partitions, each in its own order, such as a topic of Kafka.

There is no order between partitions, so an element is late only by comparison with its own partition: if it is older
than the newest one before it there, minus the delay. The watermark of the stream is that of its slowest partition. So
it does not matter how the partitions were interleaved when they were read.

    partition 0:  10 11 12        the stream has come to 4: 5 and 6 of partition 1 are in time,
    partition 1:   3  4           and so would be 12 after them

Two rules bound the waiting. A partition counts from its first element on. And a partition that is more than `skew`
behind the fastest one is not waited for: its older elements are late.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from headwater.terms.element_columns import ElementColumns
from headwater.terms.ids.term_texts import Ints
from headwater.windows.element_sequences import Elements, select_elements, times_of
from headwater.windows.stream_clock import StreamClock
from headwater.windows.time_jumps import NO_JUMP, find_jumps


@dataclass
class PartitionedClock(StreamClock):
    """The progress of a stream with partitions; the first number of an element's position is its partition."""

    skew: int = 0
    newest_times: dict[int, int] = field(default_factory=dict)
    highest_watermark: int | None = None
    """The highest watermark so far: it does not go back, even if a new partition begins with older elements."""

    @property
    def _element_watermark(self) -> int | None:
        return self.highest_watermark

    def take_limits_of(self, other: StreamClock) -> StreamClock:
        if isinstance(other, PartitionedClock):
            self.skew = other.skew
        return super().take_limits_of(other)

    def _find_jumps(self, elements: Elements, limit: int) -> npt.NDArray[np.bool_]:
        times, partitions = times_of(elements), _partitions_of(elements)
        is_ahead = np.zeros(len(elements), dtype=np.bool_)
        for partition in np.unique(partitions).tolist():
            mine, known = np.flatnonzero(partitions == partition), self.newest_times.get(partition)
            jump = self.jumps.get(partition, NO_JUMP)
            is_ahead[mine], self.jumps[partition] = find_jumps(times[mine], known, limit, jump)
        return is_ahead

    def admit(self, elements: Elements) -> tuple[Elements, Elements]:
        if not len(elements):
            return elements, []
        self.heard_at, self.silence = None, 0
        times, partitions = times_of(elements), _partitions_of(elements)
        is_late = np.zeros(len(elements), dtype=np.bool_)
        self.late_by = self.unawaited = 0
        if self.highest_watermark is not None:
            is_late = times < self.highest_watermark
            self._note_late_by(self.highest_watermark + self.delay - times[is_late])
        if self.closed_before is not None:
            is_unawaited = (times < self.closed_before) & ~is_late
            self.unawaited = int(is_unawaited.sum())
            is_late |= is_unawaited
        for partition in np.unique(partitions).tolist():
            mine = np.flatnonzero((partitions == partition) & ~is_late)
            if not len(mine):
                continue
            newest = np.maximum.accumulate(times[mine])
            if partition in self.newest_times:
                newest = np.maximum(newest, self.newest_times[partition])
            is_late[mine] = times[mine] < newest - self.delay
            self._note_late_by((newest - times[mine])[is_late[mine]])
            self.newest_times[partition] = int(newest[-1])
        self.element_count += len(elements)
        self._advance_watermark()
        self._note_lowest(times[~is_late])
        if not is_late.any():
            return elements, []
        self.late_count += int(is_late.sum())
        return select_elements(elements, ~is_late), select_elements(elements, is_late)

    def _note_late_by(self, distances: Ints) -> None:
        self.late_by = max(self.late_by, int(distances.max(initial=0)))

    def _advance_watermark(self) -> None:
        if not self.newest_times:
            return
        slowest, fastest = min(self.newest_times.values()), max(self.newest_times.values())
        self.highest_time = fastest
        mark = max(slowest, fastest - self.skew) - self.delay
        self.highest_watermark = mark if self.highest_watermark is None else max(self.highest_watermark, mark)


def make_clock(delay: int, idle_limit: int | None, max_ahead: int | None, skew: int | None) -> StreamClock:
    """The clock of a stream from outside; with `skew`, of one with partitions."""
    if skew is None:
        return StreamClock(delay, idle_limit=idle_limit, max_ahead=max_ahead)
    return PartitionedClock(delay, idle_limit=idle_limit, max_ahead=max_ahead, skew=skew)


def _partitions_of(elements: Elements) -> Ints:
    if isinstance(elements, ElementColumns):
        return elements.positions[:, 0] if elements.positions.shape[1] else np.zeros(len(elements), dtype=np.int64)
    return np.array([element.position[0] if element.position else 0 for element in elements], dtype=np.int64)
