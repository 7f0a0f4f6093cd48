"""Limits for one endpoint: requests at once, requests per second, pauses that it asks for, and back-off.

Every request passes the endpoint's `RequestGate`. It admits a request when fewer than `concurrent` are at work, a token
is in the bucket and no pause is on. Where that cannot happen before the caller's deadline it refuses at once, so that
no time is lost. A pause (429 or 503 with Retry-After) holds for every caller of the endpoint in this process.

    >>> bucket = TokenBucket(per_second=2.0, burst=1, now=0.0)
    >>> bucket.take(0.0), bucket.ready_at(0.0)
    (None, 0.5)

Limits hold per process: with w Spark workers that ask the same endpoint, give each a w-th of what it can take.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from headwater.federation.endpoint.clock import RequestClock
from headwater.federation.endpoint.endpoint_errors import EndpointBusy
from headwater.terms.arguments import check_number, check_whole


@dataclass(frozen=True, slots=True)
class Limits:
    """At most `concurrent` requests at once and `per_second` in the mean, of which `burst` may come together."""

    concurrent: int = 4
    per_second: float | None = None
    burst: int = 1

    def __post_init__(self) -> None:
        check_whole("concurrent", self.concurrent, 1)
        check_whole("burst", self.burst, 1)
        if self.per_second is not None:
            check_number("per_second", self.per_second, can_be_zero=False)


class TokenBucket:
    """A token bucket: `per_second` tokens flow in, at most `burst` are kept, each request takes one."""

    def __init__(self, per_second: float, burst: int, now: float) -> None:
        self._rate = per_second
        self._burst = burst
        self._tokens = float(burst)
        self._at = now

    def _tokens_at(self, now: float) -> float:
        return min(self._burst, self._tokens + max(0.0, now - self._at) * self._rate)

    def ready_at(self, now: float) -> float:
        """When the next token is available: `now`, or later."""
        return now + max(0.0, 1.0 - self._tokens_at(now)) / self._rate

    def take(self, now: float) -> None:
        """Take a token; `ready_at(now)` must be `now`."""
        self._tokens = self._tokens_at(now) - 1.0
        self._at = max(self._at, now)


class RequestGate:
    """Admits the requests to one endpoint, in all threads of this process."""

    def __init__(self, name: str, limits: Limits, clock: RequestClock) -> None:
        self._name = name
        self._limits = limits
        self._clock = clock
        self._slots = threading.BoundedSemaphore(limits.concurrent)
        self._lock = threading.Lock()
        self._resume = float("-inf")
        rate = limits.per_second
        self._bucket = None if rate is None else TokenBucket(rate, limits.burst, clock.now())

    def pause(self, seconds: float) -> None:
        """Admit nothing for so many seconds; a longer pause that is on already stays."""
        with self._lock:
            self._resume = max(self._resume, self._clock.now() + seconds)

    @property
    def remaining_pause(self) -> float:
        """How many seconds the pause still lasts; 0 if there is none."""
        return max(0.0, self._resume - self._clock.now())

    @contextmanager
    def enter(self, deadline: float) -> Iterator[None]:
        """Hold one of the `concurrent` slots; raise `EndpointBusy` if none is to be had before the deadline."""
        self._next_turn(deadline)
        if not self._slots.acquire(timeout=max(0.0, deadline - self._clock.now())):
            raise EndpointBusy(
                self._name, f"{self._limits.concurrent} requests are at work, and none ended in the time that was left"
            )
        try:
            self._wait_for_turn(deadline)
            yield
        finally:
            self._slots.release()

    def _next_turn(self, deadline: float) -> float:
        """When the next request may start; raises `EndpointBusy` if that is after the deadline."""
        now = self._clock.now()
        resume = max(now, self._resume)
        turn = resume if self._bucket is None else max(resume, self._bucket.ready_at(now))
        if turn > deadline:
            reason = "it asked for a pause" if resume > deadline else f"{self._limits.per_second:g} requests per second"
            message = f"not asked for another {turn - now:.3g} s ({reason})"
            raise EndpointBusy(self._name, message, retry_after=turn - now)
        return turn

    def _wait_for_turn(self, deadline: float) -> None:
        while True:
            with self._lock:
                turn = self._next_turn(deadline)
                now = self._clock.now()
                if turn <= now:
                    if self._bucket is not None:
                        self._bucket.take(now)
                    return
            self._clock.sleep(turn - now)


class Backoff:
    """Exponential back-off with jitter, so that many clients do not try again at the same moment."""

    def __init__(self, base: float, longest: float, seed: int | None = None) -> None:
        self._base = base
        self._longest = longest
        self._random = random.Random(seed)

    def delay(self, attempt: int) -> float:
        """Seconds to wait after a failed attempt; `attempt` counts from 0."""
        whole = min(self._longest, self._base * 2.0 ** min(attempt, 60))
        return whole * (0.5 + self._random.random() / 2)


def parse_retry_after(value: str | None, today: datetime) -> float | None:
    """The seconds of a Retry-After header, written as a number or as an HTTP date; None if it is neither."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - today).total_seconds())
