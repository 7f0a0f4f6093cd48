"""One step of a program: what it led to, and how many ticks the next one has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from headwater.execution.answer_batch import AnswerBatch
from headwater.execution.static_data import Version
from headwater.terms.element_columns import ElementColumns
from headwater.terms.model import BadElement, Element, Literal
from headwater.terms.timestamps import parse_time
from headwater.windows.element_sequences import Elements, elements_of

_STEP_SECONDS = 0.02
"""A step with several ticks should take no longer than this, about."""

_LEAST_STEPS = 4
"""A step may take so many times as long as the shortest one."""

_MOST_TICKS = 1 << 16

ChooseStep: TypeAlias = Callable[[int], tuple[int, Version]]
"""Called with the last tick that a step would have; gives the last tick that it has, and the version of the data."""


@dataclass(frozen=True, slots=True)
class LeftOutElement:
    """An element that no query gets, or not all of it: late, too far ahead, or with a term that collides with another.

    With `text` None, the source still has it.
    """

    time: int
    position: tuple[int, ...]
    text: str | None


Lateness: TypeAlias = tuple[int, int]
"""How far late elements are behind an element before them, at most, and how many are not: their windows had been closed
by a silence, or at the end of a run."""


@dataclass
class StepResult:
    """What one batch, or one tick of it, led to."""

    answers: AnswerBatch = field(default_factory=AnswerBatch)
    late: list[tuple[str, LeftOutElement]] = field(default_factory=list)
    lateness: dict[str, Lateness] = field(default_factory=dict)
    """Of each stream with late elements."""
    ahead: list[tuple[str, LeftOutElement]] = field(default_factory=list)
    """Elements whose time was too far ahead of those before them (`windows.time_jumps`)."""
    bad: list[tuple[str, BadElement]] = field(default_factory=list)
    colliding: list[tuple[str, LeftOutElement]] = field(default_factory=list)
    """Elements that lost statements because another term owns the id of one of theirs (`id_owners`)."""
    seconds: dict[str, float] = field(default_factory=dict)
    """How long each query took."""
    is_last: bool = True
    """Whether it is the last one of its batch."""
    unmerged: list[AnswerBatch] = field(default_factory=list)
    """The answers of each evaluator."""

    def put_aside(self, stream: str, late: Elements, ahead: Elements, lateness: Lateness) -> None:
        """Take elements of a stream that no query gets; `lateness` is that of the late ones."""
        if len(late):
            by, unawaited = self.lateness.get(stream, (0, 0))
            self.lateness[stream] = max(by, lateness[0]), unawaited + lateness[1]
        self.late.extend((stream, element) for element in list_late_elements(late))
        self.ahead.extend((stream, element) for element in list_late_elements(ahead))


class TickPace:
    """How many ticks a step takes: more while the data stays as it is, so that no step takes long.

    A change of the data is seen by the next step. After it a step has one tick, because more changes may follow.
    A step costs something whatever it takes. Where that is much, steps take several times as long, and are not shorter.
    """

    def __init__(self) -> None:
        self.ticks = 1
        self._least_seconds = 0.0

    def record(self, seconds: float, *, is_other_version: bool) -> None:
        """A step has taken so long; `is_other_version` says that it was the first with its version."""
        self._least_seconds = seconds if self.ticks == 1 else min(seconds, self._least_seconds)
        enough = max(_STEP_SECONDS, _LEAST_STEPS * self._least_seconds)
        if is_other_version:
            self.ticks = 1
        elif seconds < enough:
            self.ticks = min(2 * self.ticks, _MOST_TICKS)
        elif seconds > 2 * enough:
            self.ticks = max(1, self.ticks // 2)


def list_late_elements(elements: Elements) -> Iterator[LeftOutElement]:
    """Elements that are put aside; those that were scanned without their texts have none."""
    if isinstance(elements, ElementColumns) and not elements.is_whole:
        for time, position in zip(elements.times.tolist(), elements.positions.tolist(), strict=True):
            yield LeftOutElement(time, tuple(position), None)
        return
    for element in elements_of(elements):
        yield LeftOutElement(element.time, element.position, "\n".join(f"{triple} ." for triple in element.triples))


def with_own_times(stream: str, predicate: str, elements: Iterable[Element], step: StepResult) -> list[Element]:
    """Elements whose time is the value of a property in their own graph (OA11)."""
    timestamped: list[Element] = []
    for element in elements:
        values = {t.object for t in element.triples if t.predicate.value == predicate}
        reason = f"{len(values)} values of <{predicate}>, which gives the time; expected one"
        if len(values) == 1:
            try:
                value = values.pop()
                time = parse_time(value.value if isinstance(value, Literal) else str(value))
                timestamped.append(replace(element, time=time))
                continue
            except ValueError as error:
                reason = f"<{predicate}>: {error}"
        text = " ".join(f"{triple} ." for triple in element.triples)
        step.bad.append((stream, BadElement(reason, text, stream, element.position)))
    return timestamped
