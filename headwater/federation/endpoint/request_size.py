"""The size of requests, adapted to what the endpoint takes: halved after a failure, then slowly raised again.

    >>> size = RequestSize(100, largest=1000)
    >>> size.report_failure(100); size.current
    50
    >>> size.report_success(50); size.current
    62

A size that failed once is tried again after a number of successes: the failure may have had another cause.
"""

from __future__ import annotations

import threading

_SUCCESSES_TO_RETRY = 50


class RequestSize:
    """The number of keys or rows of the next request; many threads may report to it."""

    def __init__(self, start: int, largest: int) -> None:
        if not 1 <= start <= largest:
            raise ValueError(f"a batch has at least 1 and at most {largest} parts, and not {start}")
        self._current = start
        self._largest = largest
        self._ceiling = largest
        self._successes = 0
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[RequestSize], tuple[int, int]]:
        return RequestSize, (self._current, self._largest)

    @property
    def current(self) -> int:
        """The size to try next."""
        return self._current

    def report_failure(self, size: int) -> None:
        """Note that a request of this size was too large."""
        with self._lock:
            self._ceiling = max(1, min(self._ceiling, size - 1))
            self._current = max(1, min(self._current, size // 2))
            self._successes = 0

    def report_success(self, size: int) -> None:
        """Note that a request of this size was answered; one below the current size is no evidence."""
        with self._lock:
            if size < self._current:
                return
            self._successes += 1
            if self._successes >= _SUCCESSES_TO_RETRY:
                self._ceiling, self._successes = self._largest, 0
            self._current = max(self._current, min(self._ceiling, size + max(1, size // 4)))
