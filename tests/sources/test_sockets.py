"""Streams from real TCP and WebSocket servers on loopback, through the spool, to answers."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from websockets.sync.server import ServerConnection, serve

import headwater as hw
from headwater.sources.payloads import Decoder
from headwater.sources.sockets import LineReceiver
from headwater.sources.spool import Spool, read_mark
from tests.free_ports import free_port

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY = """
PREFIX : <http://ex/>
REGISTER QUERY values AS
SELECT ?value FROM STREAM <http://ex/s> [RANGE 1s STEP 1s] WHERE { ?s :value ?value }
"""


def line(second: int) -> str:
    return f'{second * 1000 - 500}\t<http://ex/s> <http://ex/value> "{second}" .\n'


def turtle(second: int) -> str:
    return f'<http://ex/s> <http://ex/value> "{second}" ; <http://ex/at> "{second * 1000 - 500}" .'


@contextmanager
def line_server(port: int, serve_one: Callable[[socket.socket], None]) -> Iterator[int]:
    """A TCP server that gives each connection to a function, and closes it when that returns."""
    with socket.create_server(("127.0.0.1", port)) as server:
        server.settimeout(30)

        def work() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection, suppress(OSError):
                    serve_one(connection)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def values_until(engine: hw.Engine, wanted: int, **options: Any) -> tuple[list[str], hw.RunSummary]:
    """The values of the answers, in a run that ends when so many are there, or after a while."""
    engine.register(QUERY)
    values: list[str] = []

    def take(answer: hw.Answer) -> None:
        values.extend(term.value for (term,) in answer.rows)  # type: ignore[union-attr]
        if len(values) >= wanted:
            engine.stop()

    timer = threading.Timer(90, engine.stop)
    timer.start()
    try:
        summary = engine.run(on_answer=take, trigger_seconds=0.02, **options)
    finally:
        timer.cancel()
    return values, summary


def test_lines_over_tcp_and_a_server_that_goes_away(tmp_path: Path) -> None:
    texts = ["".join(map(line, range(1, 4))) + "oops\n\n", line(4) + line(5)[:-1]]

    def serve_one(connection: socket.socket) -> None:
        if texts:
            for part in texts.pop(0).split(" "):
                connection.sendall((part + " ").encode())
        else:
            connection.sendall(line(6).encode())
            time.sleep(0.2)

    with line_server(0, serve_one) as port:
        engine = hw.Engine(in_process=True, dead_letters=tmp_path / "dead")
        engine.stream("http://ex/s", hw.tcp("127.0.0.1", port))
        values, summary = values_until(engine, 5)
    assert values == ["1", "2", "3", "4", "5"]
    assert (summary.bad, summary.late, summary.stopped) == (1, 0, True)
    (letters,) = (tmp_path / "dead").glob("*.jsonl")
    letter = json.loads(letters.read_text())
    assert (letter["text"].strip(), letter["source"]) == ("oops", f"tcp://127.0.0.1:{port}")
    assert "no tab" in letter["reason"]


def test_a_server_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    port = free_port()
    engine = hw.Engine(in_process=True)
    engine.stream("http://ex/s", f"tcp://127.0.0.1:{port}?format=turtle&time=http://ex/at")
    started = threading.Event()

    def late_server() -> None:
        time.sleep(0.3)

        def serve_one(connection: socket.socket) -> None:
            connection.sendall("".join(f"{turtle(second)}\n" for second in (1, 2, 3)).encode())
            started.wait(20)

        with line_server(port, serve_one):
            started.wait(20)

    thread = threading.Thread(target=late_server, daemon=True)
    thread.start()
    values, _ = values_until(engine, 2)
    started.set()
    thread.join(10)
    assert values == ["1", "2"]


def test_messages_over_websocket_and_a_connection_that_breaks(tmp_path: Path) -> None:
    batches: list[list[str | bytes]] = [[turtle(1), turtle(2).encode()], ["oops", turtle(3), turtle(4)]]

    def handle(connection: ServerConnection) -> None:
        for message in batches.pop(0) if batches else []:
            connection.send(message)

    with serve(handle, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.socket.getsockname()[1]
        engine = hw.Engine(in_process=True)
        source = hw.websocket(f"ws://127.0.0.1:{port}/", format="turtle", time="http://ex/at")
        engine.stream("http://ex/s", source)
        values, summary = values_until(engine, 3)
        server.shutdown()
    assert values == ["1", "2", "3"]
    assert summary.bad == 1


def test_what_was_received_is_there_again_after_a_restart(tmp_path: Path) -> None:
    """The server sends each line once; the second run reads the rest of the first run's spool."""
    sent = [line(1) + line(2) + line(3) + line(4)]

    def serve_one(connection: socket.socket) -> None:
        if sent:
            connection.sendall(sent.pop().encode())
        time.sleep(0.1)

    def engine(port: int, batch_bytes: int | None = None) -> hw.Engine:
        made = hw.Engine(in_process=True, checkpoint=tmp_path / "checkpoint", batch_bytes=batch_bytes)
        made.stream("http://ex/s", hw.tcp("127.0.0.1", port))
        return made

    with line_server(0, serve_one) as port:
        first, _ = values_until(engine(port, batch_bytes=100), 1)
        assert not sent
        second, _ = values_until(engine(port), 3 - len(first))
    assert first + second == ["1", "2", "3"]
    assert len(first) < 3


