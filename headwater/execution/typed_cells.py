"""Terms as cells of typed columns: what a schema may say, and how a term becomes a value of a type.

    read_schema({"speed": "double", "seen": datetime}, ("car", "speed", "seen"))

A value that does not fit its column is null there. That is logged once for each column, with the first such value.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from math import isfinite
from typing import TYPE_CHECKING, Any

from headwater.algebra.column_types import ColumnType
from headwater.errors import SettingError
from headwater.terms.model import Literal, NamedNode, Term
from headwater.terms.timestamps import parse_time

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

logger = logging.getLogger(__name__)

ColumnTypes = tuple[ColumnType | None, ...]
_NAMES: dict[object, ColumnType] = {
    **dict.fromkeys(("integer", "int", "long", "bigint", "int64", int), ColumnType.INTEGER),
    **dict.fromkeys(("double", "float", "decimal", "float64", float), ColumnType.DOUBLE),
    **dict.fromkeys(("boolean", "bool", bool), ColumnType.BOOLEAN),
    **dict.fromkeys(("timestamp", "datetime", datetime), ColumnType.TIMESTAMP),
    **dict.fromkeys(("string", "text", "str", str), ColumnType.STRING),
}
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_LARGEST = 1 << 63
_told: set[str] = set()


def read_schema(schema: Mapping[str, Any] | None, columns: Sequence[str]) -> dict[str, ColumnType]:
    """What was said of columns; a `SettingError` for a type or a column that there is not."""
    found: dict[str, ColumnType] = {}
    if schema is not None and not isinstance(schema, Mapping):
        raise SettingError(f"schema must be a mapping such as {{'speed': 'double'}}, and it is {schema!r}")
    for column, wanted in (schema or {}).items():
        if column not in columns:
            raise SettingError(f"schema names the column {column!r}; the columns are {', '.join(columns) or 'none'}")
        try:
            found[column] = _NAMES[wanted.lower() if isinstance(wanted, str) else wanted]
        except (KeyError, TypeError):
            names = ", ".join(ColumnType)
            raise SettingError(f"schema gives the column {column!r} the type {wanted!r}: use one of {names}") from None
    return found


def choose_types(
    columns: Sequence[str], known: ColumnTypes | None, schema: Mapping[str, Any] | None, others: Sequence[str] = ()
) -> ColumnTypes:
    """The type of each column: what the schema says, else what is known of the query. `others` may be named, too."""
    said = read_schema(schema, (*columns, *others))
    usual = known if known is not None and len(known) == len(columns) else (None,) * len(columns)
    return tuple(said.get(column, usual[place]) for place, column in enumerate(columns))


def arrow_type(wanted: ColumnType) -> pa.DataType:
    """The type of Arrow for a column."""
    import pyarrow as pa

    return {
        ColumnType.INTEGER: pa.int64(),
        ColumnType.DOUBLE: pa.float64(),
        ColumnType.BOOLEAN: pa.bool_(),
        ColumnType.TIMESTAMP: pa.timestamp("us", tz="UTC"),
        ColumnType.STRING: pa.string(),
    }[wanted]


def spark_type(wanted: ColumnType | None) -> str:
    """The name of Spark's type for a column; text where nothing is known."""
    names = {ColumnType.INTEGER: "bigint", ColumnType.TIMESTAMP: "timestamp", ColumnType.DOUBLE: "double"}
    return "boolean" if wanted is ColumnType.BOOLEAN else names.get(wanted, "string") if wanted else "string"


def typed_values(terms: Iterable[Term | None], wanted: ColumnType, column: str) -> list[Any]:
    """The values of terms in a column of a type, instants in microseconds; None for what is unbound or does not fit."""
    values: list[Any] = []
    for term in terms:
        value = None if term is None else _value_of(term, wanted)
        if value is None and term is not None and column not in _told:
            _told.add(column)
            logger.warning("the column %s holds %s, which is no %s: such values are null there", column, term, wanted)
        values.append(value)
    return values


def _value_of(term: Term, wanted: ColumnType) -> Any:
    if not isinstance(term, Literal):
        return None
    text = term.value.strip()
    try:
        if wanted is ColumnType.BOOLEAN:
            return _BOOLEANS.get(text)
        if wanted is ColumnType.TIMESTAMP:
            return parse_time(term)
        if wanted is ColumnType.DOUBLE:
            return float(text)
        try:
            number = int(text)
        except ValueError:
            real = float(text)
            if not isfinite(real) or real != int(real):
                return None
            number = int(real)
        return number if -_LARGEST <= number < _LARGEST else None
    except ValueError:
        return None


def plain_text(term: Term | None) -> str | None:
    """The IRI of an IRI, the text of a literal without its type, `_:label` of a blank node; None stays None."""
    if term is None:
        return None
    return term.value if isinstance(term, NamedNode | Literal) else str(term)


def typed_series(terms: Sequence[Term | None], wanted: ColumnType, column: str) -> pd.Series[Any]:
    """Terms as a column of pandas; integers and booleans have other types there where some are unbound."""
    import pandas as pd

    if wanted is ColumnType.STRING:
        return pd.Series(list(map(plain_text, terms)), dtype=object)
    values = typed_values(terms, wanted, column)
    if wanted is ColumnType.TIMESTAMP:
        return pd.Series(pd.to_datetime(values, unit="us", utc=True))
    has_gaps = any(value is None for value in values)
    names = {ColumnType.INTEGER: ("int64", "Int64"), ColumnType.BOOLEAN: ("bool", "boolean")}
    return pd.Series(values, dtype=names[wanted][has_gaps] if wanted in names else "float64")
