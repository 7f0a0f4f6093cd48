"""The runner on Spark: source → stateful step → delivery on the driver, batch by batch."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from headwater.pipeline.delivery import Delivery
from headwater.pipeline.evaluation import Definition
from headwater.pipeline.run_error import run_error
from headwater.pipeline.sharding import Merging
from headwater.pipeline.shared_files import shared
from headwater.pipeline.spans import Source
from headwater.pipeline.wanted import Wanted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_BATCH_BYTES = 8 << 20
_SMALLEST_PIECE = 256 << 10
_POLL_SECONDS = 0.2
_PATIENCE_SECONDS = 30.0
_ATTEMPTS = 4
_WORKER_TOO_SLOW = "failed to connect back"
"""Spark gives a Python process ten seconds to start; on a busy machine another try from the checkpoint goes through."""


def outcome_rows(
    spark: SparkSession,
    definition: Definition,
    sources: Mapping[str, Source],
    wanted: Wanted,
    *,
    drain: bool = True,
    batch_bytes: int | None = None,
) -> DataFrame:
    """The streaming DataFrame of what the stateful step gives (`stateful.OUTPUT_SCHEMA`)."""
    from headwater.pipeline.spark_source import FORMAT, HeadwaterSource, source_options
    from headwater.pipeline.stateful import OUTPUT_SCHEMA, EvaluationProcessor

    definition = replace(definition, static=shared(spark, definition.static))
    size = batch_bytes or _BATCH_BYTES
    piece = max(min(size, _SMALLEST_PIECE), size // spark.sparkContext.defaultParallelism)
    spark.dataSource.register(HeadwaterSource)
    options = source_options(sources, wanted, definition.sharding, drain=drain, batch_bytes=size, piece_bytes=piece)
    chunks = spark.readStream.format(FORMAT).options(**options).load()
    return chunks.groupBy("shard").transformWithStateInPandas(
        EvaluationProcessor(definition), OUTPUT_SCHEMA, "Append", "None"
    )


def run_on_spark(
    spark: SparkSession,
    definition: Definition,
    sources: Mapping[str, Source],
    wanted: Wanted,
    delivery: Delivery,
    stop: Event,
    *,
    follow: bool = False,
    drain: bool = True,
    checkpoint: Path | None = None,
    batch_bytes: int | None = None,
    trigger_seconds: float = 1.0,
) -> None:
    """Read, evaluate and deliver until everything is read or, when following, until `stop` is set."""
    failures: list[BaseException] = []
    merging = None if definition.sharding is None else Merging(definition.queries)
    rows = outcome_rows(spark, definition, sources, wanted, drain=drain and not follow, batch_bytes=batch_bytes)

    def deliver(batch: DataFrame, batch_id: int) -> None:
        from headwater.pipeline.stateful import rows_to_outcome

        # A second action would run the stateful step a second time.
        found: list[Any] = batch.collect()
        if not found:
            return
        try:
            delivery.deliver(batch_id, rows_to_outcome(found, merging))
        except BaseException as error:
            failures.append(error)
            raise

    with tempfile.TemporaryDirectory(prefix="headwater-", ignore_cleanup_errors=True) as temporary:
        folder = checkpoint / "spark" if checkpoint is not None else Path(temporary)
        writer = rows.writeStream.foreachBatch(deliver).option("checkpointLocation", str(folder))
        trigger = (
            writer.trigger(processingTime=f"{max(1, int(trigger_seconds * 1000))} milliseconds")
            if follow
            else writer.trigger(availableNow=True)
        )
        for attempt in range(1, _ATTEMPTS + 1):
            with _shuffled_into(spark, definition):
                query = trigger.start()
            try:
                _wait(query, stop)
                break
            except Exception as error:
                if failures:
                    raise failures[0] from None
                if attempt == _ATTEMPTS or _WORKER_TOO_SLOW not in str(error):
                    raise run_error(error) from error
            finally:
                query.stop()
    if failures:
        raise failures[0]


@contextmanager
def _shuffled_into(spark: SparkSession, definition: Definition) -> Iterator[None]:
    """A streaming query takes the number of partitions at its start: one for each shard."""
    name = "spark.sql.shuffle.partitions"
    before = spark.conf.get(name)
    spark.conf.set(name, str(1 if definition.sharding is None else len(definition.sharding.keys)))
    try:
        yield
    finally:
        if before is not None:
            spark.conf.set(name, before)


def _wait(query: StreamingQuery, stop: Event) -> None:
    while query.isActive:
        if stop.wait(_POLL_SECONDS):
            _wait_for_batch(query)
            return
    query.awaitTermination()


def _wait_for_batch(query: StreamingQuery) -> None:
    """Let the batch at work be committed, so that a later run does not deliver it again."""
    end = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < end and query.isActive and query.status["isTriggerActive"]:
        time.sleep(_POLL_SECONDS / 10)
