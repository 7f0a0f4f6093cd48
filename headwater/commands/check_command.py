"""`headwater check`: is a query right, how was it understood, and does it fit its data?"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import typer

from headwater.commands.ending import WRONG, WrongInput
from headwater.commands.option_values import (
    group_sources,
    locate_streams,
    parse_data_option,
    parse_template_option,
    sample_of_files,
    unread_streams,
)
from headwater.commands.query_files import QueryFile
from headwater.commands.query_summary import summarize_query
from headwater.language.stream_clauses import Dialect
from headwater.linting.lint_rules import lint_query
from headwater.linting.lint_subject import LintSubject
from headwater.linting.observed_data import NOTHING_OBSERVED, ObservedData
from headwater.terms.names import name_to_iri
from headwater.windows.settings import resolve_settings


@dataclass(frozen=True)
class CheckOptions:
    """What was typed: the language, and the data over which the queries would run."""

    dialect: Dialect | None = None
    data: Sequence[str] = ()
    streams: Sequence[str] = ()
    templates: Sequence[str] = ()


def check(paths: list[str], options: CheckOptions) -> None:
    """Says `ok` or what is wrong for each file, and warns of what is probably wrong; code 2 for wrong ones.

    Without `data` and `streams` the data may be any. With one of them static data is what `data` names, and streams
    that are not named may have any triple.
    """
    observed = _observe(options)
    wrong, plans = 0, []
    for path in paths:
        try:
            file = QueryFile.read(path)
            plan = file.plan(options.dialect)
        except WrongInput as error:
            wrong += 1
            print(error, file=sys.stderr)
        else:
            plans.append(plan)
            settings = resolve_settings(plan)
            print(f"ok: {file.shown}: {summarize_query(plan, settings)}")
            for sentence in lint_query(LintSubject(plan, settings, observed)):
                print(f"warning: {file.shown}: {sentence}", file=sys.stderr)
    for sentence in () if wrong else unread_streams(group_sources(options.streams), plans):
        print(f"warning: {sentence}", file=sys.stderr)
    if wrong:
        raise typer.Exit(WRONG)


def _observe(options: CheckOptions) -> ObservedData:
    """What is known of the data: all of the static data, and the first elements of the streams."""
    if not options.data and not options.streams:
        return NOTHING_OBSERVED
    from headwater.commands.settings_file import read_settings
    from headwater.datasets.remote_updates import RemoteAccess
    from headwater.engine.engine_data import EngineData

    loaded = EngineData(RemoteAccess(egress=read_settings().egress))
    for text in options.data:
        file, graph = parse_data_option(text)
        loaded.add(file, graph, None)
    sources = group_sources(options.streams)
    templates = dict(parse_template_option(text) for text in options.templates)
    locate_streams("--template", templates, sources)
    return loaded.observe(
        {name_to_iri(stream): sample_of_files(named, templates.get(stream)) for stream, named in sources.items()}
    )
