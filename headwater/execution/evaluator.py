"""The base of all evaluators: elements wait for the watermark, then fill the windows; every due tick gives answers.

`Evaluator.advance` takes elements in any order and a watermark, and answers the ticks before the watermark. How the
result at a tick is computed is left to the subclass: the reference evaluates the whole window, the kernel the changes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.algebra.text_lengths import text_length
from headwater.algebra.wanted_patterns import WantedPattern, wanted_patterns_of
from headwater.execution.answer_batch import AnswerBatch
from headwater.execution.answer_columns import AnswerColumns, WindowViews
from headwater.execution.answer_quality import AnswerQuality
from headwater.execution.answers import Answer, WindowView
from headwater.execution.collapsed_triples import CollapsedTriples, Readers
from headwater.execution.id_owners import IdOwners
from headwater.execution.static_data import Version
from headwater.execution.tick_thinning import TickThinner
from headwater.execution.window_log import Size, StreamKey
from headwater.language.stream_clauses import StreamOperator
from headwater.terms.ids.encoded_rows import EncodedRows
from headwater.terms.ids.term_texts import Ints
from headwater.terms.model import Row, Triple
from headwater.terms.packing import Plain
from headwater.values.query_guard import Interruption, QueryGuard
from headwater.values.query_limits import QueryLimits
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

_FEW_ROWS = 256
"""Of so few rows the size is not measured."""

Choice = Mapping[str, Any]
"""A choice that an evaluator made, as values that JSON can hold."""


def stream_keys(plan: QueryPlan) -> tuple[StreamKey, ...]:
    """For each window of a plan, the stream it reads and the clock by which it reads it."""
    return tuple(
        (source.stream.value, predicate.value if (predicate := timestamp_predicate_of(source.spec)) else None)
        for source in plan.windows
    )


class UnsupportedPlan(Exception):
    """A plan that one evaluator cannot evaluate, and another one can."""


@dataclass
class EvaluatorState:
    """What a checkpoint saves of an evaluator, besides the log of the windows.

    All of it is plain values (`terms.packing`). `ticker` is the state of its `Ticker`; `waiting` has the sequence
    numbers of the elements that the watermark has not passed yet; `memory` is what the subclass cannot derive from the
    windows.
    """

    ticker: Plain
    waiting: dict[StreamKey, Ints]
    answered_once: bool
    memory: Plain
    kind: str = ""
    """The class of evaluator that saved `memory`: another one cannot use it."""
    unanswered: frozenset[str] = frozenset()
    """Of an evaluator of several queries: those that have not answered yet, while others have."""

    def to_plain(self) -> Plain:
        return [self.ticker, self.waiting, self.answered_once, self.memory, self.kind, self.unanswered]

    @classmethod
    def from_plain(cls, value: Plain) -> EvaluatorState:
        return cls(*value)


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
        self._answer_variables = tuple(v.value for v in plan.variables) if plan.kind is QueryKind.SELECT else ()
        self.waiting: dict[StreamKey, Elements] = {}
        self.answered_once = False
        self.new_queries: frozenset[str] = frozenset()
        self.fallback_reason: str | None = None
        """Why no faster evaluator has this plan; None where there is none."""
        self.tick_thinner: TickThinner | None = None
        """Chooses the ticks that are evaluated, where a run that falls behind may skip some."""
        self.guard = QueryGuard()
        """Holds it to the limits of its queries."""
        self.answers_so_far = AnswerBatch()
        """The answers of the call that is at work, or of the last one: those before a tick that failed."""
        self.counting_readers: Readers = {}
        """The patterns whose triples other queries count, in what this one makes of them."""
        self.data_version: Version | None = None
        """The version of the static data that answers name, if it has versions."""
        # A periodic report answers at every tick, also with no rows. Others answer where rows were added or removed.
        is_periodic = settings.report in (Report.CLOSE, Report.PERIODIC)
        self._omits_empty_answers = not is_periodic and settings.emit is not StreamOperator.RSTREAM

    @cached_property
    def wanted_patterns(self) -> frozenset[WantedPattern] | None:
        """The triple patterns that cover every triple that can change an answer; None where any triple can."""
        return wanted_patterns_of(self.plan)

    def choices(self) -> tuple[Choice, ...]:
        """The adaptive choices in force, one for each join, for the progress."""
        return ()

    def own_ids(self, owners: IdOwners) -> None:  # noqa: B027
        """Have the terms of the queries own their ids, where terms are compared by ids; may raise `HashCollision`."""

    def take_collapsed(self) -> tuple[CollapsedTriples, ...]:
        """How many triples collapsed in windows that are sets, since this was last called."""
        return ()

    def prepare_static_change(self) -> None:  # noqa: B027
        """Called before the static data moves to another version that can change the answers."""

    @abstractmethod
    def apply_static_change(self) -> None:
        """Called after the static data has moved: the next tick is answered with the new version."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the queries that it answers."""
        return (self.plan.name,)

    def state(self) -> EvaluatorState:
        """What a checkpoint must save besides the log of the windows."""
        ticker, memory = self.ticker.to_plain(), self._save_memory()
        return EvaluatorState(ticker, self._waiting_numbers(), self.answered_once, memory, type(self).__name__)

    def _waiting_numbers(self) -> dict[StreamKey, Ints]:
        """The sequence numbers of the elements that the watermark has not passed yet."""
        return {key: sequence_numbers_of(elements) for key, elements in self.waiting.items() if len(elements)}

    def savepoint(self) -> Callable[[], EvaluatorState] | None:
        """A function that gives the state as it is now, also when it is called later: that of queries which are
        evaluated one by one if they fail together. None where that would not help any of them."""
        return None

    def evaluator_of(self, name: str) -> Evaluator:
        """What follows the result of one of its queries; the evaluator itself where that follows all at once."""
        return self

    def set_limits(self, limits: QueryLimits, interruption: Interruption | None) -> None:
        """Set the limits of its queries, and what may interrupt their evaluation."""
        self.guard = QueryGuard(limits, self.names, interruption)

    def take_failures(self) -> dict[str, Exception]:
        """The queries that have failed while others went on, and why, since this was last called."""
        return {}

    def split_seconds(self, seconds: float) -> dict[str, float]:
        """How long each of its queries took, of so many seconds for all."""
        return dict.fromkeys(self.names, seconds / len(self.names))

    def check_state(self, size: Size) -> None:
        """Check how much its queries hold."""
        self.guard.check_state((size.bytes or 0) // len(self.names))

    def bytes_by_query(self) -> dict[str, int]:
        """What each query holds by itself, where one could go and leave the others."""
        return {}

    def remove(self, name: str) -> None:
        """Let a query go, where it answers several."""
        raise AssertionError(f"{name} is the only query of this evaluator")

    def begin(self, retained: Mapping[StreamKey, Elements], limit: int | None, firsts: Mapping[StreamKey, int]) -> None:
        """Start while the streams are running: fill the windows with `retained`, answer the ticks from `limit` on.

        `firsts` has the first timestamp of each stream since it began. With `limit` None no tick has passed yet.
        """
        self.waiting = {key: retained.get(key, []) for key in dict.fromkeys(self.keys)}
        begun = {window_index: firsts[key] for window_index, key in enumerate(self.keys) if key in firsts}
        if limit is None:
            # Some stream has no element yet. No tick has passed, but ticks are counted from the first elements.
            self.ticker.begin_at(None, begun)
            return
        self.ticker.begin_at(limit, {window_index: first for window_index, first in begun.items() if first < limit})
        self._feed_windows(limit)

    def restore(
        self, state: EvaluatorState, retained: Mapping[StreamKey, Elements], new_queries: Collection[str] = ()
    ) -> None:
        """Continue from a saved state and the retained elements; called on a new evaluator.

        `new_queries` are the queries of this evaluator that were registered after the state was saved.
        """
        self.ticker, self.answered_once = Ticker.from_plain(self.settings, state.ticker), state.answered_once
        self.new_queries = frozenset(new_queries) | state.unanswered.intersection(self.names)
        released: dict[StreamKey, Any] = {}
        for key in dict.fromkeys(self.keys):
            elements = retained.get(key, [])
            waits = np.isin(sequence_numbers_of(elements), state.waiting.get(key, []))
            self.waiting[key] = select_elements(elements, waits)
            released[key] = self._prepare_elements(split_at_time(select_elements(elements, ~waits), None)[0])
        for window_index, key in enumerate(self.keys):
            self._refill(window_index, released[key])
        self._restore_memory(state.memory if state.kind == type(self).__name__ else None)

    @abstractmethod
    def _prepare_elements(self, elements: Elements) -> Any:
        """Elements in the form that `_add` and `_refill` of this evaluator take: objects, or columns of ids."""

    @abstractmethod
    def _refill(self, window_index: int, elements: Any) -> None:
        """Fill a window with what it held, in time order, and move it to the last tick; older elements are allowed."""

    @abstractmethod
    def needed_from(self, window_index: int) -> int | None:
        """The time from which a window still needs elements; None: from the beginning of the stream."""

    @abstractmethod
    def size(self) -> Size:
        """How much the windows and operators hold."""

    def _save_memory(self) -> Plain:
        """What a checkpoint must save because the windows do not determine it, as plain values."""
        return None

    @abstractmethod
    def _restore_memory(self, memory: Plain) -> None:
        """Restore the operators after the windows; with None the present result counts as emitted already."""

    @abstractmethod
    def _add(self, window_index: int, elements: Any) -> Sequence[int] | npt.NDArray[np.int64]:
        """Add elements in time order to a window; return the timestamps of the items that they make."""

    @abstractmethod
    def _count_closings(self, tick: int) -> int:
        """How many times a count window closes at this tick, at least once: each closing gives an answer of its own."""

    @abstractmethod
    def _move(self, tick: int, closing: int) -> bool:
        """Move all windows to a tick; return whether the content of one has changed."""

    @abstractmethod
    def _has_content(self) -> bool:
        """Whether some window is not empty."""

    @abstractmethod
    def _emit(self, tick: int) -> list[object] | EncodedRows:
        """What R/I/DSTREAM emits at a tick: rows, or triples for DESCRIBE, or one boolean for ASK."""

    @abstractmethod
    def _views(self, tick: int) -> tuple[WindowView, ...]:
        """What each window held at a tick."""

    def advance(
        self,
        batch: Mapping[StreamKey, Elements],
        watermark: int | None,
        *,
        ended: bool = False,
        floor: int | None = None,
        until: int | None = None,
    ) -> AnswerBatch:
        """Take elements; answer every tick before the watermark, or all that remain when the streams have ended.

        `floor` is the time up to which ended streams are known to have had no further element. With `until`, the
        ticks from that time on are left for another call.
        """
        for key, elements in batch.items():
            self.waiting[key] = concat_elements((self.waiting.get(key, []), elements))
        if watermark is None and not ended:
            return AnswerBatch()
        if not self.plan.windows:
            return self._answer_once()
        limit = None if ended else watermark
        self._feed_windows(limit)
        self.guard.check_ticks(self.ticker.count_ticks(limit, floor, until))
        due = self._due_ticks(limit, floor, until)
        if self.tick_thinner is None or limit is None:
            return self._answer_ticks(due, watermark)
        return self.tick_thinner.answer(due, limit, self._answer_ticks)

    def _due_ticks(self, limit: int | None, floor: int | None, until: int | None) -> Iterable[int]:
        """The ticks that are due; each counts as passed when it is taken, or all at once."""
        return self.ticker.due_ticks(limit, floor, until)

    def _answer_ticks(self, ticks: Iterable[int], watermark: int | None) -> AnswerBatch:
        """The answers at some ticks."""
        answers = self.answers_so_far = AnswerBatch()
        for tick in ticks:
            for answer in self._answers_at(tick, watermark):
                answers.append(answer)
        return answers

    def _feed_windows(self, limit: int | None) -> None:
        """Move the elements before `limit` from `waiting` into the windows."""
        released = self._release(limit)
        for window_index, key in enumerate(self.keys):
            if key in released:
                self.ticker.observe(window_index, self._add(window_index, released[key]))

    def _release(self, watermark: int | None) -> dict[StreamKey, Any]:
        """Remove from `waiting` the elements that the watermark has passed, and return them in time order."""
        released: dict[StreamKey, Any] = {}
        for key, elements in self.waiting.items():
            passed, self.waiting[key] = split_at_time(elements, watermark)
            if len(passed):
                released[key] = self._prepare_elements(passed)
        return released

    def _answer_once(self) -> AnswerBatch:
        """Answer a query without windows: once."""
        if self.answered_once:
            return AnswerBatch()
        self.answered_once = True
        tick = self.settings.t0 or 0
        self._move(tick, 0)
        answers = AnswerBatch()
        answers.append(self._make_answer(tick, 0, None, self._emit(tick), self._views(tick)))
        return answers

    def _answers_at(self, tick: int, watermark: int | None) -> Iterable[Answer | AnswerColumns]:
        """The answers at a tick."""
        self.guard.begin_tick()
        for closing in range(self._count_closings(tick)):
            changed = self._move(tick, closing)
            if self.settings.report is Report.CHANGE and not changed:
                continue
            if self.settings.report is Report.NONEMPTY and not self._has_content():
                continue
            yield from self._report(tick, closing, watermark)
        self.guard.check_time()

    def _report(self, tick: int, closing: int, watermark: int | None) -> Iterator[Answer | AnswerColumns]:
        """The answers of a tick at which the report policy is met; none where they are empty and may be omitted."""
        emitted = self._emit(tick)
        if not len(emitted) and self._omits_empty_answers:
            return
        answer = self._make_answer(tick, closing, watermark, emitted, self._views(tick))
        if not (isinstance(answer, Answer) and answer.is_empty and self._omits_empty_answers):
            yield answer

    def _make_answer(
        self,
        tick: int,
        closing: int,
        watermark: int | None,
        emitted: list[object] | EncodedRows,
        views: tuple[WindowView, ...],
    ) -> Answer | AnswerColumns:
        """The answer of a tick: what was emitted, in the form of the query, with what it was computed from."""
        self.guard.check_answer(len(emitted))
        if isinstance(emitted, EncodedRows):
            self.guard.check_answer_bytes(emitted.ids.nbytes + emitted.texts.blob.nbytes)
            windows = tuple([WindowViews.of_one(view) for view in views])
            head = self._answer_head(watermark, closing)
            return AnswerColumns(head, np.array([tick]), np.array([0, len(emitted)]), emitted, windows)
        kind = self.plan.kind
        if len(emitted) > _FEW_ROWS and kind is not QueryKind.ASK:
            size = sum(text_length(term) for row in cast("list[Iterable[object]]", emitted) for term in row)
            self.guard.check_answer_bytes(size)
        rows: tuple[Row, ...] = ()
        triples: tuple[Triple, ...] = ()
        boolean: bool | None = None
        match kind:
            case QueryKind.SELECT:
                rows = cast("tuple[Row, ...]", tuple(emitted))
            case QueryKind.CONSTRUCT:
                triples = self._template.instantiate(cast("list[Row]", emitted), tick)
                self.guard.check_answer(len(triples))
            case QueryKind.DESCRIBE:
                triples = cast("tuple[Triple, ...]", tuple(emitted))
            case QueryKind.ASK:
                boolean = cast("bool | None", emitted[0] if emitted else None)
        return self._answer_head(watermark, closing, tick, rows, triples, boolean, views)

    def _answer_head(
        self,
        watermark: int | None,
        closing: int = 0,
        tick: int = 0,
        rows: tuple[Row, ...] = (),
        triples: tuple[Triple, ...] = (),
        boolean: bool | None = None,
        views: tuple[WindowView, ...] = (),
    ) -> Answer:
        """An answer of this query; without a tick, what the answers of several ticks have in common."""
        return Answer(
            query=self.plan.name,
            time=tick,
            kind=self.plan.kind,
            operator=self.settings.emit,
            variables=self._answer_variables,
            rows=rows,
            triples=triples,
            boolean=boolean,
            part=closing,
            inputs=views,
            watermark=watermark,
            quality=self._measure_quality(),
            data_version=self.data_version,
        )

    def _measure_quality(self) -> AnswerQuality | None:
        """How good the answer is that is being made; None where it does not rest on SERVICE."""
        return None
