"""A website that a browser on this machine shows neither reads nor changes a server without tokens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

import pytest
from starlette.datastructures import Headers
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from headwater.server.own_sites import OwnSites
from headwater.server.problems import Problem
from tests.server.serving import COUNT, Server, serving
from tests.server.test_http_queries import is_problem

PATHS = ("/queries", "/streams", "/status", "/metrics", "/openapi.json", "/sparql?query=ASK%7B%7D", "/data?default")


@pytest.fixture(scope="module")
def open_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("open"), '[server]\ncors = ["http://page.example"]\n') as found:
        yield found


def test_other_websites_are_refused_on_every_path(open_server: Server) -> None:
    client, here = open_server.client, f"localhost:{open_server.port}"
    for path in PATHS:
        is_problem(client.get(path, headers={"Origin": "http://127.0.0.2:18490"}), 403)
        is_problem(client.get(path, headers={"Host": f"rebound.example:{open_server.port}"}), 403)
    update = {"update": "INSERT DATA { <urn:from> <urn:evil> <urn:page> }"}
    for origin in ("http://other.example", "null", "http://localhost:1"):
        is_problem(client.post("/sparql", data=update, headers={"Origin": origin}), 403)
    assert not client.get("/sparql", params={"query": "ASK { <urn:from> ?p ?o }"}).json()["boolean"]
    is_problem(client.put("/streams/x", headers={"Host": "rebound.example"}), 403)
    assert client.put("/streams/s", headers={"Host": here, "Origin": f"http://{here}"}).status_code == 201
    allowed = client.put("/queries/q", content=COUNT, headers={"Origin": "http://page.example"})
    assert allowed.status_code == 201
    assert allowed.headers["access-control-allow-origin"] == "http://page.example"


@pytest.mark.parametrize("path", ["/live", "/queries/q/answers"])
def test_other_websites_open_no_connection(open_server: Server, path: str) -> None:
    url = f"ws://127.0.0.1:{open_server.port}{path}"
    for wrong in ({"Origin": "http://other.example"}, {"Origin": "null"}):
        with pytest.raises(InvalidStatus), connect(url, additional_headers=wrong):
            pass
    with connect(url, additional_headers={"Origin": "http://page.example"}):
        pass


@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        *(("localhost", True), ("LOCALHOST:8080", True), ("127.0.0.1:1", True), ("127.0.0.2", True)),
        *(("[::1]:8080", True), ("[::1]", True), ("", False), ("localhost.example", False), ("192.168.0.1", False)),
        *(("127.0.0.1.example:80", False), ("[::1", False), ("box", True), ("::", False)),
    ],
)
def test_names_of_this_machine(host: str, is_own: bool) -> None:
    sites = OwnSites.of(True, "box", ["*"])
    with nullcontext() if is_own else pytest.raises(Problem):
        sites.check(Headers({"host": host}))
    OwnSites(False).check(Headers({"host": host}))
