"""Requests that no client sends: whatever comes, the answer is one that OpenAPI lists, and the server goes on."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from headwater.server.problems import MEDIA_TYPE
from tests.server.protocol.live_server import LiveServer, serve

METHODS = ["GET", "POST", "PUT", "DELETE", "HEAD"]
PATHS = ["/sparql", "/sparql/", "/data", "/data/", "/data/g", "/data/a%2Fb/%00", "/data/%ff", "/.well-known/void"]
NAMES = [
    *("query", "update", "graph", "default", "default-graph-uri", "named-graph-uri", "using-graph-uri"),
    *("using-named-graph-uri", "x", ""),
]
TEXTS = [
    *("", "ASK {}", "SELECT * { ?s ?p ?o }", "CONSTRUCT WHERE { ?s ?p ?o }", "DESCRIBE <x>", "SELECT (1/0 AS ?x) {}"),
    *("CLEAR ALL", "INSERT DATA { <a> <b> <c> }", "DELETE WHERE { ?s ?p ?o }", "LOAD <x>", "CREATE GRAPH <x>"),
    *("WITH <g> DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }", "INSERT { ?s ?p ?o } WHERE { SERVICE ?x { ?s ?p ?o } }"),
    *(
        "http://example.org/g",
        "urn:x",
        "relative",
        "\0",
        "é\u2028",
        "<a> <b> 'c' .",
        "{}",
        "[]",
        "<<",
        "PREFIX",
        "BASE <",
    ),
    *("COPY <a> TO", "DELETE", "INSERT {", "GRAPH", "DELETE { GRAPH } WHERE {}", "INSERT { GRAPH ?g { ?s } } WHERE {}"),
    *(
        "SELECT * FROM <x> FROM NAMED <y> { GRAPH ?g { ?s ?p ?o OPTIONAL { ?o ?q ?r } } }",
        "\\u0053ELECT * {}",
        "<\\uD800>",
    ),
]
TYPES = [
    *("application/sparql-query", "application/sparql-update", "application/x-www-form-urlencoded", "text/turtle"),
    *(
        "application/n-triples",
        "application/rdf+xml",
        "application/ld+json",
        "multipart/form-data; boundary=b",
        "",
        ";;",
    ),
    *("text/turtle; charset=utf-16", "multipart/form-data", "application/trig", "text/html", "multipart/mixed"),
    "",
]
ACCEPTS = ["*/*", "text/csv", "application/rdf+xml", "text/html", ";q=x", "application/ld+json;q=0.1, text/turtle;q=0"]
TAGS = ['"1"', "*", "", '"', "W/", '"1.ttl", "2"']


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with serve(tmp_path_factory.mktemp("odd") / "data") as live:
        yield live


def odd_request(chance: random.Random) -> dict[str, Any]:
    """The arguments of a request."""
    pick = chance.choice

    def parameters() -> bytes:
        pairs = [(pick(NAMES), pick(TEXTS)) for _ in range(chance.randint(0, 3))]
        return "&".join(f"{name}={quote(text, safe='')}" for name, text in pairs).encode()

    if chance.random() < 0.4:
        # Something that may be understood.
        url = pick(["/sparql", "/sparql", "/data?default", "/data/g", "/data"])
        kind = pick(TYPES[:2]) if url == "/sparql" else "text/turtle"
        content = pick(TEXTS).encode()
        return {"method": pick(["POST", "PUT"]), "url": url, "headers": {"Content-Type": kind}, "content": content}
    body = pick([parameters(), pick(TEXTS).encode(), bytes(chance.choices(range(256), k=chance.randint(0, 40)))])
    query = pick([b"", b"?" + parameters(), b"?%", b"?query=%ff", b"?default"])
    headers = {"Accept": pick(ACCEPTS), "Content-Type": pick(TYPES)}
    if chance.random() < 0.2:
        headers[pick(["If-Match", "If-None-Match"])] = pick(TAGS)
    return {"method": pick(METHODS), "url": pick(PATHS) + query.decode(), "headers": headers, "content": body}


def documented(server: LiveServer) -> dict[str, set[str]]:
    """By method the statuses that OpenAPI lists for any path."""
    found: dict[str, set[str]] = {}
    for path in server.request("GET", "/openapi.json").json()["paths"].values():
        for method, operation in path.items():
            found.setdefault(method.upper(), set()).update(operation["responses"])
    return {**found, "HEAD": found["GET"]}


@pytest.mark.parametrize("seed", range(4))
def test_the_answer_is_a_documented_one(server: LiveServer, seed: int) -> None:
    chance = random.Random(seed)
    known = documented(server)
    with httpx.Client(trust_env=False, timeout=60, base_url=server.address) as client:
        for _ in range(150):
            request = odd_request(chance)
            answer = client.request(**request)
            status = str(answer.status_code)
            assert answer.status_code < 500, f"{request}: {status} {answer.text}"
            assert status in known[request["method"]] or status == "405", f"{request}: {status} {answer.text}"
            if answer.status_code >= 400 and request["method"] != "HEAD":
                assert answer.headers["content-type"] == MEDIA_TYPE
                assert str(server.data.folder) not in answer.text
        assert client.get("/sparql", params={"query": "ASK {}"}).json()["boolean"] is True
