"""Reads the topic of answers on the driver, for those who take the answers of a run in real-time mode.

A batch that is run again writes its answers again, with the same keys and contents. All answers of a query are in one
partition, in the order of time; so an answer is new where its key is behind the last one that was handed over. How far
the topic was read is kept in the checkpoint: a later run goes on there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.execution.answers import Answer
from headwater.running.checkpoints import report_checkpoint_damage
from headwater.sinks.answer_parsing import answer_of
from headwater.spark.realtime.kafka_admin import java_client_settings, java_of
from headwater.terms.durable_files import Sync, replace_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_KEY = re.compile(r"(?P<query>.+)\|(?P<time>-?\d+)\|(?P<part>\d+)")
_DESERIALIZER = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
_CONSUMER_SETTINGS = {
    "key.deserializer": _DESERIALIZER,
    "value.deserializer": _DESERIALIZER,
    "enable.auto.commit": "false",
    "auto.offset.reset": "earliest",
    "fetch.max.wait.ms": "20",
}


class AnswerTopicReader:
    """A consumer of the topic that has the answers: it begins where the checkpoint says, or else at the topic's end."""

    def __init__(
        self,
        spark: SparkSession,
        options: Mapping[str, str],
        topic: str,
        partitions: int,
        queries: Collection[str],
        path: Path,
    ) -> None:
        self._java = java_of(spark)
        self._queries = frozenset(queries)
        self._path = path
        self._last: dict[str, tuple[int, int]] = {}
        consumer = self._java.org.apache.kafka.clients.consumer.KafkaConsumer
        self._consumer = consumer(java_client_settings(spark, options, _CONSUMER_SETTINGS))
        make = self._java.org.apache.kafka.common.TopicPartition
        self._places = {number: make(topic, number) for number in range(partitions)}
        every = self._java.java.util.ArrayList()
        for place in self._places.values():
            every.add(place)
        self._consumer.assign(every)
        if path.exists():
            with report_checkpoint_damage(path):
                self._restore(json.loads(path.read_text("utf-8")))
        else:
            self._consumer.seekToEnd(every)
            # Asked for, or it would be the end at the first poll.
            self._offsets = {number: self._consumer.position(place) for number, place in self._places.items()}
            self._save()

    def _restore(self, saved: Mapping[str, Any]) -> None:
        self._offsets = {int(number): offset for number, offset in saved["offsets"].items()}
        self._last = {query: (time, part) for query, (time, part) in saved["last"].items()}
        for number, offset in self._offsets.items():
            self._consumer.seek(self._places[number], offset)

    def poll(self, milliseconds: int) -> list[Answer]:
        """The new answers, waiting so long for the first; `mark_delivered` says that they were handed over."""
        records = self._consumer.poll(self._java.java.time.Duration.ofMillis(milliseconds))
        found: list[Answer] = []
        if records.isEmpty():
            return found
        listed = records.iterator()
        while listed.hasNext():
            record = listed.next()
            self._offsets[record.partition()] = record.offset() + 1
            if (key := record.key()) is not None and (answer := self._parse(bytes(key), record.value())) is not None:
                found.append(answer)
        return sorted(found, key=lambda one: (one.time, one.part))

    def _parse(self, key: bytes, value: bytes) -> Answer | None:
        """The answer in a record; None where it was found before, or is of none of the queries."""
        read = _KEY.fullmatch(key.decode("utf-8", "replace"))
        if read is None or read["query"] not in self._queries:
            return None
        query, place = read["query"], (int(read["time"]), int(read["part"]))
        if query in self._last and place <= self._last[query]:
            return None
        self._last[query] = place
        event = json.loads(bytes(value))
        return replace(answer_of(event, query), part=place[1], suspended=event.get("suspended"))

    def mark_delivered(self) -> None:
        """Note that everything so far was handed over."""
        self._save()

    def _save(self) -> None:
        content = {"offsets": self._offsets, "last": self._last}
        with report_checkpoint_damage(self._path):
            # What is read again after a power failure is recognised by its time.
            replace_file(self._path, json.dumps(content).encode(), sync=Sync.NOTHING)

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close(self._java.java.time.Duration.ofSeconds(1))
