"""Optimised and unoptimised plans agree on random queries over random data, and every rule takes part in that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

from headwater.algebra.plan import QueryPlan
from headwater.explain.plan_text import plan_lines
from headwater.kernel.compiling.unsupported import UnsupportedByKernel
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.optimizer.optimise import OptimisedPlan, optimise
from headwater.optimizer.rules import ALL_FINISHING
from headwater.optimizer.statistics import Statistics
from tests.optimizer.answers import RULES, Shown, answers
from tests.optimizer.random_queries import Case, case_of

QUERIES = 2_000
BLOCK = 250
BY_THE_KERNEL = 10
"""Every so many queries are also given to the kernel, which takes longer to set up than to answer."""


def optimised(case: Case, plan: QueryPlan) -> OptimisedPlan:
    """Every other query with statistics, so that both ways are seen."""
    statistics = Statistics.of(case.static) if case.seed % 2 else None
    return optimise(plan, statistics, finishing=ALL_FINISHING)


def check(seeds: Iterable[int]) -> tuple[Counter[str], int]:
    """Compares the answers of each seed; gives how often each rule fired, and how many answers had rows."""
    fired: Counter[str] = Counter()
    with_rows = 0
    for seed in seeds:
        case = case_of(seed)
        plan = case.plan()
        expected = answers(case, plan)
        result = optimised(case, plan)
        fired.update({step.rule.name for step in result.steps})
        with_rows += any(rows for _, rows in expected)
        if result.steps:
            assert answers(case, result.plan) == expected, blamed(case, result, expected)
    return fired, with_rows


def blamed(case: Case, result: OptimisedPlan, expected: Shown) -> str:
    """Which rule was the first to change the answer, and of what it made what."""
    for step in result.steps:
        if answers(case, step.after) != expected:
            before, after = ("\n".join(plan_lines(plan)) for plan in (step.before, step.after))
            return f"seed {case.seed}, rule {step.rule.name!r}\n{case.text}\n{before}\n  becomes\n{after}"
    return f"seed {case.seed}: all steps together, but none alone\n{case.text}"


@pytest.mark.parametrize("start", range(0, QUERIES, BLOCK))
def test_answers_stay_the_same(start: int) -> None:
    fired, with_rows = check(range(start, start + BLOCK))
    assert with_rows > BLOCK // 4
    assert [rule.name for rule in RULES if not fired[rule.name]] == []


@pytest.mark.parametrize(
    "seed", [pytest.param(4449, id="a BIND of a variable that a filter of an OPTIONAL within another one mentions")]
)
def test_a_case_that_failed_before(seed: int) -> None:
    check([seed])


@pytest.mark.parametrize("start", range(0, QUERIES, BLOCK))
def test_the_kernel_agrees_on_optimised_plans(start: int) -> None:
    """And it takes every plan that it took before. Whether it agrees with the definition is for its own tests."""
    taken = 0
    for seed in range(start, start + BLOCK, BY_THE_KERNEL):
        case = case_of(seed)
        plan = case.plan()
        try:
            expected = answers(case, plan, KernelEvaluator)
        except UnsupportedByKernel:
            continue
        taken += 1
        after = optimised(case, plan).plan
        assert answers(case, after, KernelEvaluator) == expected, f"seed {seed}\n{case.text}"
    assert taken


@pytest.mark.soak
@pytest.mark.parametrize("start", range(QUERIES, QUERIES + 50_000, 2_500))
def test_answers_stay_the_same_for_long(start: int) -> None:
    fired, _ = check(range(start, start + 2_500))
    assert [rule.name for rule in RULES if not fired[rule.name]] == []
