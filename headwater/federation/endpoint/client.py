"""The client of one SPARQL endpoint over HTTP.

    endpoint = Endpoint("https://example.org/sparql")
    table = endpoint.select("SELECT ?s WHERE { ?s a <http://example.org/Bridge> }", within=0.2)

*In time.* Every call has a time after which it gives up, whatever the far side does: each request runs in a thread of
its own that the caller leaves behind when the time is over (a name server that does not answer cannot be interrupted
in any other way). The request itself has time-outs not much longer than that, so such threads end soon.

*Politely.* Requests pass the endpoint's `Gate`; 429 and 503 close it for as long as Retry-After says. What may succeed
a moment later is tried again, after a back-off, while time is left. A query only reads: asking twice is harmless.

*In the endpoint's own way.* A form by POST first, then the query as the body, then GET, until one is understood; what
was understood is remembered. A redirect is followed with the same method and body, without credentials to another host.

An `Endpoint` may be used by many threads, pickled, and inherited by a forked process: what cannot travel (connections,
locks, counts) belongs to the process and is made there when it is first needed.
"""

from __future__ import annotations

import os
import ssl
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import replace
from functools import cache
from urllib.parse import urljoin, urlsplit

import httpx

from headwater.federation.endpoint.endpoint_errors import (
    EndpointBusy,
    EndpointError,
    EndpointGarbage,
    EndpointRefused,
    EndpointTimeout,
    EndpointTooLarge,
    EndpointUnreachable,
)
from headwater.federation.endpoint.endpoint_measures import EndpointMeasures, EndpointMeter
from headwater.federation.endpoint.endpoint_settings import EndpointSettings, Way, shown
from headwater.federation.endpoint.limits import Backoff, Gate, Timekeeper, retry_after
from headwater.federation.endpoint.protocol import (
    ACCEPT,
    Message,
    NotResults,
    Results,
    Table,
    blank_node_scope,
    message,
    read_results,
)

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PERMANENT = frozenset({301, 308})
_MOST_REDIRECTS = 5
_OTHER_WAY = frozenset({405, 411, 415, 501})
"""What an endpoint says that does not take the method or the content type."""
_PERHAPS_OTHER_WAY = _OTHER_WAY | {400, 403, 404}
"""What it may say besides while no way is known to work: a server that looks for the query elsewhere finds none."""
_BUSY = frozenset({429, 503})
_PASSING = frozenset({408, 425, 500, 502, 504})
"""Statuses after which the same request may succeed."""
_SHOWN_OF_A_REFUSAL = 300


class _Moved(Exception):
    """A redirect."""

    def __init__(self, status: int, url: str) -> None:
        super().__init__(url)
        self.status = status
        self.url = url


@cache
def _trusted() -> ssl.SSLContext:
    # Reading the certificates takes tens of milliseconds: once per process, not per endpoint.
    return httpx.create_ssl_context()


class _Here:
    """What belongs to one process: connections, limits, measures, and what was found out about the endpoint."""

    def __init__(self, settings: EndpointSettings, timekeeper: Timekeeper) -> None:
        self.gate = Gate(settings.name, settings.limits, timekeeper)
        self.meter = EndpointMeter()
        self.backoff = Backoff(settings.backoff, settings.longest_backoff, settings.seed)
        self.way = settings.way
        self.url = settings.url
        self.takes_values: bool | None = None
        self._settings = settings
        self._client: httpx.Client | None = None
        self._lock = threading.Lock()

    def client(self) -> httpx.Client:
        with self._lock:
            if self._client is None:
                most = self._settings.limits.concurrent
                self._client = httpx.Client(
                    verify=_trusted(),
                    headers={"Accept": ACCEPT, "User-Agent": "headwater", **self._settings.headers()},
                    limits=httpx.Limits(max_connections=None, max_keepalive_connections=most),
                )
                # An endpoint that nobody refers to any more leaves no connection behind.
                weakref.finalize(self, self._client.close).atexit = False
            return self._client

    def close(self) -> None:
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None


