"""The answers of a query as a streaming DataFrame of Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headwater.engine.stream_sources import StreamSources
from headwater.errors import StateError
from headwater.running.program_description import ProgramDescription
from headwater.sources.feed import Feed
from headwater.sources.receivers import check_readable_as_frames
from headwater.sources.records import RecordSource, skews_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def check_dataframe(*, in_process: bool, has_checkpoint: bool) -> None:
    """Raise a `StateError` where an engine can make no DataFrame, or would ignore what it was told."""
    if in_process:
        raise StateError("a streaming DataFrame needs Spark: make the engine without in_process")
    if has_checkpoint:
        raise StateError(
            "a streaming DataFrame has its own checkpoint, that of writeStream: make the engine without checkpoint=, "
            "and write the DataFrame with .option('checkpointLocation', folder)"
        )


def make_dataframe(
    spark: SparkSession,
    description: ProgramDescription,
    streams: StreamSources,
    name: str,
    *,
    terms: bool = False,
    schema: Mapping[str, Any] | None = None,
    follow: bool = False,
    batch_bytes: int | None = None,
) -> DataFrame:
    """The rows of the answers of one query as they come; with `follow`, sources may have nothing to read yet."""
    from headwater.spark.answer_frames import answers_to_rows
    from headwater.spark.session import configure_session
    from headwater.spark.spark_runner import outcome_rows
    from headwater.spark.spark_settings import dataframe_settings

    outline = description.outline()
    sources = check_readable_as_frames({stream: streams[stream] for stream in outline.inputs})
    if not follow:
        Feed(sources).check()
    description = replace(description, skews=skews_of(sources))
    # The streams of record sources end with the DataFrame, not with the records that are there now.
    drain = not any(isinstance(source, RecordSource) for source in sources.values())
    rows = outcome_rows(
        configure_session(spark, dataframe_settings()),
        description,
        sources,
        outline.wanted_patterns,
        drain=drain,
        batch_bytes=batch_bytes,
        live=frozenset(stream for stream, _ in description.idle if follow and stream in sources),
    )
    plan = next(query.plan for query in description.queries if query.plan.name == name)
    return answers_to_rows(rows, plan, terms=terms, schema=schema)
