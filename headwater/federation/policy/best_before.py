"""WBM, Window Based Maintenance (algorithm 2): refresh what is possibly stale and saves the most refreshes to come.

    PS          the candidates whose best-before time τᵢ is not after t
    Lᵢ(t)       the ticks it will be used at, ⌈(tᵢ + ω − t)/β⌉                             (equation 3)
    τᵢ_next     τᵢ + Iᵢ(t): the best-before time that it gets if it is refreshed now       (equation 4)
    Vᵢ(t)       the ticks it would then be good for, ⌈(τᵢ_next − t)/β⌉
    scoreᵢ(t)   min(Lᵢ, Vᵢ)                                                                (equation 5)

Where an entry serves several rows of the window, its score counts for each of them. In a tumbling window every L is the
same and V alone decides. Equal scores are ordered by chance.

The paper leaves Iᵢ(t) to the change rate. Here it is the smallest multiple of the change interval that brings τ past
t: with one interval alone, an entry that the window did not ask for in a long time would get a time that is over
already. In figure 2 one interval suffices, and it gives the figure's numbers. The best-before times of a filled view
begin, as in the paper, with the first evaluation (`LocalView.begin`).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

from headwater.federation.policy.candidates import Candidate, Tick
from headwater.federation.view.local_view import Entry

FOR_EVER = 1 << 62
"""A best-before time that never comes, in microseconds."""

Interval = Callable[[Entry], float]
"""The time between two changes of an entry, in microseconds; infinite for what does not change."""


def renewed_best_before(best_before: int, interval: float, now: int) -> int:
    """Equation 4 with the fewest whole intervals that lead beyond now."""
    if math.isinf(interval):
        return FOR_EVER
    steps = max(1, math.floor((now - best_before) / interval) + 1)
    return min(FOR_EVER, best_before + max(1, round(steps * interval)))


def ticks_until(instant: int, tick: Tick) -> int:
    """⌈(instant − t)/β⌉, the form that L and V share."""
    return -((tick.now - instant) // tick.slide)


class WindowBasedMaintenance:
    """WBM. `interval` gives Iᵢ: from known change rates, or from those that the view has learnt."""

    name = "WBM"

    def __init__(self, interval: Interval, seed: int = 0) -> None:
        self._interval = interval
        self._random = random.Random(seed)

    def possibly_stale(self, candidates: Sequence[Candidate], tick: Tick) -> list[Candidate]:
        return [candidate for candidate in candidates if candidate.entry.best_before <= tick.now]

    def score(self, candidate: Candidate, tick: Tick) -> int:
        """Equation 5."""
        return min(candidate.ticks, self.good_for(candidate, tick))

    def good_for(self, candidate: Candidate, tick: Tick) -> int:
        """V."""
        return ticks_until(self.best_before(candidate.entry, tick.now), tick)

    def best_before(self, entry: Entry, now: int) -> int:
        return renewed_best_before(entry.best_before, self._interval(entry), now)

    def rank(self, candidates: Sequence[Candidate], tick: Tick) -> list[Candidate]:
        stale = self.possibly_stale(candidates, tick)
        return ordered(stale, tick, lambda candidate: self.good_for(candidate, tick), self._random)


def ordered(
    candidates: Sequence[Candidate], tick: Tick, good_for: Callable[[Candidate], int], chance: random.Random
) -> list[Candidate]:
    """By min(L, V) for each row served, highest first; by V alone where no mapping outlives the present tick."""
    tumbling = all(candidate.ticks <= 1 for candidate in candidates)

    def score(candidate: Candidate) -> int:
        ticks = good_for(candidate)
        return candidate.rows * (ticks if tumbling else min(candidate.ticks, ticks))

    return sorted(chance.sample(candidates, len(candidates)), key=score, reverse=True)
