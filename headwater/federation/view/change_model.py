"""Change rates of the entries of a view, learnt from refreshes (VM8).

A refresh yields one bit: since the last one, d time units ago, the rows have changed or not. How often they changed in
between, or when, is not observed. So the rate of an entry is never known; the model keeps a distribution w over a grid
of rates λ₁ < … < λ_G and updates it (a Bayesian filter) as follows.

Between two refreshes an entry changes at its rate, and at the rate h it gets a new rate, drawn from the *population* p
(the distribution over all entries). This models rates that drift, and bursts. The weights of "rate λ_g, and not changed
so far" then follow

    dw/dt = A w,    A = −diag(λ + h) + h p 1ᵀ        so    P(unchanged for d) = 1ᵀ exp(A d) w

The weights of an unchanged entry become exp(A d) w, those of a changed one the rest of e^(−hd) w + (1 − e^(−hd)) p. A
is similar to a symmetric matrix (by √p), so one decomposition A = S Q Λ Qᵀ S⁻¹ gives every survival as a sum of G
exponentials:

    P(unchanged for d) = Σⱼ aⱼ cⱼ e^(Λⱼ d)           a = Qᵀ S 1,    c = Qᵀ S⁻¹ w

Sums over ticks to come are geometric sums of the same exponentials, whatever their number
(`expected_gain_ranker`).

The population is fitted at run time (empirical Bayes): one step of expectation maximisation per tick over the entries
that were refreshed last. The *belief* of an entry is the ratio w/p, the evidence of its own refreshes, so that it
profits from a better population; an entry without refreshes has the population's w (shrinkage).
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

PRIOR_ENTRIES = 2.0
"""How many entries the uniform distribution counts for that the population starts with."""

FITTED_ENTRIES = 512
"""The population is fitted to so many entries: those that were refreshed last."""


@dataclass(frozen=True, slots=True)
class EigenDecomposition:
    """The decomposition of A for one population: the eigenvalues Λ, and the matrices that turn weights into a and c."""

    decays: Floats
    totals: Floats
    to_modes: Floats
    from_modes: Floats
    population_modes: Floats


class ChangeModel:
    """The population of change rates, and the arithmetic of beliefs.

    `unit` is the time in microseconds that rates refer to, best the distance of two ticks: the grid reaches from hardly
    any to several changes in one unit.
    """

    def __init__(self, unit: int, switching: float = SWITCHING) -> None:
        if unit <= 0:
            raise ValueError(f"the unit of change rates must be longer than nothing, and is {unit} µs")
        self.unit = unit
        self.switching = switching
        self.rates: Floats = np.geomspace(SLOWEST, FASTEST, POINTS)
        self._uniform: Floats = np.full(POINTS, 1.0 / POINTS)
        self._evidence: Floats = np.ones((FITTED_ENTRIES, POINTS))
        self._slots: OrderedDict[Row, int] = OrderedDict()
        self._set_population(self._uniform)

    def _set_population(self, population: Floats) -> None:
        self.population = population
        root = np.sqrt(population)
        symmetric = self.switching * np.outer(root, root) - np.diag(self.rates + self.switching)
        decays, vectors = np.linalg.eigh(symmetric)
        to_modes = vectors / root[:, None]
        self.decomposition = EigenDecomposition(
            decays=np.minimum(decays, -1e-12),
            totals=vectors.T @ root,
            to_modes=to_modes,
            from_modes=(vectors * root[:, None]).T,
            population_modes=population @ to_modes,
        )
        self._has_new_evidence = False

    def refit_population(self) -> None:
        """Fit the population to the evidence so far. Call it once per tick: it needs an eigendecomposition."""
        if self._has_new_evidence:
            total = self._weights(self._evidence[: len(self._slots)]).sum(axis=0) + PRIOR_ENTRIES * self._uniform
            self._set_population(total / total.sum())

    def elapsed(self, since: int, now: int) -> float:
        """The units between two instants; 0 if the clock went back."""
        return max(0, now - since) / self.unit

    def modes(self, beliefs: Sequence[Floats | None]) -> Floats:
        """c of each belief, one per row."""
        modes = np.empty((len(beliefs), POINTS))
        modes[:] = self.decomposition.population_modes
        with_evidence = [index for index, belief in enumerate(beliefs) if belief is not None]
        if with_evidence:
            evidence = np.stack([belief for belief in beliefs if belief is not None])
            modes[with_evidence] = self._weights(evidence) @ self.decomposition.to_modes
        return modes

    def probability_unchanged(self, beliefs: Sequence[Floats | None], elapsed: Floats) -> Floats:
        """The probability of each entry not to have changed in so many units."""
        decomposition = self.decomposition
        survivals = (self.modes(beliefs) * np.exp(np.outer(elapsed, decomposition.decays))) @ decomposition.totals
        return np.asarray(np.clip(survivals, 0.0, 1.0))

    def update_belief(self, key: Row, belief: Floats | None, elapsed: float, has_changed: bool) -> Floats:
        """The belief after a refresh, so many units after the last one, has found a change or none."""
        before = self._weights_of(belief)
        decomposition = self.decomposition
        weights = (
            (before @ decomposition.to_modes) * np.exp(elapsed * decomposition.decays)
        ) @ decomposition.from_modes
        if has_changed:
            stayed = np.exp(-self.switching * elapsed)
            weights = stayed * before + (1.0 - stayed) * self.population - weights
        weights = np.maximum(weights, 1e-300)
        after: Floats = weights / weights.sum() / self.population
        self._evidence[self._slot(key)] = after
        self._has_new_evidence = True
        return after

    def _slot(self, key: Row) -> int:
        """The row of `_evidence` for an entry; the entry that was refreshed longest ago is replaced."""
        slot = self._slots.pop(key, None)
        if slot is None:
            slot = len(self._slots) if len(self._slots) < FITTED_ENTRIES else self._slots.popitem(last=False)[1]
        self._slots[key] = slot
        return slot

    def rate(self, belief: Floats | None) -> float:
        """The expected number of changes in a second."""
        return float(self._weights_of(belief) @ self.rates) * SECOND / self.unit

    def _weights_of(self, belief: Floats | None) -> Floats:
        return self.population if belief is None else self._weights(belief)

    def _weights(self, evidence: Floats) -> Floats:
        """The weights w of one ratio w/p or of several, under the present population."""
        weights = self.population * evidence
        return np.asarray(weights / weights.sum(axis=-1, keepdims=True))

    def state(self) -> dict[str, Any]:
        """The state that a restart needs, as plain values."""
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
        self._has_new_evidence = bool(self._slots)
