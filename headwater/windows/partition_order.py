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
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

import numpy as np

from headwater.terms.element_columns import ElementColumns
from headwater.terms.model import Element
from headwater.terms.packing import Plain
from headwater.windows.time_jumps import NO_JUMP, Jump, find_jumps


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
        self._held: list[tuple[int, tuple[int, ...], Element]] = []
        self._released_before: int | None = None

    @property
    def held(self) -> int:
        """How many elements wait."""
        return len(self._held)

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

    def note_read(self, partition: int, offset: int) -> None:
        """Note that a record is here; a `ValueError` where it is not behind the one before it."""
        if partition not in self._newest:
            raise ValueError(f"partition {partition} is new: the stream had {len(self._newest)} when the run began")
        before = self._offsets.get(partition, -1)
        if offset <= before:
            raise ValueError(f"offset {offset} of partition {partition} comes behind offset {before}")
        self._offsets[partition] = offset

    def put(self, elements: Sequence[Element]) -> tuple[list[Element], list[Element]]:
        """Take elements, those of a partition in the order of their offsets; gives the late ones, and those ahead."""
        late: list[Element] = []
        ahead: list[Element] = []
        for element, is_ahead in zip(elements, self._find_ahead(elements), strict=True):
            partition = element.position[0]
            newest = self._newest[partition]
            if is_ahead:
                ahead.append(element)
            elif newest is not None and element.time < newest - self._delay:
                late.append(element)
            else:
                self._newest[partition] = element.time if newest is None else max(newest, element.time)
                heapq.heappush(self._held, (element.time, element.position, element))
        return late, ahead

    def _find_ahead(self, elements: Sequence[Element]) -> list[bool]:
        """Which elements are too far ahead of those before them in their partition."""
        found = [False] * len(elements)
        if self._max_ahead is None:
            return found
        places: dict[int, list[int]] = {}
        for place, element in enumerate(elements):
            places.setdefault(element.position[0], []).append(place)
        for partition, mine in places.items():
            times = np.array([elements[place].time for place in mine], dtype=np.int64)
            jump = self._jumps.get(partition, NO_JUMP)
            is_ahead, self._jumps[partition] = find_jumps(times, self._newest[partition], self._max_ahead, jump)
            for place, one in zip(mine, is_ahead.tolist(), strict=True):
                found[place] = one
        return found

    def release(self) -> tuple[list[Element], int] | None:
        """The elements before the watermark, in their order, and the watermark; None where it has not moved."""
        mark = self.watermark
        if mark is None or mark == self._released_before:
            return None
        self._released_before = mark
        released: list[Element] = []
        while self._held and self._held[0][0] < mark:
            released.append(heapq.heappop(self._held)[2])
        return released, mark

    def to_plain(self) -> Plain:
        """The state as plain values."""
        held = [element for _, _, element in sorted(self._held, key=lambda one: one[:2])]
        positions = [element.position for element in held]
        columns = ElementColumns.of(held).to_plain() if held else None
        return [self._newest, self._offsets, self._jumps, self._released_before, columns, positions]

    def restore(self, value: Plain) -> None:
        """Go on from the state that `to_plain` gave; the partitions must be the same."""
        newest, offsets, jumps, released_before, columns, positions = value
        if newest.keys() != self._newest.keys():
            raise ValueError(f"the stream had {len(newest)} partitions, and has {len(self._newest)} now")
        self._newest, self._offsets = dict(newest), dict(offsets)
        self._jumps = {partition: (count, last) for partition, (count, last) in jumps.items()}
        self._released_before = released_before
        elements = [] if columns is None else ElementColumns.from_plain(columns).elements()
        # Already in order, which is a heap.
        self._held = [
            (element.time, tuple(position), element) for element, position in zip(elements, positions, strict=True)
        ]
