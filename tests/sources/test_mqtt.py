"""Streams from a real MQTT broker: Mosquitto on loopback, one process for these tests."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from paho.mqtt.client import ConnectFlags, MQTTMessage
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.reasoncodes import ReasonCode

import headwater as hw
from headwater.sources.mqtt import MqttBroker, MqttReceiver
from headwater.sources.payloads import Decoder
from headwater.sources.spool import Spool
from tests.sources.mosquitto_broker import Mosquitto, subscribe

QUERY = """
PREFIX : <http://ex/>
REGISTER QUERY values AS
SELECT ?sensor ?value FROM STREAM <http://ex/s> [RANGE 1s STEP 1s] WHERE { ?sensor :value ?value }
"""
ANY_TEXT = '<http://ex/s> <http://ex/value> "{value}" .\n'
TEMPLATE = """
@time {at} as seconds
<http://ex/{_topic}> <http://ex/value> "{v}" .
"""


@pytest.fixture
def mosquitto(tmp_path: Path, mosquitto_executable: str) -> Iterator[Mosquitto]:
    folder = tmp_path / "mosquitto"
    folder.mkdir()
    broker = Mosquitto(mosquitto_executable, folder)
    broker.start()
    yield broker
    broker.stop()


def reading(sensor: str, second: int) -> tuple[str, str]:
    return f"sensors/{sensor}", f'{{"at": {second - 0.5}, "v": {second}}}'


def run_until(engine: hw.Engine, wanted: int) -> tuple[list[Any], hw.RunSummary]:
    rows: list[Any] = []

    def take(answer: hw.Answer) -> None:
        rows.extend(tuple(getattr(term, "value", None) for term in row) for row in answer.rows)
        if len(rows) >= wanted:
            engine.stop()

    timer = threading.Timer(40, engine.stop)
    timer.start()
    try:
        return rows, engine.run(on_answer=take, trigger_seconds=0.02)
    finally:
        timer.cancel()


def engine_for(broker: Mosquitto, folder: Path, **options: Any) -> hw.Engine:
    engine = hw.Engine(in_process=True, checkpoint=folder / "checkpoint", dead_letters=folder / "dead")
    source = hw.mqtt(f"127.0.0.1:{broker.port}", "sensors/+", template=TEMPLATE, client="reader", **options)
    engine.stream("http://ex/s", source)
    engine.register(QUERY)
    return engine


def later(seconds: float, work: Any, *arguments: Any) -> threading.Thread:
    def wait_and_work() -> None:
        time.sleep(seconds)
        work(*arguments)

    thread = threading.Thread(target=wait_and_work, daemon=True)
    thread.start()
    return thread


def test_messages_become_answers_and_what_comes_while_nobody_reads_is_kept(
    mosquitto: Mosquitto, tmp_path: Path
) -> None:
    subscribe(mosquitto.port, "reader", "sensors/+")
    sending = later(0.5, mosquitto.publish, [reading("a", 1), ("sensors/b", "oops"), reading("b", 2), reading("a", 3)])
    rows, summary = run_until(engine_for(mosquitto, tmp_path), 2)
    sending.join()
    assert rows == [("http://ex/sensors%2Fa", "1"), ("http://ex/sensors%2Fb", "2")]
    assert summary.bad == 1
    mosquitto.publish([reading("c", 4), reading("c", 5)])
    rows, summary = run_until(engine_for(mosquitto, tmp_path), 2)
    assert [value for _, value in rows] == ["3", "4"]
    assert (summary.bad, summary.late) == (0, 0)


def test_a_broker_that_goes_away_and_comes_back(mosquitto: Mosquitto, tmp_path: Path) -> None:
    def trouble() -> None:
        mosquitto.publish([reading("a", 1), reading("a", 2)])
        time.sleep(0.5)
        mosquitto.stop()
        time.sleep(0.5)
        mosquitto.start()
        mosquitto.publish([reading("a", 3), reading("a", 4)])

    subscribe(mosquitto.port, "reader", "sensors/+")
    thread = later(0.5, trouble)
    rows, summary = run_until(engine_for(mosquitto, tmp_path), 3)
    thread.join()
    assert [value for _, value in rows] == ["1", "2", "3"]
    assert summary.late == 0


class FakeClient:
    """What a receiver acknowledges with."""

    def __init__(self) -> None:
        self.acknowledged: list[int] = []

    def ack(self, mid: int, qos: int) -> None:
        self.acknowledged.append(mid)


def test_what_came_over_another_connection_is_not_acknowledged_over_this_one(tmp_path: Path) -> None:
    """A broker that has lost what it knew of a client gives the number of one message to another one."""
    client, spool = FakeClient(), Spool(tmp_path)
    receiver = MqttReceiver(MqttBroker("localhost", 1883), "t", 1, "me", Decoder.of("text", template=ANY_TEXT), spool)
    paho = receiver._make_client()
    connected: Any = paho.on_connect
    for number in (1, 2):
        connected(paho, None, ConnectFlags(False), ReasonCode(PacketTypes.CONNACK), None)
        message = MQTTMessage(mid=7, topic=b"t")
        message.payload, message.qos = f"{number}".encode(), 1
        receiver._enqueue(message)
    receiver._store_waiting(client)  # type: ignore[arg-type]
    receiver.stop()
    (path,) = tmp_path.glob("*.tnq")
    assert [line.split('"')[1] for line in path.read_text().splitlines()] == ["1", "2"]
    assert client.acknowledged == [7]


def test_section_2_3_the_iri_of_a_stream_is_a_broker_and_a_topic(mosquitto: Mosquitto) -> None:
    iri = f"mqtt://127.0.0.1:{mosquitto.port}/sensors/%23?format=turtle&time=http://ex/at"
    engine = hw.Engine(in_process=True)
    engine.register(QUERY.replace("http://ex/s>", f"{iri}>", 1))
    turtle = '<http://ex/a> <http://ex/value> "{0}" ; <http://ex/at> "{0}500" .'
    sending = later(0.5, mosquitto.publish, [("sensors/a", turtle.format(second)) for second in (1, 2, 3)])
    rows, _ = run_until(engine, 2)
    sending.join()
    assert rows == [("http://ex/a", "1"), ("http://ex/a", "2")]
