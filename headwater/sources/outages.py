"""Outages of a broker: how they are recognised, and the waits before another try."""

from __future__ import annotations

import time
from threading import Event

_OUTAGE_MESSAGES = (
    "org.apache.kafka.common.errors.TimeoutException",
    "org.apache.kafka.common.errors.DisconnectException",
    "org.apache.kafka.common.errors.NetworkException",
    "org.apache.kafka.common.errors.NotLeaderOrFollowerException",
    "org.apache.kafka.common.errors.LeaderNotAvailableException",
    "org.apache.kafka.common.errors.CoordinatorNotAvailableException",
    "org.apache.kafka.common.errors.BrokerNotAvailableException",
    "Failed to get records for",
)
_MISSING_TOPIC = ("UnknownTopicOrPartitionException", "not present in metadata after")
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 30.0
_PATIENCE_SECONDS = 3600.0
_SECONDS_WITHOUT_FAILURE = 120.0


def is_outage(error: BaseException) -> bool:
    """Whether an error, or one that caused it, means that Kafka did not answer."""
    return _has_message(error, _OUTAGE_MESSAGES)


def is_missing_topic(error: BaseException) -> bool:
    """Whether an error, or one that caused it, means that a broker has no topic of that name."""
    return _has_message(error, _MISSING_TOPIC)


def _has_message(error: BaseException, messages: tuple[str, ...]) -> bool:
    """Whether one of some messages stands in an error, or in one that caused it."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        if any(message in str(link) for message in messages):
            return True
        seen.add(id(link))
        link = link.__cause__ or link.__context__
    return False


class BackOff:
    """Waits that double, from a second to half a minute, and begin anew after two minutes without a failure."""

    def __init__(self, patience: float = _PATIENCE_SECONDS) -> None:
        self._patience = patience
        self._wait = _FIRST_WAIT
        self._began: float | None = None
        self._last = 0.0

    def wait(self, stop: Event) -> bool:
        """Wait before another try; False where `stop` was set, or where the outage lasts longer than the patience."""
        now = time.monotonic()
        if self._began is None or now - self._last > _SECONDS_WITHOUT_FAILURE:
            self._began, self._wait = now, _FIRST_WAIT
        if now - self._began > self._patience or stop.wait(self._wait):
            return False
        self._wait = min(2 * self._wait, _LONGEST_WAIT)
        self._last = time.monotonic()
        return True
