"""The paper's experiment on the recorded accounts, one seed: order, distance from the paper, our ranker, our estimate.

The benchmark (`python -m benchmarks.service`) does the same with twenty seeds and on more backgrounds.
"""

from __future__ import annotations

from functools import cache

import pytest

from benchmarks.service_accuracy import BUDGETS, COMPARED_WITH_PAPER, PAPER, has_paper_order
from benchmarks.service_backgrounds import BACKGROUNDS
from benchmarks.service_data import Recording, Scenario, real_scenario, recording, synthetic_scenario
from benchmarks.service_experiment import Run, replay
from tests.shared_data import shared_data


@cache
def recorded() -> Recording:
    shared_data("acqua")
    return recording()


@cache
def accounts() -> Scenario:
    return real_scenario(recorded())


@cache
def run(policy: str, budget: int) -> Run:
    return replay(accounts(), policy, budget, seed=0)


def test_windows_hold_as_many_candidates_as_in_the_paper() -> None:
    sizes = [len(window) for window in accounts().windows]
    assert 31 < sum(sizes) / len(sizes) < 34
    assert {key.ticks for window in accounts().windows for key in window} == {1, 2}


IN_THE_TABLES = tuple(PAPER["real"])


@pytest.mark.parametrize("budget", BUDGETS)
def test_the_order_of_tables_1_and_2(budget: int) -> None:
    assert has_paper_order({name: run(name, budget).accuracy for name in IN_THE_TABLES})


@pytest.mark.parametrize("budget", BUDGETS)
def test_the_order_of_tables_1_and_2_on_synthetic_data(budget: int) -> None:
    scenario = synthetic_scenario("fixed", recorded(), BACKGROUNDS["fixed"], seed=0)
    assert has_paper_order({name: replay(scenario, name, budget, 0).accuracy for name in IN_THE_TABLES})


def test_the_papers_own_figures_have_the_order_that_is_checked() -> None:
    for figures in PAPER.values():
        for number in range(len(BUDGETS)):
            at = {name: accuracies[number] for name, accuracies in figures.items()}
            assert has_paper_order(at)
            assert not has_paper_order({**at, "WSJ-WBM": at["WSJ-LRU"] - 0.02})
            assert not has_paper_order({**at, "WSJ-WBM": at["WBM*"]})


def test_wbm_with_given_rates_is_above_wbm_with_learnt_ones() -> None:
    for budget in BUDGETS:
        assert run("WSJ-WBM", budget).accuracy > run("WBM (learnt rates)", budget).accuracy


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("policy", COMPARED_WITH_PAPER)
def test_the_distance_from_the_paper(policy: str, budget: int) -> None:
    assert run(policy, budget).accuracy == pytest.approx(PAPER["real"][policy][BUDGETS.index(budget)], abs=0.08)


def test_our_ranker_is_at_or_above_the_others_at_each_budget() -> None:
    learnt = [run("WSJ-LEARNT", budget).accuracy for budget in BUDGETS]
    for number, budget in enumerate(BUDGETS):
        assert learnt[number] >= max(run(f"WSJ-{other}", budget).accuracy for other in ("WBM", "LRU", "RND"))
    assert sum(learnt) / len(learnt) >= 0.62


@pytest.mark.parametrize("budget", BUDGETS)
def test_the_estimated_accuracy_is_near_the_true_one(budget: int) -> None:
    found = run("WSJ-LEARNT", budget)
    assert found.estimate_error < 0.1
    assert abs(sum(found.estimated) - sum(found.true)) / len(found.true) < 0.06


def test_where_changes_come_in_bursts_our_ranker_beats_wbm() -> None:
    scenario = synthetic_scenario("bursty", recorded(), BACKGROUNDS["bursty"], seed=1)
    gains = [
        replay(scenario, "WSJ-LEARNT", budget, 1).accuracy - replay(scenario, "WSJ-WBM", budget, 1).accuracy
        for budget in (3, 5)
    ]
    assert sum(gains) / len(gains) >= 0.05


def test_a_replay_is_the_same_each_time() -> None:
    assert replay(accounts(), "WSJ-LEARNT", 3, seed=5) == replay(accounts(), "WSJ-LEARNT", 3, seed=5)
