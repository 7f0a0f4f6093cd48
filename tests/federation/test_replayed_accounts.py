"""The paper's experiment on the recorded accounts, one seed: order, distance from the paper, our ranker, our estimate.

The benchmark (`python -m benchmarks.service`) does the same with twenty seeds and on more backgrounds.
"""

from __future__ import annotations

from functools import cache

import pytest

from benchmarks.service_accuracy import BUDGETS, COMPARED_WITH_PAPER, PAPER
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


@pytest.mark.parametrize("budget", BUDGETS)
def test_the_order_of_the_tables(budget: int) -> None:
    accuracy = {name: run(name, budget).accuracy for name in ("WST", "BST", "WBM*")}
    for ranker in ("RND", "LRU"):
        general, windowed = run(f"GNR-{ranker}", budget).accuracy, run(f"WSJ-{ranker}", budget).accuracy
        assert accuracy["WST"] < general < windowed < accuracy["BST"]
        assert windowed < accuracy["WBM*"]


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
