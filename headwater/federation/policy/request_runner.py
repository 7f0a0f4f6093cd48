"""Runs several requests at once, waits for them until a deadline, and collects late ones later.

    >>> request_ids = runner.start(remote, [keys[:5], keys[5:]], asked_at=now)
    >>> outcomes = runner.wait(request_ids, until=deadline)     # all that have ended by then, older ones included

`ThreadRequestRunner` uses threads and real time; benchmarks/virtual_time.py has one for experiments, without threads.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Sequence
from concurrent import futures
from dataclasses import dataclass
from typing import Protocol

from headwater.federation.endpoint.clock import Clock
from headwater.federation.endpoint.remote import FetchResult, Remote
from headwater.terms.model import SECOND, Row
from headwater.values.query_guard import current_guard

RequestId = int


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """A request that has ended: its keys, when it was sent (on the clock of ages), and its result."""

    keys: tuple[Row, ...]
    asked_at: int
    fetched: FetchResult


class RequestRunner(Protocol):
    """Runs requests on a fixed number of workers; a request that does not end keeps its worker."""

    @property
    def free_workers(self) -> int:
        """How many requests can start now."""

    def start(self, remote: Remote, requests: Iterable[Sequence[Row]], asked_at: int) -> list[RequestId]:
        """Send requests, at most as many as there are free workers; `asked_at` is now on the clock of ages."""

    def wait(self, request_ids: Iterable[RequestId], until: int | None) -> list[RequestOutcome]:
        """Wait for these requests until an instant of its clock; returns all requests that have ended by then."""

    def close(self) -> None:
        """Abandon the requests that have not ended."""


class ThreadRequestRunner:
    """Runs requests on a pool of threads, in real time."""

    def __init__(self, clock: Clock, workers: int = 8) -> None:
        self._clock = clock
        self._workers = workers
        self._pool = futures.ThreadPoolExecutor(workers, thread_name_prefix="headwater-service")
        self._ids = itertools.count()
        self._under_way: dict[RequestId, futures.Future[RequestOutcome]] = {}

    @property
    def free_workers(self) -> int:
        return self._workers - len(self._under_way)

    def start(self, remote: Remote, requests: Iterable[Sequence[Row]], asked_at: int) -> list[RequestId]:
        request_ids = []
        for keys in itertools.islice(requests, self.free_workers):
            request_id = next(self._ids)
            self._under_way[request_id] = self._pool.submit(send_request, remote, tuple(keys), asked_at)
            request_ids.append(request_id)
        return request_ids

    def wait(self, request_ids: Iterable[RequestId], until: int | None) -> list[RequestOutcome]:
        pending = [self._under_way[request_id] for request_id in request_ids if request_id in self._under_way]
        left = None if until is None else max(0.0, (until - self._clock.now()) / SECOND)
        current_guard().wait(pending, left)
        ended = [request_id for request_id, future in self._under_way.items() if future.done()]
        return [self._under_way.pop(request_id).result() for request_id in ended]

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._under_way.clear()


def send_request(remote: Remote, keys: tuple[Row, ...], asked: int) -> RequestOutcome:
    """Send one request; an exception becomes an `error`, so that a defective remote cannot end the query."""
    started = time.monotonic()
    try:
        fetched = remote.fetch(keys)
    except Exception as error:
        fetched = FetchResult({}, time.monotonic() - started, f"{type(error).__name__}: {error}")
    return RequestOutcome(keys, asked, fetched)
