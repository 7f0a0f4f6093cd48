"""An evaluator that answers nothing: it shows what it holds at chosen ticks."""

from __future__ import annotations

from collections.abc import Callable

from headwater.algebra.plan import QueryPlan
from headwater.execution.static_data import StaticData
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.reference.tick_solutions import TickSolutions
from headwater.windows.settings import QuerySettings

Observe = Callable[[TickSolutions], None]


class TickObserver(ReferenceEvaluator):
    """Has `observe` called at each tick, while the windows hold what they hold then."""

    def __init__(self, plan: QueryPlan, settings: QuerySettings, static: StaticData, observe: Observe) -> None:
        super().__init__(plan, settings, static)
        self._observe = observe

    def _emit(self, tick: int) -> list[object]:
        self._observe(TickSolutions(self.plan, self.settings, self._static, self._dataset, self._buffers, tick))
        return []
