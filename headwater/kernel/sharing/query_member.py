"""One of several queries over the same windows: the operators that it has by itself, its result and its limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from headwater.algebra.plan import QueryPlan
from headwater.execution.answer_batch import AnswerPart
from headwater.execution.answer_columns import AnswerColumns, WindowViews
from headwater.execution.answers import Answer, WindowView
from headwater.execution.static_data import StaticData
from headwater.kernel.columns.delta import Delta
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.kernel.moving_windows import MovingWindows
from headwater.kernel.sharing.shared_parts import SharedParts, SharingCompiler
from headwater.windows.settings import QuerySettings


class CommonState(NamedTuple):
    """What the queries have together: the windows, and the terms in them."""

    windows: MovingWindows
    vocabulary: Vocabulary


class QueryMember(KernelEvaluator):
    """Follows the result of one query over windows that are moved for several (`shared_evaluator`)."""

    def __init__(
        self, plan: QueryPlan, settings: QuerySettings, static: StaticData, common: CommonState, shared: SharedParts
    ) -> None:
        self._common = common
        super().__init__(plan, settings, static, partial(SharingCompiler, shared=shared))
        self._labels = [source.label for source in plan.windows]
        self._has_common_labels = self._labels == common.windows.labels

    def _make_vocabulary(self) -> Vocabulary:
        return self._common.vocabulary

    def _make_windows(self) -> MovingWindows:
        return self._common.windows

    def _pin_terms(self) -> None:
        """They are pinned once for all queries."""

    def _sweep(self) -> None:
        """Other queries may use a term that this one does not."""

    @property
    def star_windows(self) -> frozenset[int]:
        """The windows whose triples are matched by stars."""
        return self._compiler.star_windows

    def use_parts(self, shared: SharedParts, *, matches_stars: bool) -> None:
        """Make the operators, without any rows in them, above other common parts."""
        self._make_compiler = partial(SharingCompiler, shared=shared)
        self._matches_stars = matches_stars
        self._compile()

    def fill_operators(self) -> None:
        """Fill operators without rows from what the windows show, which are given that now; the result stays."""
        now = self._advance_from_nothing().added
        if self._presenter is not None:
            # What it orders are all columns of the root, which are now others.
            self._emitter.change_width(len(self.root.variables))
            self._apply(Delta(now, now[:0], is_reset=True))

    def derive_result(self, *, is_answered: bool) -> None:
        """Have the result as it was at the last tick, from operators without rows; all is new if it never answered."""
        self._apply(self._advance_from_nothing())
        self._is_answered = is_answered
        if is_answered:
            self._emitter.restore(self._result)

    def answer_tick(self, tick: int, watermark: int | None) -> Iterator[Answer | AnswerColumns]:
        """The answers at a tick to which the windows have just moved."""
        self._is_answered = False
        self._follow_windows()
        yield from self._report(tick, 0, watermark)
        self.guard.check_time()

    def answer_run(self, ticks: list[int], watermark: int | None) -> AnswerPart:
        """The answers at some ticks over which the windows have just moved."""
        return self._answer_deltas(self._follow_run(), ticks, watermark)

    @property
    def result_size(self) -> int:
        """About how many rows the result has."""
        return self._result.size

    @property
    def result_may_grow(self) -> bool:
        """Whether every tick has all of a result that is empty now."""
        return self._emitter.lists_bags and not self._result.size

    def result_ids(self) -> Iterator[Ints]:
        """Every id in the result."""
        return self._result.ids()

    def _views(self, tick: int) -> tuple[WindowView, ...]:
        shown = super()._views(tick)
        if self._has_common_labels:
            return shown
        return tuple(replace(view, label=label) for view, label in zip(shown, self._labels, strict=True))

    def _run_views(self, places: Ints) -> tuple[WindowViews, ...]:
        shown = super()._run_views(places)
        return tuple(view._replace(label=label) for view, label in zip(shown, self._labels, strict=True))