class Endpoint:
    """A SPARQL endpoint, given by its address or by settings. All calls raise `EndpointError` and nothing else."""

    def __init__(self, settings: EndpointSettings | str, timekeeper: Timekeeper | None = None) -> None:
        self.settings = EndpointSettings(settings) if isinstance(settings, str) else settings
        self._time = timekeeper or Timekeeper()
        self._here: dict[int, _Here] = {}

    def __reduce__(self) -> tuple[type[Endpoint], tuple[EndpointSettings, Timekeeper]]:
        return Endpoint, (self.settings, self._time)

    def __repr__(self) -> str:
        return f"Endpoint({self.name!r})"

    def _own(self) -> _Here:
        """The part of this process: a fork finds none and makes its own; no lock is needed, nor inherited."""
        own = self._here.get(os.getpid())
        return self._here.setdefault(os.getpid(), _Here(self.settings, self._time)) if own is None else own

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.settings.name

    @property
    def measures(self) -> EndpointMeasures:
        """What the requests of this process cost so far."""
        return self._own().meter.measures

    @property
    def paused_for(self) -> float:
        """For how many seconds no request goes out, because the endpoint asked for it."""
        return self._own().gate.paused_for

    @property
    def way(self) -> Way | None:
        """How queries travel; None while nobody knows what the endpoint takes."""
        return self._own().way

    @property
    def takes_values(self) -> bool | None:
        """Whether it knows VALUES (SPARQL 1.1); None while nobody knows. `bindings` finds out."""
        return self._own().takes_values

    @takes_values.setter
    def takes_values(self, value: bool | None) -> None:
        self._own().takes_values = value

    def count_dropped(self, rows: int) -> None:
        """Rows of an answer that could not be used: no silent loss, they stand in the measures."""
        self._own().meter.record_dropped_rows(rows)

    def close(self) -> None:
        """Close the connections of this process; the next call opens new ones."""
        self._own().close()

    def now(self) -> float:
        """The time that deadlines of this endpoint are measured by."""
        return self._time.now()

    def deadline(self, within: float | None) -> float:
        """The instant at which a call that has `within` seconds gives up."""
        return self.now() + (
            self.settings.total_timeout if within is None else min(within, self.settings.total_timeout)
        )

    def select(self, query: str, within: float | None = None) -> Table:
        """The answer to a SELECT query; `within` seconds, or the total time-out of the settings."""
        found = self._ask(query, within)
        if isinstance(found, Table):
            return found
        raise EndpointGarbage(self.name, "a SELECT query was answered with true or false")

    def ask(self, query: str, within: float | None = None) -> bool:
        """The verdict of an ASK query."""
        found = self._ask(query, within)
        if isinstance(found, bool):
            return found
        raise EndpointGarbage(self.name, "an ASK query was answered with a table")

    def _ask(self, query: str, within: float | None) -> Results:
        deadline = self.deadline(within)
        future = self.submit(query, deadline)
        wait([future], timeout=max(0.0, deadline - self.now()))
        if not future.done():
            raise self.late()
        return future.result()

    def late(self) -> EndpointTimeout:
        """The error of a call whose time is over."""
        return EndpointTimeout(self.name, "no answer in the time that was left")

    def submit(self, query: str, deadline: float) -> Future[Results]:
        """Start to ask. The caller waits for the future until the deadline and then leaves it to itself."""
        future: Future[Results] = Future()
        if deadline <= self.now():
            future.set_exception(self.late())
            return future
        _in_background(future, lambda: self._attempts(query, deadline))
        return future

    def _attempts(self, query: str, deadline: float) -> Results:
        own = self._own()
        attempt = 0
        while True:
            try:
                found = self._in_some_way(own, query, deadline)
                own.meter.record_answer()
                return found
            except EndpointError as error:
                own.meter.record_failure(error.kind)
                # A pause is waited for at the gate, which knows whether it ends in time.
                delay = 0.0 if isinstance(error, EndpointBusy) else own.backoff.delay(attempt)
                if not error.retryable or attempt >= self.settings.retries or self.now() + delay >= deadline:
                    raise
                if isinstance(error, EndpointBusy) and self.now() + own.gate.paused_for > deadline:
                    raise
                self._time.sleep(delay)
                own.meter.record_retry()
                attempt += 1

    def _in_some_way(self, own: _Here, query: str, deadline: float) -> Results:
        """Ask in the way that is known to work; while none is, in one after the other."""
        known = own.way
        refusals: list[EndpointRefused] = []
        ways = [known, *(way for way in Way if way is not known)] if known else list(Way)
        for way in ways if self.settings.way is None else [self.settings.way]:
            try:
                found = self._exchange(own, way, query, deadline)
                own.way = way
                return found
            except EndpointRefused as error:
                refusals.append(error)
                if error.status not in (_PERHAPS_OTHER_WAY if known is None else _OTHER_WAY):
                    raise
        # "Bad request" says most: there the endpoint had understood where the query was.
        raise next((refusal for refusal in refusals if refusal.status == 400), refusals[0])

    def _exchange(self, own: _Here, way: Way, query: str, deadline: float) -> Results:
        """Ask in one way, following redirects."""
        url = own.url
        asked = message(way, url, query, self.settings.default_graphs, self.settings.named_graphs)
        if way is Way.GET and len(asked.url) > self.settings.longest_url:
            text = f"the query is too long to stand in an address ({len(asked.url)} bytes)"
            raise EndpointRefused(self.name, text, status=414)
        scope = blank_node_scope(self.settings.url, query)
        for _ in range(_MOST_REDIRECTS + 1):
            try:
                return self._request(own, asked, scope, deadline)
            except _Moved as moved:
                if moved.status == 303:
                    asked = Message("GET", moved.url)
                    continue
                if moved.status in _PERMANENT and way is not Way.GET:
                    own.url = moved.url
                # By GET the new address already holds the query, or the server that moved it lost it.
                asked = Message("GET", moved.url) if way is Way.GET else replace(asked, url=moved.url)
        raise EndpointRefused(self.name, f"more than {_MOST_REDIRECTS} redirects")

    def _request(self, own: _Here, asked: Message, scope: str, deadline: float) -> Results:
        """One HTTP request and its answer."""
        with own.gate.entered(deadline):
            own.meter.record_request(len(asked.body) + len(asked.url))
            received = bytearray()
            try:
                content_type = self._receive(own, asked, received, deadline)
            finally:
                own.meter.record_received(len(received))
        try:
            return read_results(bytes(received), content_type, scope)
        except NotResults as error:
            raise EndpointGarbage(self.name, str(error)) from error

    def _receive(self, own: _Here, asked: Message, received: bytearray, deadline: float) -> str:
        """Fill `received` with the body of a good answer; gives its content type."""
        left = deadline - self.now()
        if left <= 0:
            raise self.late()
        settings = self.settings
        read = min(left, settings.read_timeout)
        timeout = httpx.Timeout(connect=min(left, settings.connect_timeout), read=read, write=read, pool=left)
        client = own.client()
        has_answered = False
        try:
            request = client.build_request(
                asked.method,
                asked.url,
                content=asked.body or None,
                headers={"Content-Type": asked.content_type} if asked.content_type else None,
                timeout=timeout,
            )
            if _origin(asked.url) != _origin(settings.url):
                for header in settings.headers():
                    request.headers.pop(header, None)
            response = client.send(request, stream=True, auth=None, follow_redirects=False)
            try:
                has_answered = True
                self._check_status(own, response, deadline)
                for chunk in response.iter_bytes():
                    received += chunk
                    if len(received) > settings.largest_response:
                        raise EndpointTooLarge(self.name, f"the answer has more than {settings.largest_response} bytes")
                    if self.now() > deadline:
                        raise self.late()
            finally:
                response.close()
        except httpx.TimeoutException as error:
            raise EndpointTimeout(self.name, f"no answer in {left:.3g} s", retryable=True) from error
        except httpx.DecodingError as error:
            raise EndpointGarbage(self.name, f"the answer cannot be decompressed: {error}") from error
        except httpx.TransportError as error:
            if has_answered:
                raise EndpointGarbage(self.name, f"half an answer: {error}", retryable=True) from error
            raise EndpointUnreachable(self.name, f"no connection: {error}", retryable=True) from error
        except httpx.InvalidURL as error:
            raise EndpointRefused(self.name, f"redirected to something that is no address: {error}") from error
        return str(response.headers.get("content-type", ""))

    def _check_status(self, own: _Here, response: httpx.Response, deadline: float) -> None:
        """Nothing for an answer with results; an error, or `_Moved`, for all others."""
        status = response.status_code
        if status in _REDIRECTS and "location" in response.headers:
            target = urljoin(str(response.request.url), response.headers["location"])
            if urlsplit(target).scheme not in ("http", "https"):
                raise EndpointRefused(self.name, f"redirected to {shown(target)}, which is not HTTP", status=status)
            raise _Moved(status, target)
        if status in _BUSY:
            asked_for = retry_after(response.headers.get("retry-after"), self._time.date())
            pause = own.backoff.delay(own.meter.measures.failures_in_a_row) if asked_for is None else asked_for
            pause = min(pause, self.settings.longest_pause)
            own.gate.pause(pause)
            text = f"it is busy (status {status}) and not asked for {pause:.3g} s"
            raise EndpointBusy(self.name, text, status=status, retryable=True, retry_after=pause)
        if not 200 <= status < 300:
            said = self._beginning(response, deadline)
            text = f"status {status} {response.reason_phrase}" + (f", and it says: {said}" if said else "")
            raise EndpointRefused(self.name, text, status=status, retryable=status in _PASSING)

    def _beginning(self, response: httpx.Response, deadline: float) -> str:
        """What a refusal says, cut short: some hold whole stack traces."""
        body = b""
        with suppress(httpx.HTTPError):
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > _SHOWN_OF_A_REFUSAL or self.now() > deadline:
                    break
        return " ".join(body[:_SHOWN_OF_A_REFUSAL].decode("utf-8", "replace").split())


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port


def _in_background(future: Future[Results], work: Callable[[], Results]) -> None:
    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    # A daemon: a request that hangs does not keep the process from ending.
    threading.Thread(target=run, name="headwater-endpoint", daemon=True).start()
