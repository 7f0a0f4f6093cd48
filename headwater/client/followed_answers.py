"""Answers of a server as they come, over as many connections as it takes: each begins behind the last event."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import Any

import httpx

from headwater.client.server_errors import ServerError, raise_for_problem
from headwater.execution.answers import Answer
from headwater.execution.suspension import QuerySuspended
from headwater.sinks.answer_parsing import answer_of

_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0
_SILENCE_SECONDS = 60.0
"""A connection on which nothing comes for so long is taken for dead: a server says something every 15 seconds."""
_PASSING = frozenset({429, 500, 502, 503, 504})


class FollowedAnswers(Iterator[Answer], AsyncIterator[Answer]):
    """The answers of a query of a server, for `for` and for `async for`; they end when the query is dropped.

    `last_event` is where another program can go on. A connection that breaks is made again, until the server has said
    nothing for `patience` seconds; then a `ServerError` is raised, and following may be tried again. Where the query is
    suspended, `QuerySuspended` is raised; it may be gone on with.
    """

    def __init__(
        self, make: Callable[[], httpx.Client], query: str, path: str, after: str | None, patience: float
    ) -> None:
        self._make = make
        self._query = query
        self._path = path
        self.last_event = after
        self._patience = patience
        self._heard = time.monotonic()
        """When the server said something last, or its words were used."""
        self._events: Generator[dict[str, Any], None, None] | None = None
        self._has_ended = False

    def __iter__(self) -> FollowedAnswers:
        return self

    def __aiter__(self) -> FollowedAnswers:
        return self

    def __next__(self) -> Answer:
        if self._events is None:
            self._heard = time.monotonic()
            self._events = self._follow()
        try:
            event = None if self._has_ended else next(self._events, None)
        except ServerError:
            self._events = None
            raise
        if event is None:
            raise StopIteration
        if "suspended" in event:
            raise QuerySuspended(self._query, event["suspended"])
        return answer_of(event, self._query)

    async def __anext__(self) -> Answer:
        found = await asyncio.to_thread(next, self, None)
        if found is None:
            raise StopAsyncIteration
        return found

    def close(self) -> None:
        """Take no more answers."""
        self._has_ended = True
        if self._events is not None:
            self._events.close()

    def _follow(self) -> Generator[dict[str, Any], None, None]:
        wait = _FIRST_WAIT
        with self._make() as client:
            while True:
                reason = "the connection was closed"
                try:
                    for event in self._read(client):
                        wait = _FIRST_WAIT
                        if event["event"] == "end":
                            reason = event["reason"]
                            if not event.get("again", True):
                                return
                            break
                        self.last_event = event["id"]
                        yield event
                        self._heard = time.monotonic()
                except httpx.TransportError as error:
                    reason = str(error) or type(error).__name__
                except ServerError as error:
                    if error.status not in _PASSING:
                        raise
                    reason = str(error)
                left = self._heard + self._patience - time.monotonic()
                if left <= 0:
                    raise ServerError(
                        f"the answers of {self._query!r} cannot be followed: the server has said nothing for "
                        f"{self._patience:g} seconds ({reason})"
                    )
                time.sleep(min(wait, left))
                wait = min(2 * wait, _LONGEST_WAIT)

    def _read(self, client: httpx.Client) -> Iterator[dict[str, Any]]:
        headers = {"Accept": "application/x-ndjson"}
        if self.last_event is not None:
            headers["Last-Event-ID"] = self.last_event
        timeout = httpx.Timeout(10.0, read=_SILENCE_SECONDS)
        with client.stream("GET", self._path, headers=headers, timeout=timeout) as response:
            if not response.is_success:
                response.read()
                raise_for_problem(response)
            self._heard = time.monotonic()
            for line in response.iter_lines():
                self._heard = time.monotonic()
                if line:
                    yield json.loads(line)
