"""Fetches the rows of many keys before a deadline: several requests at once, each for many keys, halved if it fails.

An endpoint may refuse VALUES (SPARQL 1.0: status 400, but some answer 500 or a web page). It is then sent the smallest
query with VALUES. If it refuses that too, keys are requested one by one. If the first of them is answered, the endpoint
does not know VALUES; otherwise it refuses everything at present, and nothing is concluded.

A request that may have failed because of its size or of one of its keys is cut in two. So one bad key costs about ten
requests and is reported alone. An endpoint that is unreachable, busy, or fails many times in a row is not asked again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field

from headwater.federation.endpoint.client import Endpoint
from headwater.federation.endpoint.endpoint_errors import (
    EndpointBusy,
    EndpointError,
    EndpointGarbage,
    EndpointRefused,
    EndpointTimeout,
    EndpointUnreachable,
    UnsendableKey,
)
from headwater.federation.endpoint.protocol import Results, ResultTable
from headwater.federation.endpoint.remote import Rows
from headwater.federation.endpoint.request_queries import PROBE, PROBE_ANSWER, RequestQueries
from headwater.federation.endpoint.request_size import RequestSize
from headwater.terms.model import BlankNode, Literal, NamedNode, Row, Term

_HOPELESS = frozenset({401, 403, 404, 405})
"""Refusals that do not depend on the keys."""
_FAILURES_TO_GIVE_UP = 12
"""Failures in a row after which the rest is not requested. Finding one bad key among a thousand takes ten."""
_TOO_SHORT = 0.005
"""So few seconds before the deadline no request can be answered."""


@dataclass(frozen=True, slots=True)
class _Request:
    """The keys of a request; `is_single` if it has one key and no VALUES."""

    keys: tuple[Row, ...]
    is_single: bool


@dataclass
class KeyRequests:
    """One call: keys that wait, requests at work, rows and failures so far. `run` is called once."""

    endpoint: Endpoint
    queries: RequestQueries
    size: RequestSize
    deadline: float
    rows: dict[Row, Rows] = field(default_factory=dict)
    failures: dict[Row, EndpointError] = field(default_factory=dict)
    dropped: int = 0
    _todo: deque[Row] = field(default_factory=deque)
    _halves: deque[tuple[Row, ...]] = field(default_factory=deque)
    _in_flight: dict[Future[Results], _Request] = field(default_factory=dict)
    _failures_in_a_row: int = 0
    _has_refused_values: bool = False

    def run(self, keys: Iterable[Row]) -> None:
        for key in dict.fromkeys(keys):
            self._queue_key(key)
        while self._todo or self._halves or self._in_flight:
            while (self._todo or self._halves) and len(self._in_flight) < self._most_in_flight():
                self._send_request(self._halves.popleft() if self._halves else self._next_keys())
            left = max(0.0, self.deadline - self.endpoint.now())
            done, _ = wait(self._in_flight, timeout=left, return_when=FIRST_COMPLETED)
            if not done:
                self._give_up(self.endpoint.timeout_error(), also_in_flight=True)
            for future in done:
                self._handle_result(self._in_flight.pop(future), future)

    def _queue_key(self, key: Row) -> None:
        """Queue a key to be requested; one that no query text can hold is a failure."""
        if len(key) != len(self.queries.join_variables):
            raise ValueError(f"a key has {len(self.queries.join_variables)} terms, and this one {len(key)}: {key}")
        if all(term is None or isinstance(term, NamedNode | Literal) for term in key):
            self._todo.append(key)
        else:
            kind = "a blank node" if any(isinstance(term, BlankNode) for term in key) else "a triple term"
            self.failures[key] = UnsendableKey(self.endpoint.name, f"{kind} cannot be asked for")

    def _most_in_flight(self) -> int:
        """How many requests may be at work: one until it is known whether the endpoint takes VALUES."""
        return 1 if self.endpoint.can_take_values is None else self.endpoint.settings.limits.concurrent

    @property
    def _needs_single_keys(self) -> bool:
        return self._has_refused_values or self.endpoint.can_take_values is False

    def _next_keys(self) -> tuple[Row, ...]:
        return tuple(self._todo.popleft() for _ in range(min(self.size.current, len(self._todo))))

    def _send_request(self, keys: tuple[Row, ...]) -> None:
        is_single = self._needs_single_keys
        if is_single:
            self._todo.extendleft(reversed(keys[1:]))
            keys = keys[:1]
        text = self.queries.select_key(keys[0]) if is_single else self.queries.select_keys(keys)
        self._in_flight[self.endpoint.submit(text, self.deadline)] = _Request(keys, is_single)

    def _handle_result(self, request: _Request, future: Future[Results]) -> None:
        try:
            table = future.result()
            if not isinstance(table, ResultTable):
                raise EndpointGarbage(self.endpoint.name, "a SELECT query was answered with true or false")
            if request.is_single:
                self._store_single_result(request.keys[0], table)
            else:
                self._store_values_result(request.keys, table)
        except EndpointError as error:
            self._handle_error(request, error)
        else:
            self._failures_in_a_row = 0

    def _store_single_result(self, key: Row, table: ResultTable) -> None:
        """Store the rows of a key that was asked for alone; VALUES counts as refused from now on."""
        self.endpoint.can_take_values = False
        self._store_rows({key: list(table.project(self.queries.names))})

    def _store_values_result(self, keys: tuple[Row, ...], table: ResultTable) -> None:
        by_key: dict[Row, list[Row]] = {key: [] for key in keys}
        for index, *row in table.project([self.queries.key_index, *self.queries.names]):
            by_key[keys[self._key_index(index, len(keys))]].append(tuple(row))
        self.endpoint.can_take_values = True
        self.size.report_success(len(keys))
        self._store_rows(by_key)

    def _key_index(self, term: Term | None, count: int) -> int:
        if isinstance(term, Literal) and term.value.isdecimal() and int(term.value) < count:
            return int(term.value)
        raise EndpointGarbage(self.endpoint.name, "the rows do not say which key of VALUES they belong to")

    def _store_rows(self, by_key: Mapping[Row, list[Row]]) -> None:
        """Keep the rows that the endpoint gave for each key; those that contradict their key are counted as dropped."""
        for key, rows in by_key.items():
            compatible = [row for row in rows if self.queries.is_compatible(row, key)]
            self.dropped += len(rows) - len(compatible)
            self.rows[key] = tuple(self.queries.join_key(row, key) for row in compatible)

    def _handle_error(self, request: _Request, error: EndpointError) -> None:
        """Decide what a failed request means: ask key by key, in halves, or give up."""
        keys = request.keys
        if not request.is_single and self.endpoint.can_take_values is not True and _can_be_refusal_of_values(error):
            try:
                if self.endpoint.can_take_values is None and self._can_take_probe():
                    self.endpoint.can_take_values = True
                else:
                    # Certain only when the first key is answered: perhaps the endpoint refuses everything.
                    self._has_refused_values = True
                    self._todo.extendleft(reversed(keys))
                    return
            except EndpointError as probe_error:
                error = probe_error
        self._failures_in_a_row += 1
        is_over = isinstance(error, EndpointTimeout) and self.endpoint.now() >= self.deadline - _TOO_SHORT
        is_hopeless = not _can_depend_on_size(error) or (request.is_single and self.endpoint.can_take_values is None)
        if is_over or is_hopeless or self._failures_in_a_row >= _FAILURES_TO_GIVE_UP:
            self.failures.update(dict.fromkeys(keys, error))
            self._give_up(error)
        elif len(keys) == 1:
            self.failures[keys[0]] = error
        else:
            self.size.report_failure(len(keys))
            half = (len(keys) + 1) // 2
            self._halves.extendleft((keys[half:], keys[:half]))

    def _can_take_probe(self) -> bool:
        """Whether the endpoint answers the smallest query with VALUES as it should."""
        try:
            left = max(0.0, self.deadline - self.endpoint.now())
            return self.endpoint.select(PROBE, left).rows == PROBE_ANSWER
        except EndpointError as error:
            if _can_be_refusal_of_values(error):
                return False
            raise

    def _give_up(self, error: EndpointError, also_in_flight: bool = False) -> None:
        waiting = [*self._todo, *(key for half in self._halves for key in half)]
        if also_in_flight:
            waiting += [key for request in self._in_flight.values() for key in request.keys]
            self._in_flight.clear()
        self.failures.update(dict.fromkeys(waiting, error))
        self._todo.clear()
        self._halves.clear()


def _can_depend_on_size(error: EndpointError) -> bool:
    """Whether a smaller request may succeed where this one failed."""
    if isinstance(error, EndpointRefused):
        return error.status not in _HOPELESS
    return not isinstance(error, EndpointUnreachable | EndpointBusy)


def _can_be_refusal_of_values(error: EndpointError) -> bool:
    """Whether the error may mean that the endpoint does not know VALUES. Not all answer 400."""
    if isinstance(error, EndpointRefused):
        return error.status not in _HOPELESS | {413, 414}
    return isinstance(error, EndpointGarbage)
