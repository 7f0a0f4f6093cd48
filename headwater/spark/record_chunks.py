"""The rows of a record source as chunks for the stateful step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headwater.sharding.shard_plan import ShardPlan
from headwater.sources.records import RecordReader, RecordSource
from headwater.terms.ids.term_key import ProcessKey

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class _ChunkPacker:
    """Packs the Arrow batches that a task reads into rows with chunks."""

    stream: str
    reader: RecordReader
    sharding: ShardPlan | None
    key: ProcessKey = field(default_factory=ProcessKey)
    """Goes with it to the workers."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from headwater.spark.spark_source import chunk_rows

        for chunk in self.reader.chunks(self.stream, batches):
            yield chunk_rows(chunk, self.sharding)


def record_chunks(spark: SparkSession, stream: str, source: RecordSource, sharding: ShardPlan | None) -> DataFrame:
    """The rows of a record source as the stateful step takes them."""
    from headwater.spark.spark_source import CHUNK_SCHEMA

    return source.records(spark).mapInArrow(_ChunkPacker(stream, source.reader(), sharding), CHUNK_SCHEMA)
