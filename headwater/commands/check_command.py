"""`headwater check`: is a query right, and how was it understood?"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer

from headwater.commands.ending import WRONG, WrongInput
from headwater.commands.option_values import parse_data_option
from headwater.commands.query_files import QueryFile
from headwater.commands.query_summary import summarize_query
from headwater.explain.unmatchable_patterns import LoadedGraphs, find_unmatchable_patterns
from headwater.language.stream_clauses import Dialect
from headwater.windows.settings import resolve_settings


def check(paths: list[str], dialect: Dialect | None, data: Sequence[str] = ()) -> None:
    """Says `ok` or what is wrong for each file, and warns of patterns that nothing can match; code 2 for wrong ones.

    `data` is the static data over which the queries would run; without it, it may be any.
    """
    loaded = _read_graphs(data) if data else None
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
            for sentence in find_unmatchable_patterns(plan, loaded):
                print(f"warning: {file.shown}: {sentence}", file=sys.stderr)
    if wrong:
        raise typer.Exit(WRONG)


def _read_graphs(data: Sequence[str]) -> LoadedGraphs:
    from headwater.commands.settings_file import read_settings
    from headwater.datasets.remote_updates import RemoteAccess
    from headwater.engine.engine_data import EngineData

    loaded = EngineData(RemoteAccess(egress=read_settings().egress))
    for text in data:
        file, graph = parse_data_option(text)
        loaded.add(file, graph, None)
    return loaded.loaded_graphs()
