"""The runner on Spark: source → stateful step → delivery on the driver, batch by batch."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from headwater.running.checkpoints import SPARK_STATE, CheckpointError
from headwater.running.delivery import Delivery
from headwater.running.program_description import ProgramDescription
from headwater.running.resting import LOOK_SECONDS
from headwater.running.shipping import share_folder, ship
from headwater.running.worker_delivery import WorkerDelivery
from headwater.running.workload import Workload, WorkloadChanges
from headwater.sharding.answer_merging import AnswerMerger
from headwater.sources.offsets import Offset
from headwater.sources.outages import BackOff, is_outage
from headwater.sources.records import ReadBySpark, RecordSource
from headwater.sources.source import Source
from headwater.sources.stream_patterns import WantedPatterns
from headwater.spark.record_chunks import record_chunks
from headwater.spark.run_error import WORKER_DIED, to_run_error
from headwater.spark.session import is_local_master
from headwater.spark.spark_handover import Handover, discard_handover
from headwater.spark.spark_logs import last_commit, last_planned, read_source_lines
from headwater.spark.spark_settings import query_settings, set_for_a_while
from headwater.terms.scratch_folders import ScratchFolder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.datasource import DataSource
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamReader

logger = logging.getLogger(__name__)

_BATCH_BYTES = 8 << 20
_SMALLEST_TASK_BYTES = 256 << 10
_POLL_SECONDS = 0.2
_LAST_BATCH_SECONDS = 2.0
_ATTEMPTS = 4
_RETRYABLE_ERRORS = ("failed to connect back", WORKER_DIED)
"""Spark gives a Python process ten seconds to start, and does not replace one that dies in the middle of its work; from
the checkpoint another try goes through."""


def outcome_rows(
    spark: SparkSession,
    description: ProgramDescription,
    sources: Mapping[str, Source],
    wanted: WantedPatterns,
    *,
    drain: bool = True,
    batch_bytes: int | None = None,
    live: frozenset[str] = frozenset(),
    look_seconds: float | None = None,
    delivery: WorkerDelivery | None = None,
    handover: Handover | None = None,
) -> DataFrame:
    """The streaming DataFrame of what the stateful step gives (`stateful.OUTPUT_SCHEMA`).

    The streams in `live` have heartbeats. With `look_seconds` batches follow each other as soon as there is something
    to read, and heartbeats alone make one no sooner than so many seconds after the last. `delivery` says which answers
    workers write, `handover` what a run in real-time mode has left for the first batch.
    """
    from headwater.spark.spark_source import FORMAT, FeedSettings, HeadwaterSource, source_options
    from headwater.spark.stateful_step import OUTPUT_SCHEMA, EvaluationProcessor, observe_counts

    description = replace(description, datasets=tuple(share_folder(spark, one) for one in description.datasets))
    size = batch_bytes or _BATCH_BYTES
    task_bytes = max(min(size, _SMALLEST_TASK_BYTES), size // spark.sparkContext.defaultParallelism)
    _register(spark, HeadwaterSource)
    read_here, records = _separate_records(sources, drain)
    feed = FeedSettings(read_here, drain, wanted, description.sharding, description.watched, description.key, live)
    if handover is not None:
        feed = feed._replace(begin=handover.unread)
    if look_seconds is not None:
        feed = feed._replace(heartbeat_seconds=look_seconds, waits=not records)
    options = source_options(feed, batch_bytes=size, task_bytes=task_bytes)
    chunks = load_stream(spark.readStream.format(FORMAT).options(**options))
    for stream, source in records.items():
        begun = source if handover is None else handover.begin(stream, source)
        chunks = chunks.union(record_chunks(spark, stream, begun, description.sharding))
    shipped = None if delivery is None else ship(spark, delivery)
    processor = EvaluationProcessor(ship(spark, description), shipped, None if handover is None else handover.folder)
    return observe_counts(
        chunks.groupBy("shard").transformWithStateInPandas(processor, OUTPUT_SCHEMA, "Append", "None")
    )


def load_stream(reader: DataStreamReader) -> DataFrame:
    """What a source gives; Spark makes the source in another process of Python, and says so if that fails."""
    from pyspark.errors import PySparkException

    try:
        return reader.load()
    except PySparkException as error:
        raise to_run_error(error) from error


def _register(spark: SparkSession, source: type[DataSource]) -> None:
    """Register a source in a session, also where another session of the same Spark has registered it."""
    from pyspark.errors import AnalysisException

    try:
        spark.dataSource.register(source)
    except AnalysisException:
        # Spark looks for the name in the active session, too, which was another one: this makes it the active one.
        spark.createDataFrame([], "nothing int")
        spark.dataSource.register(source)


def _separate_records(sources: Mapping[str, Source], drain: bool) -> tuple[dict[str, Source], dict[str, RecordSource]]:
    """The sources as the feed sees them, and those that Spark reads itself, always in the same order."""
    records = {stream: source for stream, source in sorted(sources.items()) if isinstance(source, RecordSource)}
    return {**sources, **dict.fromkeys(records, ReadBySpark.in_run(has_end=drain))}, records


def run_on_spark(
    spark: SparkSession,
    workload: Workload,
    changes: WorkloadChanges,
    delivery: Delivery,
    stop: Event,
    *,
    follow: bool = False,
    drain: bool = True,
    checkpoint: Path | None = None,
    accept_state: Callable[[], None] = lambda: None,
    batch_bytes: int | None = None,
    trigger_seconds: float | None = None,
    on_read: Callable[[Offset], None] = lambda offset: None,
    is_finished: Callable[[], bool] | None = None,
    only_planned: bool = False,
) -> None:
    """Read, evaluate and deliver until everything is read or, when following, until `stop` is set.

    `accept_state` is called with the first batch: then the state of the checkpoint was read. A run without a query
    waits for one; it ends where it does not follow. `on_read` is called when a batch was delivered. A run that follows
    only until `is_finished` then answers what is left, and ends. One of `only_planned` runs the batch that was planned
    and not committed, and nothing else.
    """
    failures: list[BaseException] = []
    workers: WorkerDelivery | None = None
    drains = drain and not follow
    # Only Spark knows when it has read all records: their streams end in a second query, after the first one.
    turns = [False, True] if drains and _separate_records(workload.sources, drain)[1] else [drains]

    def deliver(batch: DataFrame, batch_id: int) -> None:
        if batch_id:
            discard_handover(folder)
        with _outcomes_and_records(batch, workers) as (outcomes, records_of):
            rows: list[Any] = outcomes.toArrow().to_pylist()
            if rows:
                deliver_rows(rows, batch_id, records_of)
        if (offset := read_planned_offset(folder, batch_id)) is not None:
            on_read(offset)

    def deliver_rows(rows: list[Any], batch_id: int, records_of: Callable[[int], DataFrame]) -> None:
        from headwater.spark.stateful_step import rows_to_outcome

        description = workload.description
        merger = None if description.sharding is None else AnswerMerger(description.queries, description.sharding)
        try:
            if misses_answers():
                raise _AnswersWanted
            if delivery.delivered < 0:
                accept_state()
            outcome = rows_to_outcome(rows, merger)
            delivery.deliver(batch_id, outcome, workers=workers, records_of=records_of)
        except BaseException as error:
            failures.append(error)
            raise

    def start(ends: bool) -> StreamingQuery:
        nonlocal workers
        description = workload.description
        sees_folders = is_local_master(spark.sparkContext.master)
        workers = delivery.choose_worker_delivery(description, sees_folders=sees_folders)
        rows = outcome_rows(
            spark,
            description,
            workload.sources,
            workload.outline.wanted_patterns,
            drain=ends,
            batch_bytes=batch_bytes,
            live=workload.live_streams if follow else frozenset(),
            look_seconds=LOOK_SECONDS if follow and trigger_seconds is None else None,
            delivery=workers,
            handover=Handover.read(folder),
        )
        writer = rows.writeStream.foreachBatch(deliver).option("checkpointLocation", str(folder))
        how: dict[str, Any] = {"availableNow": True}
        if only_planned:
            # A batch that is planned already is run as it is, and no other one behind it.
            how = {"once": True}
        elif follow:
            how = {"processingTime": f"{int((trigger_seconds or 0) * 1000)} milliseconds"}
        trigger = writer.trigger(**how)
        with set_for_a_while(spark, _query_settings(workload)):
            return trigger.start()

    def is_at_end() -> bool:
        return follow and is_finished is not None and is_finished()

    def is_committed() -> bool:
        # What was delivered but not committed will be run again, and must have the same answers then.
        return last_commit(folder) >= delivery.delivered

    def may_change() -> bool:
        return changes.is_requested and is_committed()

    def misses_answers() -> bool:
        """Whether an iterator was opened for answers that stay on the workers."""
        return workers is not None and not workers.travels and delivery.takes_answers and is_committed()

    with ScratchFolder("run") as temporary:
        folder = checkpoint / SPARK_STATE if checkpoint is not None else temporary
        for ends in turns:
            while not stop.is_set():
                if not workload.description.queries:
                    begun = changes.wait_for_queries(workload, stop) if follow else None
                    if begun is None:
                        return
                    workload = begun
                _run_query(
                    partial(start, ends),
                    failures,
                    stop,
                    follow,
                    lambda: may_change() or is_at_end() or misses_answers(),
                    lambda: delivery.progress.batches,
                )
                # The query may have been stopped for the same reason before the batch failed.
                failures[:] = [one for one in failures if not isinstance(one, _AnswersWanted)]
                if may_change():
                    workload = changes.take() or workload
                elif is_at_end():
                    follow, ends = False, drain
                elif stop.is_set() or only_planned or not (changes.is_requested or misses_answers()):
                    break
        if failures:
            raise failures[0]


class _AnswersWanted(Exception):
    """Workers have written a batch whose answers somebody on the driver takes now: it is evaluated again."""


@contextmanager
def _outcomes_and_records(
    batch: DataFrame, workers: WorkerDelivery | None
) -> Iterator[tuple[DataFrame, Callable[[int], DataFrame]]]:
    """What the driver collects of a batch, and what Spark is to write to a sink.

    A second action would run the stateful step a second time, so a batch with records is kept until they are written.
    """
    from headwater.spark.stateful_step import RECORD

    def records_of(sink: int) -> DataFrame:
        mine = batch.where(f"kind = '{RECORD}' and sink = {sink}")
        return mine.selectExpr("query", "key", "payload as value", "headers")

    if workers is None or not workers.has_records:
        yield batch, records_of
        return
    batch.persist()
    try:
        yield batch.where(f"kind != '{RECORD}'"), records_of
    finally:
        batch.unpersist()


def read_planned_offset(checkpoint: Path, batch: int) -> Offset | None:
    """How far a batch reads, as Spark wrote it down before the batch; None where that is not there."""
    try:
        # Our source is the first.
        return Offset.from_json(json.loads(read_source_lines(checkpoint, batch)[0]))
    except (CheckpointError, ValueError, LookupError, TypeError):
        return None


def has_planned_batch(checkpoint: Path) -> bool:
    """Whether a batch was planned in a checkpoint, and maybe delivered, and is not committed."""
    return last_planned(checkpoint / SPARK_STATE) > last_commit(checkpoint / SPARK_STATE)


def _run_query(
    start: Callable[[], StreamingQuery],
    failures: list[BaseException],
    stop: Event,
    follow: bool,
    may_change: Callable[[], bool] = lambda: False,
    delivered: Callable[[], int] = lambda: 0,
) -> None:
    """Run a query to its end or to a change, and start it again from its checkpoint after a failure that may pass.

    `delivered` gives how many batches were delivered: after another one, the attempts are counted anew.
    """
    outages = BackOff()
    attempts, before = 0, delivered()
    while True:
        query = start()
        try:
            _wait(query, stop, may_change)
            break
        except Exception as error:
            cause = failures.pop() if failures else None
            if isinstance(cause, _AnswersWanted):
                break
            if follow and is_outage(cause or error):
                if outages.wait(stop):
                    continue
                if stop.is_set():
                    return
            if cause is not None:
                raise cause from None
            attempts, before = (attempts if delivered() == before else 0) + 1, delivered()
            if attempts == _ATTEMPTS or not any(message in str(error) for message in _RETRYABLE_ERRORS):
                raise to_run_error(error) from error
            logger.warning("%s; trying again from the last batch", to_run_error(error))
        finally:
            query.stop()


def _query_settings(workload: Workload) -> dict[str, str]:
    """What the streaming query of a workload takes at its start."""
    sharding = workload.description.sharding
    adapts = any(isinstance(source, RecordSource) and source.has_own_plan for source in workload.sources.values())
    return query_settings(1 if sharding is None else len(sharding.keys), adapts=adapts)


def _wait(query: StreamingQuery, stop: Event, may_change: Callable[[], bool]) -> None:
    while query.isActive:
        if stop.wait(_POLL_SECONDS) or may_change():
            _wait_for_batch(query)
            return
    query.awaitTermination()


def _is_at_work(query: StreamingQuery) -> bool:
    """Whether a batch is being evaluated, and not only planned."""
    status = query.status
    return bool(status["isTriggerActive"] and status["isDataAvailable"])


def _wait_for_batch(query: StreamingQuery) -> None:
    """Let the batch at work be committed, so that a later run does not deliver it again."""
    end = time.monotonic() + _LAST_BATCH_SECONDS
    while time.monotonic() < end and query.isActive and _is_at_work(query):
        time.sleep(_POLL_SECONDS / 10)
