"""Registration: query texts become queries that run together, each stream with a source or a query that feeds it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, TypeVar

from headwater.algebra.build import plan_query
from headwater.engine.service_arguments import apply_service_options
from headwater.errors import SettingError
from headwater.execution.registered import RegisteredQuery, RegistrationError
from headwater.language.stream_clauses import RegistrationKind, StreamOperator
from headwater.terms.arguments import check_time
from headwater.terms.names import iri_to_name, name_to_iri
from headwater.windows.model import Bounds
from headwater.windows.settings import Content, Options, Report, resolve_settings

if TYPE_CHECKING:
    from enum import Enum

    from headwater.engine.query_handle import Query
    from headwater.engine.stream_sources import StreamSources

    Choice = TypeVar("Choice", bound=Enum)


def check_any_query(queries: Mapping[str, Query]) -> None:
    """Raise a `RegistrationError` where a run that reads what there is has nothing to ask."""
    if not queries:
        raise RegistrationError(
            "no query is registered: engine.register(text) registers one. Only a run that goes on, as of "
            "engine.start(), can begin without"
        )


def resolve_queries(queries: Mapping[str, Query], sources: StreamSources) -> tuple[RegisteredQuery, ...]:
    """The registered queries, all their streams located; a `RegistrationError` where one has no source, or two."""
    produced = {
        name: name_to_iri(query.parsed.registration.name).value
        for name, query in queries.items()
        if query.parsed.registration is not None and query.parsed.registration.kind is RegistrationKind.STREAM
    }
    for name, stream in produced.items():
        if stream in sources.bound:
            raise RegistrationError(
                f"the stream {iri_to_name(stream)} has a source, and the query {name!r} registers it, too; "
                "give one of them another name"
            )
    registered: list[RegisteredQuery] = []
    for name, query in queries.items():
        others = {stream for other, stream in produced.items() if other != name}
        plan = plan_query(query.parsed, name=name, streams=sorted({*sources.bound} | others))
        plan = query.plan = apply_service_options(plan, query.service)
        registered.append(RegisteredQuery(plan, resolve_settings(plan, query.options), query.limits))
    known = {*sources.bound, *produced.values()}
    for one in registered:
        for window in one.plan.windows:
            if window.stream.value not in known:
                sources.locate(window.stream.value, one.plan.name, known)
    return tuple(registered)


def input_streams(name: str, queries: Collection[Query]) -> set[str]:
    """The streams from outside that a query reads, itself or through the streams of other queries."""
    plans = {query.name: query.plan for query in queries}
    producers = {
        name_to_iri(query.parsed.registration.name).value: query.name
        for query in queries
        if query.parsed.registration is not None and query.parsed.registration.kind is RegistrationKind.STREAM
    }
    found: set[str] = set()
    waiting, seen = [name], {name}
    while waiting:
        plan = plans.get(waiting.pop())
        for stream in () if plan is None else {source.stream.value for source in plan.windows}:
            producer = producers.get(stream)
            if producer is None:
                found.add(stream)
            elif producer not in seen:
                seen.add(producer)
                waiting.append(producer)
    return found


def read_options(
    bounds: Bounds | str | None,
    report: Report | str | None,
    emit: StreamOperator | str | None,
    content: Content | str | None,
    t0: int | str | None,
    cap: int | None,
) -> Options:
    """The switches of a query, as `Engine.register` takes them."""
    return Options(
        bounds=parse_choice(Bounds, bounds, "bounds"),
        report=parse_choice(Report, report, "report"),
        emit=parse_choice(StreamOperator, emit, "emit"),
        content=parse_choice(Content, content, "content"),
        t0=None if t0 is None else check_time("t0", t0),
        cap=cap,
    )


def make_query_name(taken: Collection[str]) -> str:
    """A name for a query that has none."""
    number = 1
    while (name := "query" if number == 1 else f"query-{number}") in taken:
        number += 1
    return name


def parse_choice(kind: type[Choice], given: Choice | str | None, what: str) -> Choice | None:
    """A member of an enumeration, given as itself or by its value."""
    if given is None or isinstance(given, kind):
        return given
    for choice in kind:
        if str(given).lower() == choice.value:
            return choice
    raise SettingError(f"{given!r} is no {what}: use one of {', '.join(str(choice.value) for choice in kind)}")
