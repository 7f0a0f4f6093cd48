"""Maintenance policies by name, as queries choose them: a proposer with a ranker.

    LEARNT, WBM, LRU, RND       over what the window needs (WSJ)
    GNR-LRU, GNR-RND            over the whole view
    WST                         no refresh at all

The upper bounds BST and WBM* need to know the remote's data: benchmarks/upper_bounds.py has them.
"""

from __future__ import annotations

from collections.abc import Callable

from headwater.errors import SettingError
from headwater.federation.policy.best_before import ChangeInterval, WindowBasedMaintenance
from headwater.federation.policy.expected_gain_ranker import ExpectedGainRanker
from headwater.federation.policy.proposers import General, Proposer, WindowServiceJoin
from headwater.federation.policy.rankers import LeastRecentlyRefreshed, NoRefresh, RandomRanker, Ranker
from headwater.federation.view.local_view import LocalView
from headwater.terms.model import SECOND

Policy = tuple[Proposer, Ranker]

POLICIES: dict[str, Callable[[LocalView, int], Policy]] = {
    "LEARNT": lambda view, seed: (WindowServiceJoin(), ExpectedGainRanker(view.model, seed)),
    "WBM": lambda view, seed: (WindowServiceJoin(), WindowBasedMaintenance(interval_from_view(view), seed)),
    "LRU": lambda view, seed: (WindowServiceJoin(), LeastRecentlyRefreshed(seed)),
    "RND": lambda view, seed: (WindowServiceJoin(), RandomRanker(seed)),
    "GNR-LRU": lambda view, seed: (General(), LeastRecentlyRefreshed(seed)),
    "GNR-RND": lambda view, seed: (General(), RandomRanker(seed)),
    "WST": lambda view, seed: (WindowServiceJoin(), NoRefresh()),
}


def make_policy(name: str, view: LocalView, seed: int = 0) -> Policy:
    """Make the policy of this name, in any case; `WSJ-` may precede those over the window."""
    factory = POLICIES.get(name.upper().removeprefix("WSJ-"))
    if factory is None:
        raise SettingError(f"no policy is called {name!r}; choose one of {', '.join(POLICIES)}")
    return factory(view, seed)


def interval_from_view(view: LocalView) -> ChangeInterval:
    """The change interval Iᵢ that WBM needs, from the rates that the view was given or has learnt."""
    return lambda entry: SECOND / view.change_rate(entry)
