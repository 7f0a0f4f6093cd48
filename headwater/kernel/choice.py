"""Which evaluator runs a plan: the kernel where it can, the reference where it cannot, and why."""

from __future__ import annotations

from pyoxigraph import Store

from headwater.algebra.plan import QueryPlan
from headwater.kernel.compiling import NotForTheKernel
from headwater.kernel.evaluator import KernelEvaluator
from headwater.reference import Evaluator, ReferenceEvaluator
from headwater.windows import QuerySettings


def fastest_evaluator(plan: QueryPlan, settings: QuerySettings, static: Store) -> Evaluator:
    """The kernel for every plan that it can evaluate, the reference for the rest."""
    try:
        return KernelEvaluator(plan, settings, static)
    except NotForTheKernel:
        return ReferenceEvaluator(plan, settings, static)


def why_not_the_kernel(plan: QueryPlan, settings: QuerySettings, static: Store) -> str | None:
    """The reason why a plan stays with the reference; None where the kernel evaluates it."""
    try:
        KernelEvaluator(plan, settings, static)
    except NotForTheKernel as reason:
        return str(reason)
    return None
