"""The client for Python: the verbs and the errors of the engine, and answers that go on over broken connections."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode, Quad, Triple

import headwater as hw
from headwater.client.server_client import ServerClient
from headwater.errors import HeadwaterError, StateError
from tests.free_ports import free_port
from tests.server.serving import COUNT, Server, serving


def triple(number: int) -> Triple:
    return Triple(NamedNode("urn:x"), NamedNode("urn:v"), Literal(number))


def seconds(answers: list[hw.Answer]) -> list[int]:
    return [answer.time // 1_000_000 for answer in answers]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path) as found:
        yield found


@pytest.fixture
def client(server: Server) -> Iterator[ServerClient]:
    with hw.connect(server.url, patience=120) as found:
        yield found


def test_a_program_registers_sends_and_takes_answers(client: ServerClient) -> None:
    stream = client.stream("s")
    query = client.register(COUNT, name="q")
    assert query.latest() is None
    assert stream.send([triple(0)], time=0)["good"] == 1
    assert stream.send_all((number * 1_000_000, [triple(number)]) for number in (1, 2))["good"] == 2
    assert stream.send([triple(3)], time=datetime.fromtimestamp(3, UTC))["good"] == 1
    answers = query.answers(after="first")
    found = [next(answers) for _ in range(3)]
    assert seconds(found) == [0, 1, 2]
    assert found[2].to_pandas()["n"].tolist() == [2]
    answers.close()
    latest = query.latest()
    assert latest is not None
    assert latest == found[2]
    again = query.answers(after=answers.last_event)
    stream.send([triple(4)], time=4_000_000)
    assert seconds([next(again)]) == [3]
    again.close()
    preview = client.preview(COUNT)
    assert preview is not None
    assert [one.name for one in client.queries] == ["q"]
    assert query.text == COUNT
    query.pause()
    assert query.status["status"] == "paused"
    query.resume()
    assert query.explain().startswith("query q")
    assert client.explain("q") == query.explain()
    assert client.why("q", found[2].time)[0]["solutions"] >= 1
    assert stream.send([triple(5)], time=1)["late"] == 1
    assert client.progress["queries"] == 1
    client.drop(query)
    client.drop_stream(stream)
    assert client.queries == ()


def test_what_is_wrong_is_raised_as_by_the_engine(client: ServerClient) -> None:
    with pytest.raises(hw.QueryError) as failure:
        client.register("SELECT ?x\nWHERE { ?x }", name="q")
    assert (failure.value.line, failure.value.column) == (2, 9)
    with pytest.raises(hw.ServerError, match="make it first") as refused:
        client.register(COUNT, name="q")
    assert refused.value.status == 409
    with pytest.raises(hw.ServerError):
        next(client.query("none").answers())
    with pytest.raises(hw.SettingError):
        hw.connect("ftp://nowhere")
    with pytest.raises(hw.ServerError, match="is the server running"):
        hw.connect(f"http://127.0.0.1:{free_port()}", patience=0.1).stream("s")


def test_answers_go_on_over_a_restart_and_end_when_the_query_is_dropped(server: Server, client: ServerClient) -> None:
    stream = client.stream("s")
    query = client.register(COUNT, name="q")
    found: list[hw.Answer] = []

    async def take() -> None:
        async for answer in query.answers_async(after="first"):
            found.append(answer)

    taking = threading.Thread(target=lambda: asyncio.run(take()))
    taking.start()
    for number in range(30):
        if number == 10:
            server.kill_engine()
        if number == 20:
            assert server.stop() == 0
            server.start()
        stream.send([triple(number)], time=number * 1_000_000)
    while len(found) < 29 and taking.is_alive():
        taking.join(0.05)
    query.drop()
    taking.join(60)
    assert not taking.is_alive()
    assert seconds(found) == list(range(29))


def test_the_linked_data_are_asked_and_changed(client: ServerClient, tmp_path: Path) -> None:
    path = tmp_path / "city.ttl"
    path.write_text("<urn:a> <urn:near> <urn:b> .")
    data = client.dataset(path)
    assert data.query("ASK { <urn:a> <urn:near> <urn:b> }") is True
    quad = Quad(NamedNode("urn:b"), NamedNode("urn:near"), NamedNode("urn:c"))
    client.dataset([quad], "east")
    found = data.query("SELECT ?g ?o { GRAPH ?g { <urn:b> <urn:near> ?o } }")
    assert found == [(NamedNode("headwater:/east"), NamedNode("urn:c"))]
    data.insert([quad])
    assert data.query("CONSTRUCT { ?s ?p ?o } { ?s ?p ?o . ?s <urn:near> <urn:c> }") == [quad.triple]
    data.remove([quad])
    assert data.query("ASK { <urn:b> ?p ?o }") is False
    data.update("DELETE WHERE { ?s ?p ?o }")
    assert data.query("SELECT * { ?s ?p ?o }") == []
    with pytest.raises(StateError, match=r"\[\[data\]\]"):
        client.dataset(path, refresh="1s")


def test_a_server_has_the_verbs_of_the_engine() -> None:
    def verbs(one: type) -> set[str]:
        return {name for name in dir(one) if not name.startswith("_")}

    assert verbs(hw.Engine) - verbs(ServerClient) == set()
    with hw.connect("http://127.0.0.1:1") as client:
        for verb in ("endpoint", "function", "start", "run", "stop", "wait", "dataframe", "session"):
            with pytest.raises(StateError, match=f"a server has no {verb}: "):
                getattr(client, verb)()
        with pytest.raises(StateError, match="a server has no continued: "):
            print(client.continued)


def test_following_gives_up_when_the_server_says_nothing_for_too_long() -> None:
    with hw.connect(f"http://127.0.0.1:{free_port()}", patience=0.3) as client:
        answers = client.query("q").answers()
        for _ in range(2):
            with pytest.raises(HeadwaterError, match=r"has said nothing for 0\.3 seconds"):
                next(answers)

        async def follow() -> None:
            async for _ in client.subscribe_async("q", patience=0.1):
                pass

        with pytest.raises(HeadwaterError, match=r"0\.1 seconds"):
            asyncio.run(follow())
