"""The answers of one query as a streaming DataFrame of plain columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headwater.algebra.plan import QueryPlan
from headwater.execution.answer_bytes import unpack_answers
from headwater.execution.arrow_tables import PART_COLUMN, TIME_COLUMN, answers_to_table, table_columns_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


def answers_to_rows(outcome_rows: DataFrame, plan: QueryPlan, *, terms: bool = False) -> DataFrame:
    """One row per row of an answer, or per triple: its time, and a string for each column.

    A literal is its text without type or language, an IRI is itself; with `terms`, each is in N-Triples syntax.
    """
    import pyarrow as pa
    from pyspark.sql.functions import col

    from headwater.execution.answer_batch import AnswerBatch
    from headwater.spark.stateful_step import ANSWER

    names = table_columns_of(plan)
    schema = pa.schema([(TIME_COLUMN, pa.timestamp("us", tz="UTC")), *((name, pa.string()) for name in names)])

    def expand(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            answers = AnswerBatch()
            for payload in batch.column("payload").to_pylist():
                answers.append(unpack_answers(payload))
            if answers.row_count or any(one.boolean is not None for one in answers):
                table = answers_to_table(answers, terms=terms, numbers=False).drop_columns([PART_COLUMN])
                yield from table.rename_columns(schema.names).cast(schema).to_batches()

    fields = ", ".join(["time timestamp", *(f"`{name}` string" for name in names)])
    mine = outcome_rows.where((col("kind") == ANSWER) & (col("query") == plan.name)).select("payload")
    return mine.mapInArrow(expand, fields)
