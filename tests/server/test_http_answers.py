"""Answers over HTTP: in each form, from any id on, as changes, and for readers who are slow."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from contextlib import ExitStack
from typing import Any

import pytest
from websockets.sync.client import connect

from tests.server.serving import VALUES, Server, lines, wait_for
from tests.server.test_http_queries import fresh, is_problem


@pytest.fixture(scope="module")
def followed(server: Server) -> Server:
    """A server with a query `q` that has had some answers."""
    server.client.put("/streams/s")
    server.put_query("q", VALUES)
    server.feed(*range(10))
    server.events("q", 9, after="first")
    return server


def values(event: dict[str, Any]) -> list[str]:
    rows = event["rows"] if "rows" in event else event["results"]["bindings"]
    return sorted(row["v"]["value"] for row in rows)


def server_sent(server: Server, query: str, **headers: str) -> Generator[dict[str, str], None, None]:
    """The fields of each Server-Sent Event."""
    accept = {"Accept": "text/event-stream", **headers}
    with server.client.stream("GET", f"/queries/{query}/answers", headers=accept) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        fields: dict[str, str] = {}
        for line in response.iter_lines():
            name, _, value = line.partition(": ")
            if not line and fields:
                yield fields
                fields = {}
            elif name:
                fields[name] = value


def test_each_form_has_the_same_events(followed: Server) -> None:
    found = followed.events("q", 9, after="first")
    assert [values(one) for one in found] == [["0"], *([str(n - 1), str(n)] for n in range(1, 9))]
    ids = [one["id"] for one in found]
    sent = server_sent(followed, "q", **{"Last-Event-ID": ids[3]})
    event = next(sent)
    sent.close()
    assert (event["id"], event["event"]) == (ids[4], "answer")
    assert json.loads(event["data"]) == found[4]
    with connect(f"ws://127.0.0.1:{followed.port}/queries/q/answers?after={ids[3]}") as socket:
        assert json.loads(socket.recv()) == found[4]


def test_whoever_comes_back_goes_on_behind_any_id(followed: Server) -> None:
    ids = [one["id"] for one in followed.events("q", 9, after="first")]
    for place, id in enumerate(ids[:-1]):
        assert [one["id"] for one in followed.events("q", len(ids) - 1 - place, after=id)] == ids[place + 1 :]


def test_new_answers_come_to_all_forms_at_once(followed: Server) -> None:
    text = fresh(followed, "new")
    followed.put_query("new", text)
    found: list[list[int]] = []

    def read() -> None:
        with followed.follow("new") as events:
            found.append([next(events)["time_us"] for _ in range(3)])

    readers = [threading.Thread(target=read) for _ in range(5)]
    for reader in readers:
        reader.start()
    wait_for(lambda: followed.client.get("/queries/new").json()["subscribers"] == 5)
    followed.feed(0, 1, 2, 3, stream="new")
    for reader in readers:
        reader.join(60)
    assert found == [[0, 1_000_000, 2_000_000]] * 5


def test_changes_begin_with_a_snapshot(followed: Server) -> None:
    fresh(followed, "changing")
    followed.put_query("changing", VALUES.replace("<s>", "<changing>"))
    with followed.follow("changing", mode="changes") as events:
        empty = next(events)
        assert (empty["event"], empty["rows"]) == ("snapshot", [])
        followed.feed(0, 1, 2, 3, stream="changing")
        seen: list[tuple[str, list[str]]] = []
        while len(seen) < 4:
            event = next(events)
            if event["event"] == "progress":
                assert event["watermark_us"] is not None
            else:
                seen.append((event["event"], values(event)))
    assert seen == [("add", ["0"]), ("add", ["1"]), ("remove", ["0"]), ("add", ["2"])]


def test_changes_are_gone_on_with_from_each_of_their_ids(followed: Server) -> None:
    base = followed.events("q", 9, after="first")[1]
    everything: list[dict[str, Any]] = []
    with followed.follow("q", mode="changes", after=base["id"]) as events:
        while len(everything) < 21:
            everything.append(next(events))
    assert [one["event"] for one in everything[:6]] == ["remove", "add", "progress"] * 2
    rows = set(values(base))
    for event in everything:
        if event["event"] == "remove":
            rows -= set(values(event))
        elif event["event"] == "add":
            rows |= set(values(event))
    assert rows == {"7", "8"}
    for place, event in enumerate(everything[:-1]):
        rest = followed.events("q", len(everything) - 1 - place, mode="changes", after=event["id"])
        assert [one["id"] for one in rest] == [one["id"] for one in everything[place + 1 :]]
        assert rest == everything[place + 1 :]


def test_wrong_ids_and_forms_are_problems(followed: Server) -> None:
    path = "/queries/q/answers"
    is_problem(followed.client.get(path, params={"after": "nonsense"}), 400)
    is_problem(followed.client.get(path, params={"after": "1-2-3"}), 410)
    is_problem(followed.client.get(path, params={"after": "1-2-3", "mode": "changes"}), 410)
    is_problem(followed.client.get(path, headers={"Accept": "image/png"}), 406)
    is_problem(followed.client.get("/queries/none/answers"), 404)


@pytest.mark.parametrize(
    ("accept", "begin"),
    [
        ("application/sparql-results+json", '{"head": {"vars": ["v"]}'),
        ("application/sparql-results+xml", "<?xml"),
        ("text/csv", "v\r\n"),
        ("text/tab-separated-values", "?v\n"),
        ("application/json", '{"watermark_us"'),
    ],
)
def test_the_newest_answer_is_given_in_the_forms_of_sparql(followed: Server, accept: str, begin: str) -> None:
    found = followed.client.get("/queries/q/answers/latest", headers={"Accept": accept})
    assert found.text.startswith(begin)
    assert found.headers["content-type"].startswith(accept)
    assert found.headers["etag"].strip('"') == followed.client.get("/queries/q").json()["last_event"]


def test_the_newest_graph_is_given_as_rdf(followed: Server) -> None:
    fresh(followed, "graphs")
    text = "CONSTRUCT { ?x <urn:w> ?v } FROM STREAM <graphs> [RANGE 2s STEP 1s] WHERE { ?x <urn:v> ?v }"
    followed.put_query("graphs", text)
    is_problem(followed.client.get("/queries/graphs/answers/latest"), 404)
    followed.feed(0, 1, stream="graphs")
    followed.events("graphs", 1, after="first")
    found = followed.client.get("/queries/graphs/answers/latest", headers={"Accept": "text/turtle"})
    assert "<urn:w>" in found.text


def test_one_connection_has_many_subscriptions(followed: Server) -> None:
    for name in ("one", "two"):
        followed.put_query(name, fresh(followed, name))
    with connect(f"ws://127.0.0.1:{followed.port}/live") as socket:
        for name in ("one", "two", "two", "none"):
            socket.send(json.dumps({"subscribe": name}))
        socket.send("nonsense")
        told = [json.loads(socket.recv()) for _ in range(3)]
        assert sorted(one["query"] for one in told) == ["", "none", "two"]
        assert {one["event"] for one in told} == {"error"}
        wait_for(lambda: followed.client.get("/queries/two").json()["subscribers"] == 1)
        followed.feed(0, 1, stream="one")
        followed.feed(0, 1, stream="two")
        assert {json.loads(socket.recv())["query"] for _ in range(2)} == {"one", "two"}
        socket.send(json.dumps({"unsubscribe": "one"}))
        wait_for(lambda: followed.client.get("/queries/one").json()["subscribers"] == 0)


def test_a_subscription_that_ended_may_begin_again(followed: Server) -> None:
    with connect(f"ws://127.0.0.1:{followed.port}/live") as socket:

        def hear(wanted: dict[str, str], *kinds: str) -> None:
            socket.send(json.dumps(wanted))
            found: list[str] = []
            while len(found) < len(kinds):
                event = json.loads(socket.recv(60))
                assert event["query"] == "q"
                if event["event"] != "answer":
                    found.append(event["event"])
            assert tuple(found) == kinds

        for _ in range(20):
            socket.send(json.dumps({"subscribe": "q", "after": "first"}))
            hear({"unsubscribe": "q"}, "end")
        hear({"subscribe": "q"})
        hear({"subscribe": "q"}, "error")
        hear({"unsubscribe": "q"}, "end")
        hear({"unsubscribe": "q"}, "error")
        hear({"subscribe": "q", "after": "1-2-3"}, "error")
        hear({"subscribe": "q", "mode": "changes"}, "snapshot")
        socket.send("[" * 100_000)
        assert json.loads(socket.recv(60))["event"] == "error"
    wait_for(lambda: followed.client.get("/queries/q").json()["subscribers"] == 0)
    assert "Traceback" not in followed.log


def test_whoever_saw_no_answer_yet_goes_on_from_the_beginning(followed: Server) -> None:
    fresh(followed, "silent")
    followed.put_query("silent", VALUES.replace("<s>", "<silent>"))
    (first,) = followed.events("silent", 1, mode="changes")
    assert (first["event"], first["rows"]) == ("snapshot", [])
    followed.feed(0, 1, 2, stream="silent")
    found = followed.events("silent", 4, mode="changes", after=first["id"])
    assert [one["event"] for one in found] == ["add", "progress", "add", "progress"]
    assert followed.events("silent", 1, after=first["id"])[0]["time_us"] == 0
    is_problem(followed.client.get("/queries/q/answers", params={"after": "0-1-0", "mode": "changes"}), 410)


def test_whoever_does_not_read_holds_up_nobody_and_misses_nothing(followed: Server) -> None:
    fresh(followed, "many")
    long = VALUES.replace("<s>", "<many>").replace("?v FROM", "?v (CONCAT(STR(?v), ?long) AS ?w) FROM")
    long = long.replace("?v }", '?v BIND("' + "x" * 150_000 + '" AS ?long) }')
    assert followed.put_query("many", long).status_code == 201
    quick: list[int] = []

    def read() -> None:
        with followed.follow("many") as events:
            quick.extend(next(events)["time_us"] for _ in range(99))

    expected = [1_000_000 * number for number in range(99)]
    with connect(f"ws://127.0.0.1:{followed.port}/queries/many/answers", max_queue=1) as slow:
        reader = threading.Thread(target=read)
        reader.start()
        wait_for(lambda: followed.client.get("/queries/many").json()["subscribers"] == 2)
        for second in range(100):
            followed.feed(second, stream="many")
        reader.join(120)
        assert quick == expected
        assert [json.loads(slow.recv())["time_us"] for _ in range(99)] == expected


def test_a_query_that_is_dropped_or_replaced_ends_its_subscriptions(followed: Server) -> None:
    text = fresh(followed, "ending")
    for change in (
        lambda: followed.put_query("ending", text.replace("2s", "4s")),
        lambda: followed.client.delete("/queries/ending"),
    ):
        followed.put_query("ending", text)
        with followed.follow("ending") as events:
            wait_for(lambda: followed.client.get("/queries/ending").json()["subscribers"] == 1)
            change()
            assert next(events)["event"] == "end"
            assert next(events, None) is None


def test_subscriptions_are_counted_and_too_many_are_refused(followed: Server) -> None:
    with ExitStack() as stack:
        for _ in range(40):
            stack.enter_context(connect(f"ws://127.0.0.1:{followed.port}/queries/q/answers"))
        wait_for(lambda: followed.client.get("/status").json()["subscriptions"] == 40)
        is_problem(followed.client.get("/queries/q/answers"), 429)
    wait_for(lambda: followed.client.get("/status").json()["subscriptions"] == 0)
    assert lines(1)
