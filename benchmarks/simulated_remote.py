"""A simulated remote for tests and experiments: it replays a log of changes on a clock, with delays and failures.

    >>> log = SimulatedChanges([(0, (user,), ((user, ten),)), (60_000_000, (user,), ((user, eleven),))])
    >>> remote = SimulatedRemote(log, clock, Behaviour(delay=0.02, jitter=0.005, errors=0.01), seed=7)
    >>> remote.fetch([(user,)]).rows
    {(user,): ((user, ten),)}

It is deterministic: the same seed and the same requests at the same instants give the same answers, delays and errors.
It takes no time itself: the result of a request holds its duration, and the runner on a virtual clock
(`VirtualRequestRunner`) lets that time pass. With `pause=time.sleep` it takes real time instead.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from headwater.federation.endpoint.clock import Clock
from headwater.federation.endpoint.remote import FetchResult, Page, Rows
from headwater.federation.view.local_view import share_of_difference
from headwater.terms.model import Row

Change = tuple[int, Row, Rows]
"""From this instant on the key has these rows; no rows: the key is gone."""


class SimulatedChanges:
    """The remote's history. A change to the rows that a key has already (a duplicate in the log) is no change."""

    def __init__(self, changes: Iterable[Change]) -> None:
        by_key: dict[Row, dict[int, Rows]] = {}
        for instant, key, rows in changes:
            by_key.setdefault(key, {})[instant] = rows
        self._instants: dict[Row, list[int]] = {}
        self._rows: dict[Row, list[Rows]] = {}
        for key, by_instant in by_key.items():
            instants, history = self._instants.setdefault(key, []), self._rows.setdefault(key, [])
            for instant, rows in sorted(by_instant.items(), key=lambda change: change[0]):
                if not history or share_of_difference(history[-1], rows) > 0.0:
                    instants.append(instant)
                    history.append(rows)

    def __iter__(self) -> Iterator[Row]:
        """The keys."""
        return iter(self._instants)

    def rows_at(self, key: Row, instant: int) -> Rows:
        count = bisect_right(self._instants.get(key, []), instant)
        return self._rows[key][count - 1] if count else ()

    def next_change(self, key: Row, instant: int) -> int | None:
        instants = self._instants.get(key, [])
        index = bisect_right(instants, instant)
        return instants[index] if index < len(instants) else None

    def last_change(self, key: Row, instant: int) -> int | None:
        """When the rows of the key changed last, at an instant."""
        instants = self._instants.get(key, [])
        index = bisect_right(instants, instant)
        return instants[index - 1] if index else None

    def changes_between(self, key: Row, begin: int, end: int) -> int:
        """How many changes lie in `(begin, end]`."""
        instants = self._instants.get(key, [])
        return bisect_right(instants, end) - bisect_right(instants, begin)


@dataclass(frozen=True, slots=True)
class Outage:
    """From `begin` up to, not including, `end` no request is answered."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Behaviour:
    """The delays (seconds) and failures (shares of requests) of a simulated remote, and its outages.

    A request takes `delay`, `per_key` for each key, and up to `jitter` more; a share `slow` of them takes `slow_delay`
    on top. A share `errors` fails; a share `duplicates` of pages repeats the end of the page before. While it is dead,
    a request fails after `dead_delay`.
    """

    delay: float = 0.0
    per_key: float = 0.0
    jitter: float = 0.0
    slow: float = 0.0
    slow_delay: float = 0.0
    errors: float = 0.0
    duplicates: float = 0.0
    outages: tuple[Outage, ...] = ()
    dead_delay: float = 0.0
    keys_per_request: int = 1


class SimulatedRemote:
    """Answers from a change log, as of the instant at which it is asked."""

    def __init__(
        self,
        log: SimulatedChanges,
        clock: Clock,
        behaviour: Behaviour | None = None,
        seed: int = 0,
        pause: Callable[[float], None] | None = None,
        name: str = "simulated",
    ) -> None:
        self.log = log
        self.name = name
        self.requests = 0
        self._clock = clock
        self._behaviour = behaviour or Behaviour()
        self._random = random.Random(seed)
        self._pause = pause

    @property
    def keys_per_request(self) -> int:
        return self._behaviour.keys_per_request

    def fetch(self, keys: Sequence[Row]) -> FetchResult:
        seconds, error = self._request(len(keys))
        now = self._clock.now()
        rows = {} if error is not None else {key: self.log.rows_at(key, now) for key in keys}
        if self._pause is not None:
            self._pause(seconds)
        return FetchResult(rows, seconds, error)

    def pages(self, limit: int) -> Iterator[Page]:
        pairs = [(key, row) for key in self.log for row in self.log.rows_at(key, self._clock.now())]
        for begin in range(0, max(1, len(pairs)), limit):
            repeated = min(begin, limit // 2) if self._random.random() < self._behaviour.duplicates else 0
            page = pairs[begin - repeated : begin + limit]
            seconds, error = self._request(len(page))
            yield Page([] if error is not None else page, seconds, error)
            if error is not None:
                return

    def _request(self, size: int) -> tuple[float, str | None]:
        """How long a request of so many keys takes, and why it fails if it does."""
        self.requests += 1
        behaviour, now = self._behaviour, self._clock.now()
        luck, slowness, spread = self._random.random(), self._random.random(), self._random.random()
        if any(outage.begin <= now < outage.end for outage in behaviour.outages):
            return behaviour.dead_delay, "the remote is dead"
        seconds = behaviour.delay + behaviour.per_key * size + behaviour.jitter * spread
        if slowness < behaviour.slow:
            seconds += behaviour.slow_delay
        return seconds, "the remote answers with an error" if luck < behaviour.errors else None
