"""Sends refreshes in waves of requests and stores their results in the view.

A wave is as many requests at once as there are free workers, each as large as the endpoint takes and the time allows.
A key whose request has not ended is not requested again. After a wave in which all requests failed, the next wave is a
single key, until one is answered: an endpoint that is down gets few requests, and its return is noticed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from headwater.federation.endpoint.clock import Clock
from headwater.federation.endpoint.remote import Remote
from headwater.federation.policy.latency_model import LatencyModel
from headwater.federation.policy.rankers import Ranker
from headwater.federation.policy.request_runner import RequestOutcome, RequestRunner
from headwater.federation.view.local_view import Entry, LocalView
from headwater.terms.model import SECOND, Row


@dataclass(slots=True)
class RequestCounts:
    """How many requests were sent, and how many keys were refreshed and failed."""

    requests: int = 0
    refreshes: int = 0
    failures: int = 0


class Refresher:
    """Sends the requests of one view to one remote; entries get their ages by the clock `ages`."""

    def __init__(
        self,
        view: LocalView,
        remote: Remote,
        ranker: Ranker,
        clock: Clock,
        ages: Clock,
        runner: RequestRunner,
        latency: LatencyModel,
    ) -> None:
        self.latency = latency
        self.under_way: set[Row] = set()
        self._view = view
        self._remote = remote
        self._ranker = ranker
        self._clock = clock
        self._ages = ages
        self._runner = runner
        self._is_failing = False

    def store_late_results(self) -> RequestCounts:
        """Store the results that came too late for their own tick."""
        late = RequestCounts()
        self._store_results(self._runner.wait((), self._clock.now()), late)
        return late

    def send_wave(self, queue: deque[Row], most: int, until: int | None, counts: RequestCounts) -> bool:
        """Send a wave of at most `most` keys from the front of the queue and wait; returns whether it refreshed one."""
        size = self._remote.keys_per_request
        if until is not None:
            size = self.latency.largest_request((until - self._clock.now()) / SECOND, size)
        return self._send_requests(queue, most, size, until, counts)

    def send_in_background(self, queue: deque[Row], most: int, within: int, counts: RequestCounts) -> bool:
        """Send a wave without waiting, for an endpoint that is too slow for a tick: its results serve the next one."""
        size = max(1, self.latency.largest_request(within / SECOND, self._remote.keys_per_request))
        return self._send_requests(queue, most, size, self._clock.now(), counts)

    def _send_requests(self, queue: deque[Row], most: int, size: int, until: int | None, counts: RequestCounts) -> bool:
        """Request up to `most` keys, `size` each, and wait until the instant `until`."""
        workers = self._runner.free_workers
        if self._is_failing:
            size, workers = min(size, 1), min(workers, 1)
        count = min(len(queue), most, size * workers)
        if count <= 0:
            return False
        keys = [queue.popleft() for _ in range(count)]
        self.under_way.update(keys)
        before = counts.refreshes
        requests = [keys[begin : begin + size] for begin in range(0, count, size)]
        request_ids = self._runner.start(self._remote, requests, self._ages.now())
        counts.requests += len(request_ids)
        self._store_results(self._runner.wait(request_ids, until), counts)
        return counts.refreshes > before

    def _store_results(self, outcomes: Sequence[RequestOutcome], counts: RequestCounts) -> None:
        for outcome in outcomes:
            self.under_way.difference_update(outcome.keys)
            for key in outcome.keys:
                self._store_key(key, outcome, counts)
            observe = self.latency.observe if outcome.fetched.error is None else self.latency.observe_failure
            observe(len(outcome.keys), outcome.fetched.seconds)
        if outcomes:
            self._is_failing = not any(outcome.fetched.rows for outcome in outcomes)

    def _store_key(self, key: Row, outcome: RequestOutcome, counts: RequestCounts) -> None:
        rows = outcome.fetched.rows.get(key)
        if rows is None:
            self._view.record_failure(key, outcome.asked_at)
            counts.failures += 1
            return
        entry = self._view.get(key) or Entry(key, rows, outcome.asked_at, outcome.asked_at)
        self._view.store(key, rows, outcome.asked_at, self._ranker.best_before(entry, outcome.asked_at))
        counts.refreshes += 1
