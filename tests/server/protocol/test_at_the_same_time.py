"""Many clients at the same time: each sees whole versions, and no change is lost."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.server.protocol.live_server import LiveServer, serve

EX = "http://example.org/"
PLACES = [f"GRAPH <{EX}g{n}> {{ <{EX}token> <{EX}is> 1 . <{EX}token> <{EX}is> 2 }}" for n in range(3)]


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with serve(tmp_path_factory.mktemp("many") / "data") as live:
        yield live


def update(server: LiveServer, text: str) -> None:
    assert server.request("POST", "/sparql", data={"update": text}).status_code == 204


def count(server: LiveServer, pattern: str) -> int:
    query = f"SELECT (COUNT(*) AS ?n) {{ {pattern} }}"
    answer = server.request("POST", "/sparql", data={"query": query})
    return int(answer.json()["results"]["bindings"][0]["n"]["value"])


def test_a_query_sees_a_change_as_a_whole(server: LiveServer) -> None:
    update(server, f"INSERT DATA {{ {PLACES[0]} }}")

    def move(number: int) -> None:
        before, after = PLACES[number % 3], PLACES[(number + 1) % 3]
        update(server, f"DELETE {{ {before} }} INSERT {{ {after} }} WHERE {{ {before} }}")

    def look(_: int) -> int:
        return count(server, "GRAPH ?g { ?s ?p ?o }")

    with ThreadPoolExecutor(4) as pool:
        looks = [pool.submit(look, number) for number in range(60)]
        for number in range(40):
            move(number)
        assert {one.result() for one in looks} == {2}
    assert count(server, PLACES[40 % 3]) == 1


def test_no_change_is_lost(server: LiveServer) -> None:
    update(server, f"INSERT DATA {{ <{EX}counter> <{EX}is> 0 }}")
    increment = f"DELETE {{ ?c <{EX}is> ?n }} INSERT {{ ?c <{EX}is> ?m }} WHERE {{ ?c <{EX}is> ?n BIND(?n + 1 AS ?m) }}"
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: update(server, increment), range(40)))
    assert count(server, f"<{EX}counter> <{EX}is> 40") == 1
    assert count(server, "?s ?p ?o") == 1


def test_of_many_who_change_one_state_of_a_graph_one_wins(server: LiveServer) -> None:
    turtle = {"Content-Type": "text/turtle"}
    server.request("PUT", "/data/g", content=b"<a> <p> 0 .", headers=turtle)
    tag = server.request("GET", "/data/g").headers["etag"]

    def put(number: int) -> int:
        content = f"<a> <p> {number} .".encode()
        return server.request("PUT", "/data/g", content=content, headers={**turtle, "If-Match": tag}).status_code

    with ThreadPoolExecutor(4) as pool:
        statuses = sorted(pool.map(put, range(1, 9)))
    assert statuses == [204] + [412] * 7