def test_arrival_gives_the_time_where_the_data_do_not(tmp_path: Path) -> None:
    def serve_one(connection: socket.socket) -> None:
        for second in range(1, 30):
            connection.sendall(f'<http://ex/s> <http://ex/value> "{second}" .\n'.encode())
            time.sleep(0.1)

    with line_server(0, serve_one) as port:
        engine = hw.Engine(in_process=True)
        engine.stream("http://ex/s", hw.tcp("127.0.0.1", port, format="ntriples"))
        begin = time.time()
        values, summary = values_until(engine, 1)
    assert values[0] == "1"
    mark = summary.watermarks["http://ex/s"]
    assert mark is not None and begin - 1 <= mark / 1e6 <= time.time() + 1


def test_a_spool_that_cannot_be_written_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(spool: Spool, found: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Spool, "append", full)
    with line_server(0, lambda connection: connection.sendall(line(1).encode())) as port:
        engine = hw.Engine(in_process=True)
        engine.stream("http://ex/s", hw.tcp("127.0.0.1", port))
        with pytest.raises(hw.SourceError, match=r"cannot be written to .*: No space left on device; make room"):
            values_until(engine, 1)


def test_a_run_ends_when_nobody_answers_or_nothing_arrives_for_as_long_as_was_said() -> None:
    port = free_port()
    engine = hw.Engine(in_process=True)
    engine.stream("http://ex/s", hw.tcp("127.0.0.1", port, connect_timeout="300ms", read_timeout="1h"))
    with pytest.raises(hw.SourceError, match=r"no connection for 0.3 s.*check the address.*connect_timeout"):
        values_until(engine, 1)

    def serve_one(connection: socket.socket) -> None:
        connection.sendall(line(1).encode())
        connection.recv(1)

    with line_server(0, serve_one) as port:
        engine = hw.Engine(in_process=True)
        engine.stream("http://ex/s", f"tcp://127.0.0.1:{port}?read_timeout=700ms&connect_timeout=1m")
        begin = time.monotonic()
        with pytest.raises(hw.SourceError, match=r"nothing has arrived for 0.7 s: see to the sender.*read_timeout"):
            values_until(engine, 2)
        assert time.monotonic() - begin < 20


@pytest.mark.parametrize("name", ["connect_timeout", "read_timeout"])
def test_time_outs_are_durations(name: str) -> None:
    with pytest.raises(hw.SettingError, match="is not a duration"):
        hw.tcp("127.0.0.1", 9, **{name: "soon"})  # type: ignore[arg-type]


def test_what_is_stamped_by_arrival_is_marked_until_a_message_has_a_time_of_its_own(tmp_path: Path) -> None:
    timed = '<http://ex/g> <http://www.w3.org/ns/prov#generatedAtTime> "1970-01-01T00:00:01Z"'
    timed += "^^<http://www.w3.org/2001/XMLSchema#dateTime> ."
    spool = Spool(tmp_path)
    receiver = LineReceiver("127.0.0.1", 9, Decoder.of("trig"), spool)
    plain = b'<http://ex/s> <http://ex/value> "1" .'
    assert read_mark(tmp_path) is None
    receiver.store([(plain, {})])
    marked = read_mark(tmp_path)
    assert marked is not None
    assert abs(marked - time.time_ns() // 1000) < 20_000_000
    again = LineReceiver("127.0.0.1", 9, Decoder.of("turtle"), spool)
    again._last_time = marked + 10_000_000_000
    again.store([(plain, {})])
    assert read_mark(tmp_path) == marked + 10_000_000_002, "a clock that was put back does not make anything late"
    receiver.store([(b"GRAPH <http://ex/g> { <http://ex/s> <http://ex/value> 1 } " + timed.encode(), {})])
    assert read_mark(tmp_path) is None
    spool.close()


@pytest.mark.slow
def test_on_spark_files_that_were_read_are_removed(spark: SparkSession, tmp_path: Path) -> None:
    def serve_one(connection: socket.socket) -> None:
        for second in range(1, 200):
            connection.sendall(line(second).encode())
            time.sleep(0.1)

    with line_server(0, serve_one) as port:
        engine = hw.Engine(spark)
        source = hw.tcp("127.0.0.1", port, spool=tmp_path / "spool", keep=0.0)
        engine.stream("http://ex/s", replace(source, file_bytes=1))
        values, summary = values_until(engine, 40)
    assert values[:40] == [str(second) for second in range(1, 41)]
    assert summary.elements > len(list((tmp_path / "spool").glob("*.tnq")))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: hw.tcp("host", 0), "is no port"),
        (lambda: hw.tcp("host", 1, format="json"), "need a template"),
        (lambda: hw.websocket("http://host"), "expected ws://"),
        (lambda: hw.mqtt("http://host", "t"), "is no address of an MQTT broker"),
        (lambda: hw.mqtt("host", "t", qos=3), "qos must be"),
    ],
)
def test_wrong_addresses_say_what_to_write(make: Callable[[], object], reason: str) -> None:
    with pytest.raises(hw.SettingError, match=reason):
        make()


def test_received_streams_are_no_dataframes() -> None:
    engine = hw.Engine()
    engine.stream("http://ex/s", hw.tcp("127.0.0.1", 1))
    with pytest.raises(hw.SourceError, match="is received by a run"):
        engine.register(QUERY).to_dataframe()
