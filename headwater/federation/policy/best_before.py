"""WBM, Window Based Maintenance (VM5, algorithm 2): refreshes possibly stale entries that stay useful for longest.

    PS          the candidates whose best-before time τᵢ is not after t
    Lᵢ(t)       the ticks that will use it, ⌈(tᵢ + ω − t)/β⌉                             (equation 3)
    τᵢ_next     τᵢ + Iᵢ(t): its best-before time after a refresh now       (equation 4)
    Vᵢ(t)       the ticks it would then be good for, ⌈(τᵢ_next − t)/β⌉
    scoreᵢ(t)   min(Lᵢ, Vᵢ)                                                                (equation 5)

An entry that joins several rows of the window gets its score for each of them. In a tumbling window every L is the same
and V alone decides. Equal scores are ordered at random.

The paper says only that Iᵢ(t) depends on the change rate. Here it is the smallest multiple of the change interval that
brings τ past t: after one interval alone, an entry that no window has used for a long time would be past its
best-before time at once. In figure 2 one interval suffices, and gives the figure's numbers. As in the paper, the
best-before times of a filled view begin with the first evaluation (`LocalView.begin_evaluation`). A key that is
fetched later, when it turns up, is good for one interval from then on.

The change interval comes from rates that are given, as in the paper (`given_rates`), or from those that the view has
learnt.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

from headwater.federation.policy.candidates import Candidate, Tick
from headwater.federation.view.local_view import Entry

FOR_EVER = 1 << 62
"""A best-before time that never comes, in microseconds."""

ChangeInterval = Callable[[Entry], float]
"""The time between two changes of an entry, in microseconds; infinite if it does not change."""


def renew_best_before(best_before: int, interval: float, now: int) -> int:
    """Equation 4 with the smallest number of whole intervals that ends after `now`."""
    if math.isinf(interval):
        return FOR_EVER
    steps = max(1, math.floor((now - best_before) / interval) + 1)
    return min(FOR_EVER, best_before + max(1, round(steps * interval)))


def ticks_until(instant: int, tick: Tick) -> int:
    """⌈(instant − t)/β⌉, the common form of L and V."""
    return -((tick.now - instant) // tick.slide)


class WindowBasedMaintenance:
    """WBM. `interval` gives Iᵢ, from known change rates or from those that the view has learnt."""

    name = "WBM"

    def __init__(self, interval: ChangeInterval, seed: int = 0) -> None:
        self._interval = interval
        self._random = random.Random(seed)

    def select_possibly_stale(self, candidates: Sequence[Candidate], tick: Tick) -> list[Candidate]:
        return [candidate for candidate in candidates if candidate.entry.best_before <= tick.now]

    def score(self, candidate: Candidate, tick: Tick) -> int:
        """Equation 5."""
        return min(candidate.ticks, self.ticks_valid(candidate, tick))

    def ticks_valid(self, candidate: Candidate, tick: Tick) -> int:
        """V, the ticks that the entry would be valid for after a refresh now."""
        return ticks_until(self.best_before(candidate.entry, tick.now), tick)

    def best_before(self, entry: Entry, now: int) -> int:
        return renew_best_before(entry.best_before, self._interval(entry), now)

    def rank(self, candidates: Sequence[Candidate], tick: Tick) -> list[Candidate]:
        stale = self.select_possibly_stale(candidates, tick)
        return order_by_score(stale, tick, lambda candidate: self.ticks_valid(candidate, tick), self._random)


def order_by_score(
    candidates: Sequence[Candidate], tick: Tick, ticks_valid: Callable[[Candidate], int], chance: random.Random
) -> list[Candidate]:
    """Sort by min(L, V) per joined row, highest first; by V alone if no mapping stays after the present tick."""
    is_tumbling = all(candidate.ticks <= 1 for candidate in candidates)

    def score(candidate: Candidate) -> int:
        ticks = ticks_valid(candidate)
        return candidate.rows * (ticks if is_tumbling else min(candidate.ticks, ticks))

    return sorted(chance.sample(candidates, len(candidates)), key=score, reverse=True)
