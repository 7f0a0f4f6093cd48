"""LEARNT, the ranker of our own: refresh first what is expected to make the most answers right.

Nothing about change rates is given; what is believed of an entry (`change_model`) comes from what its
own refreshes found and from what all entries have shown. S(x) is the probability of not changing for x. Refreshed now,
an entry is right k ticks later if it does not change for kβ; left alone, only if it did not change since its last
refresh d ago either. Over the L ticks that the window still holds it, a refresh makes this many more of them right:

    now    =  Σ  S(kβ, from now) − S(d + kβ, from the last refresh)          over k = 0, …, L−1

After that the entry may come back; a refresh that could as well be made then is worth less now. The price at which
refreshing and waiting are worth the same (the Whittle index known from crawling, of a page that is read at a share u of
the ticks), as far as the value lasts that long, is

    later  =  u · (1 − g) · ( ∫₀ᵈ S(Lβ + x) dx − d S(Lβ + d) ) / β

where g is the share of candidates that get a refresh: as often as that, it would be refreshed when it is back, and
nothing was gained before. So a large budget is spent on the present window, a small one with an eye on what lasts.

The gain is `now + later` for each row of the answer that a change would touch. All of it are sums of exponentials,
so a window of ten thousand ticks costs what one of two costs. An entry that surely changes before the next tick gains
one tick at most; one that hardly ever changes gains little; those that are stale and then good for long come first.
That is WBM's idea, in expectation.
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


class LearntRanker:
    """LEARNT, over the change model of the view it ranks."""

    name = "LEARNT"

    def __init__(self, model: ChangeModel, seed: int = 0) -> None:
        self._model = model
        self._random = random.Random(seed)

    def rank(self, candidates: Sequence[Candidate], tick: Tick) -> list[Candidate]:
        shuffled = self._random.sample(candidates, len(candidates))
        gains = self.gains(shuffled, tick)
        return [shuffled[number] for number in np.argsort(-gains, kind="stable") if gains[number] > 0.0]

    def gains(self, candidates: Sequence[Candidate], tick: Tick) -> Floats:
        """The expected number of answer rows, over ticks to come, that a refresh of each candidate makes right."""
        model, spectrum = self._model, self._model.spectrum
        modes = model.modes([candidate.entry.belief for candidate in candidates])
        elapsed = _column(model.elapsed(candidate.entry.refreshed, tick.now) for candidate in candidates)
        ticks = _column(candidate.ticks for candidate in candidates)
        beta = tick.slide / model.unit
        decays = spectrum.decays[None, :]
        aged = np.exp(elapsed * decays)
        stayed = np.exp(-model.switching * elapsed)
        fresh = stayed * modes + (1.0 - stayed) * spectrum.population_modes
        in_window = np.expm1(decays * beta * ticks) / np.expm1(decays * beta)
        waiting = (np.expm1(elapsed * decays) / decays - elapsed * aged) * np.exp(decays * beta * ticks) / beta
        presence = np.array([candidate.presence for candidate in candidates])
        now = ((fresh - modes * aged) * in_window) @ spectrum.totals
        later = (1.0 - tick.share) * presence * ((modes * waiting) @ spectrum.totals)
        rows = np.array([candidate.answers * candidate.entry.extent for candidate in candidates])
        return np.asarray(rows * np.maximum(now + later, 0.0))

    def best_before(self, entry: Entry, now: int) -> int:
        """When its next change is expected."""
        rate = self._model.rate(entry.belief)
        return FOR_EVER if rate <= 0.0 else min(FOR_EVER, now + round(SECOND / rate))


def _column(numbers: Iterable[float]) -> Floats:
    return np.array(list(numbers), dtype=np.float64)[:, None]
