"""The requests that one call for some keys makes: in batches, several at once, halved where they fail, in time.

An endpoint that refuses VALUES (SPARQL 1.0 says 400, but some say 500 or answer with a page) is asked for VALUES in the
smallest query there is. If it refuses that too, keys are asked for one by one; if the first of them is answered, the
endpoint is known to be so, otherwise it refuses everything just now and nothing is known.

A batch that fails for a reason that may lie in its size or in one of its keys is cut in two. So one bad key costs some
ten requests and is reported alone. An endpoint that is not there, busy, or fails many times in a row is left alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field

from headwater.federation.endpoint.batch_size import BatchSize
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
from headwater.federation.endpoint.protocol import Results, Table
from headwater.federation.endpoint.remote import Rows
from headwater.federation.endpoint.request_queries import PROBE, PROBE_ANSWER, Questions
from headwater.terms.model import BlankNode, Literal, NamedNode, Row, Term

_HOPELESS = frozenset({401, 403, 404, 405})
"""Refusals that do not depend on the keys."""
_FAILURES_TO_GIVE_UP = 12
"""Failures in a row after which the rest is not asked for. Finding one bad key among a thousand takes ten."""
_NO_TIME = 0.005
"""Seconds in which no request is worth its while."""


@dataclass(frozen=True, slots=True)
class _Request:
    """The keys that a request asks for; `alone` says that it does without VALUES."""

    keys: tuple[Row, ...]
    alone: bool


@dataclass
class KeyRequests:
    """One call: keys that wait, requests at work, what came. `run` is called once."""

    endpoint: Endpoint
    questions: Questions
    size: BatchSize
    deadline: float
    rows: dict[Row, Rows] = field(default_factory=dict)
    failures: dict[Row, EndpointError] = field(default_factory=dict)
    dropped: int = 0
    _todo: deque[Row] = field(default_factory=deque)
    _halves: deque[tuple[Row, ...]] = field(default_factory=deque)
    _in_flight: dict[Future[Results], _Request] = field(default_factory=dict)
    _in_a_row: int = 0
    _refused_values: bool = False

    def run(self, keys: Iterable[Row]) -> None:
        for key in dict.fromkeys(keys):
            self._accept(key)
        while self._todo or self._halves or self._in_flight:
            while (self._todo or self._halves) and len(self._in_flight) < self._width():
                self._send(self._halves.popleft() if self._halves else self._next())
            left = max(0.0, self.deadline - self.endpoint.now())
            done, _ = wait(self._in_flight, timeout=left, return_when=FIRST_COMPLETED)
            if not done:
                self._give_up(self.endpoint.late(), also_in_flight=True)
            for future in done:
                self._handle(self._in_flight.pop(future), future)

    def _accept(self, key: Row) -> None:
        if len(key) != len(self.questions.join_variables):
            raise ValueError(f"a key has {len(self.questions.join_variables)} terms, and this one {len(key)}: {key}")
        if all(term is None or isinstance(term, NamedNode | Literal) for term in key):
            self._todo.append(key)
        else:
            kind = "a blank node" if any(isinstance(term, BlankNode) for term in key) else "a triple term"
            self.failures[key] = UnsendableKey(self.endpoint.name, f"{kind} cannot be asked for")

    def _width(self) -> int:
        """How many requests may be at work: one until it is known what the endpoint takes."""
        return 1 if self.endpoint.takes_values is None else self.endpoint.settings.limits.concurrent

    @property
    def _one_by_one(self) -> bool:
        return self._refused_values or self.endpoint.takes_values is False

    def _next(self) -> tuple[Row, ...]:
        return tuple(self._todo.popleft() for _ in range(min(self.size.now, len(self._todo))))

    def _send(self, keys: tuple[Row, ...]) -> None:
        alone = self._one_by_one
        if alone:
            self._todo.extendleft(reversed(keys[1:]))
            keys = keys[:1]
        text = self.questions.for_key(keys[0]) if alone else self.questions.for_keys(keys)
        self._in_flight[self.endpoint.submit(text, self.deadline)] = _Request(keys, alone)

    def _handle(self, request: _Request, future: Future[Results]) -> None:
        try:
            found = future.result()
            if not isinstance(found, Table):
                raise EndpointGarbage(self.endpoint.name, "a SELECT query was answered with true or false")
            if request.alone:
                self._take_one(request.keys[0], found)
            else:
                self._take_many(request.keys, found)
        except EndpointError as error:
            self._handle_error(request, error)
        else:
            self._in_a_row = 0

    def _take_one(self, key: Row, table: Table) -> None:
        self.endpoint.takes_values = False
        self._store({key: list(table.columns(self.questions.names))})

    def _take_many(self, keys: tuple[Row, ...], table: Table) -> None:
        by_key: dict[Row, list[Row]] = {key: [] for key in keys}
        for number, *row in table.columns([self.questions.number, *self.questions.names]):
            by_key[keys[self._place(number, len(keys))]].append(tuple(row))
        self.endpoint.takes_values = True
        self.size.succeeded(len(keys))
        self._store(by_key)

    def _place(self, number: Term | None, count: int) -> int:
        if isinstance(number, Literal) and number.value.isdecimal() and int(number.value) < count:
            return int(number.value)
        raise EndpointGarbage(self.endpoint.name, "the rows do not say which key of VALUES they belong to")

    def _store(self, by_key: Mapping[Row, list[Row]]) -> None:
        for key, found in by_key.items():
            fitting = [row for row in found if self.questions.fits(row, key)]
            self.dropped += len(found) - len(fitting)
            self.rows[key] = tuple(self.questions.filled(row, key) for row in fitting)

    def _handle_error(self, request: _Request, error: EndpointError) -> None:
        keys = request.keys
        if not request.alone and self.endpoint.takes_values is not True and _may_be_syntax(error):
            try:
                if self.endpoint.takes_values is None and self._understands_values():
                    self.endpoint.takes_values = True
                else:
                    # Settled only when the first key is answered: perhaps the endpoint refuses everything.
                    self._refused_values = True
                    self._todo.extendleft(reversed(keys))
                    return
            except EndpointError as probing:
                error = probing
        self._in_a_row += 1
        is_over = isinstance(error, EndpointTimeout) and self.endpoint.now() >= self.deadline - _NO_TIME
        is_hopeless = not _may_be_size(error) or (request.alone and self.endpoint.takes_values is None)
        if is_over or is_hopeless or self._in_a_row >= _FAILURES_TO_GIVE_UP:
            self.failures.update(dict.fromkeys(keys, error))
            self._give_up(error)
        elif len(keys) == 1:
            self.failures[keys[0]] = error
        else:
            self.size.failed(len(keys))
            half = (len(keys) + 1) // 2
            self._halves.extendleft((keys[half:], keys[:half]))

    def _understands_values(self) -> bool:
        """Whether the endpoint answers the smallest query with VALUES as it should."""
        try:
            left = max(0.0, self.deadline - self.endpoint.now())
            return self.endpoint.select(PROBE, left).rows == PROBE_ANSWER
        except EndpointError as error:
            if _may_be_syntax(error):
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


def _may_be_size(error: EndpointError) -> bool:
    """Whether a smaller request may succeed where this one failed."""
    if isinstance(error, EndpointRefused):
        return error.status not in _HOPELESS
    return not isinstance(error, EndpointUnreachable | EndpointBusy)


def _may_be_syntax(error: EndpointError) -> bool:
    """Whether the endpoint may have meant that it does not know VALUES. Not all say 400."""
    if isinstance(error, EndpointRefused):
        return error.status not in _HOPELESS | {413, 414}
    return isinstance(error, EndpointGarbage)
