"""A plan that gives the same answers for less work, and the steps that led to it.

>>> from headwater.algebra import plan_query
>>> from headwater.language import parse
>>> plan = plan_query(parse("SELECT ?x { ?x <p:p> ?y OPTIONAL { ?x <p:q> ?z } FILTER(?z > 1 + 1) }"))
>>> [step.rule.name for step in optimise(plan).steps]
['fold constants', 'OPTIONAL to join', 'push filters']
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from headwater.algebra.plan import QueryPlan
from headwater.optimizer.rule import Rule
from headwater.optimizer.rules import FINISHING, REWRITES
from headwater.optimizer.statistics import Statistics

MOST_ROUNDS = 20
"""After so many rounds the plan is taken as it is; it is right after every single step."""


@dataclass(frozen=True)
class Step:
    """One rule that changed the plan."""

    rule: Rule
    before: QueryPlan
    after: QueryPlan


class Optimised(NamedTuple):
    """The plan in the end, and how it came about."""

    plan: QueryPlan
    steps: tuple[Step, ...]


def optimise(
    plan: QueryPlan,
    statistics: Statistics | None = None,
    *,
    rewrites: Sequence[Rule] = REWRITES,
    finishing: Sequence[Rule] = FINISHING,
) -> Optimised:
    """The plan after all rules. `statistics` decides the order of joins; without it the order stays."""
    try:
        return _rewritten(plan, statistics, rewrites, finishing)
    except RecursionError:
        # Generated queries may nest deeper than Python follows; what could be evaluated before still can be.
        return Optimised(plan, ())


def _rewritten(
    plan: QueryPlan, statistics: Statistics | None, rewrites: Sequence[Rule], finishing: Sequence[Rule]
) -> Optimised:
    steps: list[Step] = []
    idle = 0
    for rule in list(rewrites) * MOST_ROUNDS:
        changed = _apply(rule, plan, statistics)
        idle = idle + 1 if changed is plan else 0
        if changed is not plan:
            steps.append(Step(rule, plan, changed))
        plan = changed
        if idle == len(rewrites):
            break
    for rule in finishing:
        changed = _apply(rule, plan, statistics)
        if changed is not plan:
            steps.append(Step(rule, plan, changed))
        plan = changed
    return Optimised(plan, tuple(steps))


def _apply(rule: Rule, plan: QueryPlan, statistics: Statistics | None) -> QueryPlan:
    """The plan after one rule; itself where nothing changed."""
    root = rule.rewrite(plan, statistics)
    return plan if root == plan.root else replace(plan, root=root)
