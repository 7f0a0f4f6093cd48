"""Which evaluator runs a plan: the kernel where it can, the reference where it cannot, and why."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.algebra.nodes import Node
from headwater.algebra.plan import QueryPlan
from headwater.kernel.compiling import Compiler
from headwater.kernel.evaluator import KernelEvaluator
from headwater.kernel.refusing import NotForTheKernel
from headwater.kernel.vocabulary import Vocabulary
from headwater.reference import Evaluator, ReferenceEvaluator
from headwater.reference.static_data import StaticData
from headwater.windows import QuerySettings


@dataclass(frozen=True, slots=True)
class Choice:
    """Who evaluates a plan: the kernel, or for some reason the reference.

    `static_parts` are the parts that no stream touches, and `found` says of each where its solutions are.
    """

    reason: str | None = None
    static_parts: tuple[Node, ...] = ()
    found: tuple[str, ...] = ()

    @property
    def is_kernel(self) -> bool:
        return self.reason is None


def fastest_evaluator(plan: QueryPlan, settings: QuerySettings, static: StaticData) -> Evaluator:
    """The kernel for every plan that it can evaluate, the reference for the rest."""
    try:
        return KernelEvaluator(plan, settings, static)
    except NotForTheKernel:
        return ReferenceEvaluator(plan, settings, static)


def choose(plan: QueryPlan, settings: QuerySettings, static: StaticData) -> Choice:
    """What `fastest_evaluator` would do with a plan."""
    compiler = Compiler(plan, settings, static, Vocabulary())
    try:
        compiler.compile()
    except NotForTheKernel as reason:
        return Choice(str(reason))
    return Choice(None, tuple(compiler.static_parts.views), tuple(compiler.static_parts.found))


def why_not_the_kernel(plan: QueryPlan, settings: QuerySettings, static: StaticData) -> str | None:
    """The reason why a plan stays with the reference; None where the kernel evaluates it."""
    return choose(plan, settings, static).reason
