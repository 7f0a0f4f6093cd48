"""SERVICE and LOAD of requests go out through our own client, and only where the server allows it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode, Quad, Store

from headwater.egress.policy import EgressPolicy
from headwater.federation.service_settings import ServiceSettings
from tests.federation.servers import Exchange, Served, serving, sparql
from tests.server.protocol.live_server import serve

EX = "http://example.org/"


def remote_store() -> Store:
    store = Store()
    store.extend([Quad(NamedNode(EX + "a"), NamedNode(EX + "p"), Literal(n)) for n in (1, 2)])
    return store


@pytest.fixture
def remote() -> Iterator[Served]:
    with serving(sparql(remote_store())) as one:
        yield one


def settings_for(url: str) -> ServiceSettings:
    return ServiceSettings(egress=EgressPolicy(allow=[url]))


def agents(server: Served) -> set[str]:
    return {str(exchange.headers.get("User-Agent")) for exchange in server.heard}


def test_service_is_asked_by_our_client(tmp_path: Path, remote: Served) -> None:
    with serve(tmp_path / "data", services=settings_for(remote.url)) as server:
        query = f"SELECT ?o {{ SERVICE <{remote.url}> {{ ?s <{EX}p> ?o }} }} ORDER BY ?o"
        answer = server.request("POST", "/sparql", data={"query": query}, headers={"Accept": "text/csv"})
        assert answer.text.split() == ["o", "1", "2"]
        update = f"INSERT {{ ?s <{EX}q> ?o }} WHERE {{ SERVICE <{remote.url}> {{ ?s <{EX}p> ?o FILTER(?o > 1) }} }}"
        assert server.request("POST", "/sparql", data={"update": update}).status_code == 204
        several = f"CLEAR SILENT GRAPH <{EX}none> ; {update.replace('> 1', '< 2')}"
        assert server.request("POST", "/sparql", data={"update": several}).status_code == 204
        query = f"SELECT ?o {{ ?s <{EX}q> ?o }} ORDER BY ?o"
        answer = server.request("POST", "/sparql", data={"query": query}, headers={"Accept": "text/csv"})
        assert answer.text.split() == ["o", "1", "2"]
        assert all("headwater" in agent for agent in agents(remote))


def turtle(exchange: Exchange) -> None:
    exchange.answer(200, f"<{EX}x> <{EX}p> 7 .".encode(), "text/turtle")


def test_load_is_done_by_our_client(tmp_path: Path) -> None:
    with serving(turtle) as remote, serve(tmp_path / "data", services=settings_for(remote.url)) as server:
        update = f"LOAD <{remote.url}> INTO GRAPH <{EX}g>"
        assert server.request("POST", "/sparql", data={"update": update}).status_code == 204
        assert f"<{EX}p> 7" in server.request("GET", f"/data?graph={EX}g").text
        assert all("headwater" in agent for agent in agents(remote))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * {{ SERVICE <{url}> {{ ?s ?p ?o }} }}",
        "SELECT * {{ VALUES ?e {{ <{url}> }} SERVICE ?e {{ ?s ?p ?o }} }}",
        "ASK {{ FILTER EXISTS {{ SERVICE <{url}> {{ ?s ?p ?o }} }} }}",
        "LOAD <{url}>",
        "INSERT {{ ?s ?p ?o }} WHERE {{ SERVICE <{url}> {{ ?s ?p ?o }} }}",
        "CLEAR ALL ; INSERT {{ ?s ?p ?o }} WHERE {{ SERVICE <{url}> {{ ?s ?p ?o }} }}",
    ],
)
def test_nobody_is_asked_whom_the_server_does_not_allow(tmp_path: Path, remote: Served, text: str) -> None:
    written = text.format(url=remote.url)
    kind = "query" if written.startswith(("SELECT", "ASK")) else "update"
    with serve(tmp_path / "data") as server:
        answer = server.request("POST", "/sparql", data={kind: written})
        assert answer.status_code == 403, answer.text
        assert "egress policy" in answer.json()["detail"]
    assert remote.heard == []


def test_silent_goes_on_without_what_is_not_allowed(tmp_path: Path, remote: Served) -> None:
    with serve(tmp_path / "data") as server:
        query = f"SELECT * {{ VALUES ?x {{ 1 }} SERVICE SILENT <{remote.url}> {{ ?s ?p ?o }} }}"
        assert server.request("POST", "/sparql", data={"query": query}).status_code == 200
        assert server.request("POST", "/sparql", data={"update": f"LOAD SILENT <{remote.url}>"}).status_code == 204
    assert remote.heard == []


def test_an_endpoint_that_fails_is_said_to_fail(tmp_path: Path) -> None:
    def fail(exchange: Exchange) -> None:
        exchange.answer(404, b"nothing here", "text/plain")

    with serving(fail) as remote, serve(tmp_path / "data", services=settings_for(remote.url)) as server:
        for kind, text in (
            ("query", f"SELECT * {{ SERVICE <{remote.url}> {{ ?s ?p ?o }} }}"),
            ("update", f"LOAD <{remote.url}>"),
        ):
            answer = server.request("POST", "/sparql", data={kind: text})
            assert answer.status_code == 502, answer.text


def test_an_update_that_is_wrong_anywhere_asks_nobody(tmp_path: Path) -> None:
    with serving(turtle) as remote, serve(tmp_path / "data", services=settings_for(remote.url)) as server:
        for wrong in ("; INSERT DATA {", f"TO <{EX}g>", ";;"):
            update = f"LOAD <{remote.url}> {wrong}"
            assert server.request("POST", "/sparql", data={"update": update}).status_code == 400
        assert remote.heard == []
        assert server.request("GET", "/data?default").text.strip() == ""
