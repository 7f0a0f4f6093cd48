"""Which candidates are refreshed first: the ranker of the paper's figure 1, as one small interface.

    RND     by chance
    LRU     least recently refreshed first
    WST     none: the view as it was filled (the lower bound)
    WBM     Window Based Maintenance, by best-before times (`headwater.federation.policy.best_before`)
    LEARNT  by the gain expected from what refreshes have found (`headwater.federation.policy.learnt_ranker`)

The bounds BST and WBM*, which look at the remote's truth, stand in `policy.bounds`. A ranker orders what
it wants refreshed and leaves out what it does not; how many of them are refreshed is the maintainer's matter. Whatever
is equal to a ranker is ordered by chance, from a seed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol

from headwater.federation.policy.candidates import Candidate, Tick
from headwater.federation.view.local_view import Entry


class Ranker(Protocol):
    """Orders the candidate set."""

    @property
    def name(self) -> str: ...

    def rank(self, candidates: Sequence[Candidate], tick: Tick) -> list[Candidate]:
        """Those that deserve a refresh, most deserving first."""

    def best_before(self, entry: Entry, now: int) -> int:
        """Until when an entry that is refreshed now is thought to be good."""


class RandomRanker:
    """RND: any order."""

    name = "RND"

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def rank(self, candidates: Sequence[Candidate], tick: Tick) -> list[Candidate]:
        return self._random.sample(candidates, len(candidates))

    def best_before(self, entry: Entry, now: int) -> int:
        return now


class LeastRecentlyRefreshed:
    """LRU: the oldest value first."""

    name = "LRU"

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def rank(self, candidates: Sequence[Candidate], tick: Tick) -> list[Candidate]:
        return sorted(self._random.sample(candidates, len(candidates)), key=lambda candidate: candidate.entry.refreshed)

    def best_before(self, entry: Entry, now: int) -> int:
        return now


class NoRefresh:
    """WST: nothing is ever refreshed."""

    name = "WST"

    def rank(self, candidates: Sequence[Candidate], tick: Tick) -> list[Candidate]:
        return []

    def best_before(self, entry: Entry, now: int) -> int:
        return now
