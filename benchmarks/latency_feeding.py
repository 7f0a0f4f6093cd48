"""What the latency benchmark sends, ten elements a second, and the ways on which it sends them: a file, TCP, Kafka.

An element is a row of JSON. Its time of the data is its number in tenths of a second, and a half, so that the element
with number n makes the tick at n tenths of a second due, and no other element does.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import headwater as hw
from headwater.engine.stream_sources import AnySource
from headwater.terms.template import RowTemplate
from tests.sources.kafka_broker import java_with_kafka

APART = 100_000
"""So many microseconds lie between two elements, in the data and while they are sent."""
BEGIN = 1_767_225_600_000_000
"""The time before the first element."""
TEMPLATE = """
@time {at} as milliseconds
<http://ex/{id}> <http://ex/value> "{v}" .
"""
_SENSORS = 8
_CONNECT_SECONDS = 30
_PRODUCER_SECONDS = 10


def time_of(number: int) -> int:
    """The time of the element with a number."""
    return BEGIN + number * APART + APART // 2


def reading(number: int) -> bytes:
    """The element with a number."""
    return json.dumps({"id": f"s{number % _SENSORS}", "at": time_of(number) // 1000, "v": number}).encode()


def number_of_tick(instant: int) -> int:
    """The number of the element that makes the tick at an instant due."""
    return -(-(instant - BEGIN - APART // 2) // APART)


class Feeder(Protocol):
    """Sends elements to a source."""

    def source(self) -> AnySource:
        """The source that reads what is sent."""

    def send(self, row: bytes) -> None:
        """Send one element; it has arrived when this returns, or very soon."""

    def close(self) -> None:
        """End the sending."""


class FileFeeder:
    """Appends to a file that is followed."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "readings.jsonl"
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def source(self) -> AnySource:
        return hw.files(self._path, template=RowTemplate(TEMPLATE))

    def send(self, row: bytes) -> None:
        os.write(self._file, row + b"\n")

    def close(self) -> None:
        os.close(self._file)


class TcpFeeder:
    """Sends lines to whoever connects to it."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.settimeout(_CONNECT_SECONDS)
        self._connection: socket.socket | None = None

    def source(self) -> AnySource:
        port = self._server.getsockname()[1]
        return hw.tcp("127.0.0.1", port, format="json", template=RowTemplate(TEMPLATE))

    def send(self, row: bytes) -> None:
        if self._connection is None:
            self._connection, _ = self._server.accept()
            self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection.sendall(row + b"\n")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._server.close()


class KafkaFeeder:
    """Writes records to a topic of its own, with a producer that waits for nothing."""

    def __init__(self, servers: str, topic: str) -> None:
        self.servers, self.topic = servers, topic
        command = [*java_with_kafka(), "kafka.tools.ConsoleProducer", "--bootstrap-server", servers, "--topic", topic]
        command += ["--producer-property", "linger.ms=0", "--timeout", "0", "--request-required-acks", "1"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def source(self) -> AnySource:
        return hw.kafka(self.servers, self.topic, template=RowTemplate(TEMPLATE))

    def send(self, row: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(row + b"\n")
        self._process.stdin.flush()

    def close(self) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(_PRODUCER_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
