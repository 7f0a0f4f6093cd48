"""What can be said of a query before it is registered, and of the plan of one that is."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from headwater.algebra.build import plan_query
from headwater.algebra.plan import QueryPlan
from headwater.engine.query_handle import Query
from headwater.engine.registering import parse_choice
from headwater.explain.notation import Notation
from headwater.language.errors import QueryError
from headwater.language.parser import parse
from headwater.language.stream_clauses import Dialect
from headwater.linting.lint_rules import lint_query
from headwater.linting.lint_subject import LintSubject
from headwater.linting.unknown_functions import refuse_unknown_functions
from headwater.server.process.call_errors import query_error_places
from headwater.server.process.registry import QueryEntry
from headwater.server.process.shown_windows import window_graph_names
from headwater.terms.names import iri_to_name, name_to_iri
from headwater.windows.settings import QuerySettings, resolve_settings


def check_text(text: str, dialect: str | None, streams: Collection[str]) -> dict[str, Any]:
    """Whether a text is a query; where it is wrong, or what it reads, and what is probably wrong with it."""
    known = {name_to_iri(name).value for name in streams}
    try:
        parsed = parse(text, parse_choice(Dialect, dialect, "dialect"))
        name = parsed.registration.name if parsed.registration else "query"
        plan = plan_query(parsed, name=name, streams=sorted(known))
        refuse_unknown_functions(plan)
        settings = resolve_settings(plan)
    except QueryError as error:
        return {"valid": False, "errors": query_error_places(error), "warnings": []}
    read = dict.fromkeys(window.stream.value for window in plan.windows)
    return {
        "valid": True,
        "errors": [],
        "warnings": list(lint_query(LintSubject(plan, settings))),
        "unknown_streams": [iri_to_name(one) for one in read if one not in known],
        **outline(plan, settings),
    }


def outline(plan: QueryPlan, settings: QuerySettings) -> dict[str, Any]:
    """What a query is: its language and form, what it gives, and the windows that it reads."""
    notation = Notation.of(plan)
    return {
        "name": plan.name,
        "dialect": plan.dialect.value,
        "form": plan.kind.value,
        "variables": [variable.value for variable in plan.variables],
        "windows": [
            {
                "stream": iri_to_name(source.stream.value),
                "label": iri_to_name(source.label),
                "window": notation.window(source.spec),
            }
            for source in plan.windows
        ],
        "report": settings.report.value,
        "emit": settings.emit.value,
        "content": settings.content.value,
        "bounds": settings.bounds.value,
    }


def describe_plan(query: Query, entry: QueryEntry) -> dict[str, Any]:
    """A registered query and its plan; of each window it says under which name `/sparql` shows it."""
    found = outline(query.plan, query.settings)
    for window, graph in zip(found["windows"], window_graph_names(query.plan), strict=True):
        window["graph"] = graph.value
    return {
        **found,
        "text": entry.text,
        "plan": query.explain().splitlines(),
        "mermaid": query.explain(format="mermaid"),
    }
