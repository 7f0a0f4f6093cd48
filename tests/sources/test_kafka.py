"""Kafka to Kafka on Spark, with a real broker: formats, partitions, bad records, a broker that goes away."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headwater as hw
from tests.sources.kafka_broker import Broker, put, taken

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

S = "http://ex/s"
QUERY = """
PREFIX : <http://ex/>
REGISTER QUERY totals AS
SELECT ?sensor (COUNT(?value) AS ?n) FROM STREAM <http://ex/s> [RANGE 10s STEP 10s]
WHERE { ?sensor :value ?value } GROUP BY ?sensor
"""
GRAPHS = """
PREFIX : <http://ex/>
REGISTER STREAM doubled COMPUTED EVERY 10s AS
CONSTRUCT { ?sensor :n ?n } FROM STREAM <http://ex/s> [RANGE 10s STEP 10s]
WHERE { { SELECT ?sensor (COUNT(?value) AS ?n) WHERE { ?sensor :value ?value } GROUP BY ?sensor } }
"""
READ_BACK = """
PREFIX : <http://ex/>
REGISTER QUERY back AS
SELECT ?sensor ?n FROM STREAM <http://ex/graphs> [RANGE 10s STEP 10s] WHERE { ?sensor :n ?n }
"""
TEMPLATE = """
@time {at} as seconds
<http://ex/{id}> <http://ex/value> "{v}" .
"""
QUICK_TO_FAIL = {
    "kafka.default.api.timeout.ms": "1500",
    "kafka.request.timeout.ms": "1000",
    "fetchOffset.numRetries": "1",
}


def reading(second: int, sensor: str = "a") -> bytes:
    return json.dumps({"id": sensor, "at": second, "v": f"{second}"}).encode()


def topic(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


def totals(answers: list[hw.Answer]) -> dict[int, dict[str, int]]:
    """By tick (in seconds) and sensor: how many values."""
    return {
        one.time // 1_000_000: {row["sensor"][-1]: row["n"] for row in one.to_pandas().to_dict("records")}
        for one in answers
    }


def follow(engine: hw.Engine, until: Callable[[hw.Progress], bool], **options: Any) -> list[hw.Answer]:
    """The answers of a run that goes on until its progress is far enough, or for too long."""
    answers: list[hw.Answer] = []

    def look(progress: hw.Progress) -> None:
        if until(progress):
            engine.stop()

    timer = threading.Timer(120, engine.stop)
    timer.start()
    try:
        engine.run(follow=True, on_answer=answers.append, on_progress=look, trigger_seconds=0.1, **options)
    finally:
        timer.cancel()
    return answers


def test_from_kafka_to_kafka_and_on_from_the_checkpoint(
    kafka_spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    source, rows, graphs = topic("in"), topic("rows"), topic("graphs")
    put(kafka_spark, broker.servers, source, [reading(1), reading(2, "b"), b"oops", reading(3), None, reading(12)])

    def run(*, drain: bool) -> hw.RunSummary:
        engine = hw.Engine(kafka_spark, checkpoint=tmp_path / "checkpoint", dead_letters=tmp_path / "dead")
        engine.stream(S, hw.kafka(broker.servers, source, template=TEMPLATE, per_batch=4))
        engine.register(QUERY)
        engine.register(GRAPHS)
        to_rows = hw.KafkaSink(broker.servers, rows, per="row")
        return engine.run(sinks=[to_rows, hw.KafkaSink(broker.servers, graphs, format="nquads")], drain=drain)

    summary = run(drain=False)
    assert (summary.elements, summary.bad, summary.late) == (4, 2, 0)
    put(kafka_spark, broker.servers, source, [reading(25), reading(4)])
    summary = run(drain=True)
    assert (summary.elements, summary.bad, summary.late) == (2, 0, 1)

    texts = [path.read_text() for path in (tmp_path / "dead").glob("*.jsonl")]
    letters = [json.loads(line) for text in texts for line in text.splitlines()]
    assert sorted((one["kind"], one["source"], one["line"]) for one in letters) == [
        ("bad", f"{source}[0]", 2),
        ("bad", f"{source}[0]", 4),
        ("late", f"{source}[0]", 7),
    ]
    found = {}
    for record in taken(kafka_spark, broker.servers, rows):
        headers = {header.key: bytes(header.value).decode() for header in record.headers}
        if headers["query"] == "totals":
            value = json.loads(record.value)
            (binding,) = value["results"]["bindings"]
            found[headers["tick"], binding["sensor"]["value"][-1]] = int(binding["n"]["value"])
            assert bytes(record.key).decode().startswith(f"totals|{value['time_us']}|0|")
    assert found == {
        ("1970-01-01T00:00:10Z", "a"): 2,
        ("1970-01-01T00:00:10Z", "b"): 1,
        ("1970-01-01T00:00:20Z", "a"): 1,
        ("1970-01-01T00:00:30Z", "a"): 1,
    }
    made = [bytes(record.value).decode() for record in taken(kafka_spark, broker.servers, graphs)]
    (first,) = {text for text in made if "doubled/1970-01-01T00:00:10Z" in text}
    assert first.count("<http://ex/n>") == 2


@pytest.mark.slow
def test_answers_are_a_stream_again(kafka_spark: SparkSession, broker: Broker) -> None:
    source, graphs = topic("in"), topic("graphs")
    put(kafka_spark, broker.servers, source, [reading(1), reading(2, "b"), reading(3), reading(12)])
    first = hw.Engine(kafka_spark)
    first.stream(S, hw.kafka(broker.servers, source, template=TEMPLATE))
    first.register(GRAPHS)
    first.run(sinks=[hw.KafkaSink(broker.servers, graphs, format="nquads")])
    second = hw.Engine(kafka_spark)
    second.stream("http://ex/graphs", f"kafka://{broker.servers}/{graphs}?format=nquads")
    second.register(READ_BACK)
    answers: list[hw.Answer] = []
    second.run(on_answer=answers.append)
    assert {one.time // 1_000_000: len(one.rows) for one in answers if one.rows} == {10: 2, 20: 1}


def test_partitions_have_clocks_of_their_own(kafka_spark: SparkSession, broker: Broker) -> None:
    """Partition 1 is read behind partition 0 and is older; nothing of it is late but what is late in itself."""
    name = topic("parts")
    put(kafka_spark, broker.servers, name, [reading(second) for second in range(1, 40, 2)], partition=0)
    older = [reading(second, "b") for second in range(0, 40, 2)]
    put(kafka_spark, broker.servers, name, [*older, reading(3, "c")], partition=1)
    engine = hw.Engine(kafka_spark, shards=2)
    engine.stream(S, hw.kafka(broker.servers, name, template=TEMPLATE, per_batch=10))
    engine.register(QUERY)
    answers: list[hw.Answer] = []
    summary = engine.run(on_answer=answers.append, drain=False)
    assert (summary.elements, summary.late, summary.bad) == (41, 1, 0)
    assert totals(answers) == {
        0: {"b": 1},
        10: {"a": 5, "b": 5},
        20: {"a": 5, "b": 5},
        30: {"a": 5, "b": 5},
    }


def test_a_broker_that_goes_away_and_comes_back(kafka_spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """Longer than the connector is willing to wait: the query fails, and is started again from its checkpoint."""
    source, target = topic("in"), topic("out")
    put(kafka_spark, broker.servers, source, map(reading, range(1, 15)))
    engine = hw.Engine(kafka_spark)
    engine.stream(S, hw.kafka(broker.servers, source, template=TEMPLATE, options=QUICK_TO_FAIL))
    engine.register(QUERY)
    away = threading.Event()

    def outage() -> None:
        away.wait(60)
        broker.kill()
        time.sleep(6)
        broker.start()
        put(kafka_spark, broker.servers, source, map(reading, range(15, 32)))

    trouble = threading.Thread(target=outage, daemon=True)
    trouble.start()

    def until(progress: hw.Progress) -> bool:
        away.set()
        return progress.elements >= 31

    answers = follow(engine, until, sinks=[hw.KafkaSink(broker.servers, target)])
    trouble.join(60)
    assert totals(answers) == {10: {"a": 10}, 20: {"a": 10}, 30: {"a": 10}}
    keys = [bytes(record.key).decode() for record in taken(kafka_spark, broker.servers, target)]
    assert sorted(set(keys)) == [f"totals|{second}000000|0" for second in (10, 20, 30)]


@pytest.mark.slow
def test_section_2_3_the_iri_of_a_stream_is_a_broker_and_a_topic(kafka_spark: SparkSession, broker: Broker) -> None:
    source = topic("located")
    turtle = '<http://ex/a> <http://ex/value> "{0}" ; <http://ex/at> "{0}000" .'
    put(kafka_spark, broker.servers, source, [turtle.format(second).encode() for second in (1, 2, 12)])
    engine = hw.Engine(kafka_spark)
    engine.register(QUERY.replace(S, f"kafka://{broker.servers}/{source}?format=turtle&time=http://ex/at"))
    answers: list[hw.Answer] = []
    engine.run(on_answer=answers.append)
    assert totals(answers) == {10: {"a": 2}, 20: {"a": 1}}


def test_a_topic_that_pauses_is_answered_and_one_that_is_silent_does_not_hold_up_another(
    kafka_spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    busy, silent = topic("busy"), topic("silent")
    put(kafka_spark, broker.servers, silent, [b'<http://ex/s> <http://ex/none> "0" .'])
    engine = hw.Engine(kafka_spark, checkpoint=tmp_path / "checkpoint", shards=1, idle="1s")
    for name in (busy, silent):
        engine.stream(f"http://ex/{name[:4]}", hw.kafka(broker.servers, name, format="ntriples"))
    engine.register(
        "PREFIX : <http://ex/> SELECT ?v ?w WHERE { STREAM :busy [NOW] { ?x :value ?v } "
        "OPTIONAL { STREAM <http://ex/sile> [RANGE 1m] { ?x :other ?w } } }"
    )
    values: list[str] = []

    def send_next() -> None:
        put(kafka_spark, broker.servers, busy, [f'<http://ex/s> <http://ex/value> "{len(values)}" .'.encode()])

    def take(answer: hw.Answer) -> None:
        values.extend(str(row[0]) for row in answer.rows)
        if len(values) == 2:
            engine.stop()
        else:
            send_next()

    send_next()
    timer = threading.Timer(300, engine.stop)
    timer.start()
    try:
        summary = engine.run(follow=True, on_answer=take, trigger_seconds=0.5)
    finally:
        timer.cancel()
    assert values == ['"0"', '"1"']
    assert summary.late == 0


def test_a_broker_that_does_not_answer_is_tried_for_as_long_as_was_said(kafka_spark: SparkSession) -> None:
    engine = hw.Engine(kafka_spark)
    engine.stream(S, hw.kafka("127.0.0.1:9", "t", format="ntriples", connect_timeout="200ms"))
    engine.register(QUERY)
    with pytest.raises(hw.SourceError, match=r"no Kafka broker answers at 127.0.0.1:9 for 0.2 s"):
        engine.run(follow=True)


def test_workers_make_the_records_that_the_driver_would(
    kafka_spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    # So many sensors that each shard has some, whatever the key of the ids is.
    lines = [f'{at * 1000}\t<http://ex/s{at % 10}> <http://ex/value> "{at}" .\n' for at in range(30)]
    (tmp_path / "in.tnq").write_text("".join(lines))
    found: dict[tuple[str, str], dict[bytes, tuple[Any, ...]]] = {}
    for name, shards, parts, on_answer in (
        ("workers", 1, False, None),
        ("driver", 1, False, lambda answer: None),
        ("parts", 2, True, None),
    ):
        engine = hw.Engine(kafka_spark, shards=shards, batch_bytes=600)
        engine.stream(S, hw.files(tmp_path / "in.tnq"))
        engine.register(QUERY)
        targets = {per: topic(f"{name}-{per}") for per in ("answer", "row")}
        sinks = [hw.KafkaSink(broker.servers, targets[per], per=per, parts=parts) for per in targets]
        engine.run(sinks=sinks, on_answer=on_answer)
        for per, target in targets.items():
            records = taken(kafka_spark, broker.servers, target)
            found[name, per] = {bytes(one.key): (json.loads(one.value), _headers(one)) for one in records}
            assert len(found[name, per]) == len(records)
    for per in ("answer", "row"):
        assert found["workers", per] == found["driver", per]
        assert _rows(found["parts", per]) == _rows(found["driver", per])
        assert len(_rows(found["driver", per])) == 30
        assert {key.split(b"|")[2] for key in found["driver", per]} == {b"0"}
        assert {key.split(b"|")[2] for key in found["parts", per]} == {b"0", b"1"}


def _headers(record: Any) -> dict[str, bytes]:
    return {header.key: bytes(header.value) for header in record.headers}


def _rows(records: dict[bytes, tuple[Any, ...]]) -> list[tuple[int, str]]:
    return sorted(
        (value["time_us"], json.dumps(row, sort_keys=True))
        for value, _ in records.values()
        for row in value["results"]["bindings"]
    )
