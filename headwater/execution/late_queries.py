"""Queries that come when their streams are under way: what they know, and from when their answers are complete.

A query that is new in a running program begins with what the log of the windows still holds. For each of its streams
there is an instant from which the log has everything; a window is complete as soon as it begins behind that instant.

    log        ······xxxxxxxxxxx|              x: everything is held since 20, the streams have come to 31
    window 1             [······]              10 long: complete at once
    window 2   [················]              20 long: complete from 40 on

A count window is complete when it is full. One that reaches back to the beginning of its stream never is, unless the
log does so, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from headwater.execution.answers import Answer
from headwater.execution.window_log import StreamKey
from headwater.language.stream_clauses import StreamOperator
from headwater.windows.element_sequences import Elements, select_elements, sequence_numbers_of, times_of
from headwater.windows.model import Bounds, CountWindow, TimeWindow
from headwater.windows.settings import QuerySettings, Report
from headwater.windows.ticks import ticks_by_events

NOT_YET = 1 << 62
"""Stands for an instant that nobody can tell yet."""


@dataclass(frozen=True, slots=True)
class Known:
    """Which elements of a stream a query knows: those from a number on, and of those before the ones not older than
    an instant."""

    number: int
    held: int

    def of(self, elements: Elements) -> Elements:
        if not len(elements):
            return elements
        return select_elements(
            elements, (sequence_numbers_of(elements) >= self.number) | (times_of(elements) >= self.held)
        )


@dataclass(frozen=True, slots=True)
class Beginning:
    """How a query began in the middle of its streams; a stream that is not in `known` it knows from its first element.

    `unfilled` has the sizes of the count windows, by number, as long as they were not seen full.
    """

    instant: int
    known: Mapping[StreamKey, Known] = field(default_factory=dict)
    unfilled: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of_all(cls, several: Sequence[Beginning]) -> Beginning:
        """What several queries know that begin as one."""
        known: dict[StreamKey, Known] = {}
        for one in several:
            for key, mine in one.known.items():
                other = known.get(key, mine)
                known[key] = Known(max(mine.number, other.number), max(mine.held, other.held))
        return cls(max((one.instant for one in several), default=-NOT_YET), known)

    @property
    def since(self) -> int:
        """Larger for queries that know less."""
        return max((known.number for known in self.known.values()), default=0)

    @property
    def complete_from(self) -> int:
        """The instant from which answers are complete, `NOT_YET` where nobody can tell."""
        return NOT_YET if self.unfilled else self.instant

    def after(self, answer: Answer) -> Beginning:
        """What an answer teaches: count windows that are full now stay full."""
        if not self.unfilled or any(answer.inputs[number].items < size for number, size in self.unfilled.items()):
            return self
        later = answer.time + (answer.operator is not StreamOperator.RSTREAM)
        return replace(self, instant=max(self.instant, later), unfilled={})

    def retained(self, by_key: Mapping[StreamKey, Elements]) -> dict[StreamKey, Elements]:
        """What the query knows of the elements in the log."""
        return {key: self.known[key].of(found) if key in self.known else found for key, found in by_key.items()}


def beginning(
    settings: QuerySettings, keys: tuple[StreamKey, ...], known: Mapping[StreamKey, Known], now: int | None
) -> Beginning:
    """How a query begins that knows this of its streams; `now` is None where one of them has shown nothing yet."""
    instant = now = -NOT_YET if now is None else now
    unfilled: dict[int, int] = {}
    for number, (window, key) in enumerate(zip(settings.windows, keys, strict=True)):
        if key not in known:
            continue
        if isinstance(window, CountWindow):
            unfilled[number] = window.size
        else:
            instant = max(instant, _complete_from(window, known[key].held, settings.report))
    if now < instant < NOT_YET and settings.emit is not StreamOperator.RSTREAM:
        # Differences are to the tick before, which must have been complete, too.
        if settings.period is not None:
            instant += ((settings.t0 or 0) - instant) % settings.period
        instant += 1
    return Beginning(instant, known, unfilled)


def _complete_from(window: TimeWindow, held: int, report: Report) -> int:
    """The first instant at which a window begins no earlier than what is held, and no tick can be missing."""
    shift = 1 if window.bounds is Bounds.LEFT_OPEN else 0
    start = window.landmark if window.t0 is None else window.t0 + shift
    if start is not None and held <= start:
        return -NOT_YET
    left = NOT_YET if held >= NOT_YET else window.leave(held - 1)
    if left is None or left >= NOT_YET:
        return NOT_YET
    # When the last of what is not held leaves, there may be a tick that nobody knows of.
    return left + 1 if ticks_by_events(window, report) else left
