"""The count of the latency benchmark as somebody would write it by hand in Structured Streaming."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from headwater.sources.kafka_jars import ensure_kafka

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_FETCH_MS = "10"


def run_by_hand(spark: SparkSession, servers: str, topic: str, note: Callable[[int], None]) -> StreamingQuery:
    """Count the readings of a topic by sensor in sliding windows; `note` gets the number of each reading counted.

    A count is reported in the batch that changes it, which is sooner than when its window is complete.
    """
    from pyspark.sql import functions as f

    ensure_kafka(spark)
    options = {
        "kafka.bootstrap.servers": servers,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "kafka.fetch.max.wait.ms": _FETCH_MS,
    }
    records = spark.readStream.format("kafka").options(**options).load()
    rows = records.select(f.from_json(f.col("value").cast("string"), "id string, at long, v long").alias("row"))
    rows = rows.select("row.*").withColumn("at", f.timestamp_millis("at"))
    counted = (
        rows.withWatermark("at", "0 seconds")
        .groupBy(f.window("at", "10 seconds", "1 second"), "id")
        .agg(f.count("*").alias("n"), f.max("v").alias("newest"))
    )
    known = -1

    def take(batch: DataFrame, number: int) -> None:
        nonlocal known
        newest = max((row["newest"] for row in batch.collect()), default=known)
        for one in range(known + 1, newest + 1):
            note(one)
        known = max(known, newest)

    spark.conf.set("spark.sql.shuffle.partitions", "1")
    return counted.writeStream.outputMode("update").foreachBatch(take).trigger(processingTime="0 seconds").start()
