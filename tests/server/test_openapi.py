"""OpenAPI is true: whatever is sent to any path, the answer is one that is documented there, and never a failure."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.server.serving import COUNT, Server, lines, serving

REQUESTS = 600
WORDS = (
    "",
    "q",
    "s",
    "first",
    "1-2-3",
    "-1",
    "0",
    "true",
    "2026-03-02T07:05:00Z",
    "é\u2028😀",
    "a/b",
    "%00",
    "\x00",
    "..",
)
BODIES: tuple[bytes, ...] = (
    *(
        b"",
        b"\xff\xfe",
        b"{",
        b"[]",
        b"{}",
        b'{"source": 7}',
        b'{"template": "x"}',
        b'{"source": "file:///etc/passwd"}',
    ),
    *(COUNT.encode(), b"SELECT", b"ASK { ?x ?y ?z }", b"SELECT * WHERE { " + b"{ " * 500, lines(1, 2), b"a\x00b\n" * 9),
    *(b'{"a": ' * 300, b"<urn:x> <urn:v> 1 .", b"[[[", b"\xef\xbb\xbf"),
)
TYPES = (
    "text/x-timed-nquads",
    "application/json",
    "text/turtle",
    "application/ld+json",
    "text/csv",
    "",
    "x",
    "a/b; c=é",
)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(
        tmp_path_factory.mktemp("fuzzed"), "[http]\nqueries = 20\nstreams = 20\npreview_seconds = 1\n"
    ) as found:
        found.client.put("/streams/s")
        found.put_query("q", COUNT)
        found.feed(0, 1, 2)
        found.events("q", 1, after="first")
        yield found


def operations(server: Server) -> list[tuple[str, str, dict[str, Any]]]:
    document = server.client.get("/openapi.json").json()
    return [(path, method, one) for path, ways in document["paths"].items() for method, one in ways.items()]


def value_of(schema: dict[str, Any], chance: random.Random) -> str:
    """A value that a schema allows, or any other."""
    choices = [one for part in schema.get("anyOf", [schema]) for one in part.get("enum", [])]
    return (
        chance.choice([*map(str, choices), *WORDS]) if chance.random() < 0.5 or not choices else chance.choice(choices)
    )


@pytest.mark.parametrize("requests", [REQUESTS, pytest.param(10_000, marks=[pytest.mark.soak, pytest.mark.timeout(0)])])
def test_every_answer_is_a_documented_one(fuzzed: Server, requests: int) -> None:
    chance = random.Random(4711 + requests)
    known = operations(fuzzed)
    for number in range(requests):
        path, method, operation = known[number % len(known)]
        parameters = operation.get("parameters", [])
        query: dict[str, str] = {}
        headers = {b"Content-Type": chance.choice(TYPES).encode()}
        for one in parameters:
            value = value_of(one["schema"], chance)
            if one["in"] == "path":
                name = value if chance.random() < 0.5 else "q" if "/queries" in path else "s"
                path = path.replace("{" + one["name"] + "}", quote(name, safe=""))
            elif one["in"] == "query" and chance.random() < 0.5:
                query[one["name"]] = value
            elif one["in"] == "header" and chance.random() < 0.5:
                headers[one["name"].encode()] = value.encode().replace(b"\x00", b"").strip()
        if chance.random() < 0.3:
            headers[b"Accept"] = chance.choice([b"image/png", b"*/*", b"text/turtle;q=x", b"a", b"\xff"])
        what = (number, method, path, query, headers)
        try:
            with fuzzed.client.stream(
                method, path, params=query, headers=[*headers.items()], content=chance.choice(BODIES)
            ) as response:
                status, kind = str(response.status_code), response.headers.get("content-type", "")
                if not kind.startswith(("text/event-stream", "application/x-ndjson")):
                    response.read()
        except httpx.LocalProtocolError:
            continue
        assert status in operation["responses"] or status == "404", (what, status)
        assert int(status) < 500 or status == "503", (what, status)
        if int(status) >= 400:
            assert kind == "application/problem+json", what
    assert fuzzed.client.get("/ready").json() == {"status": "ready", "engine_starts": 1}
    assert "Traceback" not in fuzzed.log


def test_other_origins_are_answered_where_they_are_set(tmp_path: Path) -> None:
    with serving(tmp_path, '[server]\ncors = ["http://page.example"]\n') as server:
        origin = {"Origin": "http://page.example", "Access-Control-Request-Method": "PUT"}
        allowed = server.client.options("/queries/q", headers=origin)
        assert allowed.headers["access-control-allow-origin"] == "http://page.example"
        refused = server.client.options("/queries/q", headers={**origin, "Origin": "http://other.example"})
        assert "access-control-allow-origin" not in refused.headers
