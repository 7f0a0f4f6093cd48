"""How a run is doing, for people and for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Progress:
    """The counts of a run so far, each since the run was started.

    `elements` came in from the sources in readable form; `late` of them came after their time had been answered;
    `bad` could not be read or had no time. `ticks` counts answers. `watermarks` says for each stream how far it has
    come, in microseconds since 1970, None before its first element. `rate` is in elements per second.
    `alerts` counts the goals of SERVICE clauses that answers did not reach.
    """

    elements: int = 0
    late: int = 0
    bad: int = 0
    ticks: int = 0
    batches: int = 0
    seconds: float = 0.0
    rate: float = 0.0
    watermarks: Mapping[str, int | None] = field(default_factory=dict)
    alerts: int = 0


@dataclass(frozen=True, slots=True)
class RunSummary(Progress):
    """What a run did in all. `stopped` where it was stopped before it had read everything."""

    stopped: bool = False
