"""A server as an object: `connect("http://…")` has the verbs of `Engine`.

    server = hw.connect("http://127.0.0.1:8080")
    gates = server.stream("http://city/gates")
    query = server.register("SELECT …", name="busy")
    gates.send([triple], time="2026-03-02T07:05:00Z")
    for answer in query.answers():
        print(answer.to_pandas())

What is sent is on the server's disk when `send` returns. A request that fails in a way that may pass is repeated, under
the same key, so that nothing is taken twice.
"""

from __future__ import annotations

import asyncio
import time as clock
import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self, TypeAlias
from urllib.parse import quote

import httpx

from headwater.client.followed_answers import FollowedAnswers
from headwater.client.remote_dataset import RemoteDataSet
from headwater.client.server_errors import ServerError, raise_for_problem
from headwater.errors import SettingError, StateError
from headwater.execution.answers import Answer
from headwater.sinks.answer_parsing import answer_of
from headwater.sources.spool import element_lines
from headwater.terms.arguments import check_elements, check_text, check_time
from headwater.terms.model import Element, Quad, Triple
from headwater.terms.timestamps import datetime_to_time, format_time
from headwater.terms.writing import write_ntriples

_TNQ = "text/x-timed-nquads"
_TRIPLES = "application/n-triples"
_PASSING = frozenset({429, 502, 503, 504})
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0
Time: TypeAlias = int | str | datetime


class RemoteStream:
    """A stream of a server."""

    def __init__(self, server: ServerClient, name: str) -> None:
        self._server = server
        self.name = name

    def send(self, triples: Iterable[Triple] | Element, *, time: Time | None = None) -> dict[str, int]:
        """Send one element; without a time it has that of its arrival. Gives how many are good, late, ahead and bad."""
        if isinstance(triples, Element):
            return self.send_all([triples])
        if time is not None:
            instant = datetime_to_time(time) if isinstance(time, datetime) else check_time("time", time)
            return self.send_all([(instant, triples)])
        listed = check_elements("what is sent", [(0, triples)])[0].triples
        return self.send_bytes(write_ntriples(listed).encode("utf-8", "surrogatepass"), _TRIPLES)

    def send_all(self, elements: Iterable[Element | tuple[int, Iterable[Triple]]]) -> dict[str, int]:
        """Send several elements, as they are or as pairs of a time in microseconds and triples, in one request."""
        listed = check_elements("what is sent", elements)
        body = "".join(line for one in listed for line in element_lines(one))
        return self.send_bytes(body.encode("utf-8", "surrogatepass"))

    def send_bytes(self, body: bytes, media_type: str = _TNQ, *, time: Time | None = None) -> dict[str, int]:
        """Send a body: timed N-Quads, or what the media type says."""
        parameters = {}
        if time is not None:
            instant = datetime_to_time(time) if isinstance(time, datetime) else check_time("time", time)
            parameters["time"] = format_time(instant)
        headers = {"Content-Type": media_type, "Idempotency-Key": uuid.uuid4().hex}
        path = f"/streams/{quote(self.name, safe='')}"
        found: dict[str, int] = self._server.request(
            "POST", path, content=body, headers=headers, params=parameters
        ).json()
        return found

    async def send_async(self, triples: Iterable[Triple] | Element, *, time: Time | None = None) -> dict[str, int]:
        """The same as `send`, for programs with an event loop."""
        return await asyncio.to_thread(self.send, triples, time=time)

    def dead_letters(self, limit: int = 100) -> list[dict[str, Any]]:
        """The newest elements that could not be used, with the reasons."""
        path = f"/streams/{quote(self.name, safe='')}/dead-letters"
        found: list[dict[str, Any]] = self._server.request("GET", path, params={"limit": limit}).json()["dead_letters"]
        return found

    def __repr__(self) -> str:
        return f"<RemoteStream {self.name!r}>"


