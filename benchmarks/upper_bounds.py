"""BST and WBM*, the upper bounds for experiments: rankers that look at the truth of a remote that is fully known.

BST refreshes certainly stale candidates, any of them. WBM* is WBM with the real instants of change in the place of
best-before times: the possibly stale candidates are the stale ones, and V counts the ticks up to the next real change.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol

from headwater.federation.endpoint.remote import Rows
from headwater.federation.policy.best_before import FOR_EVER, order_by_score, ticks_until
from headwater.federation.policy.candidates import Candidate, Tick
from headwater.federation.view.local_view import Entry, share_of_difference
from headwater.terms.model import Row


class Truth(Protocol):
    """What only an experiment knows."""

    def rows_at(self, key: Row, instant: int) -> Rows:
        """What the remote has for a key at an instant."""

    def next_change(self, key: Row, instant: int) -> int | None:
        """When it will have something else."""


def is_stale(entry: Entry, truth: Truth, now: int) -> bool:
    return share_of_difference(entry.rows, truth.rows_at(entry.key, now)) > 0.0


class Best:
    """BST: certainly stale candidates, in any order."""

    name = "BST"

    def __init__(self, truth: Truth, seed: int = 0) -> None:
        self._truth = truth
        self._random = random.Random(seed)

    def rank(self, candidates: Sequence[Candidate], tick: Tick) -> list[Candidate]:
        stale = [candidate for candidate in candidates if is_stale(candidate.entry, self._truth, tick.now)]
        return self._random.sample(stale, len(stale))

    def best_before(self, entry: Entry, now: int) -> int:
        return now


class PerfectWindowBasedMaintenance:
    """WBM*: WBM that knows when things change."""

    name = "WBM*"

    def __init__(self, truth: Truth, seed: int = 0) -> None:
        self._truth = truth
        self._random = random.Random(seed)

    def rank(self, candidates: Sequence[Candidate], tick: Tick) -> list[Candidate]:
        stale = [candidate for candidate in candidates if is_stale(candidate.entry, self._truth, tick.now)]
        return order_by_score(
            stale, tick, lambda it: ticks_until(self.best_before(it.entry, tick.now), tick), self._random
        )

    def best_before(self, entry: Entry, now: int) -> int:
        change = self._truth.next_change(entry.key, now)
        return FOR_EVER if change is None else change
