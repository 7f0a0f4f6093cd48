"""The sources of a run as a Spark streaming source: Spark plans a batch, then runs its read tasks on workers.

A row is a chunk: some thousand elements packed into one binary value, because rows are what costs time between
processes, not bytes. Bad input travels in the same rows, so that counts are exact.
"""

from __future__ import annotations

import base64
import pickle
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from headwater.running.resting import Rest
from headwater.sharding.shard_plan import ShardPlan
from headwater.sources.chunk_columns import with_columns
from headwater.sources.feed import Chunk, Feed, ReadTask
from headwater.sources.offsets import Offset
from headwater.sources.source import Source
from headwater.sources.stream_patterns import WantedPatterns
from headwater.spark.chunk_bytes import pack_chunk
from headwater.terms.ids.term_key import ProcessKey

FORMAT = "headwater"
_WAIT_SECONDS = 0.1
"""So long planning a batch waits for something to read: no longer than a query may take to stop."""
CHUNK_SCHEMA = "shard int, chunk binary"
_ARROW = pa.schema([("shard", pa.int32()), ("chunk", pa.binary())])


_NOTHING_READ = Offset()


class FeedSettings(NamedTuple):
    """What is read, and how: the sources, whether their streams end, what queries want, shards, data sets to watch.

    The streams in `live` have heartbeats.
    """

    sources: Mapping[str, Source]
    drain: bool
    wanted: WantedPatterns
    sharding: ShardPlan | None
    datasets: tuple[str, ...]
    key: ProcessKey
    """The process that plans the reading adopts the key of the driver, and passes it on."""
    live: frozenset[str] = frozenset()
    heartbeat_seconds: float = 0.0
    """A batch of heartbeats alone comes no sooner behind the last batch."""
    waits: bool = False
    """Whether nothing else makes batches, so that planning one may wait for something to read."""
    begin: Offset = _NOTHING_READ
    """Where the first batch begins."""


def source_options(settings: FeedSettings, *, batch_bytes: int, task_bytes: int) -> dict[str, str]:
    """The options with which Spark makes the data source, in every process that needs it."""
    packed = base64.b64encode(pickle.dumps(settings, protocol=pickle.HIGHEST_PROTOCOL))
    return {"feed": packed.decode(), "batchBytes": str(batch_bytes), "taskBytes": str(task_bytes)}


class HeadwaterSource(DataSource):
    """`spark.readStream.format("headwater")`."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return CHUNK_SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        settings: FeedSettings = pickle.loads(base64.b64decode(self.options["feed"]))
        feed = Feed(
            settings.sources,
            drain=settings.drain,
            wanted=settings.wanted,
            datasets=settings.datasets,
            live=settings.live,
            is_told=False,
        )
        batch_bytes, task_bytes = int(self.options["batchBytes"]), int(self.options["taskBytes"])
        rest = Rest(None, None, _WAIT_SECONDS) if settings.waits else None
        seconds, begin = settings.heartbeat_seconds, settings.begin
        return HeadwaterReader(feed, settings.sharding, batch_bytes, task_bytes, seconds, rest, begin)


class ReadTaskPartition(InputPartition):
    """What one Spark task reads."""

    def __init__(self, task: ReadTask) -> None:
        super().__init__(task)
        self.task = task


class HeadwaterReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches on the driver and runs read tasks on the workers."""

    def __init__(
        self,
        feed: Feed,
        sharding: ShardPlan | None,
        batch_bytes: int,
        task_bytes: int,
        heartbeat_seconds: float = 0.0,
        rest: Rest | None = None,
        begin: Offset = _NOTHING_READ,
    ) -> None:
        self._feed = feed
        self._begin = begin
        self._sharding = sharding
        self._batch_bytes = batch_bytes
        self._task_bytes = task_bytes
        self._heartbeat_seconds = heartbeat_seconds
        self._rest = rest
        self._last_batch = time.monotonic()

    def prepareForTriggerAvailableNow(self) -> None:
        self._feed.finish()

    def initialOffset(self) -> dict[str, Any]:
        return self._begin.to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxBytes(self._batch_bytes)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        before = Offset.from_json(start)
        most = None if isinstance(limit, ReadAllAvailable) else self._batch_bytes
        after = self._next_offset(before, most)
        if after == before and self._rest is not None:
            self._rest.wait(self._feed)
            after = self._next_offset(before, most)
        if after == before:
            # Spark compares offsets as text: what is equal must be written as it was.
            return start
        self._last_batch = time.monotonic()
        if self._rest is not None:
            self._rest.note_news()
        return after.to_json()

    def _next_offset(self, before: Offset, limit: int | None) -> Offset:
        """How far the next batch goes; not at all where only heartbeats have come, and it is too soon for them."""
        after = self._feed.next_offset(before, limit)
        is_soon = time.monotonic() - self._last_batch < self._heartbeat_seconds
        return before if is_soon and after.without_heartbeats() == before.without_heartbeats() else after

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        tasks = self._feed.read_tasks(Offset.from_json(start), Offset.from_json(end), self._task_bytes)
        return [ReadTaskPartition(task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, ReadTaskPartition)
        for chunk in self._feed.read(partition.task):
            yield chunk_rows(chunk, self._sharding)

    def commit(self, end: dict[str, Any]) -> None:
        """Let sources give up what was read up to here: it is in the checkpoint, and is not read again."""
        self._feed.commit(Offset.from_json(end))


def chunk_rows(chunk: Chunk, sharding: ShardPlan | None) -> pa.RecordBatch:
    """A chunk as rows for the stateful step: one for each shard."""
    chunks = [(0, chunk)] if sharding is None else list(sharding.split(with_columns(chunk)))
    return pa.RecordBatch.from_arrays(
        [
            pa.array([key for key, _ in chunks], pa.int32()),
            pa.array([pack_chunk(one) for _, one in chunks], pa.binary()),
        ],
        schema=_ARROW,
    )
