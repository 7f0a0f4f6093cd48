"""Rankers order the candidates for refresh (VM6); one small interface for the ranker of the paper's figure 1.

    RND     at random
    LRU     least recently refreshed first
    WST     none: the view stays as it was filled (the lower bound)
    WBM     Window Based Maintenance, by best-before times (`best_before`)
    LEARNT  by expected gain, from learnt change rates (`expected_gain_ranker`)

The upper bounds BST and WBM*, which read the remote's data, are in benchmarks/upper_bounds.py. A ranker returns the
candidates that it wants refreshed; the maintainer decides how many of them are. Equal candidates are ordered at random,
from a seed.
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
        """The candidates to refresh, the most urgent first."""

    def best_before(self, entry: Entry, now: int) -> int:
        """The best-before time of an entry that is refreshed now."""


class RandomRanker:
    """RND: in random order."""

    name = "RND"

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def rank(self, candidates: Sequence[Candidate], tick: Tick) -> list[Candidate]:
        return self._random.sample(candidates, len(candidates))

    def best_before(self, entry: Entry, now: int) -> int:
        return now


class LeastRecentlyRefreshed:
    """LRU: least recently refreshed first."""

    name = "LRU"

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def rank(self, candidates: Sequence[Candidate], tick: Tick) -> list[Candidate]:
        return sorted(
            self._random.sample(candidates, len(candidates)), key=lambda candidate: candidate.entry.refreshed_at
        )

    def best_before(self, entry: Entry, now: int) -> int:
        return now


class NoRefresh:
    """WST: nothing is ever refreshed."""

    name = "WST"

    def rank(self, candidates: Sequence[Candidate], tick: Tick) -> list[Candidate]:
        return []

    def best_before(self, entry: Entry, now: int) -> int:
        return now
