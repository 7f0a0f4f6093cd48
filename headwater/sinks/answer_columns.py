"""The columns of an answer in tables: Parquet files and streaming DataFrames."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from headwater.algebra.plan import QueryKind, QueryPlan

if TYPE_CHECKING:
    pass


_TIME = "time"


def columns_of(plan: QueryPlan) -> tuple[str, ...]:
    """The columns behind the time; a variable of the same name as an earlier column gets an underscore."""
    match plan.kind:
        case QueryKind.SELECT:
            wanted = tuple(variable.value for variable in plan.variables)
        case QueryKind.ASK:
            wanted = ("boolean",)
        case _:
            wanted = ("subject", "predicate", "object")
    return free_names(wanted, (_TIME,))


def free_names(wanted: Iterable[str], taken: Iterable[str]) -> tuple[str, ...]:
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
