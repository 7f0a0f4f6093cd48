"""Which evaluator runs a plan: the kernel where it can, the reference where it cannot, and why.

Either gets the plan as the optimizer rewrites it. The reference by its name (`running.named_evaluators`) evaluates
plans as they were written.
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater.algebra.nodes import Node
from headwater.algebra.plan import QueryPlan
from headwater.execution.evaluator import Evaluator
from headwater.execution.query_evaluators import MakeEvaluator
from headwater.execution.remote_solutions import FetchSolutions, refuse_services
from headwater.execution.static_data import StaticData
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.compiling.compiler import Compiler
from headwater.kernel.compiling.unsupported import UnsupportedByKernel
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.optimizer.optimise import optimise
from headwater.optimizer.statistics import Statistics
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.windows.settings import QuerySettings


@dataclass(frozen=True, slots=True)
class EvaluatorChoice:
    """The plan that is evaluated, and by which evaluator: the kernel, or the reference for the `reason`.

    `static_parts` are the parts that read no stream; `view_locations` has for each where its solutions are.
    """

    plan: QueryPlan
    reason: str | None = None
    static_parts: tuple[Node, ...] = ()
    view_locations: tuple[str, ...] = ()

    @property
    def is_kernel(self) -> bool:
        return self.reason is None


def with_optimisation(make: MakeEvaluator, statistics: Statistics | None = None) -> MakeEvaluator:
    """Have evaluators made for optimised plans; `statistics` decide the order of joins."""

    def make_optimised(plan: QueryPlan, settings: QuerySettings, static: StaticData) -> Evaluator:
        return make(optimise(plan, statistics).plan, settings, static)

    return make_optimised


def make_evaluator(plan: QueryPlan, settings: QuerySettings, static: StaticData) -> Evaluator:
    """Make the kernel for a plan that it can evaluate as it is, the reference for any other."""
    try:
        return KernelEvaluator(plan, settings, static)
    except UnsupportedByKernel as reason:
        return make_reference_evaluator(reason, plan, settings, static)


def make_reference_evaluator(
    reason: UnsupportedByKernel,
    plan: QueryPlan,
    settings: QuerySettings,
    static: StaticData,
    fetch: FetchSolutions = refuse_services,
) -> ReferenceEvaluator:
    """Make the reference evaluator for a plan that the kernel cannot evaluate; `fetch` asks endpoints of SERVICE."""
    evaluator = ReferenceEvaluator(plan, settings, static, fetch=fetch)
    evaluator.fallback_reason = str(reason)
    return evaluator


def with_fixed_orders(make: MakeEvaluator) -> MakeEvaluator:
    """Have the same evaluators made with joins that probe in the order of the plan, for comparison."""

    def make_fixed(plan: QueryPlan, settings: QuerySettings, static: StaticData) -> Evaluator:
        evaluator = make(plan, settings, static)
        if isinstance(evaluator, KernelEvaluator):
            evaluator.fix_orders()
        return evaluator

    return make_fixed


def choose_kernel_or_reference(
    plan: QueryPlan, settings: QuerySettings, static: StaticData, statistics: Statistics | None = None
) -> EvaluatorChoice:
    """Say which evaluator `make_evaluator` makes of the optimised plan."""
    optimised = optimise(plan, statistics).plan
    compiler = Compiler(optimised, settings, static, Vocabulary())
    try:
        compiler.compile()
    except UnsupportedByKernel as reason:
        return EvaluatorChoice(optimised, str(reason))
    parts = compiler.static_parts
    return EvaluatorChoice(optimised, None, tuple(parts.views), tuple(parts.view_locations))
