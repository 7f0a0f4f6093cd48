"""Timed N-Quads mean the same wherever they come from: files, compressed files, lines over TCP, WebSocket messages.

Names of graphs are kept, and a blank node's label is the same node in every line.
"""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.server import ServerConnection, serve

import headwater as hw
from headwater.sources.payloads import Decoder, ReceivedMessage
from headwater.terms.model import Element
from headwater.terms.tnq import read_tnq
from tests.sources.test_sockets import line_server

QUERY = """
PREFIX : <http://ex/>
SELECT ?g ?name ?v FROM NAMED WINDOW :w ON <s> [RANGE PT2S STEP PT2S]
WHERE { WINDOW :w { GRAPH ?g { ?s :by ?n ; :value ?v } ?n :name ?name } }
"""
TEXT = """1000\t<http://ex/s1> <http://ex/by> _:n <http://ex/g1> .
1000\t<http://ex/s1> <http://ex/value> "1" <http://ex/g1> .
1000\t<http://ex/s2> <http://ex/by> _:n _:g .
1000\t<http://ex/s2> <http://ex/value> "2" _:g .
1500\t_:n <http://ex/name> "gauge" .
9000\t_:n <http://ex/name> "later" .
"""
EXPECTED = [("2000000", "<http://ex/g1>", '"gauge"', '"1"'), ("2000000", "_:g", '"gauge"', '"2"')]


def answers_from(source: Any) -> list[tuple[str, ...]]:
    """The rows of the first window, with its time; a live source is stopped when they are there."""
    engine = hw.Engine(in_process=True)
    engine.stream("s", source)
    engine.register(QUERY)
    rows: list[tuple[str, ...]] = []

    def take(answer: hw.Answer) -> None:
        if not rows:
            rows.extend((str(answer.time), *map(str, row)) for row in answer.rows)
        if rows:
            engine.stop()

    timer = threading.Timer(240, engine.stop)
    timer.start()
    try:
        engine.run(on_answer=take, trigger_seconds=0.02)
    finally:
        timer.cancel()
    return sorted(rows)


@contextmanager
def tcp_source() -> Iterator[Any]:
    done = threading.Event()

    def serve_one(connection: socket.socket) -> None:
        connection.sendall(TEXT.encode())
        done.wait(240)

    with line_server(0, serve_one) as port:
        yield hw.tcp("127.0.0.1", port)
        done.set()


@contextmanager
def websocket_source(messages: list[str]) -> Iterator[Any]:
    def handle(connection: ServerConnection) -> None:
        for message in messages:
            connection.send(message)

    with serve(handle, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield hw.websocket(f"ws://127.0.0.1:{server.socket.getsockname()[1]}/", format="tnq")
        server.shutdown()


def test_files(tmp_path: Path) -> None:
    plain, packed = tmp_path / "s.tnq", tmp_path / "s.tnq.gz"
    plain.write_text(TEXT)
    packed.write_bytes(gzip.compress(TEXT.encode()))
    assert answers_from(hw.files(plain)) == EXPECTED
    assert answers_from(hw.files(packed)) == EXPECTED


def test_a_label_reaches_through_all_files(tmp_path: Path) -> None:
    for number, line in enumerate(TEXT.splitlines(keepends=True)):
        (tmp_path / f"{number}.tnq").write_text(line)
    assert answers_from(hw.files(tmp_path)) == EXPECTED


def test_lines_over_tcp() -> None:
    with tcp_source() as source:
        assert answers_from(source) == EXPECTED


@pytest.mark.parametrize("is_cut", [False, True], ids=["one message", "a message for each line"])
def test_messages_over_websocket(is_cut: bool) -> None:
    with websocket_source(TEXT.splitlines(keepends=True) if is_cut else [TEXT]) as source:
        assert answers_from(source) == EXPECTED


def test_a_message_has_the_elements_of_a_file() -> None:
    """As a record of Kafka has them, too: the decoder is the same."""
    found = Decoder.of("tnq").decode(ReceivedMessage(TEXT.encode(), 0, "test", (3,), {}))
    shown = [(one.time, one.graph, one.triples) for one in found if isinstance(one, Element)]
    assert shown == [(e.time, e.graph, e.triples) for e in read_tnq(TEXT.encode(), "test") if isinstance(e, Element)]
    assert [(time, graph, len(triples)) for time, graph, triples in shown] == [
        (1_000_000, "http://ex/g1", 2),
        (1_000_000, "_:g", 2),
        (1_500_000, None, 1),
        (9_000_000, None, 1),
    ]
