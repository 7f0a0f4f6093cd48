"""The answers of one query as a streaming DataFrame of plain columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from headwater.algebra.column_types import ColumnType, column_types
from headwater.algebra.plan import QueryPlan
from headwater.execution.answer_bytes import unpack_answers
from headwater.execution.arrow_tables import PART_COLUMN, TIME_COLUMN, answers_to_table, table_columns_of
from headwater.execution.typed_cells import arrow_type, choose_types, spark_type

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


def answers_to_rows(
    outcome_rows: DataFrame, plan: QueryPlan, *, terms: bool = False, schema: Mapping[str, Any] | None = None
) -> DataFrame:
    """One row per row of an answer, or per triple: its time, and the columns of the query.

    Columns have the types that the query or `schema` says; of others a literal is its text without type or language,
    and an IRI is itself. With `terms` all are in N-Triples syntax.
    """
    import pyarrow as pa
    from pyspark.sql.functions import col

    from headwater.execution.answer_batch import AnswerBatch
    from headwater.spark.stateful_step import ANSWER

    names = table_columns_of(plan)
    types = (None,) * len(names) if terms else choose_types(names, column_types(plan), schema)
    arrow_types = [arrow_type(wanted or ColumnType.STRING) for wanted in types]
    form = pa.schema([(TIME_COLUMN, pa.timestamp("us", tz="UTC")), *zip(names, arrow_types, strict=True)])

    def expand(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            answers = AnswerBatch()
            for payload in batch.column("payload").to_pylist():
                answers.append(unpack_answers(payload))
            if answers.row_count or any(one.boolean is not None for one in answers):
                table = answers_to_table(answers, terms=terms, numbers=False, types=types)
                yield from table.drop_columns([PART_COLUMN]).rename_columns(form.names).cast(form).to_batches()

    columns = [f"`{name}` {spark_type(wanted)}" for name, wanted in zip(names, types, strict=True)]
    fields = ", ".join(["time timestamp", *columns])
    mine = outcome_rows.where((col("kind") == ANSWER) & (col("query") == plan.name)).select("payload")
    return mine.mapInArrow(expand, fields)
