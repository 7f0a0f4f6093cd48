"""Requests as clients send them, byte by byte: what is taken, what is refused, and what is answered."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from headwater.server.problems import MEDIA_TYPE
from headwater.server.protocol.dataset_service import ServiceLimits
from headwater.server.protocol.media_types import choose_type
from headwater.terms.model import Literal, NamedNode, Triple
from headwater.values.query_limits import QueryLimits
from tests.server.protocol.live_server import LiveServer, serve

EX = "http://example.org/"
TURTLE = {"Content-Type": "text/turtle"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with serve(tmp_path_factory.mktemp("requests") / "data") as live:
        p = NamedNode(EX + "p")
        live.data.insert([Triple(NamedNode(f"{EX}s{n}"), p, Literal(n)) for n in range(3)])
        yield live


QUERY = {"Content-Type": "application/sparql-query"}
UPDATE_TYPE = "application/sparql-update"
UPDATE = {"Content-Type": UPDATE_TYPE}
TRIG = {"Content-Type": "application/trig"}
ASK_ELSEWHERE = quote("SELECT * { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }")
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
ASK = quote("ASK {}")
REFUSED: dict[str, tuple[int, str, str, dict[str, Any]]] = {
    "update-by-get": (400, "GET", f"/sparql?update={quote('CLEAR ALL')}", {}),
    "two-queries": (400, "GET", f"/sparql?query={ASK}&query={ASK}", {}),
    "query-and-update": (400, "POST", "/sparql", {"data": {"query": "ASK {}", "update": "CLEAR ALL"}}),
    "empty-form": (400, "POST", "/sparql", {"content": b"", "headers": FORM}),
    "not-utf-8": (400, "POST", "/sparql", {"content": b"ASK {} # \xff", "headers": QUERY}),
    "form-not-utf-8": (400, "POST", "/sparql", {"content": b"query=%ff", "headers": FORM}),
    "no-type": (415, "POST", "/sparql", {"content": b"ASK {}"}),
    "other-type": (415, "POST", "/sparql", {"content": b"{}", "headers": {"Content-Type": "application/json"}}),
    "utf-16": (415, "POST", "/sparql", {"content": b"", "headers": {"Content-Type": f"{UPDATE_TYPE}; charset=UTF-16"}}),
    "too-large": (413, "POST", "/sparql", {"content": b"#" * ((1 << 20) + 1), "headers": QUERY}),
    "bad-query": (400, "GET", "/sparql?query=ASK", {}),
    "stream-query": (
        400,
        "POST",
        "/sparql",
        {"data": {"query": "SELECT * FROM STREAM <s> [RANGE 1s TUMBLING] WHERE { ?s ?p ?o }"}},
    ),
    "deep-query": (400, "POST", "/sparql", {"content": b"ASK " + b"{" * 500 + b"}" * 500, "headers": QUERY}),
    "deep-update": (400, "POST", "/sparql", {"content": b"DELETE WHERE " + b"{" * 500 + b"}" * 500, "headers": UPDATE}),
    "no-iri": (400, "GET", f"/sparql?query={ASK}&default-graph-uri=not%20an%20iri", {}),
    "no-format": (406, "GET", f"/sparql?query={ASK}", {"headers": {"Accept": "image/png"}}),
    "no-graph-format": (406, "GET", "/data?default", {"headers": {"Accept": "image/png"}}),
    "graph-missing": (404, "GET", f"/data?graph={EX}none", {}),
    "which-graph": (400, "GET", "/data", {}),
    "two-graphs": (400, "GET", f"/data?default&graph={EX}g", {}),
    "direct-and-named": (400, "GET", f"/data/g?graph={EX}g", {}),
    "graph-no-iri": (400, "GET", "/data?graph=x", {}),
    "bad-turtle": (400, "PUT", "/data/g", {"content": b"<a> <b", "headers": TURTLE}),
    "other-rdf": (415, "PUT", "/data/g", {"content": b"a", "headers": {"Content-Type": "application/pdf"}}),
    "named-graphs": (400, "PUT", "/data/g", {"content": b"<g> { <a> <b> <c> }", "headers": TRIG}),
    "bad-parts": (400, "POST", "/data/g", {"content": b"abc", "headers": {"Content-Type": "multipart/form-data"}}),
    "no-such-method": (405, "PATCH", "/data/g", {}),
    "nothing-here": (404, "GET", "/nothing", {}),
    "drop-nothing": (409, "POST", "/sparql", {"data": {"update": f"DROP GRAPH <{EX}none>"}}),
    "load-refused": (403, "POST", "/sparql", {"data": {"update": "LOAD <http://127.0.0.1:9/x.ttl>"}}),
    "service-refused": (403, "GET", "/sparql?query=" + ASK_ELSEWHERE, {}),
    "service-in-update-refused": (
        403,
        "POST",
        "/sparql",
        {"data": {"update": "INSERT { ?s ?p ?o } WHERE { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }"}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_requests_are_problems_that_say_what_to_do(server: LiveServer, name: str) -> None:
    status, method, path, arguments = REFUSED[name]
    answer = server.request(method, path, **arguments)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == MEDIA_TYPE
    problem = answer.json()
    assert problem["status"] == status
    assert problem["title"] and problem["detail"]
    assert str(server.data.folder) not in answer.text


def test_errors_say_where_they_are(server: LiveServer) -> None:
    detail = server.request("POST", "/sparql", data={"query": "SELECT ?x\nWHERE { ?x ?y }"}).json()["detail"]
    assert detail.startswith("line 2, column ")
    detail = server.request("POST", "/sparql", data={"update": "INSERT DAT { <a> <b> <c> }"}).json()["detail"]
    assert "error at 1:12: expected DATA" in detail


def test_each_result_can_be_had_in_each_of_its_formats(server: LiveServer) -> None:
    rows = "SELECT ?s ?o { ?s ?p ?o } ORDER BY ?o LIMIT 1"
    bodies = {
        "application/sparql-results+json": '"value": "0"',
        "application/sparql-results+xml": "<binding name=",
        "application/json": '"value": "0"',
        "text/csv": f"s,o\r\n{EX}s0,0",
        "text/tab-separated-values": "?s\t?o\n",
    }
    for media_type, part in bodies.items():
        answer = server.request("POST", "/sparql", data={"query": rows}, headers={"Accept": media_type})
        assert answer.headers["content-type"].partition(";")[0] == media_type
        assert answer.headers["vary"] == "Accept"
        assert part in answer.text
    answer = server.request("GET", f"/sparql?query={ASK}", headers={"Accept": "text/csv"})
    assert answer.headers["content-type"] == "application/sparql-results+json", "CSV has no truth values"
    graph = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"
    for media_type in ("text/turtle", "application/n-triples", "application/rdf+xml", "application/ld+json"):
        answer = server.request("POST", "/sparql", data={"query": graph}, headers={"Accept": media_type})
        assert answer.headers["content-type"].partition(";")[0] == media_type
        assert f"{EX}s2" in answer.text


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        (None, "a/b"),
        ("", "a/b"),
        ("*/*", "a/b"),
        ("c/d", "c/d"),
        ("a/*;q=0.5, c/d", "c/d"),
        ("a/b;q=0, */*;q=0.1", "c/d"),
        ("A/B", "a/b"),
        ("c/d;q=0.2;x=y, a/b;q=0.1", "c/d"),
        ("c/d;q=wrong", None),
        ("e/f", None),
        ("text/html, */*;q=0.8", "a/b"),
    ],
)
def test_the_type_is_the_one_that_the_client_prefers(accept: str | None, chosen: str | None) -> None:
    assert choose_type(accept, ["a/b", "c/d"]) == chosen


def test_graphs_have_tags_and_changes_may_depend_on_them(server: LiveServer) -> None:
    def put(text: str, **headers: str) -> int:
        content = {"headers": {**TURTLE, **{name.replace("_", "-"): value for name, value in headers.items()}}}
        return server.request("PUT", "/data/tagged", content=text.encode(), **content).status_code

    assert put("<a> <b> 1 .", If_Match="*") == 412
    assert put("<a> <b> 1 .", If_None_Match="*") == 201
    assert put("<a> <b> 2 .", If_None_Match="*") == 412
    first = server.request("GET", "/data/tagged")
    tag = first.headers["etag"]
    assert server.request("GET", "/data/tagged", headers={"If-None-Match": tag}).status_code == 304
    other = server.request("GET", "/data/tagged", headers={"Accept": "application/n-triples"})
    assert other.headers["etag"] != tag
    server.data.advance()
    server.data.insert([Triple(NamedNode(EX + "x"), NamedNode(EX + "p"), Literal(7))], EX + "elsewhere")
    assert server.request("GET", "/data/tagged").headers["etag"] == tag, "another graph was changed"
    assert put("<a> <b> 3 .", If_Match=other.headers["etag"]) == 204
    assert put("<a> <b> 4 .", If_Match=tag) == 412
    assert "<b> 3" in server.request("GET", "/data/tagged").text.replace(f"{server.address}/data/", "")
    newest = server.request("GET", "/data/tagged").headers["etag"]
    assert server.request("DELETE", "/data/tagged", headers={"If-Match": tag}).status_code == 412
    assert server.request("DELETE", "/data/tagged", headers={"If-Match": newest}).status_code == 204


def test_head_has_the_headers_of_get_and_no_body(server: LiveServer) -> None:
    for path in ("/data?default", f"/sparql?query={ASK}", "/sparql", "/sparql/"):
        head, whole = server.request("HEAD", path), server.request("GET", path)
        assert head.status_code == 200
        assert head.content == b""
        assert head.headers["content-type"] == whole.headers["content-type"]


def test_a_request_without_a_library(server: LiveServer) -> None:
    where = urlsplit(server.address)
    body = b"query=" + quote(f"ASK {{ <{EX}s1> <{EX}p> 1 }}").encode()
    with socket.create_connection((str(where.hostname), where.port or 0), timeout=60) as connection:
        connection.sendall(
            b"POST /sparql HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n"
            b"Content-Type: application/x-www-form-urlencoded; charset=utf-8\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        )
        received = b""
        while piece := connection.recv(65536):
            received += piece
    head, _, content = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert json.loads(content)["boolean"] is True


def test_void_counts_the_statements(server: LiveServer) -> None:
    text = server.request("GET", "/.well-known/void", headers={"Accept": "application/n-triples"}).text
    server.data.advance()
    count = server.data.statements
    assert f'<http://rdfs.org/ns/void#triples> "{count}"' in text
    assert f"<http://rdfs.org/ns/void#sparqlEndpoint> <{server.sparql}>" in text
    assert f"<http://rdfs.org/ns/void#property> <{EX}p>" in text


def test_openapi_lists_every_path(server: LiveServer) -> None:
    paths = server.request("GET", "/openapi.json").json()["paths"]
    assert set(paths) == {"/sparql", "/data", "/data/{path}", "/.well-known/void"}
    for operations in paths.values():
        for operation in operations.values():
            assert MEDIA_TYPE in operation["responses"]["400"]["content"]


def ask(server: LiveServer, query: str) -> tuple[int, str]:
    """The status and the detail of the answer to a query."""
    answer = server.request("POST", "/sparql", data={"query": query})
    return answer.status_code, answer.json().get("detail", "")


def numbers(count: int) -> list[Triple]:
    return [Triple(NamedNode(f"{EX}s{n}"), NamedNode(EX + "p"), Literal(n)) for n in range(count)]


def test_a_result_that_is_too_large_is_refused(tmp_path: Path) -> None:
    limits = ServiceLimits(QueryLimits(rows=1000, bytes=50_000))
    with serve(tmp_path / "data", limits=limits) as server:
        server.data.insert(numbers(400))
        status, detail = ask(server, "SELECT * { ?a ?b ?c . ?d ?e ?f }")
        assert status == 422 and "raise the limit `rows`" in detail
        status, detail = ask(server, "SELECT ?a ?b ?c { ?a ?b ?c }")
        assert status == 422 and "raise the limit `bytes`" in detail
        assert server.request("GET", "/data?default", headers={"Accept": "text/turtle"}).status_code == 200
        assert ask(server, "ASK {}")[0] == 200


def test_a_query_that_takes_too_long_is_ended_and_others_go_on(tmp_path: Path) -> None:
    with serve(tmp_path / "data", limits=ServiceLimits(QueryLimits(seconds=0.5))) as server:
        server.data.insert(numbers(400))
        # 64,000,000 solutions are counted in one call, which cannot be interrupted.
        many = "{ ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }"
        status, detail = ask(server, f"SELECT (COUNT(*) AS ?n) {many}")
        assert status == 422 and "the request takes longer than it may" in detail
        update = f"INSERT {{ <x> <n> ?n }} WHERE {{ SELECT (COUNT(*) AS ?n) {many} }}"
        answer = server.request("POST", "/sparql", data={"update": update})
        assert answer.status_code == 422 and "the request takes longer than it may" in answer.text
        assert server.request("GET", "/data?default").status_code == 200
        server.data.advance()
        assert server.data.statements == 400


def test_requests_are_refused_while_calls_that_nobody_waits_for_are_at_work(tmp_path: Path) -> None:
    with serve(tmp_path / "data", limits=ServiceLimits(at_work=1, waiting=0, abandoned=0)) as server:
        assert server.request("GET", f"/sparql?query={ASK}").status_code == 200
        end = threading.Event()
        thread = threading.Thread(target=server.service.calls.run, args=[lambda: end.wait(60)])
        thread.start()
        while not server.service.calls.at_work:
            time.sleep(0.01)
        answer = server.request("GET", f"/sparql?query={ASK}")
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) > 0
        end.set()
        thread.join()
        assert server.request("GET", f"/sparql?query={ASK}").status_code == 200
