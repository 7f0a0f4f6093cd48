"""The evaluator of plans with SERVICE: the kernel evaluator with remote rows as inputs and a quality in its answers.

The views are part of the durable state, so a restart requests nothing that was known. While an evaluator is restored it
emits the same rows as before, and sends no request.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from functools import partial
from typing import Any, ClassVar, cast

from headwater.algebra.nodes import Service
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import nodes_of
from headwater.execution.answer_quality import AnswerQuality, QualityAlert, combine_quality
from headwater.execution.evaluator import Evaluator
from headwater.execution.query_evaluators import MakeEvaluator
from headwater.execution.static_data import StaticData
from headwater.federation.service_compiling import ServiceCompiler
from headwater.federation.service_rows import ServiceRows
from headwater.federation.services import Services
from headwater.federation.view.given_rates import UNREAD_RATES
from headwater.federation.view.service_quality import Quality
from headwater.kernel.columns.delta import Delta
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.compiling.unsupported import UnsupportedByKernel
from headwater.kernel.evaluator_choice import (
    EvaluatorChoice,
    choose_kernel_or_reference,
    make_evaluator,
    make_reference_evaluator,
    with_optimisation,
)
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.optimizer.optimise import optimise
from headwater.optimizer.statistics import Statistics
from headwater.windows.settings import QuerySettings

logger = logging.getLogger(__name__)


class ServiceEvaluator(KernelEvaluator):
    """Evaluates one plan incrementally; raises `UnsupportedByKernel` where it cannot."""

    _takes_runs: ClassVar[bool] = False

    def __init__(self, plan: QueryPlan, settings: QuerySettings, static: StaticData, services: Services) -> None:
        self._begun = 0.0
        make_compiler = partial(ServiceCompiler, services=services, seconds_spent=self._seconds_spent)
        super().__init__(plan, settings, static, make_compiler)

    @property
    def clauses(self) -> list[ServiceRows]:
        """The operators of its SERVICE clauses."""
        return cast(ServiceCompiler, self._compiler).clauses

    def _recompile(self) -> None:
        states = [clause.state() for clause in self.clauses]
        super()._recompile()
        for clause, state in zip(self.clauses, states, strict=True):
            clause.restore(state)

    def _initial_delta(self) -> Delta:
        for clause in self.clauses:
            clause.is_restoring = True
        delta = super()._initial_delta()
        for clause in self.clauses:
            clause.is_restoring = False
        return delta

    def _seconds_spent(self) -> float:
        return time.monotonic() - self._begun

    def _move(self, tick: int, closing: int) -> bool:
        self._begun = time.monotonic()
        return super()._move(tick, closing)

    def _measure_quality(self) -> AnswerQuality | None:
        seconds = self._seconds_spent()
        for clause in self.clauses:
            clause.record_query_time(max(0.0, seconds - clause.ended_after))
        return quality_of(self.clauses)

    def _save_memory(self) -> object:
        return super()._save_memory(), [clause.state() for clause in self.clauses]

    def _restore_memory(self, memory: Any) -> None:
        if memory is None:
            # Another evaluator had the query before: all rows are requested again.
            super()._restore_memory(None)
            return
        known, states = memory
        for clause, state in zip(self.clauses, states, strict=True):
            clause.restore(state)
        super()._restore_memory(known)


def quality_of(clauses: Iterable[ServiceRows]) -> AnswerQuality | None:
    """The quality of an answer, combined from the SERVICE clauses of its query."""
    qualities = [_to_answer_quality(clause.name, clause.quality) for clause in clauses if clause.quality is not None]
    return combine_quality(qualities) if qualities else None


def _to_answer_quality(endpoint: str, quality: Quality) -> AnswerQuality:
    alerts = (
        QualityAlert(endpoint, alert.goal.value, alert.wanted, alert.reached, alert.reason) for alert in quality.alerts
    )
    return AnswerQuality(
        accuracy=quality.accuracy,
        suspects=quality.suspects,
        rows=quality.rows,
        missing=quality.missing,
        refreshes=quality.refreshes,
        late=quality.late,
        failures=quality.failures,
        under_way=quality.under_way,
        requests=quality.requests,
        seconds=quality.seconds,
        alerts=tuple(alerts),
    )


def choose_evaluator(
    plan: QueryPlan,
    settings: QuerySettings,
    static: StaticData,
    statistics: Statistics | None = None,
    services: Services | None = None,
) -> EvaluatorChoice:
    """The evaluator that `make_evaluator_factory` would choose for a plan.

    Without `services`, change rates that a clause names are not looked at.
    """
    clauses = [node for node in nodes_of(plan.root) if isinstance(node, Service)]
    if not clauses:
        return choose_kernel_or_reference(plan, settings, static, statistics)
    optimised = optimise(plan, statistics).plan
    services = services or Services(rates=lambda source: UNREAD_RATES)
    compiler = ServiceCompiler(optimised, settings, static, Vocabulary(), services, lambda: 0.0)
    try:
        compiler.compile()
    except UnsupportedByKernel as reason:
        if any(clause.options is not None for clause in clauses):
            logger.warning("%s: OPTION of SERVICE is not in force, for the query needs %s", plan.name, reason)
        return EvaluatorChoice(optimised, str(reason))
    return EvaluatorChoice(
        optimised, None, tuple(compiler.static_parts.views), tuple(compiler.static_parts.view_locations)
    )


def make_evaluator_factory(services: Services, statistics: Statistics | None = None) -> MakeEvaluator:
    """A function that makes the fastest evaluator of each plan; those with SERVICE share clients and their limits.

    `statistics` decide the order of joins.
    """

    def make(plan: QueryPlan, settings: QuerySettings, static: StaticData) -> Evaluator:
        if not any(isinstance(node, Service) for node in nodes_of(plan.root)):
            return make_evaluator(plan, settings, static)
        try:
            return ServiceEvaluator(plan, settings, static, services)
        except UnsupportedByKernel as reason:
            return make_reference_evaluator(reason, plan, settings, static, services.fetch_solutions)

    return with_optimisation(make, statistics)
