"""How long an endpoint takes, predicted from how long it took: the rᵢ of equation 2, for requests of many keys.

The last requests are kept, and a line `start + per key · keys` laid through them; a prediction adds what the slower
ones took on top. Beyond the sizes that were tried nothing is known, so a request is at most twice as large as the
largest so far: sizes grow from one as long as the time allows.

    >>> latency = LatencyModel()
    >>> latency.observe(keys=1, seconds=0.02)
    >>> latency.largest(within=0.2, limit=100)
    2
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

MEMORY = 20
"""How many requests are remembered: few, so that an endpoint that was slow for a while is trusted again soon."""

SHARE = 0.9
"""The share of requests that a prediction is to cover; the deadline of a tick takes care of the rest."""

GROWTH = 2
"""How many times the largest size that was tried a request may be."""


@dataclass(frozen=True, slots=True)
class _Line:
    start: float
    per_key: float
    margin: float


class LatencyModel:
    """The latency of one endpoint as a function of the size of a request."""

    def __init__(self, memory: int = MEMORY, share: float = SHARE) -> None:
        self._taken: deque[tuple[int, float]] = deque(maxlen=memory)
        self._share = share
        self._line: _Line | None = None

    def observe(self, keys: int, seconds: float) -> None:
        self._taken.append((keys, seconds))
        self._line = None

    def observe_failure(self, keys: int, seconds: float) -> None:
        """A failure says something about time only if it was slow: a refused connection is no fast answer."""
        expected = self.predict(keys)
        if expected is None or seconds > expected:
            self.observe(keys, seconds)

    def predict(self, keys: int) -> float | None:
        """The seconds within which most requests of this size are answered; None before the first."""
        if not self._taken:
            return None
        line = self._fitted()
        return line.start + line.per_key * keys + line.margin

    def largest(self, within: float, limit: int) -> int:
        """The most keys of a request that is likely answered in time; 0 where not even one is."""
        if within <= 0.0:
            return 0
        if not self._taken:
            return 1
        line = self._fitted()
        room = within - line.start - line.margin
        if room < line.per_key:
            return 0
        tried = max(keys for keys, _ in self._taken)
        largest = min(limit, tried * GROWTH)
        return largest if line.per_key * largest <= room else int(room / line.per_key)

    def _fitted(self) -> _Line:
        """Medians of slopes and of starts (Theil and Sen): a few very slow requests do not tilt the line."""
        if self._line is None:
            keys, seconds = np.array([(float(keys), seconds) for keys, seconds in self._taken]).T
            longer = np.subtract.outer(keys, keys)
            slopes = np.subtract.outer(seconds, seconds)[longer > 0] / longer[longer > 0]
            slope = max(0.0, float(np.median(slopes))) if slopes.size else 0.0
            start = float(np.median(seconds - slope * keys))
            if start < 0.0:
                start, slope = 0.0, float(np.median(seconds / keys))
            margin = float(np.quantile(seconds - start - slope * keys, self._share))
            self._line = _Line(start, slope, max(0.0, margin))
        return self._line

    def state(self) -> list[tuple[int, float]]:
        return list(self._taken)

    def restore(self, state: list[tuple[int, float]]) -> None:
        self._taken.extend(state)
        self._line = None
