"""How good an answer is that rests on remote data: what SERVICE clauses say of it, in plain values.

The estimates come from `headwater.federation`; here is what an answer carries, a sink writes and a run counts.

    >>> answer.quality.accuracy, answer.quality.suspects, answer.quality.alerts
    (0.93, 2, ())
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from math import prod
from typing import Any


@dataclass(frozen=True, slots=True)
class QualityAlert:
    """A goal that was not reached, at which endpoint, and why."""

    endpoint: str
    gives_way: str
    wanted: float
    reached: float
    reason: str


@dataclass(frozen=True, slots=True)
class AnswerQuality:
    """The estimated share of right rows, and what was done for it at the tick.

    `suspects` are the joined rows, of `rows`, that are probably no longer right or whose refresh fails; `missing` rows
    of the window have a key of which nothing is known yet. `refreshes` are keys that were answered in time, `late`
    keys of earlier ticks that were answered since, `failures` keys that the endpoint did not answer, `under_way` keys
    that are still asked for. `seconds` is what the tick spent on SERVICE.
    """

    accuracy: float = 1.0
    suspects: int = 0
    rows: int = 0
    missing: int = 0
    refreshes: int = 0
    late: int = 0
    failures: int = 0
    under_way: int = 0
    requests: int = 0
    seconds: float = 0.0
    alerts: tuple[QualityAlert, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The members of `"quality"` in an answer's JSON."""
        return asdict(self)


def combine_quality(parts: Iterable[AnswerQuality]) -> AnswerQuality:
    """The quality of an answer with several SERVICE clauses: a row is right if what it has of each is."""
    listed = list(parts)
    return AnswerQuality(
        accuracy=prod(part.accuracy for part in listed),
        suspects=sum(part.suspects for part in listed),
        rows=sum(part.rows for part in listed),
        missing=sum(part.missing for part in listed),
        refreshes=sum(part.refreshes for part in listed),
        late=sum(part.late for part in listed),
        failures=sum(part.failures for part in listed),
        under_way=sum(part.under_way for part in listed),
        requests=sum(part.requests for part in listed),
        seconds=sum(part.seconds for part in listed),
        alerts=tuple(alert for part in listed for alert in part.alerts),
    )
