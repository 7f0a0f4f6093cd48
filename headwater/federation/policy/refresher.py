"""Sending refreshes and taking in what they bring: waves of requests, sized by what the endpoint can do in time.

A wave is as many requests at once as there are free workers, each as large as the endpoint takes and the time allows;
then the next one. A key that is under way already is not asked for again. After a wave that failed altogether the next
one is a single key, until one is answered: an endpoint that is down is not stormed, and is found again when it is
back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from headwater.federation.endpoint.clock import Clock
from headwater.federation.endpoint.remote import Remote
from headwater.federation.policy.latency_model import LatencyModel
from headwater.federation.policy.rankers import Ranker
from headwater.federation.policy.request_runner import Outcome, Runner
from headwater.federation.view.local_view import LocalView
from headwater.terms.model import SECOND, Row


@dataclass(slots=True)
class Tally:
    """What requests came to: how many were sent, and the keys that were answered and that failed."""

    requests: int = 0
    refreshes: int = 0
    failures: int = 0


class Refresher:
    """Asks one remote on behalf of one view."""

    def __init__(
        self,
        view: LocalView,
        remote: Remote,
        ranker: Ranker,
        clock: Clock,
        runner: Runner,
        latency: LatencyModel,
    ) -> None:
        self.latency = latency
        self.under_way: set[Row] = set()
        self._view = view
        self._remote = remote
        self._ranker = ranker
        self._clock = clock
        self._runner = runner
        self._failing = False

    def absorb(self) -> Tally:
        """Take in what came too late for its own tick."""
        late = Tally()
        self._take_in(self._runner.wait((), self._clock.now()), late)
        return late

    def wave(self, queue: deque[Row], most: int, until: int | None, tally: Tally) -> bool:
        """Send one wave, at most so many keys from the front of the queue, and wait; whether it brought anything."""
        size = self._remote.batch
        if until is not None:
            size = self.latency.largest((until - self._clock.now()) / SECOND, size)
        return self._send(queue, most, size, until, tally)

    def background(self, queue: deque[Row], most: int, within: int, tally: Tally) -> bool:
        """The same without waiting, for an endpoint that is slower than a tick may be: it serves the next one."""
        size = max(1, self.latency.largest(within / SECOND, self._remote.batch))
        return self._send(queue, most, size, self._clock.now(), tally)

    def _send(self, queue: deque[Row], most: int, size: int, until: int | None, tally: Tally) -> bool:
        workers = self._runner.free
        if self._failing:
            size, workers = min(size, 1), min(workers, 1)
        count = min(len(queue), most, size * workers)
        if count <= 0:
            return False
        keys = [queue.popleft() for _ in range(count)]
        self.under_way.update(keys)
        before = tally.refreshes
        requests = [keys[begin : begin + size] for begin in range(0, count, size)]
        tickets = self._runner.start(self._remote, requests)
        tally.requests += len(tickets)
        self._take_in(self._runner.wait(tickets, until), tally)
        return tally.refreshes > before

    def _take_in(self, outcomes: Sequence[Outcome], tally: Tally) -> None:
        for outcome in outcomes:
            self.under_way.difference_update(outcome.keys)
            for key in outcome.keys:
                self._take_in_key(key, outcome, tally)
            observe = self.latency.observe if outcome.fetched.error is None else self.latency.observe_failure
            observe(len(outcome.keys), outcome.fetched.seconds)
        if outcomes:
            self._failing = not any(outcome.fetched.rows for outcome in outcomes)

    def _take_in_key(self, key: Row, outcome: Outcome, tally: Tally) -> None:
        rows = outcome.fetched.rows.get(key)
        if rows is None:
            self._view.fail(key, outcome.asked)
            tally.failures += 1
            return
        entry = self._view.get(key)
        best_before = outcome.asked if entry is None else self._ranker.best_before(entry, outcome.asked)
        self._view.store(key, rows, outcome.asked, best_before)
        tally.refreshes += 1
