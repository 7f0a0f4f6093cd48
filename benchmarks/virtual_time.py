"""Virtual time for experiments: a clock that moves only when it is told to, and requests that end on that clock.

No thread is started, so an experiment gives the same results each time.

    >>> clock = VirtualClock(now=0)
    >>> clock.pass_seconds(1.5)
    >>> clock.now()
    1500000
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from headwater.federation.endpoint.remote import Remote
from headwater.federation.policy.request_runner import RequestId, RequestOutcome, send_request
from headwater.terms.model import SECOND, Row


class VirtualClock:
    """Time for experiments: it stands still between two orders to move."""

    def __init__(self, now: int = 0) -> None:
        self._now = now

    def now(self) -> int:
        return self._now

    def pass_seconds(self, seconds: float) -> None:
        self._now += max(0, round(seconds * SECOND))

    def move_to(self, instant: int) -> None:
        """Go on to an instant; one that is over already changes nothing."""
        self._now = max(self._now, instant)


class VirtualRequestRunner:
    """The same on a virtual clock: a request ends when the seconds that it took have passed."""

    def __init__(self, clock: VirtualClock, workers: int = 8) -> None:
        self._clock = clock
        self._workers = workers
        self._numbers = itertools.count()
        self._under_way: dict[RequestId, tuple[int, RequestOutcome]] = {}

    @property
    def free_workers(self) -> int:
        return self._workers - len(self._under_way)

    def start(self, remote: Remote, requests: Iterable[Sequence[Row]], asked_at: int) -> list[RequestId]:
        request_ids = []
        for keys in itertools.islice(requests, self.free_workers):
            request_id = next(self._numbers)
            outcome = send_request(remote, tuple(keys), asked_at)
            ends = self._clock.now() + round(outcome.fetched.seconds * SECOND)
            self._under_way[request_id] = (ends, outcome)
            request_ids.append(request_id)
        return request_ids

    def wait(self, request_ids: Iterable[RequestId], until: int | None) -> list[RequestOutcome]:
        ends = [self._under_way[request_id][0] for request_id in request_ids if request_id in self._under_way]
        if ends:
            self._clock.move_to(max(ends) if until is None else min(max(ends), until))
        now = self._clock.now()
        ended = sorted((end, request_id) for request_id, (end, _) in self._under_way.items() if end <= now)
        return [self._under_way.pop(request_id)[1] for _, request_id in ended]

    def close(self) -> None:
        self._under_way.clear()
