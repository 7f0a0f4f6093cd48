"""A query in one line: its dialect, its form, the windows it reads, when it is evaluated and what it emits."""

from __future__ import annotations

from headwater.algebra.plan import QueryPlan
from headwater.explain.notation import Notation, duration_text
from headwater.language.stream_clauses import Dialect, RegistrationKind
from headwater.terms.names import iri_to_name
from headwater.windows.settings import QuerySettings, Report

DIALECT_NAMES = {Dialect.CSPARQL: "C-SPARQL", Dialect.CQELS: "CQELS-QL", Dialect.RSPQL: "RSP-QL"}

_WHEN = {
    Report.CLOSE: "each time a window closes",
    Report.CHANGE: "each time a window's content changes",
    Report.NONEMPTY: "each time a window closes that is not empty",
    Report.EAGER: "at each instant at which something enters or leaves",
}


def summarize_query(plan: QueryPlan, settings: QuerySettings) -> str:
    """What `check` says about a query that is right."""
    form = f"{DIALECT_NAMES[plan.dialect]} {plan.kind.value.upper()}"
    if plan.registration is not None:
        kind = "stream" if plan.registration.kind is RegistrationKind.STREAM else "query"
        form += f" registered as {kind} {iri_to_name(plan.registration.name)}"
    if not plan.windows:
        return f"{form}; no window: answered once, from static data"
    notation = Notation.of(plan)
    windows = ", ".join(
        f"<{iri_to_name(source.stream.value)}> [{notation.window(source.spec)}]" for source in plan.windows
    )
    when = _WHEN.get(settings.report) or f"every {duration_text(settings.period or 0)}"
    return f"{form}; windows {windows}; evaluated {when}; emits {settings.emit.value.upper()}"
