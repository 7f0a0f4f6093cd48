"""One order for the elements of a stream with partitions, whatever the order in which partitions are read.

Kafka orders the records of a partition, and nothing orders partitions. Where an element is evaluated the moment it
comes, a second run would meet another interleaving. So elements wait until every partition has come further:

    partition 0:  10 11 12        the stream has come to 4: 3 is released, and then in the order of time,
    partition 1:   3  4           of equal times by partition and offset; 4, 10, 11 and 12 wait

An element is late if it is older than the newest one before it in its own partition, minus the delay. The watermark is
that of the slowest partition; there is none as long as a partition has no element. Both follow from the offsets and the
times of the elements alone, and so does the order in which elements are released.

No partition is given up: one that brings nothing holds the stream back. To go on without it would need a decision of
the clock on the wall, which a second run would take elsewhere.

A checkpoint of micro-batches can be ahead of the slowest partition, which they may have given up. An order that goes on
from there (`follow`) releases nothing before it is further, and elements behind that are late.

A long delay, or a partition that is far behind, makes many elements wait. So they are durable like the log of windows:
`changes` has those that have come since the last call and still wait, as a segment, and the segments of which none
waits any more. `to_plain` has the rest, which is small.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headwater.terms.element_columns import NO_ELEMENTS, ElementColumns, concat_columns
from headwater.terms.ids.term_texts import Ints
from headwater.terms.packing import Plain
from headwater.windows.partitioned_clock import PartitionedClock
from headwater.windows.time_jumps import NO_JUMP, Jump, find_jumps

_NEVER = -(1 << 62)
"""A time before all others."""


class _Held(NamedTuple):
    """Elements that wait, in their order. A heap has those first that begin first."""

    begin: int
    """The time of the first of them."""
    entry: int
    """Tells those apart that begin at one time."""
    segment: int | None
    """The number of the segment that they are durable in; None where they are in none yet."""
    elements: ElementColumns


class HeldChanges(NamedTuple):
    """What a store that has the elements that wait must write and remove."""

    added: tuple[int, ElementColumns] | None
    """The number of a new segment, and its elements in their order."""
    removed: list[int]
    """The numbers of the segments of which none waits any more."""


class PartitionOrder:
    """Holds the elements of a stream until their place in its order is known.

    The first number of an element's position is its partition, the second its offset there. `partitions` are all that
    the stream has; `delay` is how late an element may be, `max_ahead` how far ahead of those before it in its
    partition.
    """

    def __init__(self, partitions: Iterable[int], delay: int, max_ahead: int | None = None) -> None:
        self._delay = delay
        self._max_ahead = max_ahead
        self._newest: dict[int, int | None] = dict.fromkeys(sorted(partitions))
        self._offsets: dict[int, int] = {}
        self._jumps: dict[int, Jump] = {}
        self._released_before: int | None = None
        self._held: list[_Held] = []
        self._entries = 0
        self._next_segment = 0
        self._done_with: list[int] = []
        """The segments of which none waits any more, since the changes were last taken."""

    @property
    def held(self) -> int:
        """How many elements wait."""
        return sum(len(one.elements) for one in self._held)

    @property
    def awaited(self) -> tuple[int, ...]:
        """The partitions that have brought nothing yet."""
        return tuple(partition for partition, newest in self._newest.items() if newest is None)

    @property
    def watermark(self) -> int | None:
        """No element before this instant will be released any more, except by the next `release`."""
        marks = list(self._newest.values())
        known = [mark for mark in marks if mark is not None]
        return min(known) - self._delay if known and len(known) == len(marks) else None

    def follow(self, clock: PartitionedClock, offsets: Mapping[int, int]) -> None:
        """Go on behind a clock, which has admitted what came before these offsets; called on a new order."""
        for partition, newest in clock.newest_times.items():
            if partition in self._newest:
                self._newest[partition] = newest
        self._jumps = dict(clock.jumps)
        self._offsets = {partition: offset - 1 for partition, offset in offsets.items()}
        self._released_before = clock.watermark

    def to_clock(self) -> PartitionedClock:
        """A clock that has admitted all that was put, also what still waits here."""
        known = {partition: newest for partition, newest in self._newest.items() if newest is not None}
        return PartitionedClock(
            self._delay,
            highest_time=max(known.values(), default=None),
            jumps=dict(self._jumps),
            newest_times=known,
            highest_watermark=self._released_before,
        )

    def elements_held(self) -> ElementColumns:
        """The elements that wait, in their order."""
        return _in_order(concat_columns(one.elements for one in self._held))

    def note_read(self, partition: int, offset: int) -> None:
        """Note that a record is here; a `ValueError` where it is not behind the one before it."""
        if partition not in self._newest:
            raise ValueError(f"partition {partition} is new: the stream had {len(self._newest)} when the run began")
        before = self._offsets.get(partition, -1)
        if offset <= before:
            raise ValueError(f"offset {offset} of partition {partition} comes behind offset {before}")
        self._offsets[partition] = offset

    def put(self, elements: ElementColumns) -> tuple[ElementColumns, ElementColumns]:
        """Take elements, those of a partition in the order of their offsets; gives the late ones, and those ahead."""
        if not len(elements):
            return NO_ELEMENTS, NO_ELEMENTS
        partitions = elements.positions[:, 0]
        is_late = np.zeros(len(elements), dtype=np.bool_)
        is_ahead = np.zeros(len(elements), dtype=np.bool_)
        for partition in dict.fromkeys(partitions.tolist()):
            mine = np.flatnonzero(partitions == partition)
            is_late[mine], is_ahead[mine] = self._find_misplaced(partition, elements.times[mine])
        is_misplaced = is_late | is_ahead
        if not is_misplaced.any():
            self._push(_in_order(elements))
            return NO_ELEMENTS, NO_ELEMENTS
        if not is_misplaced.all():
            self._push(_in_order(elements.select(~is_misplaced)))
        return elements.select(is_late), elements.select(is_ahead)

    def _find_misplaced(self, partition: int, times: Ints) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Which elements of a partition are late, and which are too far ahead of those before them."""
        newest = self._newest[partition]
        is_ahead = np.zeros(len(times), dtype=np.bool_)
        if self._max_ahead is not None:
            jump = self._jumps.get(partition, NO_JUMP)
            is_ahead, self._jumps[partition] = find_jumps(times, newest, self._max_ahead, jump)
        reached = np.empty(len(times) + 1, dtype=np.int64)
        reached[0] = _NEVER if newest is None else newest
        reached[1:] = np.where(is_ahead, _NEVER, times)
        np.maximum.accumulate(reached, out=reached)
        if reached[-1] > _NEVER:
            self._newest[partition] = int(reached[-1])
        is_late = times < reached[:-1] - self._delay
        if self._released_before is not None:
            # Only behind a clock that was ahead of this partition.
            is_late |= times < self._released_before
        return ~is_ahead & is_late, is_ahead

    def _push(self, ordered: ElementColumns, segment: int | None = None) -> None:
        """Hold elements that are in their order."""
        self._entries += 1
        heapq.heappush(self._held, _Held(int(ordered.times[0]), self._entries, segment, ordered))

    def release(self) -> tuple[ElementColumns, int] | None:
        """The elements before the watermark, in their order, and the watermark; None where it has not moved."""
        mark = self.watermark
        if mark is None or (self._released_before is not None and mark <= self._released_before):
            return None
        self._released_before = mark
        released: list[ElementColumns] = []
        while self._held and self._held[0].begin < mark:
            _, _, segment, elements = heapq.heappop(self._held)
            cut = int(elements.times.searchsorted(mark))
            released.append(elements.slice(0, cut))
            if cut < len(elements):
                self._push(elements.slice(cut, len(elements)), segment)
            elif segment is not None:
                self._done_with.append(segment)
        return (released[0] if len(released) == 1 else _in_order(concat_columns(released))), mark

    def changes(self) -> HeldChanges:
        """What came since the last call and still waits, as one segment, and the segments that are not needed."""
        removed, self._done_with = self._done_with, []
        fresh = [one.elements for one in self._held if one.segment is None]
        if not fresh:
            return HeldChanges(None, removed)
        self._held = [one for one in self._held if one.segment is not None]
        heapq.heapify(self._held)
        number, self._next_segment = self._next_segment, self._next_segment + 1
        elements = _in_order(concat_columns(fresh)).with_own_texts()
        self._push(elements, number)
        return HeldChanges((number, elements), removed)

    def to_plain(self) -> Plain:
        """The state as plain values, without the elements that wait."""
        return [self._newest, self._offsets, self._jumps, self._released_before, self._next_segment]

    @classmethod
    def from_plain(cls, value: Plain, segments: Iterable[tuple[int, ElementColumns]]) -> PartitionOrder:
        """An order with the state that `to_plain` gave, and the partitions that it had."""
        newest, *_ = value
        order = cls(newest, delay=0)
        order.restore(value, segments)
        return order

    def restore(self, value: Plain, segments: Iterable[tuple[int, ElementColumns]]) -> None:
        """Go on from the state that `to_plain` gave, and the segments that `changes` gave; what was released before is
        not held again. The partitions must be the same."""
        newest, offsets, jumps, self._released_before, self._next_segment = value
        if newest.keys() != self._newest.keys():
            raise ValueError(f"the stream had {len(newest)} partitions, and has {len(self._newest)} now")
        self._newest, self._offsets = dict(newest), dict(offsets)
        self._jumps = {partition: (count, last) for partition, (count, last) in jumps.items()}
        for number, elements in segments:
            if self._released_before is not None:
                # What is not late is not older than the watermark, so none of these came after it.
                elements = elements.select(elements.times >= self._released_before)
            if len(elements):
                self._push(elements, number)
            else:
                self._done_with.append(number)


def _in_order(elements: ElementColumns) -> ElementColumns:
    """Elements in the order of time, of equal times by position."""
    if len(elements) < 2:
        return elements
    columns = [elements.positions[:, place] for place in reversed(range(elements.positions.shape[1]))]
    return elements.select(np.lexsort((*columns, elements.times)))
