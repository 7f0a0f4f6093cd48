"""A run that is killed with SIGKILL and started again from its checkpoint gives what a run without failure gives.

From Kafka and files to Kafka, where one record of each key counts, and to files, where each batch has its own.
"""

from __future__ import annotations

import json
import random
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headwater as hw
from tests.engine.programs import SLIDING, TUMBLING, write
from tests.sources.kafka_broker import Broker, put, taken
from tests.spark.killing import PART_POINTS, POINTS
from tests.spark.stories import RANDOM_KILLS, Story, after_batch, comparable, merge_parts
from tests.spark.victim import CARS, COUNTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class KafkaStory(Story):
    """Kafka and a file in, Kafka and files out."""

    queries = (SLIDING, TUMBLING, COUNTS)

    def __init__(self, spark: SparkSession, broker: Broker, folder: Path, **settings: Any) -> None:
        name = uuid.uuid4().hex[:8]
        topics = {"servers": broker.servers, "source": f"in-{name}", "target": f"out-{name}", "per_batch": 12}
        super().__init__(folder, **{**topics, **settings})
        self._spark = spark
        cars = [(second, f"car{second % 3}") for second in range(-20, 100)]
        records = [json.dumps({"id": car, "at": second, "v": second}).encode() for second, car in cars]
        put(spark, broker.servers, self.settings["source"], records)
        # Without a topic, whoever reads the answers would fail before the first one.
        put(spark, broker.servers, self.settings["target"], [b"begin"])
        write(
            folder / "cars.tnq",
            [f'{second * 1000}\t<http://ex/{car}> <http://ex/value> "{second}" .' for second, car in cars],
        )

    def with_more(self, engine: hw.Engine) -> None:
        engine.stream(CARS, self.folder / "cars.tnq")

    def in_kafka(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for record in taken(self._spark, self.settings["servers"], self.settings["target"]):
            if record.key is None:
                continue
            value = json.loads(record.value)
            key, content = comparable(value, value["query"])
            if self.settings.get("parts"):
                # The part is the shard, which only the key says.
                key = key.removesuffix("0") + bytes(record.key).decode().rpartition("|")[2]
            assert bytes(record.key).decode() == key
            assert found.setdefault(key, content) == content, f"{key} was written with two contents"
        return found

    def check(self) -> dict[str, Any]:
        expected = super().check()
        found = self.in_kafka()
        assert (merge_parts(found) if self.settings.get("parts") else found) == expected
        return expected


@pytest.mark.slow
def test_a_run_that_is_killed_loses_and_doubles_nothing(
    kafka_spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    story = KafkaStory(kafka_spark, broker, tmp_path)
    assert story.killed_at("after-write"), story.log()
    assert story.run(), story.log()
    story.check()


@pytest.mark.soak
def test_kills_at_each_named_point_where_workers_write(
    kafka_spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    story = KafkaStory(kafka_spark, broker, tmp_path, batch_bytes=220, per_batch=2, parts=True)
    for point in (*PART_POINTS, *POINTS):
        if point not in ("before-write", "after-write"):
            assert story.killed_at(point), f"{point}: {story.log()}"
    assert story.run(), story.log()
    story.check()


@pytest.mark.soak
def test_kills_at_each_named_point(kafka_spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    story = KafkaStory(kafka_spark, broker, tmp_path, batch_bytes=220, per_batch=2)
    for point in POINTS:
        assert story.killed_at(point), f"{point}: {story.log()}"
    assert story.run(), story.log()
    story.check()


@pytest.mark.soak
def test_kills_at_random_moments(kafka_spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    generator = random.Random()
    story = KafkaStory(kafka_spark, broker, tmp_path, batch_bytes=150, per_batch=1)
    for number in range(RANDOM_KILLS):
        kill = (generator.randint(0, 2), generator.uniform(0, 2))
        assert not story.run(after_batch(*kill)), f"it was done before kill {number}: give it more to read"
    assert story.run(), story.log()
    story.check()
