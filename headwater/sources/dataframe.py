"""Any streaming DataFrame as a stream: a template says which triples a row means.

    rates = spark.readStream.format("rate").load()
    dataframe(rates, template="rate.template", time="timestamp")

A template uses the columns by their names, `{a.b}` for a field of a struct. Rows of one batch are taken in the order of
their times, because Spark promises no other. A batch that is run again after a failure gives the same elements if the
DataFrame gives the same rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.errors import SettingError
from headwater.sources.feed import Chunk
from headwater.sources.payloads import TIME_CELL, Decoder, PayloadFormat, ReceivedMessage
from headwater.sources.records import RecordReader, RecordSource, chunk_of
from headwater.sources.source import SourceError
from headwater.terms.model import BadElement, Element
from headwater.terms.template import RowTemplate
from headwater.terms.template_time import ROW_NUMBER

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

_INSTANT = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
_BATCH_PROPERTY = "streaming.sql.batchId"
_NAME = "dataframe"


class DataFrameSource(RecordSource):
    """A streaming DataFrame and its template; `dataframe(…)` makes one."""

    has_own_plan = True

    def __init__(self, frame: DataFrame, decoder: Decoder, time: str | None) -> None:
        self._frame = frame
        self._decoder = decoder
        self._time = time

    def check(self) -> None:
        if not self._frame.isStreaming:
            raise SourceError("the DataFrame is not a streaming one: make it with spark.readStream")

    def records(self, spark: SparkSession) -> DataFrame:
        from pyspark.sql.functions import col, lit, unix_micros

        self.check()
        # Numbered, because a name with a dot would be taken for a field.
        columns: list[Column] = [
            _text_column(self._frame, name).alias(f"c{i}") for i, name in enumerate(self._used_columns())
        ]
        time = lit(None).cast("long") if self._time is None else unix_micros(col(self._time).cast("timestamp"))
        return self._frame.select(*columns, time.alias(TIME_CELL))

    def _used_columns(self) -> list[str]:
        template = self._decoder.template
        return sorted((template.used_columns if template else frozenset()) - {TIME_CELL, ROW_NUMBER})

    def reader(self) -> RecordReader:
        return RowReader(self._decoder, tuple(self._used_columns()), needs_time=self._time is not None)


def _text_column(frame: DataFrame, name: str) -> Column:
    """A column as the text that a template takes; a time with its zone, because a session may have any."""
    from pyspark.sql.functions import col, date_format
    from pyspark.sql.types import TimestampType

    try:
        kind = frame.select(col(name)).schema[0].dataType
    except Exception as error:
        raise SourceError(
            f"the template uses the column {name!r}, which the DataFrame does not have "
            f"(its columns: {', '.join(frame.columns)})"
        ) from error
    return date_format(col(name), _INSTANT) if isinstance(kind, TimestampType) else col(name).cast("string")


@dataclass(frozen=True, slots=True)
class RowReader:
    """Makes chunks of rows of text cells."""

    decoder: Decoder
    names: tuple[str, ...]
    needs_time: bool

    def chunks(self, stream: str, batches: Iterator[pa.RecordBatch]) -> Iterator[Chunk]:
        batch_id, task = _batch_and_task()
        row = 0
        for batch in batches:
            elements: list[Element | BadElement] = []
            for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                one = self._decode_row(values, f"{_NAME} batch {batch_id}", (task, row))
                row += 1
                if isinstance(one, Element):
                    # By time, because Spark gives the rows of a batch in any order.
                    one = replace(one, position=(0, one.time, task, row))
                if one is not None:
                    elements.append(one)
            yield chunk_of(stream, 0, _NAME, elements)

    def _decode_row(
        self, values: tuple[Any, ...], source: str, task_and_row: tuple[int, int]
    ) -> Element | BadElement | None:
        *texts, time = values
        cells = dict(zip(self.names, texts, strict=True))
        message = ReceivedMessage(None, time or 0, source, (0, *task_and_row), {})
        try:
            if self.needs_time and time is None:
                raise ValueError("no time: the column that gives it is empty")
            return self.decoder.element({name: text or "" for name, text in cells.items()}, message)
        except ValueError as error:
            return BadElement(str(error), json.dumps(cells, ensure_ascii=False), _NAME, message.position)


def _batch_and_task() -> tuple[str, int]:
    """The ids of the batch and of the task, which together with the row index identify a row."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        return "", 0
    return context.getLocalProperty(_BATCH_PROPERTY) or "", context.partitionId()


def dataframe(frame: DataFrame, *, template: RowTemplate | str | Path, time: str | None = None) -> DataFrameSource:
    """A stream in a streaming DataFrame; it needs Spark.

    `template` says which triples a row means: compiled, a path, or its text. `time` is the column with the time of a
    row; without it the template has a line `@time`.
    """
    if not hasattr(frame, "isStreaming"):
        raise SettingError(f"{frame!r} is no DataFrame: make a streaming one with spark.readStream")
    if time is not None and time not in frame.columns:
        raise SettingError(f"the DataFrame has no column {time!r} (its columns: {', '.join(frame.columns)})")
    decoder = Decoder.of(PayloadFormat.JSON, template=template, time=None if time is None else "record")
    if decoder.template is not None and decoder.template.lists:
        raise SettingError(
            "the template says @each, which is for JSON rows: explode the column of the DataFrame instead"
        )
    if time is None and decoder.template is not None and TIME_CELL in decoder.template.used_columns:
        raise SettingError("the rows have no time: say time='column', or give the template a line @time {column}")
    return DataFrameSource(frame, decoder, time)
