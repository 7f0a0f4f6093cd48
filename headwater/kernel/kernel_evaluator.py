"""Evaluates a plan by deltas: what entered the windows and what left them, and what that changes in the result.

The durable state is the log of the windows (`execution.window_log`); everything here is derived from it, and a
restored evaluator derives it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np

from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.execution.answer_batch import AnswerBatch, AnswerPart
from headwater.execution.answer_columns import AnswerColumns, WindowViews
from headwater.execution.answers import Answer, WindowView
from headwater.execution.collapsed_triples import CollapseCounts, CollapsedTriples, describe_collapsed
from headwater.execution.evaluator import Choice, Evaluator
from headwater.execution.id_owners import IdOwners
from headwater.execution.static_data import StaticData
from headwater.execution.window_log import Size
from headwater.kernel.columns.delta import Delta
from headwater.kernel.columns.delta_run import DeltaRun
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.compiling.compiler import Compiler
from headwater.kernel.compiling.static_patterns import StaticPatterns
from headwater.kernel.compiling.static_views import ViewData, outside_texts_of
from headwater.kernel.describe import ResourceDescriber
from headwater.kernel.emitter import Emitter, ResultState
from headwater.kernel.join_measures import JoinMeasures, fix_orders, joins_of, operators, state_bytes
from headwater.kernel.moving_windows import MovingWindows
from headwater.kernel.operators.operator import Operator
from headwater.language.stream_clauses import StreamOperator
from headwater.terms.element_columns import ElementColumns
from headwater.terms.ids.encoded_rows import EncodedRows
from headwater.values.query_guard import MANY_ROWS
from headwater.windows.element_sequences import Elements
from headwater.windows.settings import QuerySettings, Report

_Result = TypeVar("_Result")

MakeCompiler = Callable[[QueryPlan, QuerySettings, StaticData, Vocabulary], Compiler]
"""What makes the compiler of an evaluator's plan."""

_MOST_TICKS_FROM_NOTHING = 1024
"""How many whole results are listed in one step that begins with an empty one."""

_MOST_SKIPPED_TICKS = 256
"""After so many ticks windows are moved on all the same, and forget what left them."""


