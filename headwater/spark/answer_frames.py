"""The answers of one query as a streaming DataFrame of plain columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headwater.algebra.plan import QueryPlan
from headwater.sinks.answer_columns import TIME_COLUMN, cell_text, columns_of
from headwater.terms.packing import unpack

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


def answers_to_rows(outcome_rows: DataFrame, plan: QueryPlan, *, terms: bool = False) -> DataFrame:
    """One row per row of an answer, or per triple: its time, and a string for each column.

    A literal is its text without type or language, an IRI is itself; with `terms`, each is in N-Triples syntax.
    """
    import pyarrow as pa
    from pyspark.sql.functions import col

    from headwater.sharding.encoded_answers import decode_answers
    from headwater.spark.stateful_step import ANSWER

    names = columns_of(plan)
    schema = pa.schema([(TIME_COLUMN, pa.timestamp("us", tz="UTC")), *((name, pa.string()) for name in names)])
    text = cell_text(terms=terms)

    def expand(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            times: list[int] = []
            cells: list[list[str | None]] = [[] for _ in names]
            for answer in decode_answers([unpack(payload) for payload in batch.column("payload").to_pylist()]):
                for row in answer.table()[1]:
                    times.append(answer.time)
                    for column, term in zip(cells, row, strict=True):
                        column.append(text(term))
            columns = [pa.array(times, schema[0].type), *(pa.array(column, pa.string()) for column in cells)]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    fields = ", ".join(["time timestamp", *(f"`{name}` string" for name in names)])
    mine = outcome_rows.where((col("kind") == ANSWER) & (col("query") == plan.name)).select("payload")
    return mine.mapInArrow(expand, fields)
