"""Counts of the requests to an endpoint: how many, how large, how many failed and why."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class EndpointMeasures:
    """A snapshot. `requests` counts what was sent, retries and redirects included; sizes are after decompression.

    `errors` counts failed attempts by kind. `dropped_rows` counts rows that the endpoint gave for a key although their
    terms are not the key's.
    """

    requests: int = 0
    answers: int = 0
    retries: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)
    failures_in_a_row: int = 0
    dropped_rows: int = 0


class EndpointMeter:
    """Counts the requests to one endpoint, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._measures = EndpointMeasures()

    @property
    def measures(self) -> EndpointMeasures:
        """All counts as they are now."""
        return self._measures

    def record_request(self, size: int) -> None:
        """A request of so many bytes is sent."""
        with self._lock:
            now = self._measures
            self._measures = replace(now, requests=now.requests + 1, bytes_sent=now.bytes_sent + size)

    def record_received(self, size: int) -> None:
        """So many bytes of an answer were received, whether it was complete or not."""
        with self._lock:
            self._measures = replace(self._measures, bytes_received=self._measures.bytes_received + size)

    def record_answer(self) -> None:
        """A call got its result."""
        with self._lock:
            self._measures = replace(self._measures, answers=self._measures.answers + 1, failures_in_a_row=0)

    def record_failure(self, kind: str) -> None:
        """An attempt failed."""
        with self._lock:
            now = self._measures
            errors = {**now.errors, kind: now.errors.get(kind, 0) + 1}
            self._measures = replace(now, errors=errors, failures_in_a_row=now.failures_in_a_row + 1)

    def record_retry(self) -> None:
        """A failed call is tried again."""
        with self._lock:
            self._measures = replace(self._measures, retries=self._measures.retries + 1)

    def record_dropped_rows(self, rows: int) -> None:
        """So many rows of an answer could not be used."""
        with self._lock:
            self._measures = replace(self._measures, dropped_rows=self._measures.dropped_rows + rows)
