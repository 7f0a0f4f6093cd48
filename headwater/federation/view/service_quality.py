"""Quality of service: the goals of a query, the estimated quality of an answer, and an alert for a missed goal (VM7).

    acc(E, q) ≥ α   and   lat(E, q) ≤ ρ       at each evaluation          (equation 1)

Latency is measured. Accuracy, the share of the answer's rows that the remote would give now, can only be estimated:
from the probability that each entry is unchanged (`change_model`), times the rows that depend on it.

    >>> Goals(accuracy=0.75, latency=0.5, budget=10)
    >>> quality.accuracy, quality.suspects, quality.refreshes, quality.alerts
    (0.81, 5, 10, ())

If both cannot be met, ρ is met and α is missed, or the other way round if `preferred` is ACCURACY.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

import numpy as np

from headwater.errors import SettingError
from headwater.federation.view.lifetime import WindowKey
from headwater.federation.view.local_view import Entry, LocalView

SUSPECT_PROBABILITY = 0.5


class Goal(Enum):
    """A goal that may be missed in favour of the other."""

    ACCURACY = "accuracy"
    LATENCY = "latency"


@dataclass(frozen=True, slots=True)
class Goals:
    """α (a share), ρ (seconds), γ (refreshes per tick); None: no goal. `preferred` is met if α and ρ conflict."""

    accuracy: float | None = None
    latency: float | None = None
    budget: int | None = None
    preferred: Goal = Goal.LATENCY

    def __post_init__(self) -> None:
        if self.accuracy is not None and not 0.0 <= self.accuracy <= 1.0:
            raise SettingError(f"an accuracy is a share between 0 and 1, not {self.accuracy}")
        if self.latency is not None and self.latency <= 0.0:
            raise SettingError(f"a latency is longer than nothing, not {self.latency} s")
        if self.budget is not None and self.budget < 0:
            raise SettingError(f"a budget of refreshes is not negative, as {self.budget} is")


@dataclass(frozen=True, slots=True)
class Alert:
    """A goal that was not reached at a tick, and why."""

    instant: int
    goal: Goal
    wanted: float
    reached: float
    reason: str

    def __str__(self) -> str:
        unit = " s" if self.goal is Goal.LATENCY else ""
        values = f"{self.reached:.3g}{unit} instead of {self.wanted:g}{unit}"
        return f"{self.goal.value} gives way: {values} ({self.reason})"


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimated quality of an answer: the expected share of right rows, the suspect rows, and all rows.

    `missing` counts window rows whose key the view does not know; each counts as one wrong row.
    """

    accuracy: float
    suspects: int
    rows: int
    missing: int


@dataclass(frozen=True, slots=True)
class Quality:
    """The quality of an answer: its estimate, and the refreshes of the tick.

    `refreshes` counts keys that were answered in time, `failures` keys that the remote did not answer, `under_way` keys
    whose request has not ended, `late` keys of earlier ticks that were answered since. `seconds` is the duration of the
    tick.
    """

    accuracy: float
    suspects: int
    rows: int
    missing: int
    refreshes: int
    late: int
    failures: int
    under_way: int
    requests: int
    seconds: float
    alerts: tuple[Alert, ...] = ()


def estimate_quality(view: LocalView, window: Iterable[WindowKey], now: int) -> Estimate:
    """Estimate the quality of the join of this window with the view."""
    used: list[tuple[Entry, int]] = []
    missing = 0
    for key in window:
        entry = view.get(key.key)
        if entry is None:
            missing += key.rows
        else:
            used.append((entry, key.rows))
    rows = np.array([count * max(1, len(entry.rows)) for entry, count in used], dtype=np.int64)
    stale = view.staleness([entry for entry, _ in used], now)
    extents = np.array([entry.extent for entry, _ in used])
    failing = np.array([entry.failing_since is not None for entry, _ in used], dtype=np.bool_)
    total = int(rows.sum()) + missing
    right = float((rows * (1.0 - stale * extents)).sum())
    return Estimate(
        accuracy=right / total if total else 1.0,
        suspects=int(rows[(stale > SUSPECT_PROBABILITY) | failing].sum()) + missing,
        rows=total,
        missing=missing,
    )
