"""How large a request should be: half of what was too much, then slowly up to just below it.

    >>> size = BatchSize(100, largest=1000)
    >>> size.failed(100); size.now
    50
    >>> size.succeeded(50); size.now
    62

What was too much once is tried again after a number of requests that went well: it may have been a bad moment.
"""

from __future__ import annotations

import threading

_PATIENCE = 50


class BatchSize:
    """A size that many threads report to."""

    def __init__(self, start: int, largest: int) -> None:
        if not 1 <= start <= largest:
            raise ValueError(f"a batch has at least 1 and at most {largest} parts, and not {start}")
        self._now = start
        self._largest = largest
        self._most = largest
        self._successes = 0
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[BatchSize], tuple[int, int]]:
        return BatchSize, (self._now, self._largest)

    @property
    def now(self) -> int:
        """The size that is worth trying next."""
        return self._now

    def failed(self, size: int) -> None:
        """A request of this size was too much."""
        with self._lock:
            self._most = max(1, min(self._most, size - 1))
            self._now = max(1, min(self._now, size // 2))
            self._successes = 0

    def succeeded(self, size: int) -> None:
        """A request of this size went well; one that was smaller than it could have been says nothing."""
        with self._lock:
            if size < self._now:
                return
            self._successes += 1
            if self._successes >= _PATIENCE:
                self._most, self._successes = self._largest, 0
            self._now = max(self._now, min(self._most, size + max(1, size // 4)))
