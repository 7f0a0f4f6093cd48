"""The windows of queries that are evaluated are named graphs: to be read, by those who may read query and stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.server.process.engine_service import EngineService
from headwater.server.process.engine_settings import EngineSettings
from headwater.server.process.registry import QueryEntry, StreamEntry
from headwater.server.protocol.data_calls import from_plain, to_plain
from headwater.server.protocol.data_service import (
    ANY_READER,
    AcceptedTypes,
    GraphChoice,
    GraphReader,
    QueryRequest,
    UpdateRequest,
)
from tests.server.serving import COUNT, VALUES, Server, lines, wait_for

WINDOW = "headwater:/queries/counted/windows/seen"
RSPQL = (
    "PREFIX : <http://example.org/> REGISTER RSTREAM <out> AS SELECT ?v "
    "FROM NAMED WINDOW :w ON <s> [RANGE PT2S STEP PT1S] WHERE { WINDOW :w { ?x <urn:v> ?v } }"
)
ACCEPTED = AcceptedTypes("application/sparql-results+json", "application/sparql-results+json", "text/turtle")


def values_in(server: Server, query: str) -> list[int]:
    found = server.client.get("/sparql", params={"query": query})
    assert found.status_code == 200, found.text
    return sorted(int(row["o"]["value"]) for row in found.json()["results"]["bindings"])


def test_a_window_is_a_named_graph_that_is_read_and_not_changed(server: Server) -> None:
    client = server.client
    client.put("/streams/seen")
    assert server.put_query("counted", COUNT.replace("<s>", "<seen>")).status_code == 201
    plan = client.get("/queries/counted/plan", params={"format": "json"}).json()
    assert [one["graph"] for one in plan["windows"]] == [WINDOW]
    server.feed(0, 1, 2, 3, 4, 5, stream="seen")
    last = server.events("counted", 5, after="first")[-1]
    span = last["inputs"][0]
    held = [one for one in range(6) if span["from_us"] <= one * 1_000_000 < span["before_us"]]
    assert len(held) == 2
    asked = f"SELECT ?o {{ GRAPH <{WINDOW}> {{ ?s ?p ?o }} }}"
    assert values_in(server, asked) == held
    assert values_in(server, f"SELECT ?o FROM <{WINDOW}> {{ ?s ?p ?o }}") == held
    names = client.get("/sparql", params={"query": "SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } }"}).json()
    assert WINDOW in [row["g"]["value"] for row in names["results"]["bindings"]]
    graph = client.get("/data", params={"graph": WINDOW}, headers={"Accept": "application/n-triples"})
    assert graph.text.count("urn:v") == 2
    tag = {"If-None-Match": graph.headers["etag"], "Accept": "application/n-triples"}
    assert client.get("/data", params={"graph": WINDOW}, headers=tag).status_code == 304
    # The window goes on, and the graph with it.
    server.feed(9, 10, stream="seen")
    wait_for(lambda: values_in(server, asked) != held, "the next window")
    assert client.get("/data", params={"graph": WINDOW}, headers=tag).status_code == 200
    turtle = {"Content-Type": "text/turtle"}
    for method in ("PUT", "POST"):
        changed = client.request(method, "/data", params={"graph": WINDOW}, content=b"<a> <b> <c> .", headers=turtle)
        assert changed.status_code == 409, changed.text
    assert client.delete("/data", params={"graph": WINDOW}).status_code == 409
    update = f"INSERT DATA {{ GRAPH <{WINDOW}> {{ <urn:a> <urn:b> 1 }} }}"
    assert client.post("/sparql", data={"update": update}).status_code == 409
    client.delete("/queries/counted")
    assert values_in(server, asked) == []
    assert client.get("/data", params={"graph": WINDOW}).status_code == 404


@pytest.fixture
def service(tmp_path: Path) -> Iterator[EngineService]:
    queries = {"mine": RSPQL, "theirs": RSPQL.replace("<out>", "<other>").replace("2S", "4S"), "plain": VALUES}
    settings = EngineSettings(
        str(tmp_path / "state"),
        streams={"s": StreamEntry()},
        queries={name: QueryEntry(text) for name, text in queries.items()},
    )
    found = EngineService(settings, lambda *one: None)
    found.start()
    found.post("s", lines(*range(8)), "tnq")
    wait_for(lambda: all(one["counts"].get("ticks", 0) >= 6 for one in found.status()["queries"].values()))
    yield found
    found.close()


def rows(service: EngineService, query: str, reader: GraphReader = ANY_READER) -> list[list[str]]:
    request = QueryRequest(query, "http://example.org/", GraphChoice(), ACCEPTED, reader)
    result = from_plain(service.data("query", to_plain((request,)))["result"])
    found = json.loads(result.content)
    return sorted([row[name]["value"] for name in found["head"]["vars"]] for row in found["results"]["bindings"])


SIZES = "SELECT ?g (COUNT(*) AS ?n) { GRAPH ?g { ?s <urn:v> ?o } } GROUP BY ?g"
BASE = "headwater:/queries/"
LABEL = "/windows/http://example.org/w"


def test_two_queries_that_name_a_window_the_same_have_two_graphs(service: EngineService) -> None:
    found = rows(service, SIZES)
    assert found == [
        [f"{BASE}mine{LABEL}", "2"],
        [f"{BASE}plain/windows/s", "2"],
        [f"{BASE}theirs{LABEL}", "4"],
    ]


def test_a_reader_sees_the_windows_of_its_queries_and_streams(service: EngineService) -> None:
    mine = f"{BASE}mine{LABEL}"
    only_mine = GraphReader(("mi",), ("s",))
    assert rows(service, SIZES, only_mine) == [[mine, "2"]]
    theirs = f"SELECT ?o {{ GRAPH <{BASE}theirs{LABEL}> {{ ?s ?p ?o }} }}"
    assert len(rows(service, theirs)) == 4
    assert rows(service, theirs, only_mine) == []
    assert rows(service, f"SELECT ?o FROM <{BASE}theirs{LABEL}> {{ ?s ?p ?o }}", only_mine) == []
    assert rows(service, SIZES, GraphReader(("mi",), ("other",))) == [], "the stream is another right"
    read = service.data("read_graph", to_plain((f"{BASE}theirs{LABEL}", "text/turtle", only_mine)))
    assert read == {"result": [None]}
    copy = f"INSERT {{ ?s ?p ?o }} WHERE {{ GRAPH <{BASE}theirs{LABEL}> {{ ?s ?p ?o }} }}"
    for reader, count in ((only_mine, "0"), (ANY_READER, "4")):
        update = UpdateRequest(copy, "http://example.org/", GraphChoice(), reader)
        assert "result" in service.data("update", to_plain((update,)))
        assert rows(service, "SELECT (COUNT(*) AS ?n) { ?s <urn:v> ?o }") == [[count]]


def test_a_stream_that_a_query_makes_has_windows_too(service: EngineService) -> None:
    made = (
        "REGISTER STREAM <made> AS CONSTRUCT { ?x <urn:twice> ?v } FROM STREAM <s> [RANGE 1s STEP 1s] "
        "WHERE { ?x <urn:v> ?v }"
    )
    service.put_query("maker", made, {})
    service.put_query("reader", "SELECT ?v FROM STREAM <made> [RANGE 2s STEP 1s] WHERE { ?x <urn:twice> ?v }", {})
    service.post("s", lines(*range(8, 14)), "tnq")
    asked = f"SELECT ?o {{ GRAPH <{BASE}reader/windows/made> {{ ?s <urn:twice> ?o }} }}"
    wait_for(lambda: rows(service, asked))
