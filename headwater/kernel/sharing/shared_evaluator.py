"""Queries of any shapes over the same windows, evaluated together.

Their windows, the terms in them, the patterns that they match and the equal parts of their plans are there once
(`shared_parts`). What is not equal each query has by itself (`query_member`): the operators above the common ones, its
result, its limits. So an element costs what differs between the queries, and once what they have in common.

Ticks are those of all, because settings are. A query that fails goes, and the others stay; where a common part fails,
the queries that read it go.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, NoReturn

import numpy as np

from headwater.algebra.plan import QueryPlan
from headwater.algebra.wanted_patterns import WantedPattern
from headwater.execution.answer_batch import AnswerBatch
from headwater.execution.answers import WindowView
from headwater.execution.evaluator import Evaluator, EvaluatorState
from headwater.execution.id_owners import IdOwners
from headwater.execution.registered import RegisteredQuery
from headwater.execution.static_data import StaticData
from headwater.execution.suspension import is_caused_by_query
from headwater.execution.window_log import Size
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.compiling.static_views import outside_texts_of
from headwater.kernel.compiling.unsupported import UnsupportedByKernel
from headwater.kernel.join_measures import operators
from headwater.kernel.moving_windows import MovingWindows
from headwater.kernel.operators.operator import Operator
from headwater.kernel.sharing.query_member import CommonState, QueryMember
from headwater.kernel.sharing.shared_parts import PartNumbers, SharedParts
from headwater.terms.element_columns import ElementColumns
from headwater.values.query_guard import Interruption, RunStopped
from headwater.values.query_limits import QueryLimits
from headwater.windows.element_sequences import Elements

_MOST_TICKS_FROM_NOTHING = 1024
"""How many whole results are listed in one step that begins with an empty one."""

FEWEST_QUERIES = 2
"""The number of queries from which on common windows are worth while."""


class SharedEvaluator(Evaluator):
    """Evaluates queries with equal settings and windows; raises `UnsupportedByKernel` where fewer than two are left.

    `plans` are what is evaluated, by query: the optimised plans.
    """

    kind = "kernel"

    def __init__(self, queries: Sequence[RegisteredQuery], plans: Sequence[QueryPlan], static: StaticData) -> None:
        super().__init__(plans[0], queries[0].settings)
        vocabulary = Vocabulary(outside_texts_of(static))
        windows = MovingWindows(plans[0], self.settings, vocabulary, has_times=False, has_graphs=False)
        self._common = CommonState(windows, vocabulary)
        self._numbers = PartNumbers()
        for plan in plans:
            self._numbers.add(plan)
        self._matches_stars = True
        self._needs_compiling = False
        """Whether what came in needs other operators: stars cannot be matched."""
        self._shared = self._make_parts()
        self._members: dict[str, QueryMember] = {}
        for query, plan in zip(queries, plans, strict=True):
            try:
                self._members[query.plan.name] = self._make_member(plan, static)
            except UnsupportedByKernel:
                continue
            except Exception as error:
                if not is_caused_by_query(error):
                    raise
                # It is suspended when it is made by itself.
        if len(self._members) < FEWEST_QUERIES:
            raise UnsupportedByKernel("no other query that can be evaluated over the same windows")
        vocabulary.pin_terms()
        self._unanswered: frozenset[str] = frozenset()
        """The queries that have not answered while others have."""
        self._failures: dict[str, Exception] = {}
        self._seconds: dict[str, float] = {}

    def _make_parts(self) -> SharedParts:
        shared = SharedParts(self._numbers, len(self.plan.windows), self.guard)
        self._common.windows.connect(shared.clock, shared.patterns.sources)
        return shared

    def _make_member(self, plan: QueryPlan, static: StaticData) -> QueryMember:
        return QueryMember(plan, self.settings, static, self._common, self._shared)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._members)

    def evaluator_of(self, name: str) -> Evaluator:
        return self._members[name]

    @cached_property
    def wanted_patterns(self) -> frozenset[WantedPattern] | None:
        # None of its queries reads static data.
        return frozenset()

    def apply_static_change(self) -> None:
        raise AssertionError("none of the queries reads static data")

    def own_ids(self, owners: IdOwners) -> None:
        self._common.vocabulary.own_ids(owners)

    def set_limits(self, limits: QueryLimits, interruption: Interruption | None) -> None:
        super().set_limits(limits, interruption)
        self._shared.clock.guard = self.guard
        for member in self._members.values():
            member.set_limits(limits, interruption)

    def remove(self, name: str) -> None:
        del self._members[name]
        self._failures.pop(name, None)
        self._count_readers()

    def take_failures(self) -> dict[str, Exception]:
        # Until a query is removed it is known that it failed.
        return dict(self._failures)

    def split_seconds(self, seconds: float) -> dict[str, float]:
        own, self._seconds = self._seconds, {}
        common = max(0.0, seconds - sum(own.values())) / len(self._members)
        return {name: own.get(name, 0.0) + common for name in self._members}

    def _do_for_each_query(self, work: Callable[[QueryMember], None]) -> None:
        """Do something for each query, under its own guard; one that fails is left out from then on."""
        for name, member in self._members.items():
            if name in self._failures:
                continue
            begin = time.perf_counter()
            try:
                with member.guard:
                    work(member)
            except RunStopped:
                raise
            except Exception as error:
                self._failures[name] = error
            self._seconds[name] = self._seconds.get(name, 0.0) + time.perf_counter() - begin

    def _prepare_elements(self, elements: Elements) -> ElementColumns:
        return self._common.windows.encode(elements, self._ids_in_use)

    def _add(self, window_index: int, elements: ElementColumns) -> Ints:
        windows = self._common.windows
        items = windows.add(window_index, elements)
        reads_stars = self._matches_stars and window_index in self._star_windows
        if reads_stars and not windows.buffers[window_index].has_single_runs(items):
            self._matches_stars = False
            self._needs_compiling = True
        return items.times

    @cached_property
    def _star_windows(self) -> frozenset[int]:
        return frozenset().union(*(member.star_windows for member in self._members.values()))

    def _refill(self, window_index: int, elements: ElementColumns) -> None:
        self._add(window_index, elements)
        if self._needs_compiling:
            self._recompile()
        self._common.windows.buffers[window_index].refill(self.ticker.item_count(window_index), self.ticker.last_tick)

    def _feed_windows(self, limit: int | None) -> None:
        super()._feed_windows(limit)
        if self._needs_compiling:
            self._recompile()
            if self.ticker.last_tick is not None:
                self._common.windows.load_contents(self.ticker.last_tick)
                self._do_for_each_query(QueryMember.fill_operators)

    def _recompile(self) -> None:
        """Make the operators of all queries anew, without any rows in them."""
        self._needs_compiling = False
        self._shared = self._make_parts()
        self._do_for_each_query(partial(QueryMember.use_parts, shared=self._shared, matches_stars=self._matches_stars))
        self._common.vocabulary.pin_terms()
        self._count_readers()

    def needed_from(self, window_index: int) -> int | None:
        return self._common.windows.buffers[window_index].needed_from(self.ticker.last_tick)

    def _due_ticks(self, limit: int | None, floor: int | None, until: int | None) -> Iterable[int]:
        return self.ticker.take_due_ticks(limit, floor, until)

    def _answer_ticks(self, ticks: Iterable[int], watermark: int | None) -> AnswerBatch:
        due, windows = list(ticks), self._common.windows
        answers = self.answers_so_far = AnswerBatch()
        for member in self._members.values():
            member.data_version = self.data_version
        takes_runs, place = windows.should_combine_ticks(due), 0
        while place < len(due):
            size = self._run_size(due, place) if takes_runs and windows.has_moved and not self._unanswered else 0
            if size and not windows.has_large_ticks(due[place : place + size]):
                self._answer_run(due[place : place + size], watermark)
                place += size
            else:
                self._answer_tick(due[place], watermark)
                place += 1
            self._unanswered = frozenset()
            if self._common.vocabulary.needs_sweep:
                self._common.vocabulary.sweep(self._ids_in_use())
            self.guard.check_time()
        return answers

    def _answer_run(self, ticks: list[int], watermark: int | None) -> None:
        """Add the answers at some ticks, which are taken in one step."""
        self.guard.begin_tick()
        self._common.windows.move_run(ticks, np.array(ticks, dtype=np.int64))
        self._do_for_each_query(lambda member: self.answers_so_far.append(member.answer_run(ticks, watermark)))

    def _answer_tick(self, tick: int, watermark: int | None) -> None:
        """Add the answers at one tick."""
        self.guard.begin_tick()
        self._move(tick, 0)

        def answer(member: QueryMember) -> None:
            for one in member.answer_tick(tick, watermark):
                self.answers_so_far.append(one)

        self._do_for_each_query(answer)

    def _run_size(self, due: list[int], place: int) -> int:
        """How many ticks are taken in one step from some place on."""
        members = self._members.values()
        size = self._common.windows.run_size(due, place, max(member.result_size for member in members))
        may_grow = any(member.result_may_grow for member in members)
        return min(size, _MOST_TICKS_FROM_NOTHING) if may_grow else size

    def _ids_in_use(self) -> Iterator[Ints]:
        """Every array of ids that is still in use."""
        for buffer in self._common.windows.buffers:
            yield buffer.ids
        for member in self._members.values():
            yield from member.result_ids()
        for operator, _ in self._operators:
            yield from operator.ids()

    @cached_property
    def _operators(self) -> list[tuple[Operator, int]]:
        """Every operator, and how many of the queries read it."""
        found: dict[int, Operator] = {}
        readers: Counter[int] = Counter()
        for member in self._members.values():
            own = {id(one): one for one in operators(member.root)}
            readers.update(own.keys())
            found |= own
        return [(operator, readers[number]) for number, operator in found.items()]

    def _count_readers(self) -> None:
        """Forget what is known of who reads which operator."""
        self.__dict__.pop("_operators", None)
        self.__dict__.pop("_star_windows", None)

    def size(self) -> Size:
        windows = self._common.windows
        return Size(windows.triple_count, windows.nbytes + sum(one.nbytes for one, _ in self._operators))

    def bytes_by_query(self) -> dict[str, int]:
        shares = {id(one): one.nbytes // readers for one, readers in self._operators}
        common = self._common.windows.nbytes // len(self._members)
        return {
            name: common + sum(shares[id(one)] for one in operators(member.root))
            for name, member in self._members.items()
        }

    def check_state(self, size: Size) -> None:
        if (size.bytes or 0) > self.guard.limits.state_bytes:
            held = self.bytes_by_query()
            self._do_for_each_query(lambda member: member.guard.check_state(held[member.plan.name]))

    def state(self) -> EvaluatorState:
        return replace(super().state(), unanswered=self._unanswered)

    def _restore_memory(self, memory: Any) -> None:
        self._unanswered = new = self.new_queries
        if self.ticker.last_tick is not None:
            self._common.windows.load_contents(self.ticker.last_tick)
            self._do_for_each_query(lambda member: member.derive_result(is_answered=member.plan.name not in new))

    def _count_closings(self, tick: int) -> int:
        return self._common.windows.count_closings(tick)

    def _move(self, tick: int, closing: int) -> bool:
        return self._common.windows.move(tick, closing)

    def _has_content(self) -> bool:
        return not self._common.windows.is_empty

    def _views(self, tick: int) -> tuple[WindowView, ...]:
        return self._common.windows.views(tick)

    def _emit(self, tick: int) -> NoReturn:
        raise AssertionError("each query emits its own result")
