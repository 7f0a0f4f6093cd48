"""What is wrong with settings beyond their form: values that the engine would refuse when the server begins.

The engine itself is asked: one in this process, which reads nothing and is thrown away, gets the streams, endpoints and
queries. Each complaint begins with the line and the column of what it is about.
"""

from __future__ import annotations

import glob
import re
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from headwater.egress.policy import EgressPolicy
from headwater.engine.engine import Engine
from headwater.engine.query_handle import Query
from headwater.errors import HeadwaterError, SettingError
from headwater.federation.rate_reading import rate_sources_of
from headwater.language.errors import QueryError
from headwater.language.stream_clauses import RegistrationKind
from headwater.server.process.registry import PUSH, Registry, StreamEntry
from headwater.server.server_settings import QueryTable, ServerSettings, StreamTable
from headwater.sources.addresses import source_at
from headwater.sources.files import memory
from headwater.sources.payloads import Decoder
from headwater.terms.arguments import check_idle
from headwater.terms.names import iri_to_name, name_to_iri
from headwater.terms.template import RowTemplate
from headwater.values.query_limits import QueryLimits

_WRONG = (HeadwaterError, ValueError, TypeError, OSError)
Key = str | int


def find_wrong_values(settings: ServerSettings) -> list[str]:
    """What the engine would refuse, each with its place; nothing where all is right."""
    return list(_SettingChecks(settings).complaints())


class _SettingChecks:
    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._places = settings.places

    def complaints(self) -> Iterator[str]:
        settings = self._settings
        yield from self._certificate()
        yield from self._each(("server", "cors"), settings.server.cors, _check_origin)
        yield from self._each(("egress", "allow"), settings.egress.allow, lambda one: EgressPolicy.of({"allow": [one]}))
        networks = settings.egress.networks
        yield from self._each(("egress", "networks"), networks, lambda one: EgressPolicy.of({"networks": [one]}))
        yield from self._limits(("limits",), settings.limits)
        for number, data in enumerate(settings.data):
            yield from self._attempt(("data", number, "data"), partial(_check_data, settings.data_place(data)))
        yield from self._engine_parts()

    def _attempt(self, place: Sequence[Key], work: Callable[[], object]) -> Iterator[str]:
        """Do something; gives what it complains of, at a place or at the key of it that the complaint names."""
        try:
            work()
        except _WRONG as error:
            yield self._places.describe(place) + _words(error)

    def _each(self, place: Sequence[Key], values: Sequence[str], check: Callable[[str], object]) -> Iterator[str]:
        for value in values:
            try:
                check(value)
            except _WRONG as error:
                yield self._places.describe(place, value) + _words(error)

    def _limits(self, place: tuple[Key, ...], limits: Mapping[str, float]) -> Iterator[str]:
        for name, value in limits.items():
            yield from self._attempt((*place, name), partial(QueryLimits.of, {name: value}))

    def _certificate(self) -> Iterator[str]:
        server, path_of = self._settings.server, self._settings.path_of
        if server.certificate is None or server.key is None:
            return
        missing = False
        for key, name in (("certificate", server.certificate), ("key", server.key)):
            for complaint in self._attempt(("server", key), path_of(name).read_bytes):
                missing = True
                yield complaint
        if not missing:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            yield from self._attempt(
                ("server", "certificate"),
                lambda: context.load_cert_chain(path_of(server.certificate or ""), path_of(server.key or "")),
            )

    def _engine_parts(self) -> Iterator[str]:
        """What an engine says to its own settings, to streams, endpoints and queries."""
        settings = self._settings
        policy = EgressPolicy()
        if not any(self._each(("egress", "allow"), settings.egress.allow, lambda one: EgressPolicy.of([one]))):
            policy = EgressPolicy(settings.egress.allow)
        try:
            arguments = settings.engine.model_dump(exclude={"trigger"}, exclude_none=True)
            engine = Engine(in_process=True, egress=policy, **arguments)
        except _WRONG as error:
            yield self._places.describe(("engine", *_key_in(error, settings.engine.model_dump()))) + _words(error)
            return
        for number, endpoint in enumerate(settings.endpoints):
            try:
                _check_endpoint(endpoint)
                engine.endpoint(**endpoint)
            except _WRONG as error:
                yield self._places.describe(("endpoints", number, *_key_in(error, endpoint))) + _words(error)
        for number, stream in enumerate(settings.streams):
            yield from self._stream(number, stream)
            engine.stream(stream.name, memory([]))
        registered: list[tuple[int, QueryTable, Query]] = []
        for number, query in enumerate(settings.queries):
            complaints = list(self._limits(("queries", number, "limits"), query.limits or {}))
            yield from complaints
            if not complaints:
                found = self._register(engine, number, query)
                if isinstance(found, str):
                    yield found
                else:
                    registered.append((number, query, found))
        yield from self._missing_streams(registered)

    def _stream(self, number: int, table: StreamTable) -> Iterator[str]:
        """What is wrong with a stream: the first of its keys with which it is wrong."""
        place: tuple[Key, ...] = ("streams", number)
        yield from self._attempt(
            (*place, "idle"), lambda: None if table.idle is None else check_idle("idle", table.idle)
        )
        entry: StreamEntry | None = None
        try:
            entry = self._settings.stream_entry(table)
        except SettingError as error:
            yield self._places.describe((*place, "template")) + _words(error)
        if entry is None:
            return
        if entry.source != PUSH:
            yield from self._attempt((*place, "source"), lambda: _check_source(entry))
            return
        template = None if entry.template is None else f"{entry.template}\n"
        for key in ("template", "format", "time"):
            is_given = (entry.template is not None, entry.format is not None, entry.time is not None)
            if not any(is_given) or getattr(entry, key) is None:
                continue
            try:
                Decoder.of(entry.format, template=template, time=entry.time if key == "time" else None)
            except _WRONG as error:
                yield self._places.describe((*place, key)) + _words(error).replace("<template>", table.template or "")
                return

    def _register(self, engine: Engine, number: int, table: QueryTable) -> Query | str:
        """The query, registered at an engine; or what is wrong with it, with its place."""
        place: tuple[Key, ...] = ("queries", number)
        try:
            entry = self._settings.query_entry(table)
        except SettingError as error:
            return self._places.describe((*place, "file")) + _words(error)
        try:
            query = engine.register(entry.text, name=table.name, **entry.options)
            if any(isinstance(one, str) for one in rate_sources_of([query.plan])):
                raise SettingError("RATES names a file: a query of a server may name a graph of the data")
            return query
        except QueryError as error:
            if table.file is not None:
                where = f"{self._settings.path_of(table.file)}, line {error.line}, column {error.column}: "
            else:
                where = self._places.describe((*place, "text"), table.text, (error.line, error.column))
            return f"{where}queries.{number}: {error.message}"
        except _WRONG as error:
            return self._places.describe((*place, *_key_in(error, entry.options))) + _words(error)

    def _missing_streams(self, queries: Sequence[tuple[int, QueryTable, Query]]) -> Iterator[str]:
        """The queries that read a stream that neither the file nor the state has, and no query makes."""
        settings = self._settings
        if settings.engine.locate_streams:
            return
        known = {name_to_iri(one.name).value for one in settings.streams}
        kept = Registry(settings.state / "registry.json")
        known |= {name_to_iri(name).value for name, one in kept.streams.items() if not one.is_fixed}
        plans = [query.plan for _, _, query in queries]
        known |= {
            name_to_iri(plan.registration.name).value
            for plan in plans
            if plan.registration is not None and plan.registration.kind is RegistrationKind.STREAM
        }
        # What a query makes that was registered over HTTP is not known before the engine has read it.
        if any(not one.is_fixed for one in kept.queries.values()):
            return
        for number, table, query in queries:
            for window in query.plan.windows:
                if window.stream.value not in known:
                    key = "text" if table.file is None else "file"
                    name = iri_to_name(window.stream.value)
                    yield (
                        f"{self._places.describe(('queries', number, key))}the query {table.name!r} reads the stream "
                        f"{name}, which is not there: add it to [[streams]]"
                    )