class KernelEvaluator(Evaluator):
    """Evaluates one plan incrementally; raises `UnsupportedByKernel` where it cannot."""

    kind = "kernel"
    _takes_runs: ClassVar[bool] = True
    """Whether it may take many ticks in one step."""
    _can_follow_views: ClassVar[bool] = True
    """Whether everything that is read of views has deltas."""

    def __init__(
        self, plan: QueryPlan, settings: QuerySettings, static: StaticData, make_compiler: MakeCompiler = Compiler
    ) -> None:
        super().__init__(plan, settings)
        self._static = static
        self._make_compiler = make_compiler
        self._follows_views = False
        self._static_patterns = StaticPatterns(plan, static)
        self._needs_compiling = False
        """Whether what came in needs other operators: a pattern is static no longer, or stars cannot be matched."""
        self._matches_stars = self._takes_runs
        self.vocabulary = self._make_vocabulary()
        self._skipped_ticks = 0
        """How many ticks were skipped since the windows were moved: see `_required_windows`."""
        self._collapsed = CollapseCounts()
        self._compile()
        self._windows = self._make_windows()
        self._buffers = self._windows.buffers
        self._description = (
            ResourceDescriber(plan, static, self.vocabulary) if plan.kind is QueryKind.DESCRIBE else None
        )
        make_result = self._present if self._presenter else self._describe if self._description else None
        width = len(self.root.variables if self._presenter else plan.variables)
        self._emitter = Emitter(plan.kind, settings, self.vocabulary, width, make_result)
        self._result = ResultState()
        self._is_answered = True
        """Whether the result is that of the last answer: then all that was answered follows from the windows."""
        self._rows_before: Ints | None = None
        """The result before the static data changed."""

    def _make_vocabulary(self) -> Vocabulary:
        return Vocabulary(outside_texts_of(self._static))

    def _make_windows(self) -> MovingWindows:
        """The windows of the plan, connected with its operators."""
        compiler = self._compiler
        extra = {"has_times": compiler.is_timed, "has_graphs": compiler.has_graphs}
        windows = MovingWindows(self.plan, self.settings, self.vocabulary, **extra)
        windows.connect(compiler.clock, compiler.sources)
        return windows

    def own_ids(self, owners: IdOwners) -> None:
        self.vocabulary.own_ids(owners)

    @property
    def _can_skip_ticks(self) -> bool:
        """Whether ticks may be skipped: only new rows are answered, and nothing where there are none."""
        is_change = self.settings.emit is StreamOperator.ISTREAM and self._presenter is None
        is_plain = self.plan.kind in (QueryKind.SELECT, QueryKind.CONSTRUCT)
        return is_change and is_plain and self._omits_empty_answers and self.settings.report is Report.EAGER

    def _required_windows(self, sources: Sequence[Operator]) -> list[int]:
        """The windows without which there is no result: while one of them is empty, the others need not be moved."""
        return [index for index, source in enumerate(sources) if self.root.needs_rows_of(source)]

    def _catch_up(self) -> None:
        """Move the windows to the last tick, if it was skipped."""
        if self._skipped_ticks:
            assert self.ticker.last_tick is not None
            self._advance_windows(self.ticker.last_tick, 0)
            self._is_answered = True

    @property
    def joins(self) -> tuple[JoinMeasures, ...]:
        """Which ways the mappings took through each join, and which indexes are kept."""
        return joins_of(self.root)

    def choices(self) -> tuple[Choice, ...]:
        return tuple(asdict(join) for join in self.joins)

    def fix_orders(self) -> None:
        """Probe in the order of the plan from now on, for comparison."""
        fix_orders(self.root)

    def _compile(self) -> None:
        """Make the operators, without any rows in them."""
        self._compiler = compiler = self._make_compiler(self.plan, self.settings, self._static, self.vocabulary)
        compiler.static_parts.follows_views = self._follows_views
        compiler.static_parts.patterns = self._static_patterns
        compiler.matches_stars = self._matches_stars
        self._needs_compiling = False
        self.root, self._presenter = compiler.compile()
        self._collapsed.follow(compiler.collapse_counters)
        shown = list(range(len(self.root.variables)))
        columns = shown if self._presenter else [self.root.variables.index(v.value) for v in self.plan.variables]
        self._columns = None if columns == shown else columns
        self._required = self._required_windows(compiler.sources) if self._can_skip_ticks else []
        self._takes_view_deltas = (
            self._follows_views and isinstance(self._static, ViewData) and not compiler.has_unfollowed_data
        )
        self._pin_terms()

    def _pin_terms(self) -> None:
        """Never forget the terms of the plan."""
        self.vocabulary.pin_terms()

    def _recompile(self) -> None:
        """Make the operators anew, for the static data as it is now."""
        self._compile()
        self._windows.connect(self._compiler.clock, self._compiler.sources)

    def _take_in_view_deltas(self) -> None:
        """Take in the deltas of views, while the windows stay as they are."""
        if self.ticker.last_tick is None:
            # There was no tick yet, and views are read as they are at the first one.
            return
        self._is_answered = False
        self._apply(self._advance_static_parts())

    def _advance_static_parts(self) -> Delta:
        """What static parts change in the result, while the windows stay as they are."""
        self._windows.begin_unchanged_tick()
        return self.root.advance()

    def _initial_delta(self) -> Delta:
        """The whole result at the last tick, from operators without any rows in them."""
        assert self.ticker.last_tick is not None
        self._windows.load_contents(self.ticker.last_tick)
        return self._advance_from_nothing()

    def _advance_from_nothing(self) -> Delta:
        """The whole result, from operators without any rows whose leaves have all that the windows show."""
        result = self.root.advance()
        # All of it was counted when it came.
        self._collapsed.follow(self._compiler.collapse_counters)
        return result

    def take_collapsed(self) -> tuple[CollapsedTriples, ...]:
        return tuple(describe_collapsed(self.plan, self._collapsed.take(), self.counting_readers))

    def prepare_static_change(self) -> None:
        self._catch_up()
        if not self._takes_view_deltas and self._emitter.counts_changes and self.ticker.last_tick is not None:
            self._recompile()
            self._rows_before = self._initial_delta().added

    def apply_static_change(self) -> None:
        """Data that changed once may change again: from now on its deltas come in like those of the windows.

        Before, joins read views where they are, and let in only what has a partner there.
        """
        self._catch_up()
        if self._takes_view_deltas:
            self._take_in_view_deltas()
            return
        self._follows_views = self._can_follow_views
        self._recompile()
        if self.ticker.last_tick is None:
            return
        # What was answered before does not follow from the data any more.
        self._is_answered = False
        now = self._initial_delta().added
        if self._rows_before is None:
            self._apply(Delta(now, now[:0], is_reset=True))
        else:
            self._apply(Delta(now, self._rows_before))
            self._rows_before = None

    def _feed_windows(self, limit: int | None) -> None:
        super()._feed_windows(limit)
        if self._needs_compiling:
            self._exchange_operators()

    def _exchange_operators(self) -> None:
        """Make the operators anew, because what came in needs others; the result stays as it is."""
        self._catch_up()
        has_begun = self.ticker.last_tick is not None
        if has_begun:
            delta = self._advance_static_parts()
            if not delta.is_empty:
                self._is_answered = False
                self._apply(delta)
        self._recompile()
        if not has_begun:
            return
        now = self._initial_delta().added
        if self._presenter is not None:
            # What it orders are all columns of the root, which are now others.
            self._emitter.change_width(len(self.root.variables))
            self._apply(Delta(now, now[:0], is_reset=True))

    def _prepare_elements(self, elements: Elements) -> ElementColumns:
        """The elements as columns of ids, their texts in the vocabulary of the windows."""
        return self._windows.encode(elements, self._ids_in_use)

    def _add(self, window_index: int, elements: ElementColumns) -> Ints:
        items = self._windows.add(window_index, elements)
        if self.plan.windows[window_index].in_default_graph and self._static_patterns.observe(items.triples):
            self._needs_compiling = True
        if window_index in self._compiler.star_windows and not self._buffers[window_index].has_single_runs(items):
            self._matches_stars = False
            self._needs_compiling = True
        return items.times

    def _refill(self, window_index: int, elements: ElementColumns) -> None:
        self._add(window_index, elements)
        if self._needs_compiling:
            self._recompile()
        self._buffers[window_index].refill(self.ticker.item_count(window_index), self.ticker.last_tick)

    def needed_from(self, window_index: int) -> int | None:
        return self._buffers[window_index].needed_from(self.ticker.last_tick)

    def size(self) -> Size:
        self._catch_up()
        return Size(self._windows.triple_count, self._windows.nbytes + state_bytes(self.root))

    def _count_closings(self, tick: int) -> int:
        return self._windows.count_closings(tick)

    def _answers_at(self, tick: int, watermark: int | None) -> Iterable[Answer | AnswerColumns]:
        if self._required and self._skip(tick):
            return ()
        return super()._answers_at(tick, watermark)

    def _skip(self, tick: int) -> bool:
        """Leave the windows where they are, if there is no result at a tick; gives whether there is none."""
        if self._skipped_ticks < _MOST_SKIPPED_TICKS:
            for index in self._required:
                if self._buffers[index].is_empty_at(tick):
                    self._skipped_ticks += 1
                    return True
        return False

    def _move(self, tick: int, closing: int) -> bool:
        return self._advance_windows(tick, closing)

    def _advance_windows(self, tick: int, closing: int) -> bool:
        """Move the windows and apply what that changes in the result; whether the content of a window is another."""
        self._is_answered = False
        changed = self._windows.move(tick, closing)
        self._follow_windows()
        return changed

    def _follow_windows(self) -> None:
        """Apply what the windows, which have just moved, change in the result."""
        delta = self.root.advance()
        if self._skipped_ticks:
            # All that there was went at a tick that was skipped.
            self._skipped_ticks = 0
            delta = Delta(delta.added, delta.added[:0])
        if self._has_pending_changes or not self._emitter.can_skip(delta):
            self._apply(delta)
        self._sweep()

    def _sweep(self) -> None:
        """Forget terms that are not in use, where that is worth it."""
        if self.vocabulary.needs_sweep:
            self.vocabulary.sweep(self._ids_in_use())

    @cached_property
    def _can_run(self) -> bool:
        """Whether many ticks can be taken in one step: each is answered, with nothing but the rows of the result."""
        is_each_answered = self.settings.report not in (Report.CHANGE, Report.NONEMPTY)
        return self._takes_runs and is_each_answered and self._description is None

    def _due_ticks(self, limit: int | None, floor: int | None, until: int | None) -> Iterable[int]:
        if self._can_run:
            return self.ticker.take_due_ticks(limit, floor, until)
        return super()._due_ticks(limit, floor, until)

    def _answer_ticks(self, ticks: Iterable[int], watermark: int | None) -> AnswerBatch:
        if not self._can_run:
            return super()._answer_ticks(ticks, watermark)
        due = list(ticks)
        answers = self.answers_so_far = AnswerBatch()
        if not self._windows.should_combine_ticks(due):
            for tick in due:
                for answer in self._answers_at(tick, watermark):
                    answers.append(answer)
            return answers
        place = 0
        while place < len(due):
            is_ready = self._windows.has_moved and not self._skipped_ticks and not self._has_pending_changes
            size = self._run_size(due, place) if is_ready else 0
            if size:
                answers.append(self._answer_run(due[place : place + size], watermark))
                place += size
                continue
            # The next tick moves all windows, those that were not moved at ticks before, too.
            self._skipped_ticks = _MOST_SKIPPED_TICKS if self._skipped_ticks else 0
            for answer in self._answers_at(due[place], watermark):
                answers.append(answer)
            place += 1
        return answers

    def _run_size(self, due: list[int], place: int) -> int:
        """How many ticks are taken in one step from some place on; 0 if the next one has several closings."""
        size = self._windows.run_size(due, place, self._result.size)
        # The result may grow, and every tick has all of it.
        grows = self._emitter.lists_bags and not self._result.size
        return min(size, _MOST_TICKS_FROM_NOTHING) if grows else size

    def _answer_run(self, ticks: list[int], watermark: int | None) -> AnswerPart:
        """The answers at some ticks, which are taken in one step."""
        self.guard.begin_tick()
        instants = np.array(ticks, dtype=np.int64)
        if self._windows.has_large_ticks(ticks):
            deltas: DeltaRun | list[Delta] = self._advance_by_ticks(ticks, instants)
        else:
            self._windows.move_run(ticks, instants)
            deltas = self._follow_run()
        return self._answer_deltas(deltas, ticks, watermark)

    def _follow_run(self) -> DeltaRun:
        """What a run of the windows, which have just moved, changes in the result."""
        run = self.root.advance_run()
        return run if self._columns is None else run.with_rows(run.rows[:, self._columns])

    def _answer_deltas(self, deltas: DeltaRun | list[Delta], ticks: list[int], watermark: int | None) -> AnswerPart:
        """The answers at some ticks, from what they change in the result."""
        self._is_answered = True
        if self._emitter.counts_changes or self._emitter.lists_bags:
            answers = self._emit_run(deltas, np.array(ticks, dtype=np.int64), watermark)
        else:
            answers = self._emit_each(deltas, ticks, watermark)
        self._sweep()
        self.guard.check_time()
        return answers

    def _advance_by_ticks(self, ticks: list[int], instants: Ints) -> list[Delta]:
        """What some ticks change in the result, taken one by one."""
        self._windows.record_run_views(instants)
        deltas = []
        for tick in ticks:
            self._windows.move(tick, 0)
            deltas.append(self._project(self.root.advance()))
            self.guard.check_time()
        return deltas

    def _emit_run(self, deltas: DeltaRun | list[Delta], instants: Ints, watermark: int | None) -> AnswerPart:
        """The answers at some ticks, made in one step."""
        places, offsets, rows = self._emitter.emit_run(self._result, deltas, instants.shape[0])
        if not self._omits_empty_answers and places.shape[0] < instants.shape[0]:
            offsets = offsets[places.searchsorted(np.arange(instants.shape[0] + 1))]
            places = np.arange(instants.shape[0])
        windows = self._run_views(places)
        self.guard.check_answer(int(np.diff(offsets).max(initial=0)))
        if self.plan.kind is QueryKind.SELECT:
            encoded = self.vocabulary.encode_rows(rows)
            return AnswerColumns(self._answer_head(watermark), instants[places], offsets, encoded, windows)
        tables = self._emitter.order_tables(offsets, rows)
        return self._make_answers(instants[places].tolist(), watermark, tables, windows)

    def _emit_each(self, deltas: DeltaRun | list[Delta], ticks: list[int], watermark: int | None) -> AnswerPart:
        """The same where an answer is more than a bag of rows: each is made from the whole result."""
        emitted: list[list[object] | EncodedRows] = []
        for delta in deltas if isinstance(deltas, list) else deltas.split(len(ticks)):
            self._emitter.apply(self._result, delta)
            emitted.append(self._emitter.emit(self._result, has_changed=not delta.is_empty))
        return self._make_answers(ticks, watermark, emitted, self._run_views(np.arange(len(ticks))))

    def _run_views(self, places: Ints) -> tuple[WindowViews, ...]:
        """What each window showed at some ticks of the last run."""
        return tuple([window.select(places) for window in self._windows.run_views()])

    def _make_answers(
        self,
        ticks: list[int],
        watermark: int | None,
        emitted: Sequence[list[object] | EncodedRows],
        windows: tuple[WindowViews, ...],
    ) -> list[Answer]:
        """An answer for each of some ticks, without those that are empty and may be omitted."""
        answers = []
        for place, (tick, of_tick) in enumerate(zip(ticks, emitted, strict=True)):
            if len(of_tick) or not self._omits_empty_answers:
                shown = tuple([window.at(place) for window in windows])
                answer = self._make_answer(tick, 0, watermark, of_tick, shown)
                assert isinstance(answer, Answer)
                if not (answer.is_empty and self._omits_empty_answers):
                    answers.append(answer)
        return answers

    @property
    def _has_pending_changes(self) -> bool:
        """Whether some rows have changed since the last answer."""
        return self._emitter.counts_changes and bool(self._result.counts)

    def _apply(self, delta: Delta) -> None:
        """Follow a change of the rows at the root."""
        if delta.added.shape[0] > MANY_ROWS and self._presenter is None:
            self.guard.check_answer(delta.added.shape[0])
        self._emitter.apply(self._result, self._project(delta))

    def _project(self, delta: Delta) -> Delta:
        """The delta with only the columns that answers show."""
        columns = self._columns
        return delta if columns is None or delta.is_empty else delta.map_rows(lambda rows: rows[:, columns])

    def _has_content(self) -> bool:
        return not self._windows.is_empty

    def _emit(self, tick: int) -> list[object] | EncodedRows:
        self._is_answered = True
        return self._emitter.emit(self._result)

    def _present(self, rows: Ints) -> list[object]:
        """The rows that ORDER BY and LIMIT choose, in their order."""
        assert self._presenter is not None
        return list(self._presenter.present(rows))

    def _describe(self, rows: Ints) -> list[object]:
        """The triples that describe the resources of some rows."""
        assert self._description is not None
        return list(self._description.triples(rows, [buffer.triples[:, :3] for buffer in self._buffers]))

    def _views(self, tick: int) -> tuple[WindowView, ...]:
        return self._windows.views(tick)

    def _ids_in_use(self) -> Iterator[Ints]:
        """Every array of ids that is still in use."""
        for buffer in self._buffers:
            yield buffer.ids
        yield from self._result.ids()
        for operator in operators(self.root):
            yield from operator.ids()

    def _save_memory(self) -> object:
        return None if self._is_answered else self._emitter.pending(self._result)

    def _restore_memory(self, memory: Any) -> None:
        if self.ticker.last_tick is not None:
            self._derive_result()
            self._is_answered = memory is None and not self.new_queries
            if not self.new_queries:
                self._emitter.restore(self._result, memory)

    def _derive_result(self) -> None:
        """Have the result, and the content of the windows, as they were at the last tick."""
        self._apply(self._initial_delta())
        self._windows.recount_contents()
