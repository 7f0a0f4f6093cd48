"""Requests under way: several at once, waited for until a deadline, and taken up later if they come late.

    >>> tickets = runner.start(remote, [keys[:5], keys[5:]])
    >>> outcomes = runner.wait(tickets, until=deadline)     # whatever has come by then, older ones included

`ThreadRunner` does it with threads and real time; benchmarks/virtual_time.py has one for experiments, without threads.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Sequence
from concurrent import futures
from dataclasses import dataclass
from typing import Protocol

from headwater.federation.endpoint.clock import Clock
from headwater.federation.endpoint.remote import Fetched, Remote
from headwater.terms.model import SECOND, Row

Ticket = int


@dataclass(frozen=True, slots=True)
class Outcome:
    """A request that has ended: what was asked, when, and what came."""

    keys: tuple[Row, ...]
    asked: int
    fetched: Fetched


class Runner(Protocol):
    """Has so many workers; a request that does not end keeps its worker."""

    @property
    def free(self) -> int:
        """How many requests can start at once now."""

    def start(self, remote: Remote, requests: Iterable[Sequence[Row]]) -> list[Ticket]:
        """Send requests, at most as many as there are free workers."""

    def wait(self, tickets: Iterable[Ticket], until: int | None) -> list[Outcome]:
        """Wait for these until an instant, and take everything that has ended by then."""

    def close(self) -> None:
        """Wait for nothing any more."""


class ThreadRunner:
    """A pool of threads."""

    def __init__(self, clock: Clock, workers: int = 8) -> None:
        self._clock = clock
        self._workers = workers
        self._pool = futures.ThreadPoolExecutor(workers, thread_name_prefix="headwater-service")
        self._numbers = itertools.count()
        self._under_way: dict[Ticket, futures.Future[Outcome]] = {}

    @property
    def free(self) -> int:
        return self._workers - len(self._under_way)

    def start(self, remote: Remote, requests: Iterable[Sequence[Row]]) -> list[Ticket]:
        tickets = []
        for keys in itertools.islice(requests, self.free):
            ticket = next(self._numbers)
            self._under_way[ticket] = self._pool.submit(send_request, remote, tuple(keys), self._clock.now())
            tickets.append(ticket)
        return tickets

    def wait(self, tickets: Iterable[Ticket], until: int | None) -> list[Outcome]:
        wanted = [self._under_way[ticket] for ticket in tickets if ticket in self._under_way]
        left = None if until is None else max(0.0, (until - self._clock.now()) / SECOND)
        futures.wait(wanted, timeout=left)
        ended = [ticket for ticket, future in self._under_way.items() if future.done()]
        return [self._under_way.pop(ticket).result() for ticket in ended]

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._under_way.clear()


def send_request(remote: Remote, keys: tuple[Row, ...], asked: int) -> Outcome:
    """A remote that breaks its promise not to raise must not take the query with it."""
    begun = time.monotonic()
    try:
        fetched = remote.fetch(keys)
    except Exception as error:
        fetched = Fetched({}, time.monotonic() - begun, f"{type(error).__name__}: {error}")
    return Outcome(keys, asked, fetched)
