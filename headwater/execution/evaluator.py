"""What every evaluator does alike: let elements wait for the watermark, find the ticks, say what each answer says.

An evaluator is told elements in any order and a watermark (`advance`), and answers the ticks before it. How the
result at a tick is found is its own affair: the reference evaluates anew, the kernel follows the differences.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.algebra.wanted_patterns import WantedPattern, wanted_patterns_of
from headwater.execution.answers import Answer, WindowView
from headwater.execution.static_data import Version
from headwater.execution.window_log import Size, StreamKey
from headwater.language.stream_clauses import StreamOperator
from headwater.terms.ids.encoded_rows import EncodedRows
from headwater.terms.ids.term_texts import Ints
from headwater.terms.model import Row, Triple
from headwater.values.templates import ConstructTemplate
from headwater.windows.element_sequences import (
    Elements,
    concat_elements,
    select_elements,
    sequence_numbers_of,
    split_at_time,
)
from headwater.windows.settings import QuerySettings, Report, timestamp_predicate_of
from headwater.windows.ticks import Ticker

Choice = Mapping[str, Any]
"""A choice that an evaluator made, as values that JSON can hold."""


def stream_keys(plan: QueryPlan) -> tuple[StreamKey, ...]:
    """For each window of a plan, the stream it reads and the clock by which it reads it."""
    return tuple(
        (source.stream.value, predicate.value if (predicate := timestamp_predicate_of(source.spec)) else None)
        for source in plan.windows
    )


@dataclass
class EvaluatorState:
    """All of an evaluator that must outlive the process, besides the log of the windows.

    `waiting` has the numbers of the elements that the watermark has not passed yet.
    """

    ticker: Ticker
    waiting: dict[StreamKey, Ints]
    answered_once: bool
    memory: Any
    kind: str = ""
    """Whose memory it is: another evaluator cannot use it."""


class Evaluator(ABC):
    """Evaluates one plan, tick by tick; it may answer for several queries at once (`names`)."""

    kind: ClassVar[str]
    """What progress and `explain` call it."""
    needs_all_texts: ClassVar[bool] = False
    """Whether it needs the text of every term, also of those that no answer and no expression can show."""

    def __init__(self, plan: QueryPlan, settings: QuerySettings) -> None:
        self.plan = plan
        self.settings = settings
        self.keys = stream_keys(plan)
        self.ticker = Ticker(settings)
        self._template = ConstructTemplate(plan)
        self.waiting: dict[StreamKey, Elements] = {}
        self.answered_once = False
        self.newcomers: frozenset[str] = frozenset()
        self.why: str | None = None
        """Why this evaluator has the plan, where a faster one would not take it."""
        self.data_version: Version | None = None
        """The version of the static data that answers name, if it has versions."""
        # Between the instants of a fixed rhythm, an operator of change that has nothing to say says nothing.
        rhythm = settings.report in (Report.CLOSE, Report.PERIODIC)
        self._is_silent_without_news = not rhythm and settings.emit is not StreamOperator.RSTREAM

    @cached_property
    def wanted(self) -> frozenset[WantedPattern] | None:
        """The patterns that cover every triple that matters; None where any may."""
        return wanted_patterns_of(self.plan)

    def choices(self) -> tuple[Choice, ...]:
        """What it chose as it ran, where it has a choice: one for each join, as plain values for the progress."""
        return ()

    def encode_rows(self) -> None:  # noqa: B027
        """Give rows as ids from now on, in any order, where that is less work."""

    def static_will_change(self) -> None:  # noqa: B027
        """The static data is about to be moved to another version, which can change the answers."""

    @abstractmethod
    def static_changed(self) -> None:
        """The static data was moved: from the next tick on the answers follow from what it is now."""

    @property
    def names(self) -> tuple[str, ...]:
        """The queries whose answers it gives."""
        return (self.plan.name,)

    def state(self) -> EvaluatorState:
        """What must outlive the process besides the log of the windows."""
        waiting = {key: sequence_numbers_of(elements) for key, elements in self.waiting.items() if len(elements)}
        return EvaluatorState(self.ticker, waiting, self.answered_once, self._memory(), type(self).__name__)

    def begin(self, retained: Mapping[StreamKey, Elements], limit: int | None, firsts: Mapping[StreamKey, int]) -> None:
        """Begin in the middle of the streams: take in what was retained, and answer the ticks from `limit` on.

        `firsts` has the first timestamp that each stream ever had.
        """
        self.waiting = {key: retained.get(key, []) for key in dict.fromkeys(self.keys)}
        begun = {number: firsts[key] for number, key in enumerate(self.keys) if key in firsts}
        if limit is None:
            # A stream has shown nothing yet, so no tick is past; but those to come are counted from the first elements.
            self.ticker.begin_at(None, begun)
            return
        self.ticker.begin_at(limit, {number: first for number, first in begun.items() if first < limit})
        self._take_in(limit)

    def restore(
        self, state: EvaluatorState, retained: Mapping[StreamKey, Elements], newcomers: Collection[str] = ()
    ) -> None:
        """Continue from a saved state and the elements that were retained; the evaluator must be new.

        `newcomers` are those of its queries that were not there when the state was saved.
        """
        self.ticker, self.answered_once = state.ticker, state.answered_once
        self.newcomers = frozenset(newcomers)
        released: dict[StreamKey, Any] = {}
        for key in dict.fromkeys(self.keys):
            elements = retained.get(key, [])
            waits = np.isin(sequence_numbers_of(elements), state.waiting.get(key, []))
            self.waiting[key] = select_elements(elements, waits)
            released[key] = self._converted(split_at_time(select_elements(elements, ~waits), None)[0])
        for number, key in enumerate(self.keys):
            self._refill(number, released[key])
        self._restore_memory(state.memory if state.kind == type(self).__name__ else None)

    @abstractmethod
    def _converted(self, elements: Elements) -> Any:
        """Elements in the form in which this evaluator takes them."""

    @abstractmethod
    def _refill(self, number: int, elements: Any) -> None:
        """What a window held, and perhaps more that is older, in time order; the view goes to the last tick."""

    @abstractmethod
    def needed_from(self, number: int) -> int | None:
        """The time of the oldest element that a window can still show; None while that is any."""

    @abstractmethod
    def size(self) -> Size:
        """How much it holds."""

    def _memory(self) -> Any:
        """What cannot be derived from the windows again."""
        return None

    @abstractmethod
    def _restore_memory(self, memory: Any) -> None:
        """Derive the rest, with the windows in place. Without a memory, the result was answered as it is."""

    @abstractmethod
    def _add(self, number: int, elements: Any) -> Sequence[int] | npt.NDArray[np.int64]:
        """Elements in time order for a window; gives the timestamps of the items that they make."""

    @abstractmethod
    def _closings(self, tick: int) -> int:
        """How often a window closes at this very instant, at least once."""

    @abstractmethod
    def _move(self, tick: int, part: int) -> bool:
        """Move all windows to a tick; true where the content of one, as set or bag, is another one now."""

    @abstractmethod
    def _holds_something(self) -> bool:
        """Whether some window is not empty."""

    @abstractmethod
    def _emit(self, tick: int) -> list[object] | EncodedRows:
        """What the streaming operator lets through at a tick: rows, or triples for DESCRIBE, or a verdict."""

    @abstractmethod
    def _views(self, tick: int) -> tuple[WindowView, ...]:
        """What each window shows."""

    def advance(
        self,
        batch: Mapping[StreamKey, Elements],
        watermark: int | None,
        *,
        ended: bool = False,
        floor: int | None = None,
        until: int | None = None,
    ) -> list[Answer]:
        """Take elements in; answer every tick before the watermark, or all that remain when the streams have ended.

        `floor` is the instant up to which ended streams are known to have been silent; with `until`, the ticks from
        that instant on are left for another call.
        """
        for key, elements in batch.items():
            self.waiting[key] = concat_elements((self.waiting.get(key, []), elements))
        if watermark is None and not ended:
            return []
        if not self.plan.windows:
            return self._answer_once()
        limit = None if ended else watermark
        self._take_in(limit)
        return [answer for tick in self.ticker.due_ticks(limit, floor, until) for answer in self._at(tick, watermark)]

    def _take_in(self, limit: int | None) -> None:
        """Give the windows what has waited for the watermark."""
        released = self._release(limit)
        for number, key in enumerate(self.keys):
            if key in released:
                self.ticker.observe(number, self._add(number, released[key]))

    def _release(self, watermark: int | None) -> dict[StreamKey, Any]:
        """The waiting elements that the watermark has passed, in time order."""
        released: dict[StreamKey, Any] = {}
        for key, elements in self.waiting.items():
            passed, self.waiting[key] = split_at_time(elements, watermark)
            if len(passed):
                released[key] = self._converted(passed)
        return released

    def _answer_once(self) -> list[Answer]:
        """A query over static data alone has one answer."""
        if self.answered_once:
            return []
        self.answered_once = True
        tick = self.settings.t0 or 0
        self._move(tick, 0)
        return [self._answer(tick, 0, None, self._emit(tick))]

    def _at(self, tick: int, watermark: int | None) -> Iterator[Answer]:
        for part in range(self._closings(tick)):
            changed = self._move(tick, part)
            if self.settings.report is Report.CHANGE and not changed:
                continue
            if self.settings.report is Report.NONEMPTY and not self._holds_something():
                continue
            yield from self._reported(tick, part, watermark)

    def _reported(self, tick: int, part: int, watermark: int | None) -> Iterator[Answer]:
        """The answers of a tick that is reported."""
        emitted = self._emit(tick)
        if not emitted and self._is_silent_without_news:
            return
        answer = self._answer(tick, part, watermark, emitted)
        if not (answer.is_empty and self._is_silent_without_news):
            yield answer

    def _answer(self, tick: int, part: int, watermark: int | None, emitted: list[object] | EncodedRows) -> Answer:
        kind = self.plan.kind
        encoded: EncodedRows | None = None
        rows: tuple[Row, ...] = ()
        triples: tuple[Triple, ...] = ()
        verdict: bool | None = None
        match kind:
            case _ if isinstance(emitted, EncodedRows):
                encoded = emitted
            case QueryKind.SELECT:
                rows = cast("tuple[Row, ...]", tuple(emitted))
            case QueryKind.CONSTRUCT:
                triples = self._template.instantiate(cast("list[Row]", emitted), tick)
            case QueryKind.DESCRIBE:
                triples = cast("tuple[Triple, ...]", tuple(emitted))
            case QueryKind.ASK:
                verdict = cast("bool | None", emitted[0] if emitted else None)
        return Answer(
            query=self.plan.name,
            time=tick,
            kind=kind,
            operator=self.settings.emit,
            variables=tuple(v.value for v in self.plan.variables) if kind is QueryKind.SELECT else (),
            rows=rows,
            triples=triples,
            boolean=verdict,
            part=part,
            inputs=self._views(tick),
            watermark=watermark,
            data_version=self.data_version,
            encoded=encoded,
        )
