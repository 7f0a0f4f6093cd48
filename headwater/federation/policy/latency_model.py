"""The latency of an endpoint, predicted from its last requests: rᵢ of equation 2, for requests of many keys (VM3).

A line `start + per_key · keys` is fitted to the last requests; a prediction adds a margin for the slower ones. Nothing
is known of sizes that were not tried, so a request is at most twice as large as the largest so far: sizes grow from one
while the time allows it.

    >>> latency = LatencyModel()
    >>> latency.observe(keys=1, seconds=0.02)
    >>> latency.largest_request(seconds=0.2, limit=100)
    2
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

MEMORY = 20
"""How many requests are kept: few, so that an endpoint that was slow for a while soon counts as fast again."""

SHARE = 0.9
"""The share of requests that a prediction covers; the deadline of a tick bounds the rest."""

GROWTH = 2
"""A request may be so many times as large as the largest that was tried."""


@dataclass(frozen=True, slots=True)
class _Line:
    start: float
    per_key: float
    margin: float


class LatencyModel:
    """The latency of one endpoint as a function of the size of a request."""

    def __init__(self, memory: int = MEMORY, share: float = SHARE) -> None:
        self._observations: deque[tuple[int, float]] = deque(maxlen=memory)
        self._share = share
        self._line: _Line | None = None

    def observe(self, keys: int, seconds: float) -> None:
        self._observations.append((keys, seconds))
        self._line = None

    def observe_failure(self, keys: int, seconds: float) -> None:
        """Record a failure only if it was slow: a refused connection is not a fast answer."""
        expected = self.predict(keys)
        if expected is None or seconds > expected:
            self.observe(keys, seconds)

    def predict(self, keys: int) -> float | None:
        """The seconds within which most requests of this size are answered; None before the first request."""
        if not self._observations:
            return None
        line = self._fit()
        return line.start + line.per_key * keys + line.margin

    def largest_request(self, seconds: float, limit: int) -> int:
        """The most keys of a request that is likely answered in so many seconds; 0 if not even one is."""
        if seconds <= 0.0:
            return 0
        if not self._observations:
            return 1
        line = self._fit()
        room = seconds - line.start - line.margin
        if room < line.per_key:
            return 0
        tried = max(keys for keys, _ in self._observations)
        largest = min(limit, tried * GROWTH)
        return largest if line.per_key * largest <= room else int(room / line.per_key)

    def _fit(self) -> _Line:
        """Fit a line by medians of slopes and starts (Theil and Sen): a few very slow requests do not tilt it."""
        if self._line is None:
            keys, seconds = np.array([(float(keys), seconds) for keys, seconds in self._observations]).T
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
        return list(self._observations)

    def restore(self, state: list[tuple[int, float]]) -> None:
        self._observations.extend(state)
        self._line = None
