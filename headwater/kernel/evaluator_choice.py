"""Which evaluator runs a plan: the kernel where it can, the reference where it cannot, and why.

Either gets the plan as the optimizer rewrites it. Whoever asks for the reference by name gets the definition, which
evaluates plans as they were written.
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater.algebra.nodes import Node
from headwater.algebra.plan import QueryPlan
from headwater.execution.evaluator import Evaluator
from headwater.execution.program import MakeEvaluator
from headwater.execution.static_data import StaticData
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.compiling.compiler import Compiler
from headwater.kernel.compiling.unsupported import NotForTheKernel
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.optimizer.optimise import optimise
from headwater.optimizer.statistics import Statistics
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.windows.settings import QuerySettings


@dataclass(frozen=True, slots=True)
class Choice:
    """Who evaluates a plan: the kernel, or for some reason the reference; `plan` is what is evaluated.

    `static_parts` are the parts that no stream touches, and `found` says of each where its solutions are.
    """

    plan: QueryPlan
    reason: str | None = None
    static_parts: tuple[Node, ...] = ()
    found: tuple[str, ...] = ()

    @property
    def is_kernel(self) -> bool:
        return self.reason is None


def optimising(make: MakeEvaluator, statistics: Statistics | None = None) -> MakeEvaluator:
    """Makes evaluators of optimised plans; `statistics` decide the order of joins."""

    def optimised(plan: QueryPlan, settings: QuerySettings, static: StaticData) -> Evaluator:
        return make(optimise(plan, statistics).plan, settings, static)

    return optimised


def kernel_or_reference(plan: QueryPlan, settings: QuerySettings, static: StaticData) -> Evaluator:
    """The kernel for a plan that it can evaluate as it is, the reference for any other."""
    try:
        return KernelEvaluator(plan, settings, static)
    except NotForTheKernel as reason:
        return reference_because(reason, plan, settings, static)


def reference_because(
    reason: NotForTheKernel, plan: QueryPlan, settings: QuerySettings, static: StaticData
) -> ReferenceEvaluator:
    """The reference evaluator for a plan that the kernel cannot evaluate."""
    evaluator = ReferenceEvaluator(plan, settings, static)
    evaluator.why = str(reason)
    return evaluator


def with_fixed_orders(make: MakeEvaluator) -> MakeEvaluator:
    """What makes the same evaluators, with joins that probe in the order of the plan: for comparison."""

    def made(plan: QueryPlan, settings: QuerySettings, static: StaticData) -> Evaluator:
        evaluator = make(plan, settings, static)
        if isinstance(evaluator, KernelEvaluator):
            evaluator.fix_orders()
        return evaluator

    return made


fastest_evaluator = optimising(kernel_or_reference)
"""The kernel for every plan that it can evaluate, the reference for the rest; both optimised."""


def choose(
    plan: QueryPlan, settings: QuerySettings, static: StaticData, statistics: Statistics | None = None
) -> Choice:
    """What `fastest_evaluator` would do with a plan."""
    better = optimise(plan, statistics).plan
    compiler = Compiler(better, settings, static, Vocabulary())
    try:
        compiler.compile()
    except NotForTheKernel as reason:
        return Choice(better, str(reason))
    return Choice(better, None, tuple(compiler.static_parts.views), tuple(compiler.static_parts.found))


def why_not_the_kernel(plan: QueryPlan, settings: QuerySettings, static: StaticData) -> str | None:
    """The reason why a plan stays with the reference; None where the kernel evaluates it."""
    return choose(plan, settings, static).reason
