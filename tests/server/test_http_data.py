"""The linked data of a server over HTTP: it is asked and changed, queries join with it, and it outlives processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.serving import Server, wait_for

JOIN = (
    "SELECT ?name FROM STREAM <s> [RANGE 2s STEP 1s] "
    "WHERE { ?x <urn:v> ?v . GRAPH <urn:names> { ?x <urn:name> ?name } }"
)


def ask(server: Server, query: str) -> bool:
    found = server.client.get("/sparql", params={"query": query})
    assert found.status_code == 200, found.text
    return bool(found.json()["boolean"])


def test_data_is_changed_over_http_and_queries_join_with_it(server: Server) -> None:
    client = server.client
    update = "INSERT DATA { GRAPH <urn:names> { <urn:x> <urn:name> 'first' } }"
    assert client.post("/sparql", data={"update": update}).status_code == 204
    assert client.put("/streams/joined").status_code == 201
    assert server.put_query("joined", JOIN.replace("<s>", "<joined>")).status_code == 201
    server.feed(0, 1, 2, stream="joined")
    first = server.events("joined", 1, after="first")[0]
    assert [row["name"]["value"] for row in first["results"]["bindings"]] == ["first"]
    content = b"<urn:x> <urn:name> 'second' ."
    graph = {"graph": "urn:names"}
    assert (
        client.put("/data", params=graph, content=content, headers={"Content-Type": "text/turtle"}).status_code == 204
    )
    assert ask(server, "ASK { GRAPH <urn:names> { <urn:x> <urn:name> 'second' } }")
    assert client.get("/.well-known/void").status_code == 200


def test_errors_of_the_data_are_problems(server: Server) -> None:
    found = server.client.get("/sparql", params={"query": "ASK"})
    assert (found.status_code, found.headers["content-type"]) == (400, "application/problem+json")
    found = server.client.post("/sparql", data={"update": "LOAD <http://127.0.0.1:9/>"})
    assert found.status_code == 403
    found = server.client.post("/sparql", data={"update": "LOAD <file:///etc/passwd>"})
    assert found.status_code == 403


def test_data_outlives_the_engine_and_the_server(tmp_path: Path) -> None:
    server = Server(tmp_path).start()
    try:
        assert server.client.post("/sparql", data={"update": "INSERT DATA { <urn:a> <urn:p> 1 }"}).status_code == 204
        server.kill_engine()
        wait_for(server.is_ready, "the engine again")
        wait_for(lambda: server.client.get("/sparql", params={"query": "ASK {}"}).status_code == 200, "an answer")
        assert ask(server, "ASK { <urn:a> <urn:p> 1 }")
        assert server.stop() == 0
        server.start()
        assert ask(server, "ASK { <urn:a> <urn:p> 1 }")
    finally:
        assert server.stop() == 0
        server.client.close()


@pytest.mark.parametrize("path", ["/sparql", "/data?default", "/.well-known/void"])
def test_openapi_has_the_paths(server: Server, path: str) -> None:
    assert path.partition("?")[0] in server.client.get("/openapi.json").json()["paths"]
