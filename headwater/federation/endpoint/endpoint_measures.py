"""What the requests to an endpoint cost: counts, bytes, errors by kind, and the distribution of the latency.

Who spends a budget of time has to predict what a request takes. `Latency.mean` follows the recent past (an
exponentially weighted mean, as TCP keeps one of its round trips), `deviation` how far requests stray from it, and the
quantiles come from a histogram whose buckets grow by a factor, so they are right to about a tenth at any scale.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

_WEIGHT = 0.125
_SHORTEST = 1e-4
_PER_FACTOR_OF_TEN = 24
_BUCKETS = 7 * _PER_FACTOR_OF_TEN


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds from the start of a request to the end of its answer, or to its failure."""

    count: int = 0
    mean: float = 0.0
    deviation: float = 0.0
    longest: float = 0.0
    histogram: tuple[int, ...] = ()

    def quantile(self, share: float) -> float:
        """The time within which that share of the requests ended; 0 where there was none."""
        wanted = max(1, math.ceil(share * self.count))
        seen = 0
        for bucket, count in enumerate(self.histogram):
            seen += count
            if seen >= wanted:
                return min(self.longest, _SHORTEST * 10 ** ((bucket + 1) / _PER_FACTOR_OF_TEN))
        return self.longest

    @property
    def predicted(self) -> float:
        """A cautious guess at the next request: the mean and twice the deviation."""
        return self.mean + 2 * self.deviation


@dataclass(frozen=True, slots=True)
class EndpointMeasures:
    """A snapshot. `requests` counts what was sent, retries and redirects included; sizes are after decompression.

    `dropped_rows` counts rows that the endpoint gave for a key although their terms are not the key's.
    """

    requests: int
    answers: int
    retries: int
    bytes_sent: int
    bytes_received: int
    latency: Latency
    errors: Mapping[str, int]
    failures_in_a_row: int
    last_error: str | None
    dropped_rows: int


class Measuring:
    """Takes the measures of one endpoint, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests = self._answers = self._retries = self._sent = self._received = self._in_a_row = (
            self._dropped
        ) = 0
        self._errors: Counter[str] = Counter()
        self._last_error: str | None = None
        self._count = 0
        self._mean = self._deviation = self._longest = 0.0
        self._histogram = [0] * _BUCKETS

    def sent(self, size: int) -> None:
        """A request goes out."""
        with self._lock:
            self._requests += 1
            self._sent += size

    def ended(self, seconds: float, received: int) -> None:
        """A request is over, well or not."""
        place = 0 if seconds <= _SHORTEST else int(math.log10(seconds / _SHORTEST) * _PER_FACTOR_OF_TEN)
        with self._lock:
            self._received += received
            self._histogram[min(place, _BUCKETS - 1)] += 1
            self._longest = max(self._longest, seconds)
            if self._count == 0:
                self._mean, self._deviation = seconds, seconds / 2
            else:
                self._deviation += _WEIGHT * (abs(seconds - self._mean) - self._deviation)
                self._mean += _WEIGHT * (seconds - self._mean)
            self._count += 1

    def answered(self) -> None:
        """A call got its result."""
        with self._lock:
            self._answers += 1
            self._in_a_row = 0

    def failed(self, kind: str, message: str) -> None:
        """An attempt failed."""
        with self._lock:
            self._errors[kind] += 1
            self._in_a_row += 1
            self._last_error = message

    def retried(self) -> None:
        with self._lock:
            self._retries += 1

    def dropped(self, rows: int) -> None:
        with self._lock:
            self._dropped += rows

    def snapshot(self) -> EndpointMeasures:
        """All of it as it is now."""
        with self._lock:
            latency = Latency(self._count, self._mean, self._deviation, self._longest, tuple(self._histogram))
            return EndpointMeasures(
                requests=self._requests,
                answers=self._answers,
                retries=self._retries,
                bytes_sent=self._sent,
                bytes_received=self._received,
                latency=latency,
                errors=dict(self._errors),
                failures_in_a_row=self._in_a_row,
                last_error=self._last_error,
                dropped_rows=self._dropped,
            )
