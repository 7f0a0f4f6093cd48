"""Applies the rewrite rules to a plan and records each step.

>>> from headwater.algebra.build import plan_query
>>> from headwater.language.parser import parse
>>> plan = plan_query(parse("SELECT ?x { ?x <p:p> ?y OPTIONAL { ?x <p:q> ?z } FILTER(?z > 1 + 1) }"))
>>> [step.rule.name for step in optimise(plan).steps]
['fold constants', 'OPTIONAL to join', 'push filters']
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from headwater.algebra.plan import QueryPlan
from headwater.algebra.plan_depth import DEEPEST_PLAN, depth_of
from headwater.optimizer.rule import Rule
from headwater.optimizer.rules import FINISHING, REWRITES
from headwater.optimizer.statistics import Statistics

MAX_ROUNDS = 20
"""Rounds after which rewriting stops. The plan is correct after every single step."""


@dataclass(frozen=True)
class RewriteStep:
    """One application of a rule that changed the plan."""

    rule: Rule
    before: QueryPlan
    after: QueryPlan


class OptimisedPlan(NamedTuple):
    """The rewritten plan and the steps that led to it."""

    plan: QueryPlan
    steps: tuple[RewriteStep, ...]


def optimise(
    plan: QueryPlan,
    statistics: Statistics | None = None,
    *,
    rewrites: Sequence[Rule] = REWRITES,
    finishing: Sequence[Rule] = FINISHING,
) -> OptimisedPlan:
    """The plan after all rules. `statistics` decides the order of joins; without it the order stays."""
    try:
        optimised = _apply_rules(plan, statistics, rewrites, finishing)
    except RecursionError:
        # Rules may nest operators deeper than Python follows; what could be evaluated before still can be.
        return OptimisedPlan(plan, ())
    return optimised if depth_of(optimised.plan.root) <= DEEPEST_PLAN else OptimisedPlan(plan, ())


def _apply_rules(
    plan: QueryPlan, statistics: Statistics | None, rewrites: Sequence[Rule], finishing: Sequence[Rule]
) -> OptimisedPlan:
    """Apply the rewrites until none changes the plan, then the finishing rules once; all changes are kept as steps."""
    steps: list[RewriteStep] = []
    unchanged = 0
    for rule in list(rewrites) * MAX_ROUNDS:
        changed = _apply_rule(rule, plan, statistics)
        unchanged = unchanged + 1 if changed is plan else 0
        if changed is not plan:
            steps.append(RewriteStep(rule, plan, changed))
        plan = changed
        if unchanged == len(rewrites):
            break
    for rule in finishing:
        changed = _apply_rule(rule, plan, statistics)
        if changed is not plan:
            steps.append(RewriteStep(rule, plan, changed))
        plan = changed
    return OptimisedPlan(plan, tuple(steps))


def _apply_rule(rule: Rule, plan: QueryPlan, statistics: Statistics | None) -> QueryPlan:
    """The plan after one rule; the same object if nothing changed."""
    root = rule.rewrite(plan, statistics)
    return plan if root == plan.root else replace(plan, root=root)
