"""The policies of the experiments by the names that the paper's tables give them, over the product's own maintainer."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.service_data import SLIDE, Scenario
from benchmarks.simulated_remote import Behaviour, SimulatedRemote
from benchmarks.upper_bounds import BestRanker, PerfectWindowBasedMaintenance
from benchmarks.virtual_time import VirtualClock, VirtualRequestRunner
from headwater.federation.policy.maintainer import Maintainer
from headwater.federation.policy.policies import Policy, make_policy
from headwater.federation.policy.proposers import WindowServiceJoin
from headwater.federation.view.change_model import ChangeModel
from headwater.federation.view.local_view import LocalView
from headwater.federation.view.service_quality import Goals
from headwater.terms.model import Variable

AT_ONCE = Behaviour(keys_per_request=100)
"""The remote of the accuracy experiments takes no time: budgets limit it."""


def paper_wbm(scenario: Scenario, view: LocalView, seed: int) -> Policy:
    """WBM as the paper ran it: the change rate of each entry is given, from the whole recording."""
    view.given_rates = scenario.given_rates().for_keys((Variable("account"),))
    return make_policy("WBM", view, seed)


def counted_wbm(scenario: Scenario, view: LocalView, seed: int) -> Policy:
    """WBM with rates that are a little less exact."""
    view.given_rates = scenario.counted_rates().for_keys((Variable("account"),))
    return make_policy("WBM", view, seed)


def bst(scenario: Scenario, view: LocalView, seed: int) -> Policy:
    return WindowServiceJoin(), BestRanker(scenario.log, seed)


def wbm_star(scenario: Scenario, view: LocalView, seed: int) -> Policy:
    return WindowServiceJoin(), PerfectWindowBasedMaintenance(scenario.log, seed)


def package_policy(name: str) -> Callable[[Scenario, LocalView, int], Policy]:
    return lambda scenario, view, seed: make_policy(name, view, seed)


POLICIES: dict[str, Callable[[Scenario, LocalView, int], Policy]] = {
    "WST": package_policy("WST"),
    "GNR-RND": package_policy("GNR-RND"),
    "GNR-LRU": package_policy("GNR-LRU"),
    "WSJ-RND": package_policy("RND"),
    "WSJ-LRU": package_policy("LRU"),
    "WSJ-WBM": paper_wbm,
    "WBM (counted rates)": counted_wbm,
    "WBM (learnt rates)": package_policy("WBM"),
    "WSJ-LEARNT": package_policy("LEARNT"),
    "BST": bst,
    "WBM*": wbm_star,
}


def make_maintainer(
    scenario: Scenario, name: str, goals: Goals, seed: int, behaviour: Behaviour = AT_ONCE, workers: int = 8
) -> tuple[Maintainer, VirtualClock]:
    """A maintainer of that policy over the scenario's remote, its view filled at the beginning."""
    clock = VirtualClock(scenario.begin)
    view = LocalView(ChangeModel(unit=SLIDE))
    proposer, ranker = POLICIES[name](scenario, view, seed)
    remote = SimulatedRemote(scenario.log, clock, behaviour, seed)
    maintainer = Maintainer(view, remote, proposer, ranker, goals, clock, VirtualRequestRunner(clock, workers))
    maintainer.fill()
    return maintainer, clock
