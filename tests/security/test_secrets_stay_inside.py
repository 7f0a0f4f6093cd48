"""A secret is planted wherever one can be given, everything that can fail fails, and no output has it."""

from __future__ import annotations

import base64
import logging
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import Literal, NamedNode, Quad, Store
from websockets.sync.server import ServerConnection, serve

import headwater as hw
from headwater.commands.option_values import parse_endpoint_option
from headwater.egress.credentials import Credentials
from headwater.egress.secret_references import fill_in_secrets
from headwater.federation.endpoint.client import Endpoint
from headwater.federation.endpoint.endpoint_settings import EndpointSettings
from headwater.sources.addresses import source_at
from headwater.sources.mqtt import MqttBroker
from tests.commands.running import headwater
from tests.federation.servers import Exchange, serving, sparql

SECRET = "hunter2pearl"
TRACES = (SECRET, base64.b64encode(f"anna:{SECRET}".encode()).decode(), SECRET[1:-1])
EX = "http://example.org/"
STREAM = f"1000\t<{EX}a> <{EX}in> <{EX}post> .\nno element\n9000\t<{EX}a> <{EX}in> <{EX}post> .\n"


class Outputs:
    """All that was shown, to be searched for the secret."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def add(self, *shown: object) -> None:
        self.texts += [f"{one!s}\n{one!r}" for one in shown]

    def add_files(self, folder: Path) -> None:
        self.texts += [path.read_bytes().decode("latin-1") for path in folder.rglob("*") if path.is_file()]
        self.texts += [str(path) for path in folder.rglob("*")]

    @contextmanager
    def of_failure(self) -> Iterator[None]:
        """What fails here shows its message, its representation, and the traceback with all causes."""
        with pytest.raises(Exception) as caught:
            yield
        self.add(caught.value, *caught.value.args)
        self.texts.append("".join(traceback.format_exception(caught.value)))

    def check(self) -> None:
        assert self.texts
        for text in self.texts:
            for trace in TRACES:
                assert trace not in text, text[max(0, text.find(trace) - 300) : text.find(trace) + 300]


@pytest.fixture
def outputs(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Iterator[Outputs]:
    caplog.set_level(logging.DEBUG)
    logging.getLogger().setLevel(logging.DEBUG)
    found = Outputs()
    yield found
    found.texts += [caplog.text, *(str(vars(record)) for record in caplog.records if record.name != "asyncio")]
    captured = capfd.readouterr()
    found.texts += [captured.out, captured.err]
    found.check()


def needs_secret(exchange: Exchange) -> None:
    """An endpoint that answers those who know the secret."""
    shown = f"{exchange.headers} {exchange.path}"
    if any(trace in shown for trace in TRACES):
        store = Store()
        store.add(Quad(NamedNode(EX + "a"), NamedNode(EX + "p"), Literal(7)))
        sparql(store)(exchange)
    else:
        exchange.answer(401, b"who are you?")


def with_user(url: str) -> str:
    return url.replace("://", f"://anna:{SECRET}@")


def query(url: str, **_: str) -> str:
    return f"""PREFIX : <{EX}> REGISTER QUERY q AS SELECT ?x ?n FROM STREAM :s [RANGE 2s TUMBLING]
               WHERE {{ ?x :in ?post . SERVICE <{url}> {{ ?x :p ?n }} }}"""


WAYS: dict[str, Callable[[str], tuple[str, dict[str, Any]]]] = {
    "user info": lambda url: (with_user(url), {}),
    "user and password": lambda url: (url, {"user": "anna", "password": SECRET}),
    "token": lambda url: (url, {"bearer": SECRET}),
    "header": lambda url: (url, {"headers": {"X-Key": SECRET}}),
}


@pytest.mark.parametrize("evaluator", ["auto", "reference"])
@pytest.mark.parametrize("way", [*WAYS, "environment", "file"])
def test_endpoints(outputs: Outputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, evaluator: Any) -> None:
    (tmp_path / "s.tnq").write_text(STREAM)
    with serving(needs_secret) as server:
        origin = server.url.removesuffix("/sparql")
        engine = hw.Engine(
            in_process=True, checkpoint=tmp_path / "kept", dead_letters=tmp_path / "dead", evaluator=evaluator
        )
        if way == "environment":
            monkeypatch.setenv("HEADWATER_AUTH_X", f"{origin} Bearer {SECRET}")
        elif way == "file":
            (tmp_path / "auth").write_text(f"{origin} Basic anna:{SECRET}\n")
            monkeypatch.setenv("HEADWATER_AUTH_FILE", str(tmp_path / "auth"))
        else:
            url, settings = WAYS[way](server.url)
            engine.endpoint(url, **settings)
        engine.stream(EX + "s", str(tmp_path / "s.tnq"))
        registered = engine.register(query(server.url))
        answers: list[hw.Answer] = []
        summary = engine.run(on_answer=answers.append, on_progress=lambda progress: outputs.add(progress.to_json()))
        assert any(answer.rows for answer in answers)
        outputs.add(engine, registered, registered.plan, *answers, summary, summary.to_json())
        outputs.add(*vars(engine).values(), engine._services([]), engine._description())
        (tmp_path / "q.rq").write_text(query(server.url))
        outputs.add(headwater("explain", tmp_path / "q.rq").output)
    outputs.add_files(tmp_path / "kept")
    outputs.add_files(tmp_path / "dead")
    with outputs.of_failure():
        # The server is gone.
        again = hw.Engine(in_process=True, evaluator=evaluator)
        again.endpoint(*[server.url], **(WAYS[way](server.url)[1] if way in WAYS else {}), retries=0)
        again.stream(EX + "s", str(tmp_path / "s.tnq"))
        again.register(query(server.url))
        again.run()


@pytest.mark.parametrize("rest", ["bearer={},per=1", "retries=1,password={}", "{},timeout=soon"])
def test_an_endpoint_of_the_command_line_that_is_wrong(outputs: Outputs, rest: str) -> None:
    with outputs.of_failure():
        parse_endpoint_option(f"http://127.0.0.1:1/sparql,{rest.format(SECRET)}")


def test_parameters_of_an_endpoint(outputs: Outputs) -> None:
    with serving(needs_secret) as server:
        settings = EndpointSettings(f"{server.url}?key={SECRET}")
        endpoint = Endpoint(settings)
        assert len(endpoint.select("SELECT * { ?s ?p ?o }").rows) == 1
        outputs.add(settings, endpoint, Credentials(bearer=SECRET, basic=("anna", SECRET), headers=(("X", SECRET),)))
    for method in ("GET", "POST"):
        with outputs.of_failure():
            engine = hw.Engine(in_process=True)
            engine.endpoint(f"ftp://anna:{SECRET}@example.org/", method=method)
    endpoint.close()
    with outputs.of_failure():
        endpoint.select("SELECT * { ?s ?p ?o }", timeout=0.5)


def test_web_documents(outputs: Outputs, tmp_path: Path) -> None:
    answers = iter([200, 401, 302, 200])

    def turtle(exchange: Exchange) -> None:
        status = next(answers)
        body = b"<#a> <b> [] ." if status == 200 else b""
        where = {"Location": f"ftp://anna:{SECRET}@example.org/"} if status == 302 else {}
        exchange.answer(status, body, "text/turtle", **where)

    with serving(turtle) as server:
        address = f"{with_user(server.url)}?key={SECRET}"
        data = hw.Engine(in_process=True).dataset(address)
        outputs.add(data, *data.quads())
        outputs.add_files(data.folder)
        for _ in range(2):
            with outputs.of_failure():
                hw.Engine(in_process=True).dataset(address)
        with outputs.of_failure():
            hw.Engine(in_process=True, egress=[EX]).dataset(address)
        data.update(f"LOAD <{address}> INTO GRAPH <{EX}g>")
        outputs.add(*data.quads())
    with outputs.of_failure():
        data.update(f"LOAD <{address}>")
    with outputs.of_failure():
        hw.Engine(in_process=True).dataset(address, refresh="1s")


REFUSED = [
    query(f"http://anna:{SECRET}@example.org/sparql"),
    f"SELECT * FROM STREAM <mqtt://anna:{SECRET}@host/topic> [RANGE 1s TUMBLING] WHERE {{ ?s ?p ?o }}",
    f"SELECT * FROM STREAM <ws://anna:{SECRET}@host/> [RANGE 1s TUMBLING] WHERE {{ ?s ?p }}",
    f"SELECT * WHERE {{ SERVICE SILENT <http://{SECRET}@example.org/> {{ ?s ?p ?o }} }} ORDER",
]


@pytest.mark.parametrize("text", REFUSED)
def test_queries_hold_no_secrets(outputs: Outputs, tmp_path: Path, text: str) -> None:
    with outputs.of_failure():
        hw.Engine(in_process=True).register(text)
    path = tmp_path / "q.rq"
    path.write_text(text)
    for command in (["explain", path], ["check", path], ["run", path, "--in-process"], ["explain", path, "--rules"]):
        done = headwater(*command)
        assert done.exit_code == 2
        outputs.add(done.output, done.stderr)


def test_brokers(outputs: Outputs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "password").write_text(f"{SECRET}\n")
    monkeypatch.setenv("BROKER_PASSWORD", SECRET)
    monkeypatch.setenv("HEADWATER_AUTH_BROKER", f"mqtts://broker Basic anna:{SECRET}")
    assert MqttBroker.at("mqtts://broker").login() == ("anna", SECRET)
    assert MqttBroker.at("mqtt://broker").login() is None
    options = {"kafka.sasl.jaas.config": f"password='{SECRET}'"}
    references = {"kafka.a": "${env:BROKER_PASSWORD}", "kafka.b": f"x ${{file:{tmp_path / 'password'}}}"}
    assert fill_in_secrets(references) == {"kafka.a": SECRET, "kafka.b": f"x {SECRET}"}
    sources = [
        hw.mqtt(f"mqtts://anna:{SECRET}@broker", "topic", format="turtle"),
        hw.websocket(f"wss://anna:{SECRET}@host/path?token={SECRET}", format="turtle"),
        hw.kafka("host:9092", "topic", format="turtle", options=options),
        hw.KafkaSink("host:9092", "topic", options=options),
        source_at(f"kafka://host:9092/topic?format=turtle&kafka.sasl.jaas.config={SECRET}"),
        MqttBroker.at(f"mqtt://anna:{SECRET}@broker:1883"),
    ]
    outputs.add(*sources)
    engine = hw.Engine(in_process=True)
    engine.stream("m", sources[0])  # type: ignore[arg-type]
    outputs.add(engine, *vars(engine).values(), vars(engine._sources))
    for wrong in (
        f"mqtt://anna:{SECRET}@host:x/topic",
        f"mqtt://anna:{SECRET}@host",
        f"ws://anna:{SECRET}@/path",
        f"kafka://anna:{SECRET}@host/topic?kafka.password={SECRET}",
        f"tcp://anna:{SECRET}@host",
        f"amqp://anna:{SECRET}@host/topic",
        f"kafka://host:9092/topic?password={SECRET}",
        f"ws://anna:{SECRET}@host/#x",
    ):
        with outputs.of_failure():
            source_at(wrong)
        done = headwater(
            "run", "examples/busy-districts.rq", "--in-process", "--stream", f"http://city/tollgates={wrong}"
        )
        assert done.exit_code == 2
        outputs.add(done.output, done.stderr)
    for option in ("--out", "--endpoint"):
        wrong = f"ftp://anna:{SECRET}@host/x,more=1"
        done = headwater("run", "examples/busy-districts.rq", "--in-process", option, wrong)
        assert done.exit_code == 2
        outputs.add(done.output, done.stderr)


def test_a_stream_of_messages(outputs: Outputs, tmp_path: Path) -> None:
    seen: list[str | None] = []

    def send(connection: ServerConnection) -> None:
        assert connection.request is not None
        seen.append(connection.request.headers.get("Authorization"))
        connection.send("this is no turtle")
        connection.close()

    with serve(send, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.socket.getsockname()[1]
        engine = hw.Engine(in_process=True, checkpoint=tmp_path / "kept", dead_letters=tmp_path / "dead")
        source = hw.websocket(f"ws://anna:{SECRET}@127.0.0.1:{port}/x?token={SECRET}", format="turtle")
        engine.stream("s", source)
        engine.register("SELECT * FROM STREAM <s> [RANGE 1s TUMBLING] WHERE { ?s ?p ?o }")

        def stop(progress: hw.Progress) -> None:
            outputs.add(progress.to_json())
            if progress.bad and len(seen) > 1:
                engine.stop()

        engine.run(on_progress=stop, trigger_seconds=0.05)
        server.shutdown()
    assert TRACES[1] in (seen[0] or "")
    assert list((tmp_path / "dead").iterdir())
    outputs.add_files(tmp_path)
