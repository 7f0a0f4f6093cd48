"""The client of one SPARQL endpoint over HTTP.

    endpoint = Endpoint("https://example.org/sparql")
    table = endpoint.select("SELECT ?s WHERE { ?s a <http://example.org/Bridge> }", timeout=0.2)

*Deadlines.* Every call gives up after its time-out, whatever the endpoint does: each request runs in a thread of its
state, which the caller abandons when the time is over (a name server that does not answer cannot be interrupted in any
other way). The request itself has time-outs not much longer than that, so such threads end soon.

*Limits and retries.* Requests pass the endpoint's `RequestGate`; 429 and 503 close it for the time of Retry-After. A
request that may succeed a moment later is sent again, after a back-off, while time is left. A query only reads, so it
may be sent twice.

*Query methods.* A form by POST is tried first, then the query as the body, then GET, until one is understood; that one
is remembered. A redirect is followed with the same method and body, and without credentials to another origin.

*Egress.* Requests go out through the client of `egress.transport`, which keeps to the policy of the process: the
address of each request and of each redirect is checked, and so is the IP address that is connected to.

An `Endpoint` may be used by many threads, pickled, and inherited by a forked process: what cannot be pickled
(connections, locks, counts) belongs to one process and is made there when it is first needed.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from urllib.parse import urljoin, urlsplit

import httpx

from headwater.egress.credentials import split_user_info
from headwater.egress.policy import EgressError, EgressPolicy
from headwater.egress.transport import make_client
from headwater.egress.web_addresses import normalise
from headwater.errors import SettingError
from headwater.federation.endpoint.clock import RequestClock
from headwater.federation.endpoint.endpoint_errors import (
    EndpointBusy,
    EndpointError,
    EndpointForbidden,
    EndpointGarbage,
    EndpointRefused,
    EndpointTimeout,
    EndpointTooLarge,
    EndpointUnreachable,
)
from headwater.federation.endpoint.endpoint_measures import EndpointMeasures, EndpointMeter
from headwater.federation.endpoint.endpoint_settings import EndpointSettings, QueryMethod
from headwater.federation.endpoint.limits import Backoff, RequestGate, parse_retry_after
from headwater.federation.endpoint.protocol import (
    ACCEPT,
    HttpRequest,
    NotResults,
    Results,
    ResultTable,
    blank_node_scope,
    build_request,
    read_results,
)
from headwater.terms.redaction import redact_url
from headwater.values.query_guard import current_guard

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PERMANENT = frozenset({301, 308})
_MOST_REDIRECTS = 5
_METHOD_REFUSED = frozenset({405, 411, 415, 501})
"""The statuses of an endpoint that does not take the method or the content type."""
_METHOD_PERHAPS_REFUSED = _METHOD_REFUSED | {400, 403, 404}
"""Further statuses while no method is known to work: a server that expects the query elsewhere finds none."""
_BUSY = frozenset({429, 503})
_TRANSIENT = frozenset({408, 425, 500, 502, 504})
"""Statuses after which the same request may succeed."""
_MOST_REFUSAL_BYTES = 300


class _Redirected(Exception):
    """A redirect."""

    def __init__(self, status: int, url: str) -> None:
        super().__init__(url)
        self.status = status
        self.url = url


class _ProcessState:
    """The part of an endpoint that belongs to one process: connections, limits, counts, and what it takes."""

    def __init__(self, settings: EndpointSettings, clock: RequestClock, egress: EgressPolicy | None) -> None:
        self.gate = RequestGate(settings.name, settings.limits, clock)
        self.meter = EndpointMeter()
        self.backoff = Backoff(settings.backoff, settings.longest_backoff, settings.seed)
        self.query_method = settings.query_method
        self.url = settings.url
        self.can_take_values: bool | None = None
        self._settings = settings
        self._egress = egress
        self._client: httpx.Client | None = None
        self._lock = threading.Lock()

    def client(self) -> httpx.Client:
        with self._lock:
            if self._client is None:
                most = self._settings.limits.concurrent
                self._client = make_client(
                    self._egress,
                    headers={"Accept": ACCEPT, "User-Agent": "headwater"},
                    limits=httpx.Limits(max_connections=None, max_keepalive_connections=most),
                )
                # The connections are closed when the endpoint is garbage.
                weakref.finalize(self, self._client.close).atexit = False
            return self._client

    def close(self) -> None:
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None


class Endpoint:
    """A SPARQL endpoint, given by its address or by settings. All calls raise `EndpointError` and nothing else.

    `egress` is the policy that its requests keep to; None: every address may be asked.
    """

    def __init__(
        self, settings: EndpointSettings | str, clock: RequestClock | None = None, egress: EgressPolicy | None = None
    ) -> None:
        self.settings = EndpointSettings(settings) if isinstance(settings, str) else settings
        self._clock = clock or RequestClock()
        self._egress = egress
        self._states: dict[int, _ProcessState] = {}

    def __reduce__(self) -> tuple[type[Endpoint], tuple[EndpointSettings, RequestClock, EgressPolicy | None]]:
        return Endpoint, (self.settings, self._clock, self._egress)

    def __repr__(self) -> str:
        return f"Endpoint({self.name!r})"

    def _state(self) -> _ProcessState:
        """The state of this process. A forked process makes its own, so no lock is needed or inherited."""
        state = self._states.get(os.getpid())
        return state or self._states.setdefault(os.getpid(), _ProcessState(self.settings, self._clock, self._egress))

    @property
    def name(self) -> str:
        """Its name in messages."""
        return self.settings.name

    @property
    def measures(self) -> EndpointMeasures:
        """The counts of the requests of this process so far."""
        return self._state().meter.measures

    @property
    def remaining_pause(self) -> float:
        """For how many seconds no request is sent, because the endpoint asked for a pause."""
        return self._state().gate.remaining_pause

    @property
    def query_method(self) -> QueryMethod | None:
        """How requests carry queries; None while it is not known what the endpoint takes."""
        return self._state().query_method

    @property
    def can_take_values(self) -> bool | None:
        """Whether it knows VALUES (SPARQL 1.1); None while that is not known. `KeyRequests` finds out."""
        return self._state().can_take_values

    @can_take_values.setter
    def can_take_values(self, value: bool | None) -> None:
        self._state().can_take_values = value

    def count_dropped(self, rows: int) -> None:
        """Count rows of an answer that could not be used, so that they are not lost silently."""
        self._state().meter.record_dropped_rows(rows)

    def close(self) -> None:
        """Close the connections of this process; the next call opens new ones."""
        self._state().close()

    def now(self) -> float:
        """The present time on the clock that deadlines refer to, in seconds."""
        return self._clock.now()

    def deadline(self, timeout: float | None) -> float:
        """The time at which a call with this time-out gives up."""
        return self.now() + (
            self.settings.total_timeout if timeout is None else min(timeout, self.settings.total_timeout)
        )

    def select(self, query: str, timeout: float | None = None) -> ResultTable:
        """Send a SELECT query; it may take `timeout` seconds, or the total time-out of the settings."""
        results = self._ask(query, timeout)
        if isinstance(results, ResultTable):
            return results
        raise EndpointGarbage(self.name, "a SELECT query was answered with true or false")

    def ask(self, query: str, timeout: float | None = None) -> bool:
        """Send an ASK query."""
        results = self._ask(query, timeout)
        if isinstance(results, bool):
            return results
        raise EndpointGarbage(self.name, "an ASK query was answered with a table")

    def _ask(self, query: str, timeout: float | None) -> Results:
        deadline = self.deadline(timeout)
        future = self.submit(query, deadline)
        current_guard().wait([future], max(0.0, deadline - self.now()))
        if not future.done():
            raise self.timeout_error()
        return future.result()

    def timeout_error(self) -> EndpointTimeout:
        """The error of a call that did not end before its deadline."""
        return EndpointTimeout(self.name, "no answer in the time that was left")

    def submit(self, query: str, deadline: float) -> Future[Results]:
        """Start a request. The caller waits for the future until the deadline and then abandons it."""
        future: Future[Results] = Future()
        if deadline <= self.now():
            future.set_exception(self.timeout_error())
            return future
        _run_in_background(future, lambda: self._ask_with_retries(query, deadline))
        return future

    def _ask_with_retries(self, query: str, deadline: float) -> Results:
        """Ask until there is a result; raises what cannot be retried before the deadline."""
        state = self._state()
        attempt = 0
        while True:
            try:
                results = self._try_methods(state, query, deadline)
                state.meter.record_answer()
                return results
            except EndpointError as error:
                state.meter.record_failure(error.kind)
                # A pause is waited for at the gate, which knows whether it ends in time.
                delay = 0.0 if isinstance(error, EndpointBusy) else state.backoff.delay(attempt)
                if not error.is_retryable or attempt >= self.settings.retries or self.now() + delay >= deadline:
                    raise
                if isinstance(error, EndpointBusy) and self.now() + state.gate.remaining_pause > deadline:
                    raise
                self._clock.sleep(delay)
                state.meter.record_retry()
                attempt += 1

    def _try_methods(self, state: _ProcessState, query: str, deadline: float) -> Results:
        """Send the query by the method that is known to work; while none is, by one after the other."""
        known = state.query_method
        refusals: list[EndpointRefused] = []
        methods = [known, *(method for method in QueryMethod if method is not known)] if known else list(QueryMethod)
        for method in methods if self.settings.query_method is None else [self.settings.query_method]:
            try:
                results = self._follow_redirects(state, method, query, deadline)
                state.query_method = method
                return results
            except EndpointRefused as error:
                refusals.append(error)
                if error.status not in (_METHOD_PERHAPS_REFUSED if known is None else _METHOD_REFUSED):
                    raise
        # "Bad request" is the most helpful: that endpoint had found the query.
        raise next((refusal for refusal in refusals if refusal.status == 400), refusals[0])

    def _follow_redirects(self, state: _ProcessState, method: QueryMethod, query: str, deadline: float) -> Results:
        """Send the query by one method and follow redirects."""
        url = state.url
        request = build_request(method, url, query, self.settings.default_graphs, self.settings.named_graphs)
        if method is QueryMethod.GET and len(request.url) > self.settings.longest_url:
            text = f"the query is too long to stand in an address ({len(request.url)} bytes)"
            raise EndpointRefused(self.name, text, status=414)
        scope = blank_node_scope(self.settings.url, query)
        for _ in range(_MOST_REDIRECTS + 1):
            try:
                return self._send(state, request, scope, deadline)
            except _Redirected as redirect:
                if redirect.status == 303:
                    request = HttpRequest("GET", redirect.url)
                    continue
                if redirect.status in _PERMANENT and method is not QueryMethod.GET:
                    state.url = redirect.url
                # By GET the new address already holds the query, or the redirecting server has lost it.
                request = (
                    HttpRequest("GET", redirect.url)
                    if method is QueryMethod.GET
                    else replace(request, url=redirect.url)
                )
        raise EndpointRefused(self.name, f"more than {_MOST_REDIRECTS} redirects")

    def _send(self, state: _ProcessState, request: HttpRequest, scope: str, deadline: float) -> Results:
        """Send one HTTP request and parse its answer."""
        with state.gate.enter(deadline):
            state.meter.record_request(len(request.body) + len(request.url))
            received = bytearray()
            try:
                content_type = self._receive(state, request, received, deadline)
            finally:
                state.meter.record_received(len(received))
        try:
            return read_results(bytes(received), content_type, scope)
        except NotResults as error:
            raise EndpointGarbage(self.name, str(error)) from error

    def _receive(self, state: _ProcessState, request: HttpRequest, received: bytearray, deadline: float) -> str:
        """Append the body of a good answer to `received`; returns its content type."""
        left = deadline - self.now()
        if left <= 0:
            raise self.timeout_error()
        settings = self.settings
        read = min(left, settings.read_timeout)
        timeout = httpx.Timeout(connect=min(left, settings.connect_timeout), read=read, write=read, pool=left)
        client = state.client()
        has_answered = False
        try:
            headers = settings.headers() if _has_origin_of(request.url, settings.url) else {}
            if request.content_type:
                headers["Content-Type"] = request.content_type
            http_request = client.build_request(
                request.method, request.url, content=request.body or None, headers=headers, timeout=timeout
            )
            response = client.send(http_request, stream=True, auth=None, follow_redirects=False)
            try:
                has_answered = True
                self._check_status(state, response, deadline)
                for chunk in response.iter_bytes():
                    received += chunk
                    if len(received) > settings.largest_response:
                        raise EndpointTooLarge(self.name, f"the answer has more than {settings.largest_response} bytes")
                    if self.now() > deadline:
                        raise self.timeout_error()
            finally:
                response.close()
        except httpx.TimeoutException as error:
            raise EndpointTimeout(self.name, f"no answer in {left:.3g} s", is_retryable=True) from error
        except httpx.DecodingError as error:
            raise EndpointGarbage(self.name, f"the answer cannot be decompressed: {error}") from error
        except httpx.TransportError as error:
            if has_answered:
                raise EndpointGarbage(self.name, f"half an answer: {error}", is_retryable=True) from error
            raise EndpointUnreachable(self.name, f"no connection: {error}", is_retryable=True) from error
        except EgressError as error:
            raise EndpointForbidden(self.name, str(error)) from None
        except SettingError as error:
            raise EndpointRefused(self.name, str(error)) from None
        except httpx.InvalidURL as error:
            raise EndpointRefused(self.name, f"redirected to something that is no address: {error}") from None
        return str(response.headers.get("content-type", ""))

    def _check_status(self, state: _ProcessState, response: httpx.Response, deadline: float) -> None:
        """Raise an error, or `_Redirected`, unless the status says that results follow."""
        status = response.status_code
        if status in _REDIRECTS and "location" in response.headers:
            try:
                # User info of a redirect is no secret of ours, and would be shown by whatever shows the address.
                target = split_user_info(urljoin(str(response.request.url), response.headers["location"]))[0]
            except SettingError:
                raise EndpointRefused(self.name, "redirected to something that is no address", status=status) from None
            if urlsplit(target).scheme not in ("http", "https"):
                raise EndpointRefused(
                    self.name, f"redirected to {redact_url(target)}, which is not HTTP", status=status
                )
            raise _Redirected(status, target)
        if status in _BUSY:
            wanted = parse_retry_after(response.headers.get("retry-after"), self._clock.date())
            pause = state.backoff.delay(state.meter.measures.failures_in_a_row) if wanted is None else wanted
            pause = min(pause, self.settings.longest_pause)
            state.gate.pause(pause)
            text = f"it is busy (status {status}) and not asked for {pause:.3g} s"
            raise EndpointBusy(self.name, text, status=status, is_retryable=True, retry_after=pause)
        if not 200 <= status < 300:
            refusal = self._read_refusal(response, deadline)
            text = f"status {status} {response.reason_phrase}" + (f", and it says: {refusal}" if refusal else "")
            raise EndpointRefused(self.name, text, status=status, is_retryable=status in _TRANSIENT)

    def _read_refusal(self, response: httpx.Response, deadline: float) -> str:
        """The beginning of the body of a refusal: some hold whole stack traces."""
        body = b""
        with suppress(httpx.HTTPError):
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > _MOST_REFUSAL_BYTES or self.now() > deadline:
                    break
        return " ".join(body[:_MOST_REFUSAL_BYTES].decode("utf-8", "replace").split())


def _has_origin_of(url: str, other: str) -> bool:
    """Whether two addresses have the same scheme, host and port."""
    try:
        return normalise(url).origin == normalise(other).origin
    except SettingError:
        # Without a normal form only what is written the same way is the same.
        return urlsplit(url)[:2] == urlsplit(other)[:2]


def _run_in_background(future: Future[Results], work: Callable[[], Results]) -> None:
    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    # A daemon: a request that hangs does not keep the process from ending.
    threading.Thread(target=run, name="headwater-endpoint", daemon=True).start()
