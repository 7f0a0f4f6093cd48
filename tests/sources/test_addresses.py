"""Sources by their addresses, as on a command line."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwater as hw
from headwater.sources.addresses import is_address, source_at
from headwater.sources.kafka import KafkaSource
from headwater.sources.payloads import PayloadFormat
from headwater.sources.receivers import NetworkSource


def test_an_address_is_told_from_a_file() -> None:
    assert all(
        map(is_address, ("kafka://h:1/t", "mqtt://h/t", "tcp://h:1", "ws://h/p", "wss://h", "amqp://h", "file:a.tnq"))
    )
    assert not any(map(is_address, ("data.tnq", "a/*.tnq", "a:b.tnq", "kafka:/h")))


def test_kafka_addresses() -> None:
    source = source_at(
        "kafka://a:1,b:2/cars,buses?format=turtle&time=http://ex/at&start=latest&skew=5s&per_batch=9&kafka.security.protocol=SSL"
    )
    assert isinstance(source, KafkaSource)
    assert (source.servers, source.topics, source.start) == ("a:1,b:2", ("cars", "buses"), "latest")
    assert (source.decoder.format, source.decoder.time) == (PayloadFormat.TURTLE, "http://ex/at")
    assert (source.skew, source.per_batch) == (5_000_000, 9)
    assert source.options == (("kafka.security.protocol", "SSL"),)


def test_received_addresses(tmp_path: Path) -> None:
    template = tmp_path / "row.template"
    template.write_text('<http://ex/s> <http://ex/p> "{value}" .\n')
    source = source_at("mqtt://host/a/+/%23?format=text&qos=2&client=me&keep=7", template=template)
    assert isinstance(source, NetworkSource)
    assert (source.address, source.keep_seconds) == ("mqtt://host:1883/a/+/#", 7.0)
    assert (source.decoder.format, source.decoder.template is None) == (PayloadFormat.TEXT, False)
    lines = source_at("tcp://host:99?spool=kept")
    assert isinstance(lines, NetworkSource)
    assert (lines.address, lines.decoder.format, lines.spool) == ("tcp://host:99", PayloadFormat.TNQ, Path("kept"))
    web = source_at("ws://host:80/x?format=jsonld&token=abc")
    assert isinstance(web, NetworkSource)
    assert (web.address, web.decoder.format) == ("ws://host:80/x", PayloadFormat.JSON_LD)


def test_file_addresses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for address, pattern in (
        ("file:///data/a%20b.tnq", "/data/a b.tnq"),
        ("file://localhost/data/*.tnq", "/data/*.tnq"),
        ("file:/data/a.tnq", "/data/a.tnq"),
        ("file:data/a.tnq", "data/a.tnq"),
    ):
        assert source_at(address) == hw.files(pattern)


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("kafka://host:1", "expected kafka://host:port/topic"),
        ("kafka://host/topic", "expected host:port"),
        ("kafka://host:1/t?formt=x", "'formt' is not known here; known are format, time, start"),
        ("kafka://host:1/t?per_batch=many", "must be a whole number"),
        ("kafka://host:1/t?per_batch=0", "at least 1"),
        ("kafka://host:1/t?start=never", "'earliest', 'latest' or a time"),
        ("mqtt://host", "expected mqtt://host:port/topic"),
        ("mqtt://host:x/t", "is no address of an MQTT broker"),
        ("tcp://host", "expected tcp://host:port"),
        ("tcp://host:99?qos=1", "'qos' is not known here"),
        ("amqp://host/x", "use kafka://, mqtt://, mqtts://, tcp://, ws://, wss://, file: or the path of files"),
        ("tcp://[::1", "is no address: Invalid IPv6 URL"),
        ("mqtt://host/a/#", "write %23"),
        ("file://host/x.tnq", "on this machine"),
        ("file:", "expected file:///folder/file"),
        ("file:x.tnq?start=latest", "'start' is not known here; known are none"),
    ],
)
def test_wrong_addresses_say_what_to_write(address: str, reason: str) -> None:
    with pytest.raises(hw.SettingError, match=reason):
        source_at(address)


def test_kafka_is_read_by_spark_only_and_must_be_there(tmp_path: Path) -> None:
    engine = hw.Engine(in_process=True)
    engine.stream("readings", "kafka://127.0.0.1:1/topic")
    engine.register("SELECT ?s FROM STREAM <readings> [RANGE 1s STEP 1s] WHERE { ?s ?p ?o }")
    with pytest.raises(hw.SourceError, match="the stream readings is read by Spark: leave out in_process"):
        engine.run()
    with pytest.raises(hw.SourceError, match=r"no Kafka broker answers at 127\.0\.0\.1:1"):
        hw.kafka("127.0.0.1:1", "topic").check()
