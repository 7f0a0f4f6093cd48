"""Evaluators by the name that a user gives: `auto`, `fixed-order`, `reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from headwater.execution.program import FindFamilies, MakeEvaluator, no_families
from headwater.reference.reference_evaluator import ReferenceEvaluator

if TYPE_CHECKING:
    from headwater.federation.service_settings import ServiceSettings
    from headwater.optimizer.statistics import Statistics


EvaluatorName: TypeAlias = Literal["auto", "fixed-order", "reference"]
"""`auto` is the kernel for every plan that it can evaluate and the reference for the others; with `fixed-order` the
kernel's joins do not adapt their probing order, for comparison."""


by_definition: MakeEvaluator = ReferenceEvaluator
"""Makes evaluators that are the definition."""


def evaluator_named(
    name: EvaluatorName, services: ServiceSettings | None = None, statistics: Statistics | None = None
) -> MakeEvaluator:
    """What makes the evaluators of a program.

    `services` says how to speak with the endpoints of SERVICE, `statistics` in which order joins are best made.
    """
    if name == "reference":
        return by_definition
    from headwater.federation.service_evaluator import evaluator_with
    from headwater.federation.services import Services

    adaptive = evaluator_with(Services(services), statistics)
    if name == "auto":
        return adaptive
    from headwater.kernel.evaluator_choice import with_fixed_orders

    return with_fixed_orders(adaptive)


def families_named(name: EvaluatorName) -> FindFamilies:
    """What finds the queries of a program that are evaluated as one."""
    if name != "auto":
        return no_families
    from headwater.kernel.families.family_evaluator import families_of

    return families_of
