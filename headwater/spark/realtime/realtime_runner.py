"""The runner in real-time mode: Kafka → shards in Python workers → Kafka, and the answers' topic → callbacks.

    Kafka ─▶ every shard's worker ─▶ (merged, if there are several shards) ─▶ the topics of answers ─▶ who takes answers

A batch of Spark lasts some seconds here and serves only as a checkpoint: records are answered as they come. Spark logs
how far a batch has read when it has ended; the workers have written their snapshots by then (`shard_snapshots`). A
batch that did not get so far is run again, and may end elsewhere. Its answers follow from offsets and times alone, so
those that were written before are written again, equal and with the same keys.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from headwater.execution.answer_batch import AnswerBatch
from headwater.running.checkpoints import REALTIME_STATE
from headwater.running.delivery import Delivery
from headwater.running.evaluation import BatchOutcome
from headwater.running.ordered_evaluation import StreamPartitions
from headwater.running.program_description import ProgramDescription
from headwater.running.shipping import ship
from headwater.running.workload import Workload, WorkloadChanges
from headwater.sinks.kafka_sink import KafkaSink
from headwater.sources.kafka import KafkaReader, KafkaSource
from headwater.sources.outages import BackOff, is_outage
from headwater.spark.realtime.answer_rows import PART_SCHEMA, RECORD_SCHEMA, MergeWorker, PartRows, RecordRows
from headwater.spark.realtime.answer_topic_reader import AnswerTopicReader
from headwater.spark.realtime.checkpoint_plan import SPARK_LOGS, CheckpointPlan
from headwater.spark.realtime.kafka_admin import count_partitions
from headwater.spark.realtime.shard_snapshots import read_counts, remove_leftovers
from headwater.spark.realtime.shard_worker import REAL, DeadLetterFolder, ShardWorker
from headwater.spark.run_error import WORKER_DIED, to_run_error
from headwater.spark.spark_logs import last_commit
from headwater.spark.spark_settings import REALTIME_ROWS, realtime_query_settings, set_for_a_while
from headwater.terms.scratch_folders import ScratchFolder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

logger = logging.getLogger(__name__)

BATCH_SECONDS = 5.0
"""How long a batch lasts: after a crash so much is read again."""
_POLL_MILLISECONDS = 50
_LOOK_EVERY = 5
"""Every so many polls the run looks at what else happened."""
_ATTEMPTS = 4
_RETRYABLE_ERRORS = (WORKER_DIED, "failed to connect back", "streaming shuffle")
_ROOM_MILLISECONDS = 100
"""A record that took longer from the source to its worker has found no room: those behind it are sent together."""
_NOW = "cast(reflect('java.lang.System', 'currentTimeMillis') as bigint)"


@dataclass(frozen=True)
class RealTimeRun:
    """What a run in real-time mode is given besides its workload."""

    sinks: Sequence[KafkaSink]
    letters: DeadLetterFolder
    checkpoint: Path | None
    batch_seconds: float
    takes_answers: bool


def run_in_real_time(
    spark: SparkSession,
    workload: Workload,
    changes: WorkloadChanges,
    delivery: Delivery,
    stop: Event,
    run: RealTimeRun,
    accept_state: Callable[[], None] = lambda: None,
) -> None:
    """Answer records as they come until `stop` is set. `accept_state` is called when the first batch was committed."""
    from pyspark.errors import PySparkException

    with ScratchFolder("run") as temporary:
        folder = run.checkpoint / REALTIME_STATE if run.checkpoint is not None else temporary
        outages, attempts, committed = BackOff(), 0, last_commit(folder / SPARK_LOGS)
        while not stop.is_set():
            if not workload.description.queries:
                begun = changes.wait_for_queries(workload, stop)
                if begun is None:
                    return
                workload = begun
            try:
                # Spark reads some of them when the first batch is planned.
                with set_for_a_while(spark, realtime_query_settings()):
                    following = _Following(spark, workload, folder, run, delivery, accept_state)
                    is_changed = following.follow(stop, changes)
                if is_changed:
                    workload = changes.take() or workload
            except Exception as error:
                if is_outage(error):
                    if outages.wait(stop):
                        continue
                    if stop.is_set():
                        return
                if not isinstance(error, PySparkException):
                    raise
                now = last_commit(folder / SPARK_LOGS)
                attempts, committed = (attempts if now == committed else 0) + 1, now
                if attempts == _ATTEMPTS or not any(message in str(error) for message in _RETRYABLE_ERRORS):
                    raise to_run_error(error) from error
                logger.warning("%s; trying again from the last batch", to_run_error(error))


class _Following:
    """One streaming query, from its start until it fails, is stopped, or other queries take its place."""

    def __init__(
        self,
        spark: SparkSession,
        workload: Workload,
        folder: Path,
        run: RealTimeRun,
        delivery: Delivery,
        accept_state: Callable[[], None],
    ) -> None:
        self._spark = spark
        self._run = run
        self._folder = folder
        self._delivery = delivery
        self._accept_state = accept_state
        self._sources = kafka_sources(workload)
        self._description = workload.description
        self._plan = plan_checkpoint(spark, workload).begin_run(folder)
        self._counted = last_commit(folder / SPARK_LOGS)
        if self._plan.has_state(self._counted):
            for shard in range(self._shards):
                remove_leftovers(self._shard_folder(shard), self._plan.names.of(self._counted), self._counted)

    @property
    def _shards(self) -> int:
        return self._plan.shards

    def _shard_folder(self, shard: int) -> Path:
        return self._folder / f"shard-{shard}"

    def follow(self, stop: Event, changes: WorkloadChanges) -> bool:
        """Run the query; gives whether it ended because other queries were asked for. Its failure is raised."""
        sink, counts = self._run.sinks[0], self._count_answer_partitions()
        reader = self._open_reader(counts) if self._run.takes_answers else None
        query = self._start(counts, sink.spark_options())
        try:
            rounds = 0
            while not stop.is_set():
                if reader is None:
                    stop.wait(_POLL_MILLISECONDS / 1000)
                else:
                    self._hand_over(reader, _POLL_MILLISECONDS)
                rounds += 1
                if rounds % _LOOK_EVERY:
                    continue
                self._count_batches()
                if changes.is_requested:
                    return True
                if not query.isActive:
                    query.awaitTermination()
                    raise RuntimeError("the streaming query ended, and nobody has stopped it")
            query.stop()
            # What was written until now is handed over.
            while reader is not None and self._hand_over(reader, _POLL_MILLISECONDS):
                pass
            self._count_batches()
            return False
        finally:
            query.stop()
            if reader is not None:
                reader.close()

    def _count_answer_partitions(self) -> dict[str, int]:
        """How many partitions each topic of answers has."""
        names = list(dict.fromkeys(sink.records.topic for sink in self._run.sinks))
        return count_partitions(self._spark, self._run.sinks[0].spark_options(), names)

    def _open_reader(self, counts: Mapping[str, int]) -> AnswerTopicReader:
        topic = next(sink.records.topic for sink in self._run.sinks if sink.can_be_read_back)
        options = self._run.sinks[0].spark_options()
        queries = [query.plan.name for query in self._description.queries]
        return AnswerTopicReader(self._spark, options, topic, counts[topic], queries, self._folder / "answers.json")

    def _hand_over(self, reader: AnswerTopicReader, milliseconds: int) -> bool:
        """Hand over what the topic of answers has now; gives whether there was something."""
        answers = reader.poll(milliseconds)
        if answers:
            self._delivery.deliver(self._delivery.delivered + 1, BatchOutcome(AnswerBatch([answers])))
            reader.mark_delivered()
        return bool(answers)

    def _count_batches(self) -> None:
        """Count what the batches that were committed meanwhile have read."""
        last = last_commit(self._folder / SPARK_LOGS)
        while self._counted < last:
            self._counted += 1
            outcomes = [
                read_counts(self._shard_folder(shard), self._plan.names.current, self._counted)
                for shard in range(self._shards)
            ]
            total = outcomes[0]
            for one in outcomes[1:]:
                letters = (*total.dead_letters, *one.dead_letters)
                total = BatchOutcome(
                    dead_letters=letters,
                    elements=total.elements,
                    watermarks=total.watermarks,
                    measure=total.measure.merge(one.measure),
                )
            self._accept_state()
            self._delivery.deliver(self._delivery.delivered + 1, total)

    def _start(self, counts: Mapping[str, int], options: Mapping[str, str]) -> StreamingQuery:
        records = RecordRows([(sink.records, counts[sink.records.topic]) for sink in self._run.sinks])
        answers = self._answers(records)
        seconds = f"{max(1, round(self._run.batch_seconds * 1000))} milliseconds"
        writer: Any = (
            answers.writeStream.format("kafka")
            .options(**options)
            .outputMode("update")
            .option("checkpointLocation", str(self._folder / SPARK_LOGS))
            # The offsets of a batch are on disk when the next one begins.
            .option("asyncProgressTrackingEnabled", "false")
        )
        query: StreamingQuery = writer.trigger(realTime=seconds).start()
        return query

    def _answers(self, records: RecordRows) -> DataFrame:
        """The records of answers as a streaming DataFrame."""
        from pyspark.sql import functions as f

        description: ProgramDescription = self._description
        shipped = ship(self._spark, description)
        readers: list[tuple[str, KafkaReader]] = []
        rows: DataFrame | None = None
        for number, (stream, source) in enumerate(self._sources.items()):
            reader = source.reader()
            assert isinstance(reader, KafkaReader)
            readers.append((stream, reader))
            some = (
                source.start_at(self._plan.starts.get(stream))
                .records_as_they_come(self._spark)
                .withColumn("stream", f.lit(number))
            )
            rows = some if rows is None else rows.union(some)
        assert rows is not None
        keys = (0,) if description.sharding is None else description.sharding.keys
        shard = f.explode(f.array(*map(f.lit, keys))) if len(keys) > 1 else f.lit(keys[0])
        rows = rows.withColumn("read_at", f.expr(_NOW)).withColumn("shard", shard)
        rows = _with_pushes(rows.repartition(len(keys), "shard"))
        worker = ShardWorker(
            shipped,
            readers,
            self._stream_partitions(readers),
            str(self._folder),
            self._plan.names,
            records if len(keys) == 1 else PartRows(),
            self._run.letters,
        )
        if len(keys) == 1:
            return rows.mapInArrow(worker, RECORD_SCHEMA)
        parts = rows.mapInArrow(worker, PART_SCHEMA).withColumn("read_at", f.expr(_NOW))
        return _with_pushes(parts.repartition(1)).mapInArrow(MergeWorker(shipped, records), RECORD_SCHEMA)

    def _stream_partitions(self, readers: Sequence[tuple[str, KafkaReader]]) -> StreamPartitions:
        partitions = {
            stream: [
                reader.item_index(topic, number)
                for topic, count in self._plan.topics[stream].items()
                for number in range(count)
            ]
            for stream, reader in readers
        }
        return StreamPartitions(partitions, tuple(self._plan.version))


def plan_checkpoint(spark: SparkSession, workload: Workload) -> CheckpointPlan:
    """What a run of a workload that begins now writes down."""
    description = workload.description
    topics = {
        stream: count_partitions(spark, source.connector_options(), source.topics)
        for stream, source in kafka_sources(workload).items()
    }
    version = workload.feed(drain=False).newest_version()
    shards = 1 if description.sharding is None else len(description.sharding.keys)
    return CheckpointPlan(topics, version, description.delay, description.max_ahead, shards)


def kafka_sources(workload: Workload) -> dict[str, KafkaSource]:
    """The sources of a workload that can run in real-time mode, by stream."""
    return {stream: one for stream, one in sorted(workload.sources.items()) if isinstance(one, KafkaSource)}


def _with_pushes(rows: DataFrame) -> DataFrame:
    """The rows, each record that found room followed by rows that push it on.

    Spark sends an Arrow batch to Python when it is full and the next row has come. A record that came at once is
    followed by enough rows to fill its batch. One that had to wait is not: as long as there is no room, batches have
    many records.
    """
    from pyspark.sql import functions as f

    found_room = f"{_NOW} - read_at < {_ROOM_MILLISECONDS}"
    pushes = f"concat(array(true), array_repeat(false, CASE WHEN {found_room} THEN {REALTIME_ROWS} ELSE 0 END))"
    return rows.withColumn(REAL, f.explode(f.expr(pushes)))
