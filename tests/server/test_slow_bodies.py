"""Bodies that are too large, come too slowly, or never end, on every path: the server answers, and closes."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from tests.server.serving import PATIENCE, TNQ, Server, serving
from tests.server.test_http_queries import is_problem

SETTINGS = "[http]\nbody_bytes = 1_500_000\nbody_seconds = 1\nhead_seconds = 1\n"
REQUESTS = (
    ("PUT", "/streams/slow", "application/json"),
    ("POST", "/streams/s", "text/x-timed-nquads"),
    ("PUT", "/queries/slow", "application/sparql-query"),
    ("POST", "/sparql", "application/sparql-update"),
    ("PUT", "/data?default", "text/turtle"),
    ("DELETE", "/nothing", "text/plain"),
)


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("hasty"), SETTINGS) as found:
        assert found.client.put("/streams/s").status_code == 201
        yield found


def begin(server: Server, method: str, path: str, kind: str, length: int | None) -> socket.socket:
    """A connection with the head of a request, and the first byte of its body."""
    connection = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
    size = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n{size}\r\n\r\n"
    connection.sendall(head.encode() + b"1")
    return connection


def trickle(connection: socket.socket) -> bytes:
    """Send a byte now and then until the server has closed; what it has sent."""
    end, found = time.monotonic() + PATIENCE, b""
    connection.settimeout(0.1)
    while time.monotonic() < end:
        try:
            connection.sendall(b"1")
            part = connection.recv(1 << 16)
            if not part:
                return found
            found += part
        except TimeoutError:
            continue
        except OSError:
            return found
    raise AssertionError("the server keeps the connection")


def test_a_body_that_trickles_is_ended_on_every_path(hasty: Server) -> None:
    connections = [begin(hasty, *request, 100_000) for request in REQUESTS]
    for connection, request in zip(connections, REQUESTS, strict=True):
        with connection:
            assert trickle(connection).startswith(b"HTTP/1.1 408"), request


def test_what_is_answered_at_once_is_closed_though_its_body_goes_on(hasty: Server) -> None:
    with begin(hasty, "PUT", "/streams/large", "application/json", 1 << 40) as connection:
        assert trickle(connection).startswith(b"HTTP/1.1 413")


def test_the_head_of_a_second_request_has_its_time_too(hasty: Server) -> None:
    with socket.create_connection(("127.0.0.1", hasty.port), PATIENCE) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
        connection.sendall(b"GET /health HTTP/1.1\r\nX: ")
        trickle(connection)


@pytest.mark.parametrize(("method", "path", "kind"), REQUESTS)
def test_a_body_that_is_too_large_is_refused_on_every_path(hasty: Server, method: str, path: str, kind: str) -> None:
    body = b"1" * 1_500_001
    is_problem(hasty.client.request(method, path, content=body, headers={"Content-Type": kind}), 413)
    is_problem(hasty.client.request(method, path, content=iter([body]), headers={"Content-Type": kind}), 413)


def test_a_query_is_at_most_a_megabyte(hasty: Server) -> None:
    text = b"#" * (1 << 20) + b"\nASK {}"
    is_problem(hasty.client.put("/queries/long", content=text), 413)
    query = {"Content-Type": "application/sparql-query"}
    is_problem(hasty.client.post("/sparql", content=text, headers=query), 413)


def test_encoded_bodies_are_not_taken(hasty: Server) -> None:
    for method, path, kind in REQUESTS:
        headers = {"Content-Type": kind, "Content-Encoding": "gzip"}
        is_problem(hasty.client.request(method, path, content=b"x", headers=headers), 415)
    headers = {**TNQ, "Content-Encoding": "identity"}
    assert hasty.client.post("/streams/s", content=b"", headers=headers).status_code == 200


def test_who_hangs_up_leaves_no_error(hasty: Server) -> None:
    for request in REQUESTS:
        begin(hasty, *request, 1_000).close()
        begin(hasty, *request, None).close()
    assert hasty.client.get("/ready").status_code == 200
    time.sleep(0.2)
    assert "Traceback" not in hasty.log
    assert "ERROR" not in hasty.log
