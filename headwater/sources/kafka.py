"""Kafka topics as streams, through Spark's own connector.

    kafka("localhost:9092", "observations", format="turtle")
    kafka("a:9092,b:9092", "cars", template="car.template", time="{ts} as seconds", start="latest")

The value of a record is one message (`headwater.sources.payloads`); its time is that of the record unless
the data say another. A template may also use `{_key}`, `{_topic}`, `{_partition}`, `{_offset}` and `{_time}`.

Kafka orders the records of a partition, not those of a topic. So each partition has a clock of its own: whether an
element is late depends on those before it in its partition, and the stream has come as far as the slowest partition
(`windows.partitioned_clock`). A partition that is more than `skew` of event time behind the fastest one is not
waited for.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

from headwater.egress.secret_references import fill_in_secrets
from headwater.errors import SettingError
from headwater.sources.chunk_columns import scan_timed_messages
from headwater.sources.feed import Chunk
from headwater.sources.kafka_jars import ensure_kafka
from headwater.sources.payloads import Decoder, PayloadFormat, ReceivedMessage
from headwater.sources.records import RecordReader, RecordSource, chunk_of
from headwater.sources.source import SourceError
from headwater.terms.arguments import check_duration, check_text, check_whole
from headwater.terms.model import MILLISECOND, BadElement, Element
from headwater.terms.template import RowTemplate
from headwater.terms.timestamps import parse_time

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from headwater.terms.element_columns import ElementColumns

_CONNECT_SECONDS = 5.0
_RETRY_SECONDS = 0.5
_RECORDS_PER_BATCH = 200_000
_FETCH_WAIT_MILLISECONDS = 10
_USUAL_IDLE = 5_000_000
"""So long, in microseconds, records may be on their way from their producers."""
_MOST_PARTITIONS = 1 << 20
_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp")


def is_broker_reachable(servers: str) -> bool:
    """Whether one of some brokers, `host:port` with commas in between, can be connected to."""
    for server in [_host_and_port(server) for server in servers.split(",")]:
        try:
            with socket.create_connection(server, timeout=_CONNECT_SECONDS):
                return True
        except OSError:
            continue
    return False


@dataclass(frozen=True)
class KafkaSource(RecordSource):
    """Topics of a cluster; `kafka(…)` makes one."""

    servers: str
    topics: tuple[str, ...]
    decoder: Decoder
    start: str = "earliest"
    per_batch: int = _RECORDS_PER_BATCH
    skew: int | None = 60_000_000
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    connect_timeout: int | None = None
    starting_offsets: str | None = None
    """Where a run begins that goes on with a checkpoint of another mode, as Spark's connector takes it; None where
    `start` says it."""

    @property
    def usual_idle(self) -> int | None:
        # The times of records are those at which they came into being; other times are the data's own.
        return _USUAL_IDLE if self.decoder.keeps_message_times else None

    def check(self) -> None:
        if not is_broker_reachable(self.servers):
            raise SourceError(f"no Kafka broker answers at {self.servers}: check the address, and that the broker runs")

    def records(self, spark: SparkSession) -> DataFrame:
        ensure_kafka(spark)
        self._wait_for_broker()
        return self._load(spark, {"maxOffsetsPerTrigger": str(self.per_batch)})

    def records_as_they_come(self, spark: SparkSession) -> DataFrame:
        """The records for real-time mode, which has no limits of batches."""
        self._wait_for_broker()
        return self._load(spark, {})

    def start_at(self, offsets: Mapping[str, Mapping[str, int]] | None) -> KafkaSource:
        """The source with these offsets of its topics, by partition, in place of `start`; None leaves it as it is."""
        return self if offsets is None else replace(self, starting_offsets=json.dumps(offsets))

    def connector_options(self) -> dict[str, str]:
        """The options of Spark's connector that say where the broker is, and how it is reached."""
        return {"kafka.bootstrap.servers": self.servers, **fill_in_secrets(dict(self.options))}

    def _load(self, spark: SparkSession, usual: Mapping[str, str]) -> DataFrame:
        options = {
            # Records of aborted transactions are not read.
            "kafka.isolation.level": "read_committed",
            "subscribe": ",".join(self.topics),
            # A consumer asks ahead for records that are not there yet, and the next batch waits for that request.
            "kafka.fetch.max.wait.ms": str(_FETCH_WAIT_MILLISECONDS),
            "failOnDataLoss": "true",
            **usual,
            **self._options_with_start(),
        }
        return spark.readStream.format("kafka").options(**options).load().select(*_COLUMNS)

    def _options_with_start(self) -> dict[str, str]:
        """Where a run begins, and the options of the user, which may say that, too, unless a checkpoint does."""
        if self.starting_offsets is None:
            return {**_options_of_start(self.start), **self.connector_options()}
        given = self.connector_options().items()
        others = {name: value for name, value in given if not name.lower().startswith("starting")}
        return {**others, "startingOffsets": self.starting_offsets}

    def _wait_for_broker(self) -> None:
        """Try to connect for as long as was said; a `SourceError` where no broker answers."""
        if self.connect_timeout is None:
            return
        end = monotonic() + self.connect_timeout / 1_000_000
        while not is_broker_reachable(self.servers):
            if monotonic() >= end:
                raise SourceError(
                    f"no Kafka broker answers at {self.servers} for {self.connect_timeout / 1_000_000:g} s: check the "
                    "address, and that the broker runs, or allow more with connect_timeout"
                )
            sleep(_RETRY_SECONDS)

    def reader(self) -> RecordReader:
        return KafkaReader(self.topics, self.decoder)

    def line_numbers(self, name: str, positions: Sequence[tuple[int, ...]]) -> list[int | None]:
        """The offsets of the records, which stand for line numbers."""
        return [position[0] if position else None for position in positions]


