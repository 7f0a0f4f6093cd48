"""How fast things change at the remote, learnt from what refreshes find.

A refresh tells one bit: since the last one, d time units ago, the rows changed or they did not. Nothing says how often
they changed in between, or when. So the rate of an entry is never known; what is kept is a distribution w over a grid
of rates λ₁ < … < λ_G, and it is filtered like this.

While nobody looks, an entry changes at its rate, and at the rate h it gets a new rate, drawn from the *population* p
(what all entries together have shown). That makes room for rates that drift and for bursts. The weights of "rate λ_g,
and not changed so far" then follow

    dw/dt = A w,    A = −diag(λ + h) + h p 1ᵀ        so    P(unchanged for d) = 1ᵀ exp(A d) w

An unchanged entry is left with exp(A d) w, a changed one with the rest of e^(−hd) w + (1 − e^(−hd)) p. A is similar to
a symmetric matrix (by √p), so one decomposition A = S Q Λ Qᵀ S⁻¹ gives every survival as a sum of G exponentials:

    P(unchanged for d) = Σⱼ aⱼ cⱼ e^(Λⱼ d)           a = Qᵀ S 1,    c = Qᵀ S⁻¹ w

Sums over ticks to come are geometric sums of the same exponentials, whatever their number
(`headwater.federation.policy.learnt_ranker`).

The population is fitted as it goes (empirical Bayes): one step of expectation maximisation per tick over the entries
that were refreshed last. So that an entry profits from a better population, its *belief* is kept as the ratio w/p,
the evidence of its own refreshes; an entry without any has the population's w. That is the shrinkage.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwater.terms.model import SECOND, Row

Floats = NDArray[np.float64]

SLOWEST, FASTEST, POINTS = 1e-5, 4.0, 20
"""The grid of rates, in changes per unit."""

SWITCHING = 0.05
"""h, per unit. The results of benchmarks/service.py hardly move between 0.01 and 0.1."""

FLAT_ENTRIES = 2.0
"""How many entries the flat law counts for that the population starts with."""

WITNESSES = 512
"""How many of the entries that were refreshed last the population is fitted to."""


@dataclass(frozen=True, slots=True)
class Spectrum:
    """The decomposition of A for the population as it was: decay rates Λ, and what turns weights into a and c."""

    decays: Floats
    totals: Floats
    to_modes: Floats
    from_modes: Floats
    population_modes: Floats


class ChangeModel:
    """The population of change rates, and the arithmetic of beliefs.

    `unit` is the length in microseconds that rates are relative to, best the distance of two ticks: the grid reaches
    from hardly ever to several changes in one unit.
    """

    def __init__(self, unit: int, switching: float = SWITCHING) -> None:
        if unit <= 0:
            raise ValueError(f"the unit of change rates must be longer than nothing, and is {unit} µs")
        self.unit = unit
        self.switching = switching
        self.rates: Floats = np.geomspace(SLOWEST, FASTEST, POINTS)
        self._flat: Floats = np.full(POINTS, 1.0 / POINTS)
        self._evidence: Floats = np.ones((WITNESSES, POINTS))
        self._slots: OrderedDict[Row, int] = OrderedDict()
        self._set_population(self._flat)

    def _set_population(self, population: Floats) -> None:
        self.population = population
        root = np.sqrt(population)
        symmetric = self.switching * np.outer(root, root) - np.diag(self.rates + self.switching)
        decays, vectors = np.linalg.eigh(symmetric)
        to_modes = vectors / root[:, None]
        self.spectrum = Spectrum(
            decays=np.minimum(decays, -1e-12),
            totals=vectors.T @ root,
            to_modes=to_modes,
            from_modes=(vectors * root[:, None]).T,
            population_modes=population @ to_modes,
        )
        self._learnt = False

    def renew(self) -> None:
        """Let the population be what entries have shown up to now. Once per tick: it costs a decomposition."""
        if self._learnt:
            total = self._weights(self._evidence[: len(self._slots)]).sum(axis=0) + FLAT_ENTRIES * self._flat
            self._set_population(total / total.sum())

    def elapsed(self, since: int, now: int) -> float:
        """The units between two instants; nothing where the clock went back."""
        return max(0, now - since) / self.unit

    def modes(self, beliefs: Sequence[Floats | None]) -> Floats:
        """c of each belief, one per row."""
        modes = np.empty((len(beliefs), POINTS))
        modes[:] = self.spectrum.population_modes
        known = [number for number, belief in enumerate(beliefs) if belief is not None]
        if known:
            evidence = np.stack([belief for belief in beliefs if belief is not None])
            modes[known] = self._weights(evidence) @ self.spectrum.to_modes
        return modes

    def unchanged(self, beliefs: Sequence[Floats | None], elapsed: Floats) -> Floats:
        """The probability of each entry not to have changed for so many units."""
        spectrum = self.spectrum
        survivals = (self.modes(beliefs) * np.exp(np.outer(elapsed, spectrum.decays))) @ spectrum.totals
        return np.asarray(np.clip(survivals, 0.0, 1.0))

    def observed(self, key: Row, belief: Floats | None, elapsed: float, changed: bool) -> Floats:
        """The belief after a refresh, so many units after the last one, found a change or none."""
        before = self._weights_of(belief)
        spectrum = self.spectrum
        weights = ((before @ spectrum.to_modes) * np.exp(elapsed * spectrum.decays)) @ spectrum.from_modes
        if changed:
            stayed = np.exp(-self.switching * elapsed)
            weights = stayed * before + (1.0 - stayed) * self.population - weights
        weights = np.maximum(weights, 1e-300)
        after: Floats = weights / weights.sum() / self.population
        self._evidence[self._slot(key)] = after
        self._learnt = True
        return after

    def _slot(self, key: Row) -> int:
        """Where the evidence of an entry is kept; the one that was refreshed longest ago makes room."""
        slot = self._slots.pop(key, None)
        if slot is None:
            slot = len(self._slots) if len(self._slots) < WITNESSES else self._slots.popitem(last=False)[1]
        self._slots[key] = slot
        return slot

    def rate(self, belief: Floats | None) -> float:
        """The expected number of changes in a second."""
        return float(self._weights_of(belief) @ self.rates) * SECOND / self.unit

    def _weights_of(self, belief: Floats | None) -> Floats:
        return self.population if belief is None else self._weights(belief)

    def _weights(self, evidence: Floats) -> Floats:
        """w of one ratio w/p or of several, under the population as it is now."""
        weights = self.population * evidence
        return np.asarray(weights / weights.sum(axis=-1, keepdims=True))

    def state(self) -> dict[str, Any]:
        """What a restart needs, as plain values that can be pickled."""
        return {
            "unit": self.unit,
            "population": self.population,
            "slots": list(self._slots.items()),
            "evidence": self._evidence[: len(self._slots)].copy(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.unit = state["unit"]
        self._slots = OrderedDict(state["slots"])
        self._evidence[: len(self._slots)] = state["evidence"]
        self._set_population(state["population"])
        self._learnt = bool(self._slots)
