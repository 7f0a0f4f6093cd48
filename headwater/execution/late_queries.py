"""Queries that start while their streams are under way: what they know, and from when their answers are complete.

A query that is new in a running program starts with what the window log still holds. For each of its streams there is
an instant from which the log holds every element. A window is complete as soon as it begins after that instant.

    log        ······xxxxxxxxxxx|              x: the log holds everything since 20, the watermark is 31
    window 1             [······]              10 long: complete at once
    window 2   [················]              20 long: complete from 40 on

A count window is complete when it is full and its oldest element is not older than that instant: elements that came
out of order before the query may lie between older ones that came after it. A window that reaches back to the first
element of its stream never is, unless the log does, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from headwater.execution.answers import Answer
from headwater.execution.window_log import StreamKey
from headwater.language.stream_clauses import StreamOperator
from headwater.terms.packing import Plain
from headwater.windows.element_sequences import Elements, select_elements, sequence_numbers_of, times_of
from headwater.windows.model import Bounds, CountWindow, TimeWindow
from headwater.windows.settings import QuerySettings, Report
from headwater.windows.ticks import is_event_driven

NOT_YET = 1 << 62
"""Stands for an instant that is not known yet."""


@dataclass(frozen=True, slots=True)
class KnownElements:
    """Which elements of a stream a late query knows.

    They are those with at least this sequence number, and of the earlier ones those not older than `held_since`.
    """

    first_number: int
    held_since: int

    def select(self, elements: Elements) -> Elements:
        """The known ones among some elements of the stream."""
        if not len(elements):
            return elements
        return select_elements(
            elements, (sequence_numbers_of(elements) >= self.first_number) | (times_of(elements) >= self.held_since)
        )


@dataclass(frozen=True, slots=True)
class LateStart:
    """How a query started in the middle of its streams. It knows every element of a stream that is not in `known`.

    `unfilled` has the sizes of the count windows, by window index, that have not been full yet.
    """

    instant: int
    known: Mapping[StreamKey, KnownElements] = field(default_factory=dict)
    unfilled: Mapping[int, int] = field(default_factory=dict)

    def to_plain(self) -> Plain:
        """The start as plain values."""
        known = {key: (one.first_number, one.held_since) for key, one in self.known.items()}
        return [self.instant, known, dict(self.unfilled)]

    @classmethod
    def from_plain(cls, value: Plain) -> LateStart:
        """The start that `to_plain` gave."""
        instant, known, unfilled = value
        return cls(instant, {key: KnownElements(*one) for key, one in known.items()}, unfilled)

    @classmethod
    def of_family(cls, members: Sequence[LateStart]) -> LateStart:
        """The start of queries that are evaluated as one: what each of them knows."""
        known: dict[StreamKey, KnownElements] = {}
        for one in members:
            for key, mine in one.known.items():
                other = known.get(key, mine)
                known[key] = KnownElements(
                    max(mine.first_number, other.first_number), max(mine.held_since, other.held_since)
                )
        return cls(max((one.instant for one in members), default=-NOT_YET), known)

    @property
    def first_number(self) -> int:
        """The sequence number from which the query knows all elements of all its streams."""
        return max((known.first_number for known in self.known.values()), default=0)

    @property
    def complete_from(self) -> int:
        """The instant from which answers are complete; `NOT_YET` while a count window is not full."""
        return NOT_YET if self.unfilled else self.instant

    def after_answer(self, answer: Answer) -> LateStart:
        """The same start, updated where the answer shows that all count windows are full now."""
        since = max((known.held_since for known in self.known.values()), default=-NOT_YET)
        if not self.unfilled or any(
            answer.inputs[index].items < size or answer.inputs[index].low < since
            for index, size in self.unfilled.items()
        ):
            return self
        later = answer.time + (answer.operator is not StreamOperator.RSTREAM)
        return replace(self, instant=max(self.instant, later), unfilled={})

    def select_known(self, by_key: Mapping[StreamKey, Elements]) -> dict[StreamKey, Elements]:
        """The elements of the log that the query knows."""
        return {key: self.known[key].select(all_) if key in self.known else all_ for key, all_ in by_key.items()}


def find_late_start(
    settings: QuerySettings, keys: tuple[StreamKey, ...], known: Mapping[StreamKey, KnownElements], now: int | None
) -> LateStart:
    """The start of a query that knows these elements; `now` is None while one of its streams has brought nothing."""
    instant = now = -NOT_YET if now is None else now
    unfilled: dict[int, int] = {}
    for index, (window, key) in enumerate(zip(settings.windows, keys, strict=True)):
        if key not in known:
            continue
        if isinstance(window, CountWindow):
            unfilled[index] = window.size
        else:
            instant = max(instant, _complete_from(window, known[key].held_since, settings.report))
    if now < instant < NOT_YET and settings.emit is not StreamOperator.RSTREAM:
        # Differences are to the tick before, which must have been complete, too.
        if settings.period is not None:
            instant += ((settings.t0 or 0) - instant) % settings.period
        instant += 1
    return LateStart(instant, known, unfilled)


def _complete_from(window: TimeWindow, held_since: int, report: Report) -> int:
    """The first instant at which a window holds only what the log has held, and no tick can be missing."""
    shift = 1 if window.bounds is Bounds.LEFT_OPEN else 0
    start = window.landmark if window.t0 is None else window.t0 + shift
    if start is not None and held_since <= start:
        return -NOT_YET
    left = NOT_YET if held_since >= NOT_YET else window.exit_instant(held_since - 1)
    if left is None or left >= NOT_YET:
        return NOT_YET
    # When the last element that the log lacks leaves the window, there may be a tick that the query does not know of.
    return left + 1 if is_event_driven(window, report) else left