class RemoteQuery:
    """A continuous query of a server."""

    def __init__(self, server: ServerClient, name: str) -> None:
        self._server = server
        self.name = name
        self._path = f"/queries/{quote(name, safe='')}"

    @property
    def text(self) -> str:
        return str(self.status["text"])

    @property
    def status(self) -> dict[str, Any]:
        """The state of the query, its counts, and why it is suspended."""
        found: dict[str, Any] = self._server.request("GET", self._path).json()
        return found

    def answers(self, *, after: str | None = None, patience: float | None = None) -> FollowedAnswers:
        """The answers from now on, or behind an event (`first`: all that are kept); they go on over broken connections.

        `patience` is after how many seconds without a word of the server a `ServerError` is raised: that of `connect`
        unless it is given; `math.inf`: never.
        """
        waits = self._server.patience if patience is None else patience
        return FollowedAnswers(self._server.make_client, self.name, f"{self._path}/answers", after, waits)

    def answers_async(self, *, after: str | None = None, patience: float | None = None) -> FollowedAnswers:
        """The same, for `async for`."""
        return self.answers(after=after, patience=patience)

    def latest(self) -> Answer | None:
        """The newest answer; None where there is none yet. `to_pandas` makes a DataFrame of it."""
        response = self._server.send_request(
            "GET", f"{self._path}/answers/latest", headers={"Accept": "application/json"}
        )
        if response.status_code == 404 and "answer" in response.json()["title"]:
            return None
        raise_for_problem(response)
        return answer_of(response.json(), self.name)

    def explain(self, *, format: str = "text", stage: str = "evaluated") -> str:
        """How the query is understood and evaluated: `text`, `json`, `mermaid` or `svg`."""
        parameters = {"format": format, "stage": stage}
        return self._server.request("GET", f"{self._path}/plan", params=parameters).text

    def why(self, time: Time) -> list[dict[str, Any]]:
        """How many solutions each step of the plan has at the instant of an answer: `depth`, `text`, `solutions`, and
        in `is_end` whether they end there."""
        instant = datetime_to_time(time) if isinstance(time, datetime) else check_time("time", time)
        parameters = {"time": format_time(instant)}
        response = self._server.request("GET", f"{self._path}/why", params=parameters)
        found: list[dict[str, Any]] = response.json()["steps"]
        return found

    def pause(self) -> None:
        """Evaluate it no more until it is resumed."""
        self._server.request("POST", self._path, params={"action": "pause"})

    def resume(self) -> None:
        """Go on after a pause or a suspension."""
        self._server.request("POST", self._path, params={"action": "resume"})

    def drop(self) -> None:
        """Forget the query and its answers."""
        self._server.request("DELETE", self._path)

    def __repr__(self) -> str:
        return f"<RemoteQuery {self.name!r}>"


