"""Answers as Arrow tables: a row for each row of an answer, behind its time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from headwater.algebra.column_types import ColumnType
from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.execution.answer_columns import AnswerColumns
from headwater.execution.answers import Answer, plain_value
from headwater.execution.text_arrays import ids_to_texts
from headwater.execution.typed_cells import ColumnTypes, arrow_type, choose_types, plain_text, typed_values
from headwater.terms.ids.distinct_ids import DistinctIds
from headwater.terms.ids.number_columns import decode_numbers
from headwater.terms.ids.term_texts import Ints
from headwater.terms.model import Row, Term

if TYPE_CHECKING:
    import pyarrow as pa

    from headwater.execution.answer_batch import AnswerBatch, AnswerPart

TIME_COLUMN, PART_COLUMN = "time", "part"


def table_columns_of(plan: QueryPlan) -> tuple[str, ...]:
    """The columns behind the time; a variable of the same name as an earlier column gets an underscore."""
    match plan.kind:
        case QueryKind.SELECT:
            wanted = tuple(variable.value for variable in plan.variables)
        case QueryKind.ASK:
            wanted = ("boolean",)
        case _:
            wanted = ("subject", "predicate", "object")
    return distinct_names(wanted, (TIME_COLUMN,))


def distinct_names(wanted: Iterable[str], taken: Iterable[str]) -> tuple[str, ...]:
    """Column names that differ from those taken and from each other, by underscores where they must."""
    # Spark takes names that differ in case only for the same.
    known = {name.lower() for name in taken}
    columns: list[str] = []
    for name in wanted:
        while name.lower() in known:
            name += "_"
        known.add(name.lower())
        columns.append(name)
    return tuple(columns)


CellText = Callable[[Term | None], str | None]
"""How a term becomes a cell."""


def cell_text(*, terms: bool) -> CellText:
    """How a term becomes a cell: with `terms` in N-Triples syntax, otherwise as IRI or text of a literal."""
    return _term_text if terms else plain_text


def _term_text(term: Term | None) -> str | None:
    return None if term is None else str(term)


def answers_to_table(
    answers: AnswerBatch, *, terms: bool = False, numbers: bool = True, types: ColumnTypes | None = None
) -> pa.Table:
    """The rows of the answers of one query.

    Columns have these `types`; those of which nothing is known are text or, with `numbers`, have the type of their
    values where these are numbers or booleans. With `terms` all are text.
    """
    import pyarrow as pa

    if not len(answers):
        return pa.table(
            {TIME_COLUMN: pa.array([], pa.timestamp("us", tz="UTC")), PART_COLUMN: pa.array([], pa.int32())}
        )
    first = answers.parts[0]
    head = first.head if isinstance(first, AnswerColumns) else first[0]
    names = distinct_names(head.table_columns(), (TIME_COLUMN, PART_COLUMN))
    has_types = numbers and not terms
    known = (None,) * len(names) if terms else choose_types(names, types or head.types, None)
    tables = [_part_to_table(part, names, known, terms=terms, has_types=has_types) for part in answers.parts]
    tables = [_with_doubles(table, _columns_of(tables, {pa.int64(), pa.float64()})) for table in tables]
    mixed = _columns_of(tables)
    if mixed:
        texts = [_part_to_table(part, names, known, terms=False, has_types=False) for part in answers.parts]
        for place in mixed:
            tables = [
                table.set_column(place, table.schema.names[place], text.column(place))
                for table, text in zip(tables, texts, strict=True)
            ]
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables)


def _part_to_table(
    part: AnswerPart, names: tuple[str, ...], types: ColumnTypes, *, terms: bool, has_types: bool
) -> pa.Table:
    import pyarrow as pa

    text = cell_text(terms=terms)

    if isinstance(part, AnswerColumns):
        times, parts = part.row_times, np.full(part.row_count, part.head.part)
        columns = [
            _ids_to_array(part, part.rows.ids[:, place], text, has_types=has_types and types[place] is None)
            if (wanted := types[place]) is None or wanted is ColumnType.STRING
            else _ids_to_typed_array(part, part.rows.ids[:, place], wanted, name)
            for place, name in enumerate(names)
        ]
    else:
        rows = [(answer, row) for answer in part for row in answer.table()[1]]
        times = np.array([answer.time for answer, _ in rows], dtype=np.int64)
        parts = np.array([answer.part for answer, _ in rows], dtype=np.int64)
        columns = [
            _terms_to_array(rows, place, text, has_types=has_types and types[place] is None)
            if (wanted := types[place]) is None or wanted is ColumnType.STRING
            else pa.array(typed_values((row[place] for _, row in rows), wanted, name), arrow_type(wanted))
            for place, name in enumerate(names)
        ]
    return pa.table(
        {
            TIME_COLUMN: pa.array(times, pa.timestamp("us", tz="UTC")),
            PART_COLUMN: pa.array(parts, pa.int32()),
            **dict(zip(names, columns, strict=True)),
        }
    )


def _ids_to_array(part: AnswerColumns, ids: Ints, text: CellText, *, has_types: bool) -> pa.Array:
    """A column of ids; each different text is made once."""
    import pyarrow as pa

    values = decode_numbers(np.ascontiguousarray(ids)) if has_types else None
    if values is not None:
        return pa.array(values, mask=part.is_unbound(ids))
    if text is plain_text:
        return ids_to_texts(ids, part.rows.texts, lambda term_id: plain_text(part.term_of(term_id)))
    distinct = DistinctIds(ids)
    texts = pa.array([text(part.term_of(term_id)) for term_id in distinct.ids.tolist()], pa.string())
    return texts.take(pa.array(distinct.places))


def _ids_to_typed_array(part: AnswerColumns, ids: Ints, wanted: ColumnType, name: str) -> pa.Array:
    """A column of ids as values of a type; numbers need no terms."""
    import pyarrow as pa

    values = decode_numbers(np.ascontiguousarray(ids)) if wanted is not ColumnType.TIMESTAMP else None
    if values is not None:
        kind = values.dtype.kind
        if kind == {ColumnType.INTEGER: "i", ColumnType.BOOLEAN: "b"}.get(wanted, "f") or (
            wanted is ColumnType.DOUBLE and kind == "i"
        ):
            return pa.array(values, arrow_type(wanted), mask=part.is_unbound(ids))
    distinct = DistinctIds(ids)
    found = typed_values(map(part.term_of, distinct.ids.tolist()), wanted, name)
    indexed = pa.DictionaryArray.from_arrays(pa.array(distinct.places), pa.array(found, arrow_type(wanted)))
    return indexed.dictionary_decode()


def _terms_to_array(rows: list[tuple[Answer, Row]], place: int, text: CellText, *, has_types: bool) -> pa.Array:
    import pyarrow as pa

    if has_types:
        values = [plain_value(row[place]) for _, row in rows]
        kinds = {type(value) for value in values if value is not None}
        if kinds and kinds <= {int, float}:
            try:
                return pa.array(values, pa.int64() if kinds == {int} else pa.float64())
            except (OverflowError, pa.ArrowInvalid):
                pass
        elif kinds == {bool}:
            return pa.array(values, pa.bool_())
    return pa.array([text(row[place]) for _, row in rows], pa.string())


def _columns_of(tables: list[pa.Table], types: set[pa.DataType] | None = None) -> list[int]:
    """The columns that have these types in some tables; without types, those that have several."""
    found = [{table.schema.field(place).type for table in tables} for place in range(tables[0].num_columns)]
    return [place for place, kinds in enumerate(found) if (len(kinds) > 1 if types is None else kinds == types)]


def _with_doubles(table: pa.Table, places: list[int]) -> pa.Table:
    """The table with some columns as doubles, where that loses nothing."""
    import pyarrow as pa

    for place in places:
        with suppress(pa.ArrowInvalid):
            column = table.column(place).cast(pa.float64())
            table = table.set_column(place, table.schema.names[place], column)
    return table
