"""The columns of an answer in tables: Parquet files and streaming DataFrames."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.execution.answers import plain_text
from headwater.terms.model import Term

TIME_COLUMN = "time"


def columns_of(plan: QueryPlan) -> tuple[str, ...]:
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


def cell_text(*, terms: bool) -> Callable[[Term | None], str | None]:
    """How a term becomes a cell: with `terms` in N-Triples syntax, otherwise as IRI or text of a literal."""
    return _term_text if terms else plain_text


def _term_text(term: Term | None) -> str | None:
    return None if term is None else str(term)
