"""`headwater check`: is a query right, and how was it understood?"""

from __future__ import annotations

import sys

import typer

from headwater.commands.ending import WRONG, WrongInput
from headwater.commands.query_files import QueryFile
from headwater.commands.query_summary import summarize_query
from headwater.language.stream_clauses import Dialect
from headwater.windows.settings import resolve_settings


def check(paths: list[str], dialect: Dialect | None) -> None:
    """Says `ok` or what is wrong for each file; ends with code 2 when one is wrong."""
    wrong = 0
    for path in paths:
        try:
            file = QueryFile.read(path)
            plan = file.plan(dialect)
        except WrongInput as error:
            wrong += 1
            print(error, file=sys.stderr)
        else:
            print(f"ok: {file.shown}: {summarize_query(plan, resolve_settings(plan))}")
    if wrong:
        raise typer.Exit(WRONG)
