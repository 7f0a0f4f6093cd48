"""SPARQL endpoints on loopback that behave as a test wants: well, or badly in one certain way.

`serving(behaviour)` runs a server in threads of this process; a behaviour is a function that gets each request as an
`Exchange`, answers it, or does something else with the connection. `sparql(store)` is the behaviour of a good endpoint.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from pyoxigraph import QueryResultsFormat, QueryTriples, Store

from headwater.federation.endpoint.endpoint_settings import QueryMethod

FORM = "application/x-www-form-urlencoded"
JSON = "application/sparql-results+json"
XML = "application/sparql-results+xml"
NO_ROWS = b'{"head":{"vars":["x"]},"results":{"bindings":[]}}'
ONE_ROW = b'{"head":{"vars":["x"]},"results":{"bindings":[{"x":{"type":"literal","value":"1"}}]}}'


@dataclass
class Exchange:
    """One request, and the means to answer it."""

    handler: BaseHTTPRequestHandler
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def query_method(self) -> QueryMethod:
        if self.method == "GET":
            return QueryMethod.GET
        return (
            QueryMethod.POST_FORM if self.headers.get("Content-Type", "").startswith(FORM) else QueryMethod.POST_DIRECT
        )

    @property
    def query(self) -> str:
        """The query, wherever it travels; empty where there is none."""
        if self.query_method is QueryMethod.POST_DIRECT:
            return self.body.decode()
        sent = urlsplit(self.path).query if self.query_method is QueryMethod.GET else self.body.decode()
        return parse_qs(sent).get("query", [""])[0]

    def answer(self, status: int, body: bytes = b"", content_type: str = JSON, **headers: str) -> None:
        self.handler.send_response(status)
        self.handler.send_header("Content-Type", content_type)
        self.handler.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.handler.send_header(name.replace("_", "-"), value)
        self.handler.end_headers()
        self.handler.wfile.write(body)

    def begin(self, length: int | None, content_type: str = JSON) -> None:
        """The head of an answer that says it has so many bytes, or as many as come before the end."""
        self.handler.send_response(200)
        self.handler.send_header("Content-Type", content_type)
        if length is None:
            self.handler.close_connection = True
        else:
            self.handler.send_header("Content-Length", str(length))
        self.handler.end_headers()

    def write(self, body: bytes) -> None:
        self.handler.wfile.write(body)
        self.handler.wfile.flush()

    def hang_up(self) -> None:
        self.handler.close_connection = True


Behaviour = Callable[[Exchange], None]


@dataclass
class Served:
    """A running server: its address, what it heard, and whether the test wants its threads to end."""

    url: str
    heard: list[Exchange] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def queries(self) -> list[str]:
        return [exchange.query for exchange in self.heard]

    @property
    def methods(self) -> list[QueryMethod]:
        return [exchange.query_method for exchange in self.heard]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hung up is what many tests are about."""


@contextmanager
def serving(behaviour: Behaviour) -> Iterator[Served]:
    """A server with this behaviour, for the time of a `with` block."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            pass

        def _take(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            exchange = Exchange(self, self.command, self.path, dict(self.headers), body)
            served.heard.append(exchange)
            behaviour(exchange)

        do_GET = do_POST = _take

    server = _Server(("127.0.0.1", 0), Handler)
    served = Served(f"http://127.0.0.1:{server.server_address[1]}/sparql")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield served
    finally:
        served.over.set()
        server.shutdown()
        server.server_close()


def sparql(
    store: Store,
    *,
    methods: tuple[QueryMethod, ...] = tuple(QueryMethod),
    formats: tuple[QueryResultsFormat, ...] = (QueryResultsFormat.JSON, QueryResultsFormat.XML),
    knows_values: bool = True,
    most_rows: int | None = None,
    most_keys: int | None = None,
) -> Behaviour:
    """A good endpoint over a store, which may take only some methods, write only some formats, or be of SPARQL 1.0.

    `most_rows` cuts every answer in silence, as some servers do; more than `most_keys` in VALUES are too many (413).
    """

    def answer(exchange: Exchange) -> None:
        if exchange.query_method not in methods:
            exchange.answer(415 if exchange.method == "POST" and QueryMethod.POST_FORM in methods else 405)
            return
        values = re.search(r"\bVALUES\b[^{]*\{(.*?)\}", exchange.query)
        if values and not knows_values:
            exchange.answer(400, b"Lexical error: VALUES", "text/plain")
            return
        if values and most_keys is not None and values[1].count("(") > most_keys:
            exchange.answer(413)
            return
        try:
            found = store.query(exchange.query)
            assert not isinstance(found, QueryTriples)
        except (SyntaxError, ValueError) as error:
            exchange.answer(400, str(error).encode(), "text/plain")
            return
        wanted = formats[0]
        body = found.serialize(format=wanted) or b""
        if most_rows is not None:
            body = _cut(store, exchange.query, most_rows, wanted)
        exchange.answer(200, body, wanted.media_type)

    return answer


def _cut(store: Store, query: str, most_rows: int, wanted: QueryResultsFormat) -> bytes:
    asked = re.search(r"LIMIT (\d+)", query)
    limit = min(int(asked[1]), most_rows) if asked else most_rows
    shorter = re.sub(r"LIMIT \d+", f"LIMIT {limit}", query) if asked else f"{query} LIMIT {limit}"
    found = store.query(shorter)
    assert not isinstance(found, QueryTriples)
    return found.serialize(format=wanted) or b""


def in_turn(*behaviours: Behaviour) -> Behaviour:
    """The first behaviour for the first request, and so on; the last one for all after it."""
    turn = iter(behaviours)
    lock = threading.Lock()

    def answer(exchange: Exchange) -> None:
        with lock:
            behaviour = next(turn, behaviours[-1])
        behaviour(exchange)

    return answer
