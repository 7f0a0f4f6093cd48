"""BST and WBM*, the upper bounds for experiments (VM6): rankers that read the data of the remote.

BST refreshes stale candidates at random. WBM* is WBM with the real instants of change instead of best-before times:
the possibly stale candidates are the stale ones, and V counts the ticks up to the next real change.
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


class KnownRemote(Protocol):
    """The past and future data of a remote, which only an experiment knows."""

    def rows_at(self, key: Row, instant: int) -> Rows:
        """The rows of a key at an instant."""

    def next_change(self, key: Row, instant: int) -> int | None:
        """When the rows of the key change next."""


def is_stale(entry: Entry, remote: KnownRemote, now: int) -> bool:
    return share_of_difference(entry.rows, remote.rows_at(entry.key, now)) > 0.0


class BestRanker:
    """BST: stale candidates, in random order."""

    name = "BST"

    def __init__(self, remote: KnownRemote, seed: int = 0) -> None:
        self._remote = remote
        self._random = random.Random(seed)

    def rank(self, candidates: Sequence[Candidate], tick: Tick) -> list[Candidate]:
        stale = [candidate for candidate in candidates if is_stale(candidate.entry, self._remote, tick.now)]
        return self._random.sample(stale, len(stale))

    def best_before(self, entry: Entry, now: int) -> int:
        return now


class PerfectWindowBasedMaintenance:
    """WBM*: WBM with the real instants of change."""

    name = "WBM*"

    def __init__(self, remote: KnownRemote, seed: int = 0) -> None:
        self._remote = remote
        self._random = random.Random(seed)

    def rank(self, candidates: Sequence[Candidate], tick: Tick) -> list[Candidate]:
        stale = [candidate for candidate in candidates if is_stale(candidate.entry, self._remote, tick.now)]
        return order_by_score(
            stale, tick, lambda it: ticks_until(self.best_before(it.entry, tick.now), tick), self._random
        )

    def best_before(self, entry: Entry, now: int) -> int:
        change = self._remote.next_change(entry.key, now)
        return FOR_EVER if change is None else change