def _check_origin(origin: str) -> None:
    parts = urlsplit(origin)
    if origin != "*" and (parts.scheme not in ("http", "https") or not parts.netloc or parts.path or parts.query):
        raise SettingError(f"{origin!r} is no origin: write https://example.org, or *")


def _check_endpoint(endpoint: Mapping[str, Any]) -> None:
    if not isinstance(endpoint.get("url"), str):
        raise SettingError("an endpoint needs its address, url")


def _check_data(place: str) -> None:
    if "://" not in place and not Path(place).exists() and not glob.glob(place):
        raise SettingError(f"there is no file or folder {place}: check the path")


def _check_source(entry: StreamEntry) -> None:
    is_file = entry.source.lower().startswith("file:")
    template = None if entry.template is None else f"{entry.template}\n"
    source_at(entry.source, template=RowTemplate(template) if is_file and template is not None else template)


def _key_in(error: BaseException, table: Mapping[str, Any]) -> tuple[str, ...]:
    """The key of a table that a complaint is about: the first that it names, or whose value it has."""
    message = str(error)
    named = [key for key in table if re.search(rf"\b{re.escape(key)}\b", message)]
    valued = [key for key, value in table.items() if value is not None and repr(value) in message]
    return tuple((named or valued)[:1])


def _words(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename} cannot be read ({error.strerror})"
    if isinstance(error, ssl.SSLError):
        return f"the certificate and the key do not go together or are no PEM ({error.reason or error})"
    return str(error)