@dataclass(frozen=True, slots=True)
class KafkaReader:
    """Makes chunks of records, one for each partition in an Arrow batch."""

    topics: tuple[str, ...]
    decoder: Decoder

    def chunks(self, stream: str, batches: Iterator[pa.RecordBatch]) -> Iterator[Chunk]:
        for batch in batches:
            for (topic, partition), records in _split_by_partition(batch):
                name, item_index = _partition_name(topic, partition), self.item_index(topic, partition)
                columns = self._scan(records, item_index)
                if columns is not None:
                    yield Chunk(stream, item_index, name, columns)
                else:
                    yield chunk_of(stream, item_index, name, self._decode(records, topic, partition))

    def _scan(self, records: pa.RecordBatch, item_index: int) -> ElementColumns | None:
        """The elements of records as columns; None where they must be decoded one by one."""
        if self.decoder.format is not PayloadFormat.TNQ:
            return None
        return scan_timed_messages(
            records.column("value").to_pylist(), item_index, records.column("offset").to_pylist()
        )

    def _decode(self, records: pa.RecordBatch, topic: str, partition: int) -> Iterator[Element | BadElement]:
        """The elements of records of one partition, decoded one by one."""
        import pyarrow as pa

        name, item_index = _partition_name(topic, partition), self.item_index(topic, partition)
        times = records.column("timestamp").cast(pa.int64()).to_pylist()
        columns = (records.column(column).to_pylist() for column in ("key", "value", "offset"))
        cells: dict[str, str] = {}
        for key, value, offset, time in zip(*columns, times, strict=True):
            if self.decoder.template is not None:
                cells = {
                    "_key": "" if key is None else key.decode("utf-8", "backslashreplace"),
                    "_topic": topic,
                    "_partition": str(partition),
                    "_offset": str(offset),
                }
            yield from self.decoder.decode(ReceivedMessage(value, time, name, (item_index, offset), cells))

    def item_index(self, topic: str, partition: int) -> int:
        """The number that begins the positions of the elements of a partition."""
        return self.topics.index(topic) * _MOST_PARTITIONS + partition


def _split_by_partition(batch: pa.RecordBatch) -> Iterator[tuple[tuple[str, int], pa.RecordBatch]]:
    """The records of each partition, in their order."""
    places: dict[tuple[str, int], list[int]] = {}
    names = zip(batch.column("topic").to_pylist(), batch.column("partition").to_pylist(), strict=True)
    for place, name in enumerate(names):
        places.setdefault(name, []).append(place)
    for name, mine in places.items():
        yield name, batch if len(mine) == batch.num_rows else batch.take(mine)


def _partition_name(topic: str, partition: int) -> str:
    return f"{topic}[{partition}]"


def _host_and_port(server: str) -> tuple[str, int]:
    host, colon, port = server.strip().rpartition(":")
    if not colon or not port.isdigit():
        raise SettingError(f"{server.rpartition('@')[2]!r} is no address of a Kafka broker: expected host:port")
    return host.strip("[]"), int(port)


def _options_of_start(start: str) -> dict[str, str]:
    if start in ("earliest", "latest"):
        return {"startingOffsets": start}
    try:
        instant = parse_time(start) // MILLISECOND
    except ValueError as error:
        raise SettingError(f"start={start!r}: use 'earliest', 'latest' or a time ({error})") from None
    return {"startingTimestamp": str(instant), "startingOffsetsByTimestampStrategy": "latest"}


def kafka(
    servers: str,
    topic: str,
    *topics: str,
    format: str | None = None,
    template: RowTemplate | str | Path | None = None,
    time: str | None = None,
    start: str = "earliest",
    skew: int | str = "1m",
    per_batch: int = _RECORDS_PER_BATCH,
    options: Mapping[str, str] | None = None,
    connect_timeout: int | str | None = None,
) -> KafkaSource:
    """A stream in one or several Kafka topics; it needs Spark.

    `servers` is `host:port`, or several with commas. `format`, `template` and `time` say what a record means (see
    `headwater.sources.payloads`). `start` is where a run without a checkpoint begins: `earliest`,
    `latest` or a time. `skew` is how far partitions may be apart in event time, `per_batch` how many records a batch
    may have. `options` go to Spark's connector, such as `kafka.security.protocol`; `${env:NAME}` and `${file:PATH}` in
    them stand for what a variable or a file holds. With `connect_timeout` a run ends if no broker answers for so long
    when it begins; otherwise one that follows tries for an hour.
    """
    for name in (topic, *topics):
        check_text("topic", name)
    for server in check_text("servers", servers).split(","):
        _host_and_port(server)
    _options_of_start(start)
    return KafkaSource(
        servers,
        (topic, *topics),
        Decoder.of(format, template=template, time=time),
        start,
        check_whole("per_batch", per_batch, 1),
        check_duration("skew", skew),
        tuple((options or {}).items()),
        None if connect_timeout is None else check_duration("connect_timeout", connect_timeout),
    )
