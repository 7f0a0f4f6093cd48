"""Evaluators by the name that a user gives: `auto`, `fixed-order`, `reference`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

from pyoxigraph import Store

from headwater.execution.query_evaluators import FindFamilies, MakeEvaluator, no_families
from headwater.execution.registered import RegisteredQuery
from headwater.execution.stream_reads import Patterns, needed_patterns
from headwater.execution.suspension import is_caused_by_query
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.values.query_guard import QueryGuard

if TYPE_CHECKING:
    from headwater.federation.service_settings import ServiceSettings
    from headwater.optimizer.statistics import Statistics


EvaluatorName: TypeAlias = Literal["auto", "fixed-order", "reference"]
"""`auto` is the kernel for every plan that it can evaluate and the reference for the others; with `fixed-order` the
kernel's joins do not adapt their probing order, for comparison."""


by_definition: MakeEvaluator = ReferenceEvaluator
"""Makes evaluators that are the definition."""


def evaluator_by_name(
    name: EvaluatorName, services: ServiceSettings | None = None, statistics: Statistics | None = None
) -> MakeEvaluator:
    """The maker of the evaluators of a program.

    `services` has the settings of the endpoints of SERVICE, `statistics` decide the order of joins.
    """
    from headwater.federation.services import Services

    if name == "reference":
        return partial(ReferenceEvaluator, fetch=Services(services).fetch_solutions)
    from headwater.federation.service_evaluator import make_evaluator_factory

    adaptive = make_evaluator_factory(Services(services), statistics)
    if name == "auto":
        return adaptive
    from headwater.kernel.evaluator_choice import with_fixed_orders

    return with_fixed_orders(adaptive)


def families_by_name(name: EvaluatorName) -> FindFamilies:
    """The finder of queries that are evaluated as one."""
    if name != "auto":
        return no_families
    from headwater.kernel.sharing.find_shared import find_shared_evaluators

    return find_shared_evaluators


@dataclass(frozen=True, slots=True)
class QueryOutline:
    """Who evaluates a query (`kind`), why no faster evaluator does, and which triples of its streams it needs."""

    kind: str
    fallback_reason: str | None
    patterns: Patterns


def outline_queries(
    name: EvaluatorName,
    queries: Sequence[RegisteredQuery],
    statistics: Statistics | None,
    services: ServiceSettings | None = None,
) -> dict[str, QueryOutline]:
    """By query: the kind of its evaluator, why it is no faster one, and the triples of its streams that it needs.

    Plans are compiled over no data: whether the kernel can evaluate a plan does not depend on the data. A query whose
    plan cannot be compiled at all is suspended when its evaluator is made (`QueryEvaluators.make`), and not here.
    """
    if name == "reference":
        return {
            one.plan.name: QueryOutline("reference", None, needed_patterns(one.plan, one.settings, all_texts=True))
            for one in queries
        }
    from headwater.federation.service_evaluator import choose_evaluator
    from headwater.federation.services import Services
    from headwater.kernel.families.family_evaluator import find_families

    no_data = Store()
    members: set[str] = set()
    with _leave_failing_queries_to_their_making():
        # Queries that share windows are read each by its own plan.
        families = find_families(queries, no_data) if name == "auto" else []
        members.update(member for family in families for member in family.names)
    outlines: dict[str, QueryOutline] = {}
    for query in queries:
        plan, kind, reason = query.plan, "kernel", None
        if plan.name not in members:
            with _leave_failing_queries_to_their_making(), QueryGuard(query.limits, (plan.name,)):
                choice = choose_evaluator(plan, query.settings, no_data, statistics, Services(services))
                plan, kind, reason = choice.plan, "kernel" if choice.is_kernel else "reference", choice.reason
        patterns = needed_patterns(plan, query.settings, all_texts=kind == "reference")
        outlines[query.plan.name] = QueryOutline(kind, reason, patterns)
    return outlines


@contextmanager
def _leave_failing_queries_to_their_making() -> Iterator[None]:
    """Pass over what `QueryEvaluators.make` will suspend a query for."""
    try:
        yield
    except Exception as error:
        if not is_caused_by_query(error):
            raise