class ServerClient:
    """A server; `connect` makes one. All methods may be called from any thread."""

    def __init__(self, url: str, token: str | None, patience: float) -> None:
        self._url = check_text("url", url).rstrip("/")
        if not self._url.startswith(("http://", "https://")):
            raise SettingError(f"{url!r} is no address of a server: it begins with http:// or https://")
        self._headers = {"User-Agent": "headwater"} | ({} if token is None else {"Authorization": f"Bearer {token}"})
        self.patience = patience
        """For how many seconds the server may say nothing."""
        self._client = self.make_client()

    def make_client(self) -> httpx.Client:
        """A client of HTTP for this server."""
        return httpx.Client(base_url=self._url, headers=self._headers, timeout=60.0)

    def send_request(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        """The answer of the server to a request, which is repeated where that may help."""
        end, wait = clock.monotonic() + self.patience, _FIRST_WAIT
        while True:
            try:
                response = self._client.request(method, path, **arguments)
                if response.status_code not in _PASSING or clock.monotonic() > end:
                    return response
            except httpx.TransportError as error:
                if clock.monotonic() > end:
                    reason = str(error) or type(error).__name__
                    raise ServerError(f"{self._url} does not answer ({reason}): is the server running?") from error
            clock.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)

    def request(self, method: str, path: str, *, query: str = "", **arguments: Any) -> httpx.Response:
        """The same; what the server refuses is raised."""
        response = self.send_request(method, path, **arguments)
        raise_for_problem(response, query)
        return response

    def stream(self, name: str, source: str = "push", **description: Any) -> RemoteStream:
        """Make a stream, or take the one that is there: fed from here, or from an address.

        `template`, `format`, `time` and `idle` are those of `push` and of `Engine.stream`.
        """
        self.request("PUT", f"/streams/{quote(name, safe='')}", json={"source": source, **description})
        return RemoteStream(self, name)

    def register(self, text: str, *, name: str, **options: Any) -> RemoteQuery:
        """Register a query, or replace the one of that name; a `QueryError` says what is wrong with its text.

        The options are those of `Engine.register`, with `seconds` and `rows` as limits, and `gauges` for metrics.
        """
        parameters = {key: value for key, value in options.items() if value is not None}
        content = text.encode("utf-8", "surrogatepass")
        self.request("PUT", f"/queries/{quote(name, safe='')}", content=content, params=parameters, query=text)
        return RemoteQuery(self, name)

    def query(self, name: str) -> RemoteQuery:
        """The query of that name."""
        return RemoteQuery(self, name)

    @property
    def queries(self) -> tuple[RemoteQuery, ...]:
        """The queries that the token may read."""
        return tuple(RemoteQuery(self, one["name"]) for one in self.request("GET", "/queries").json()["queries"])

    @property
    def progress(self) -> dict[str, Any]:
        """The counts of the run."""
        found: dict[str, Any] = self.request("GET", "/status").json()
        return found

    def drop(self, query: RemoteQuery | str) -> None:
        """Forget a query."""
        RemoteQuery(self, query if isinstance(query, str) else query.name).drop()

    def drop_stream(self, stream: RemoteStream | str) -> None:
        """Forget a stream that no query reads."""
        name = stream if isinstance(stream, str) else stream.name
        self.request("DELETE", f"/streams/{quote(name, safe='')}")

    def preview(self, text: str, **options: Any) -> Answer | None:
        """The answer of a query over what the windows hold now; nothing is registered."""
        parameters: Mapping[str, Any] = {key: value for key, value in options.items() if value is not None}
        found = self.request("POST", "/queries/preview", content=text.encode(), params=parameters, query=text).json()
        return None if found["answer"] is None else answer_of(found["answer"], "preview")

    def resume(self, query: RemoteQuery | str) -> None:
        """Have a query go on that is paused or suspended."""
        RemoteQuery(self, query if isinstance(query, str) else query.name).resume()

    def explain(self, name: str, **how: Any) -> str:
        """What `RemoteQuery.explain` gives."""
        return RemoteQuery(self, name).explain(**how)

    def why(self, name: str, tick: Time) -> list[dict[str, Any]]:
        """What `RemoteQuery.why` gives."""
        return RemoteQuery(self, name).why(tick)

    def subscribe(
        self, query: RemoteQuery | str, *, after: str | None = None, patience: float | None = None
    ) -> FollowedAnswers:
        """The answers of a query: what `RemoteQuery.answers` gives."""
        name = query if isinstance(query, str) else query.name
        return RemoteQuery(self, name).answers(after=after, patience=patience)

    def subscribe_async(
        self, query: RemoteQuery | str, *, after: str | None = None, patience: float | None = None
    ) -> FollowedAnswers:
        """What `subscribe` gives: it is an iterator for `async for`, too. `Engine` has the same two methods."""
        return self.subscribe(query, after=after, patience=patience)

    def dataset(
        self, data: str | Path | Iterable[Quad] | None = None, graph: str | None = None, **others: Any
    ) -> RemoteDataSet:
        """The linked data of the server, that are asked and changed at `/sparql` and `/data`.

        An RDF file of this machine, or quads, are added to them; with `graph`, what stands in no named graph goes into
        the one of that name.
        """
        if others:
            raise StateError(
                f"a server does not take {', '.join(sorted(others))}: add the data to [[data]] in its settings"
            )
        found = RemoteDataSet(self)
        if data is not None:
            found.add(data, graph)
        return found

    def endpoint(self, *given: Any, **settings: Any) -> NoReturn:
        """Endpoints of SERVICE are set where the server is run."""
        raise _not_here("endpoint", "add it to [[endpoints]] in the settings of the server, and to [egress]")

    def function(self, *given: Any, **settings: Any) -> NoReturn:
        """Functions of Python are called in the process that evaluates."""
        raise _not_here("function", "call it on what the answers have, or use an Engine in this program")

    def start(self, *given: Any, **settings: Any) -> NoReturn:
        """The server runs already."""
        raise _not_here("start", "the server runs already; query.answers() takes answers, also with callbacks")

    def run(self, *given: Any, **settings: Any) -> NoReturn:
        """The server runs already."""
        raise _not_here("run", "the server runs already; take answers with query.answers()")

    def stop(self) -> NoReturn:
        """Only who runs the server stops it."""
        raise _not_here("stop", "pause or drop queries; the server ends with SIGTERM; close() ends this connection")

    def wait(self, *given: Any, **settings: Any) -> NoReturn:
        """The run of a server has no end."""
        raise _not_here("wait", "the run of a server has no end; close() ends this connection")

    def dataframe(self, *given: Any, **settings: Any) -> NoReturn:
        """DataFrames of Spark are in the program that has the session."""
        raise _not_here("dataframe", "use answer.to_pandas(), or an Engine with Spark in this program")

    def session(self) -> NoReturn:
        """The Spark session is in the engine process of the server."""
        raise _not_here("session", "use an Engine with Spark in this program")

    @property
    def continued(self) -> NoReturn:
        """What a run took over is known where the server runs."""
        raise _not_here("continued", "query.status has the counts of a query, progress those of the run")

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _not_here(verb: str, instead: str) -> StateError:
    return StateError(f"a server has no {verb}: {instead}")


def connect(url: str, token: str | None = None, *, patience: float = 30.0) -> ServerClient:
    """A server of `headwater serve`, with the verbs of `Engine`; those that only make sense where the engine is say so.

    `patience` is for how many seconds a request is repeated that the server does not take now, and how long it may say
    nothing to those who follow answers.
    """
    return ServerClient(url, token, patience)
