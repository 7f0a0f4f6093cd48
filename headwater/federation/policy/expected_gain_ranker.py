"""LEARNT, Headwater's own ranker: the refreshes that are expected to make the most answer rows right come first (VM8).

No change rates are given; the belief of an entry (`change_model`) comes from its own refreshes and from those of all
entries. S(x) is the probability of not changing for x. Refreshed now,
an entry is right k ticks later if it does not change for kβ; left alone, only if it did not change since its last
refresh d ago either. Over the L ticks that the window still holds it, a refresh makes this many more of them right:

    now    =  Σ  S(kβ, from now) − S(d + kβ, from the last refresh)          over k = 0, …, L−1

Later the entry may come back into the window; a refresh that can be made then is worth less now. The price at which
refreshing and waiting are worth the same (the Whittle index known from web crawling, for a page that is read at a share
u of the ticks), as far as the value is still right by then, is

    later  =  u · (1 − g) · ( ∫₀ᵈ S(Lβ + x) dx − d S(Lβ + d) ) / β

where g is the share of candidates that are refreshed: with this probability the entry would be refreshed when it comes
back, and the refresh before gains nothing. So a large budget is spent on the present window, a small one also on
entries that stay right for long.

The gain is `now + later` for each row of the answer that a change would touch. All terms are sums of exponentials, so a
window of ten thousand ticks costs as much as one of two. An entry that surely changes before the next tick gains one
tick at most; one that hardly ever changes gains little; entries that are stale and then right for long come first. This
is WBM's idea, in expectation.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import numpy as np

from headwater.federation.policy.best_before import FOR_EVER
from headwater.federation.policy.candidates import Candidate, Tick
from headwater.federation.view.change_model import ChangeModel, Floats
from headwater.federation.view.local_view import Entry
from headwater.terms.model import SECOND


class ExpectedGainRanker:
    """LEARNT, over the change model of the view that it ranks."""

    name = "LEARNT"

    def __init__(self, model: ChangeModel, seed: int = 0) -> None:
        self._model = model
        self._random = random.Random(seed)

    def rank(self, candidates: Sequence[Candidate], tick: Tick) -> list[Candidate]:
        shuffled = self._random.sample(candidates, len(candidates))
        gains = self.estimate_gains(shuffled, tick)
        return [shuffled[index] for index in np.argsort(-gains, kind="stable") if gains[index] > 0.0]

    def estimate_gains(self, candidates: Sequence[Candidate], tick: Tick) -> Floats:
        """The expected number of answer rows, over ticks to come, that a refresh of each candidate makes right."""
        model, decomposition = self._model, self._model.decomposition
        modes = model.modes([candidate.entry.belief for candidate in candidates])
        elapsed = _column(model.elapsed(candidate.entry.refreshed_at, tick.now) for candidate in candidates)
        ticks = _column(candidate.ticks for candidate in candidates)
        beta = tick.slide / model.unit
        decays = decomposition.decays[None, :]
        aged = np.exp(elapsed * decays)
        stayed = np.exp(-model.switching * elapsed)
        fresh = stayed * modes + (1.0 - stayed) * decomposition.population_modes
        in_window = np.expm1(decays * beta * ticks) / np.expm1(decays * beta)
        waiting = (np.expm1(elapsed * decays) / decays - elapsed * aged) * np.exp(decays * beta * ticks) / beta
        presence = np.array([candidate.presence for candidate in candidates])
        now = ((fresh - modes * aged) * in_window) @ decomposition.totals
        later = (1.0 - tick.refreshed_share) * presence * ((modes * waiting) @ decomposition.totals)
        rows = np.array([candidate.answer_rows * candidate.entry.extent for candidate in candidates])
        return np.asarray(rows * np.maximum(now + later, 0.0))

    def best_before(self, entry: Entry, now: int) -> int:
        """The instant of the next change that is expected."""
        rate = self._model.rate(entry.belief)
        return FOR_EVER if rate <= 0.0 else min(FOR_EVER, now + round(SECOND / rate))


def _column(numbers: Iterable[float]) -> Floats:
    return np.array(list(numbers), dtype=np.float64)[:, None]
