"""Answers and measures as plain values for tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headwater.execution.answers import Answer, plain_value
from headwater.explain.notation import Notation
from headwater.language.stream_clauses import Dialect
from headwater.server.page.page_access import PageAnswer, PageCell, PageTable
from headwater.terms.model import NamedNode, Term

MOST_ROWS = 500
"""How many rows of an answer the page gets."""
_LONGEST_TEXT = 300
_DIALECT_NAMES = {Dialect.CSPARQL: "C-SPARQL", Dialect.CQELS: "CQELS-QL", Dialect.RSPQL: "RSP-QL"}


def dialect_name(dialect: Dialect) -> str:
    """The name of a language as its papers write it."""
    return _DIALECT_NAMES[dialect]


def cell_of(term: Term | None, notation: Notation | None = None) -> PageCell:
    """A term for a table: numbers and truth values as they are, IRIs shortened, long texts cut."""
    if isinstance(term, NamedNode):
        return notation.iri(term) if notation is not None else f"<{term.value}>"
    value = plain_value(term)
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        return f"{value[:_LONGEST_TEXT]} …"
    if value is None or isinstance(value, bool | int | str):
        return value
    return float(value) if isinstance(value, float) else str(value)


def answer_to_page(answer: Answer, notation: Notation) -> PageAnswer:
    """An answer with the rows that the page shows."""
    columns, rows = (answer.table_columns(), ()) if answer.suspended is not None else answer.table()
    shown = tuple(tuple(cell_of(term, notation) for term in row) for row in rows[:MOST_ROWS])
    table = PageTable(columns, shown, max(0, len(rows) - MOST_ROWS))
    quality = None if answer.quality is None else answer.quality.as_json()
    remarks = describe_answer(answer.data_version, quality, answer.skipped)
    return PageAnswer("", answer.time, table, answer.operator.value, answer.complete, answer.suspended or "", remarks)


def describe_answer(
    version: Sequence[int] | None, quality: Mapping[str, Any] | None, skipped: int = 0
) -> tuple[str, ...]:
    """What else is known of an answer, in words."""
    found: list[str] = []
    if version:
        found.append(f"data at version {', '.join(map(str, version))}")
    if quality:
        found.append("SERVICE: " + ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in quality.items()))
    if skipped:
        found.append(f"{skipped:,} ticks before it were skipped")
    return tuple(found)


def joins_table(choices: Iterable[Mapping[str, Any]]) -> PageTable:
    """What the joins of a query chose: a row for each input, with its rows, its turns and its indexes."""
    rows: list[tuple[PageCell, ...]] = []
    for number, join in enumerate(choices, start=1):
        for one in join.get("inputs", ()):
            variables = " ".join(f"?{name}" for name in one["variables"])
            turns = ", ".join(f"{count:,}" for count in one["chosen"])
            indexes = ", ".join(
                f"{' '.join(f'?{name}' for name in index['variables'])} ({index['structure']})"
                for index in one["indexes"]
                if index["is_built"]
            )
            rows.append((number, variables, one["rows"], turns, indexes or "none"))
    return PageTable(("join", "input", "rows", "chosen as step 1, 2, …", "indexes"), tuple(rows))
