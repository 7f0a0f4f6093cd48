"""Maintenance policies by name, as queries choose them: a proposer with a ranker.

    LEARNT, WBM, LRU, RND       over what the window needs (WSJ)
    GNR-LRU, GNR-RND            over the whole view
    WST                         no refresh at all

The bounds of experiments (BST, WBM*) are not here: they need to know the remote.
"""

from __future__ import annotations

from collections.abc import Callable

from headwater.errors import SettingError
from headwater.federation.policy.best_before import Interval, WindowBasedMaintenance
from headwater.federation.policy.learnt_ranker import LearntRanker
from headwater.federation.policy.proposers import General, Proposer, WindowServiceJoin
from headwater.federation.policy.rankers import LeastRecentlyRefreshed, NoRefresh, RandomRanker, Ranker
from headwater.federation.view.local_view import LocalView
from headwater.terms.model import SECOND

Policy = tuple[Proposer, Ranker]

DEFAULT_POLICY = "LEARNT"

POLICIES: dict[str, Callable[[LocalView, int], Policy]] = {
    "LEARNT": lambda view, seed: (WindowServiceJoin(), LearntRanker(view.model, seed)),
    "WBM": lambda view, seed: (WindowServiceJoin(), WindowBasedMaintenance(learnt_interval(view), seed)),
    "LRU": lambda view, seed: (WindowServiceJoin(), LeastRecentlyRefreshed(seed)),
    "RND": lambda view, seed: (WindowServiceJoin(), RandomRanker(seed)),
    "GNR-LRU": lambda view, seed: (General(), LeastRecentlyRefreshed(seed)),
    "GNR-RND": lambda view, seed: (General(), RandomRanker(seed)),
    "WST": lambda view, seed: (WindowServiceJoin(), NoRefresh()),
}


def policy(name: str, view: LocalView, seed: int = 0) -> Policy:
    """The policy of that name, in whatever case; `WSJ-` may stand before those that are over the window."""
    known = POLICIES.get(name.upper().removeprefix("WSJ-"))
    if known is None:
        raise SettingError(f"no policy is called {name!r}; choose one of {', '.join(POLICIES)}")
    return known(view, seed)


def learnt_interval(view: LocalView) -> Interval:
    """The change interval that WBM needs, from the rates that the view has learnt."""
    return lambda entry: SECOND / view.change_rate(entry)
