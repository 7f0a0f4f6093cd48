"""The window log: every admitted element that some window can still show. It is the durable state of a program.

Each batch appends one segment per stream; segments that no window can show any more are removed from the front. A
store that holds the log elsewhere takes the `changes` after each step, so that only new segments are written and only
expired ones removed. A new segment is cut to what some window can still show when somebody looks at the log: a batch
that is longer than the windows is written as what the windows hold. Where nobody looks, most segments are gone after
the next batch and need no cut; those that stay are cut when half of their time has passed. So what a batch costs
follows what it brings and takes away, not what the windows hold.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from headwater.terms.element_columns import ElementColumns
from headwater.terms.packing import Plain
from headwater.windows.element_sequences import (
    Elements,
    concat_elements,
    count_triples,
    drop_unused_texts,
    select_elements,
    sizes_of,
    times_of,
)

_ETERNITY = 1 << 62

StreamKey: TypeAlias = tuple[str, str | None]
"""A stream and, where a window takes its time from the data, the property that holds it."""


class Size(NamedTuple):
    """How many triples something holds, and the bytes of those and of all that was made of them.

    `bytes` is None where it is not measured.
    """

    rows: int
    bytes: int | None


@dataclass(slots=True)
class LogSegment:
    """Elements of one stream that were admitted together; `newest` is the highest time among them.

    `elements` is None where they are kept elsewhere.
    """

    number: int
    key: StreamKey
    newest: int
    elements: Elements | None
    rows: int = 0
    size: int = 0
    """How many triples they have, and about how many bytes."""

    def to_plain(self) -> Plain:
        """The segment as plain values, its elements as columns."""
        elements = self.elements
        if elements is not None and not isinstance(elements, ElementColumns):
            elements = ElementColumns.of(elements)
        columns = None if elements is None else elements.to_plain()
        return [self.number, self.key, self.newest, columns, self.rows, self.size]

    def count_from(self, instant: int) -> None:
        """Count only the elements that are not older than an instant."""
        if self.elements is not None:
            rows, size = sizes_of(self.elements)
            self.rows = count_triples(self.elements, times_of(self.elements) >= instant)
            self.size = size * self.rows // max(1, rows)

    @classmethod
    def from_plain(cls, value: Plain) -> LogSegment:
        """The segment that `to_plain` gave."""
        number, (stream, predicate), newest, columns, rows, size = value
        elements = None if columns is None else ElementColumns.from_plain(columns)
        return cls(number, (stream, predicate), newest, elements, rows, size)


@dataclass
class LogChanges:
    """The segments that were added and removed since the changes were last taken."""

    added: list[LogSegment] = field(default_factory=list)
    removed: list[int] = field(default_factory=list)


class WindowLog:
    """Segments by stream, in the order of their arrival."""

    def __init__(self, segments: Iterable[LogSegment] = ()) -> None:
        self._segments: dict[StreamKey, deque[LogSegment]] = {}
        self._added: dict[int, LogSegment] = {}
        self._removed: list[int] = []
        self._new: dict[StreamKey, list[LogSegment]] = {}
        """The segments that have come since the last time the log of their stream was trimmed."""
        self._needed_from: dict[StreamKey, int] = {}
        """By stream, the instant for which its log was trimmed last."""
        self._oldest: dict[int, int] = {}
        """The lowest time in each segment that was added."""
        self._removed_until: dict[StreamKey, int] = {}
        self._next = 0
        for segment in sorted(segments, key=lambda one: one.number):
            self._segments.setdefault(segment.key, deque()).append(segment)
            self._next = segment.number + 1

    def append(self, key: StreamKey, elements: Elements) -> None:
        if not len(elements):
            return
        times = times_of(elements)
        segment = LogSegment(self._next, key, int(times.max()), elements, *sizes_of(elements))
        self._next += 1
        self._segments.setdefault(key, deque()).append(segment)
        self._added[segment.number] = segment
        self._oldest[segment.number] = int(times.min())
        self._new.setdefault(key, []).append(segment)

    def trim(self, key: StreamKey, needed_from: int) -> None:
        """Remove what is older than an instant: whole segments at the front, and half of one if that much is older."""
        self._needed_from[key] = needed_from
        segments = self._segments.get(key)
        while segments and segments[0].newest < needed_from:
            oldest = segments.popleft()
            self._note_removed(key, oldest.newest)
            self._oldest.pop(oldest.number, None)
            if self._added.pop(oldest.number, None) is None:
                self._removed.append(oldest.number)
        new = self._new.pop(key, [])
        for segment in new:
            segment.count_from(needed_from)
        if segments and segments[0] not in new and self._is_half_expired(segments[0], needed_from):
            self._cut(segments[0], needed_from)

    def _is_half_expired(self, segment: LogSegment, needed_from: int) -> bool:
        """Whether half of the time of a segment, which is nowhere else, has passed."""
        oldest = self._oldest.get(segment.number) if segment.number in self._added else None
        return oldest is not None and needed_from > oldest and needed_from - oldest >= segment.newest - needed_from

    def _cut(self, segment: LogSegment, needed_from: int) -> None:
        """Remove elements older than an instant from a segment that no store has taken, and that has younger ones."""
        if segment.elements is None or self._oldest[segment.number] >= needed_from:
            return
        times = times_of(segment.elements)
        is_old = times < needed_from
        self._note_removed(segment.key, int(times[is_old].max()))
        segment.elements = drop_unused_texts(select_elements(segment.elements, ~is_old))
        segment.rows, segment.size = sizes_of(segment.elements)
        self._oldest[segment.number] = int(times[~is_old].min())

    def _note_removed(self, key: StreamKey, newest: int) -> None:
        self._removed_until[key] = max(self._removed_until.get(key, newest), newest)

    def _cut_untaken(self) -> None:
        """Remove what no window can show any more from the segments that no store has taken yet."""
        for segment in self._added.values():
            needed_from = self._needed_from.get(segment.key)
            if needed_from is not None and segment.newest >= needed_from:
                self._cut(segment, needed_from)

    @property
    def removed_until(self) -> dict[StreamKey, int]:
        """By stream, the highest time of what was removed: everything younger is in the log."""
        self._cut_untaken()
        return self._removed_until

    @removed_until.setter
    def removed_until(self, instants: dict[StreamKey, int]) -> None:
        self._removed_until = instants

    def keep_only(self, keys: Collection[StreamKey]) -> None:
        """Remove all other streams."""
        for key in self._segments.keys() - set(keys):
            self.trim(key, _ETERNITY)

    @property
    def size(self) -> Size:
        """How many triples are in the log, and about how many bytes."""
        segments = [segment for segments in self._segments.values() for segment in segments]
        return Size(sum(one.rows for one in segments), sum(one.size for one in segments))

    def retained(self, key: StreamKey) -> Elements:
        """All elements of a stream that are still in the log."""
        self._cut_untaken()
        return concat_elements(one.elements for one in self._segments.get(key, ()) if one.elements is not None)

    @property
    def is_whole(self) -> bool:
        """Whether all elements are here, and none are kept elsewhere alone."""
        return all(segment.elements is not None for segment in self)

    def changes(self) -> LogChanges:
        """What is new since the last call."""
        self._cut_untaken()
        changes = LogChanges(list(self._added.values()), self._removed)
        self._added, self._removed, self._oldest = {}, [], {}
        return changes

    def __iter__(self) -> Iterator[LogSegment]:
        self._cut_untaken()
        return (segment for segments in self._segments.values() for segment in segments)

    def __len__(self) -> int:
        return sum(map(len, self._segments.values()))
