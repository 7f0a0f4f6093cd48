"""The IRI of a stream is its locator (C-SPARQL, section 2.3): streams that are read at their own IRIs."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from websockets.sync.server import ServerConnection, serve

import headwater as hw
from headwater.sources.addresses import find_source_at
from headwater.sources.kafka import KafkaSource
from headwater.sources.receivers import ReceivedSource
from tests.commands.running import CITY, EXAMPLES, TOLLGATES, headwater, process
from tests.sources.test_command_line import gates
from tests.sources.test_sockets import line, line_server, turtle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LANGUAGES = {
    "csparql": "SELECT ?value FROM STREAM <{iri}> [RANGE 1s STEP 1s] WHERE {{ ?s <http://ex/value> ?value }}",
    "csparql, by name": "SELECT ?value FROM NAMED STREAM <{iri}> [RANGE 1s STEP 1s] "
    "WHERE {{ GRAPH <{iri}> {{ ?s <http://ex/value> ?value }} }}",
    "cqels": "SELECT ?value WHERE {{ STREAM <{iri}> [RANGE 1s SLIDE 1s] {{ ?s <http://ex/value> ?value }} }}",
    "rspql": "SELECT ?value FROM NAMED WINDOW <http://ex/w> ON <{iri}> [RANGE PT1S STEP PT1S] "
    "WHERE {{ WINDOW <http://ex/w> {{ ?s <http://ex/value> ?value }} }}",
}
CSPARQL = LANGUAGES["csparql"]


def values_of(engine: hw.Engine, query: str, wanted: int) -> list[str]:
    """The values of the answers to a query, in a run that ends when so many are there, or after a while."""
    engine.register(query)
    values: list[str] = []

    def take(answer: hw.Answer) -> None:
        values.extend(term.value for (term,) in answer.rows)  # type: ignore[union-attr]
        if len(values) >= wanted:
            engine.stop()

    timer = threading.Timer(90, engine.stop)
    timer.start()
    try:
        engine.run(on_answer=take, trigger_seconds=0.02)
    finally:
        timer.cancel()
    return values


def write_stream(path: Path, seconds: range) -> Path:
    path.write_text("".join(map(line, seconds)))
    return path


def send_lines(connection: socket.socket) -> None:
    connection.sendall("".join(map(line, range(1, 5))).encode())
    time.sleep(0.2)


@contextmanager
def message_server() -> Iterator[int]:
    """A WebSocket server that sends four messages to whoever connects."""

    def handle(connection: ServerConnection) -> None:
        for second in range(1, 5):
            connection.send(turtle(second))
        time.sleep(0.2)

    with serve(handle, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.socket.getsockname()[1]
        server.shutdown()


@pytest.mark.parametrize("language", LANGUAGES)
def test_section_2_3_a_file_is_read_at_its_iri(language: str, tmp_path: Path) -> None:
    path = write_stream(tmp_path / "cars of today.tnq", range(1, 4))
    assert values_of(hw.Engine(in_process=True), LANGUAGES[language].format(iri=path.as_uri()), 3) == ["1", "2", "3"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_section_2_3_an_ip_address_and_a_port(language: str) -> None:
    """The paper's own words: "the IRI represents an IP address and a port for accessing streaming data"."""
    with line_server(0, send_lines) as port:
        query = LANGUAGES[language].format(iri=f"tcp://127.0.0.1:{port}")
        assert values_of(hw.Engine(in_process=True), query, 3)[:3] == ["1", "2", "3"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_section_2_3_a_websocket(language: str) -> None:
    with message_server() as port:
        iri = f"ws://127.0.0.1:{port}/cars?format=turtle&time=http://ex/at"
        values = values_of(hw.Engine(in_process=True), LANGUAGES[language].format(iri=iri), 3)
    assert values[:3] == ["1", "2", "3"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_section_2_3_on_spark(language: str, spark: SparkSession, tmp_path: Path) -> None:
    path = write_stream(tmp_path / "cars.tnq", range(1, 4))
    query = LANGUAGES[language].format(iri=path.as_uri())
    assert sorted(values_of(hw.Engine(spark), query, 3)) == ["1", "2", "3"]


def test_section_2_3_an_ip_address_and_a_port_on_spark(spark: SparkSession) -> None:
    with line_server(0, send_lines) as port:
        query = CSPARQL.format(iri=f"tcp://127.0.0.1:{port}")
        assert values_of(hw.Engine(spark), query, 3)[:3] == ["1", "2", "3"]


def test_relative_files_patterns_and_a_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_stream(tmp_path / "part-1.tnq", range(1, 3))
    write_stream(tmp_path / "part-2.tnq", range(3, 5))
    monkeypatch.chdir(tmp_path)
    assert values_of(hw.Engine(in_process=True), CSPARQL.format(iri="file:part-*.tnq"), 4) == ["1", "2", "3", "4"]
    based = f"BASE <{tmp_path.as_uri()}/> " + CSPARQL.format(iri="part-2.tnq")
    assert values_of(hw.Engine(in_process=True), based, 2) == ["3", "4"]


def test_one_query_locates_several_streams(tmp_path: Path) -> None:
    one = write_stream(tmp_path / "one.tnq", range(1, 3)).as_uri()
    other = write_stream(tmp_path / "other.tnq", range(1, 3)).as_uri()
    query = f"""SELECT ?value FROM STREAM <{one}> [RANGE 1s STEP 1s] FROM STREAM <{other}> [RANGE 1s STEP 1s]
                WHERE {{ GRAPH <{one}> {{ ?a ?p ?value }} GRAPH <{other}> {{ ?b ?p ?value }} }}"""
    assert values_of(hw.Engine(in_process=True), query, 2) == ["1", "2"]


def test_a_binding_goes_before_the_address(tmp_path: Path) -> None:
    path = write_stream(tmp_path / "cars.tnq", range(7, 9))
    engine = hw.Engine(in_process=True)
    engine.stream("tcp://127.0.0.1:1", path)
    assert values_of(engine, CSPARQL.format(iri="tcp://127.0.0.1:1"), 2) == ["7", "8"]


def test_a_binding_that_comes_after_registration_goes_before_the_address(tmp_path: Path) -> None:
    path = write_stream(tmp_path / "cars.tnq", range(7, 9))
    engine = hw.Engine(in_process=True)
    query = engine.register(CSPARQL.format(iri="tcp://127.0.0.1:1"))
    engine.stream("tcp://127.0.0.1:1", path)
    assert [len(answer.rows) for answer in query.answers()] == [1, 1]


def test_a_registered_stream_goes_before_the_address(tmp_path: Path) -> None:
    path = write_stream(tmp_path / "cars.tnq", range(1, 3))
    engine = hw.Engine(in_process=True)
    engine.register(
        f"REGISTER STREAM <tcp://127.0.0.1:1> AS CONSTRUCT {{ ?s ?p 'made' }} "
        f"FROM STREAM <{path.as_uri()}> [RANGE 1s STEP 1s] WHERE {{ ?s ?p ?o }}"
    )
    assert set(values_of(engine, CSPARQL.format(iri="tcp://127.0.0.1:1"), 2)) == {"made"}


def test_a_variable_ranges_over_bound_streams_alone(tmp_path: Path) -> None:
    located = write_stream(tmp_path / "located.tnq", range(1, 3)).as_uri()
    engine = hw.Engine(in_process=True)
    engine.stream("http://ex/bound", write_stream(tmp_path / "bound.tnq", range(1, 3)))
    engine.register(CSPARQL.format(iri=located), name="locates")
    ranges = engine.register("SELECT ?s ?value WHERE { STREAM ?s [RANGE 1s SLIDE 1s] { ?x ?p ?value } }", name="ranges")
    rows = [row for answer in ranges.answers() for row in answer.rows]
    assert {str(stream) for stream, _ in rows} == {"<http://ex/bound>"}


def test_a_query_that_comes_while_others_run_locates_its_stream(tmp_path: Path) -> None:
    first = write_stream(tmp_path / "first.tnq", range(1, 4)).as_uri()
    second = write_stream(tmp_path / "second.tnq", range(4, 7)).as_uri()
    engine = hw.Engine(in_process=True)
    engine.register(CSPARQL.format(iri=first), name="first")
    found: list[str] = []

    def take(answer: hw.Answer) -> None:
        found.extend(term.value for (term,) in answer.rows)  # type: ignore[union-attr]
        if answer.query == "first" and len(engine.queries) == 1:
            with pytest.raises(hw.RegistrationError, match="expected tcp://host:port"):
                engine.register(CSPARQL.format(iri="tcp://nowhere"), name="wrong")
            engine.register(CSPARQL.format(iri=second), name="second")
        if "5" in found:
            engine.stop()

    timer = threading.Timer(60, engine.stop)
    timer.start()
    engine.run(follow=True, on_answer=take, trigger_seconds=0.02)
    timer.cancel()
    assert "5" in found


@pytest.mark.parametrize("in_process", [True, False])
def test_locating_can_be_forbidden(in_process: bool, tmp_path: Path) -> None:
    path = write_stream(tmp_path / "cars.tnq", range(1, 3))
    engine = hw.Engine(in_process=in_process, locate_streams=False)
    engine.register(CSPARQL.format(iri=path.as_uri()))
    with pytest.raises(
        hw.RegistrationError, match=r"locate_streams is off: name its source with engine\.stream\('file:"
    ):
        engine.run()


def test_no_query_names_a_file_with_rates_where_locating_is_forbidden(tmp_path: Path) -> None:
    (tmp_path / "rates.csv").write_text("user,per_hour\nhttp://example.org/anna,900\n")
    text = """SELECT * FROM STREAM <cars> [RANGE 1s STEP 1s]
        WHERE {{ ?user ?p ?post . SERVICE <http://example.org/sparql> {{ ?user ?q ?n }} OPTION ({rates}) }}"""
    in_query = text.format(rates=f'RATES "{tmp_path / "rates.csv"}"')
    engine = hw.Engine(in_process=True, locate_streams=False)
    with pytest.raises(hw.RegistrationError, match="reads no files that queries name"):
        engine.register(in_query)
    engine.register(text.format(rates="BUDGET 1"), service={"rates": tmp_path / "rates.csv"})
    hw.Engine(in_process=True).register(in_query)


def test_what_is_bound_is_read_where_locating_is_forbidden(tmp_path: Path) -> None:
    iri = write_stream(tmp_path / "cars.tnq", range(1, 3)).as_uri()
    engine = hw.Engine(in_process=True, locate_streams=False)
    engine.stream(iri, iri)
    assert values_of(engine, CSPARQL.format(iri=iri), 2) == ["1", "2"]


@pytest.mark.parametrize(
    ("iri", "words"),
    [
        (
            "http://streams.org/citytollgates.trdf",
            r"reads the stream http://.*, which has no source; known streams: none",
        ),
        (
            "http://streams.org/gates",
            r"no address of a stream \(kafka://, mqtt://, mqtts://, tcp://, ws://, wss://, file:\)",
        ),
        ("cars", r"name its source with engine\.stream\('cars', files\(…\)\) or --stream cars=FILES"),
        ("urn:cars", "no address of a stream"),
        ("tcp://host", "cannot be located: 'tcp://host': expected tcp://host:port"),
        ("kafka://host:1", "expected kafka://host:port/topic"),
        ("mqtt://host", "expected mqtt://host:port/topic"),
        ("mqtt://host/cars/#", "an address ends before #; in a topic or a path, write %23 for it"),
        ("file://elsewhere/cars.tnq", "on this machine"),
        ("file:cars.tnq?format=csv", "'format' is not known here"),
        ("tcp://host:1?format=csv", "need a template"),
        ("tcp://host:1?spool=/etc", r"a query cannot say spool; say it where the stream is bound"),
        ("ws://host/x?spool=/etc", "a query cannot say spool"),
        ("kafka://host:1/t?kafka.sasl.jaas.config=x", r"a query cannot say kafka\.sasl\.jaas\.config"),
    ],
)
@pytest.mark.parametrize("language", ["csparql", "cqels", "rspql"])
def test_what_cannot_be_located_says_how_to_bind_it(iri: str, words: str, language: str) -> None:
    engine = hw.Engine(in_process=True)
    engine.register(LANGUAGES[language].format(iri=iri))
    with pytest.raises(hw.RegistrationError, match=words):
        engine.run()


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    engine = hw.Engine(in_process=True)
    engine.register(CSPARQL.format(iri=(tmp_path / "none.tnq").as_uri()))
    with pytest.raises(hw.SourceError, match="there is no file or folder"):
        engine.run()


def test_the_other_connectors_are_located_too() -> None:
    kafka = find_source_at("kafka://a:1,b:2/cars?format=turtle&start=latest")
    assert isinstance(kafka, KafkaSource) and kafka.topics == ("cars",)
    mqtt = find_source_at("mqtt://host/cars/+/%23?qos=0")
    assert isinstance(mqtt, ReceivedSource) and mqtt.address == "mqtt://host:1883/cars/+/#"
    secure = find_source_at("wss://host/cars?spools=2")
    assert isinstance(secure, ReceivedSource) and secure.address == "wss://host/cars"


def write_query(path: Path, iri: str) -> Path:
    text = (EXAMPLES / "cars-per-district.rq").read_text()
    path.write_text(text.replace("http://city/tollgates", iri))
    return path


def passages(output: str) -> list[str]:
    return [row.rpartition("#")[2] for row in output.splitlines()[1:]]


EXPECTED = ["East,1", "North,3", "East,2", "North,7", "East,2", "North,5", "East,1", "North,1"]


def test_headwater_run_needs_no_stream_option(tmp_path: Path) -> None:
    query = write_query(tmp_path / "query.rq", (EXAMPLES / "tollgates.tnq").as_uri())
    result = headwater("run", query, "--in-process", *CITY, "--format", "csv")
    assert (result.exit_code, passages(result.stdout)) == (0, EXPECTED), result.stderr


def test_headwater_run_reads_an_address_of_the_query_until_it_is_interrupted(tmp_path: Path) -> None:
    with gates() as address:
        query = write_query(tmp_path / "query.rq", address)
        with process("run", query, "--in-process", *CITY, "--format", "csv") as run:
            assert run.stdout is not None
            lines = [run.stdout.readline().strip() for _ in range(5)]
    assert passages("\n".join(lines)) == EXPECTED[:4]


def test_headwater_run_forbids_addresses_and_keeps_bindings(tmp_path: Path) -> None:
    iri = (EXAMPLES / "tollgates.tnq").as_uri()
    query = write_query(tmp_path / "query.rq", iri)
    refused = headwater("run", query, "--in-process", *CITY, "--no-locate-streams")
    assert (refused.exit_code, "locate_streams is off" in " ".join(refused.stderr.split())) == (2, True), refused.stderr
    bound = headwater("run", query, "--in-process", *CITY, "--no-locate-streams", "--stream", f"{iri}={iri}")
    assert bound.exit_code == 0, bound.stderr


def test_a_template_may_belong_to_a_located_stream(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("at,v\n0.5,1\n1.5,2\n")
    template = tmp_path / "row.template"
    template.write_text('@time {at} as seconds\n<http://ex/s> <http://ex/value> "{v}" .\n')
    query = tmp_path / "query.rq"
    query.write_text(CSPARQL.format(iri=rows.as_uri()))
    result = headwater("run", query, "--in-process", "--template", f"{rows.as_uri()}={template}", "--format", "csv")
    assert (result.exit_code, [row[-1] for row in result.stdout.split()[1:]]) == (0, ["1", "2"]), result.stderr
    wrong = headwater("run", query, "--in-process", *TOLLGATES, "--template", f"http://city/x={template}")
    assert "no --stream is named" in " ".join(wrong.stderr.split())
