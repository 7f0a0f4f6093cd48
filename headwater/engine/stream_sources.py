"""Where the streams of an engine come from: sources that were bound to their names, and those that their IRIs locate.

C-SPARQL, section 2.3: the IRI of a stream is "a locator of the actual data source of the stream". A binding goes before
it, and so does a query that registers a stream of that name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit, urlunsplit

from headwater.algebra.build import plan_query
from headwater.algebra.plan import QueryPlan
from headwater.egress.host_resolution import resolve_allowed
from headwater.egress.policy import EgressError, EgressPolicy
from headwater.errors import SettingError
from headwater.execution.registered import RegisteredQuery, RegistrationError
from headwater.federation.rate_reading import rate_sources_of
from headwater.language.query import ParsedQuery
from headwater.sources.addresses import READABLE, find_source_at, is_address, source_at
from headwater.sources.files import files
from headwater.sources.receivers import ReceivedSource
from headwater.sources.records import RecordSource
from headwater.sources.source import Source
from headwater.terms.arguments import check_idle
from headwater.terms.names import iri_to_name

AnySource: TypeAlias = Source | ReceivedSource


def as_source(given: AnySource | str | Path) -> AnySource:
    """The source that was given as itself, as an address, or as a path or pattern of files."""
    if isinstance(given, str) and is_address(given):
        given = source_at(given)
    if isinstance(given, str | Path):
        return files(given)
    if not isinstance(given, ReceivedSource) and not hasattr(given, "list_items"):
        raise SettingError(f"{given!r} is no source: use files(…), kafka(…), mqtt(…), …, a path or an address")
    return given


def check_records_are_open(streams: Mapping[str, AnySource], open_streams: Collection[str]) -> None:
    """Raise a `RegistrationError` for a stream that Spark reads itself, and that the run at work has not opened."""
    for stream, source in streams.items():
        if isinstance(source, RecordSource) and stream not in open_streams:
            reason = f"Spark cannot begin to read the records of {iri_to_name(stream)} while a pipeline is at work"
            raise RegistrationError(f"{reason}: stop it and begin again with this query")


def check_stream_address(egress: EgressPolicy, stream: str) -> None:
    """Raise an `EgressError` where a stream that a query locates is not allowed; files are not the policy's concern.

    Kafka, MQTT and WebSocket have clients of their own, which look the name up again when they connect.
    """
    if stream.partition(":")[0].lower() == "file":
        return
    parts = urlsplit(stream)
    for server in parts.netloc.split(","):
        address = egress.check_url(urlunsplit(parts._replace(netloc=server, query="", fragment="")))
        try:
            resolve_allowed(egress, address.host, address.port or 0)
        except EgressError:
            raise
        except OSError:
            # Whoever connects says that the name is unknown.
            continue


class StreamSources:
    """The sources of streams by their IRIs; `locates` says whether a query may name an address to read.

    With an `egress` policy such an address must be allowed by it, and lead to an IP address that it allows. `idle` is
    after how much silence streams are not waited for that have no idle time of their own.
    """

    def __init__(self, *, locates: bool, egress: EgressPolicy | None = None, idle: int | str | None = None) -> None:
        self._idle_of_all = idle if idle is None else (check_idle("idle", idle),)
        self._idle: dict[str, int | None] = {}
        self._locates = locates
        self._egress = egress
        self._bound: dict[str, AnySource] = {}
        self._located: dict[str, AnySource] = {}

    @property
    def bound(self) -> Collection[str]:
        """The streams that have a binding: those over which `STREAM ?s` ranges."""
        return self._bound.keys()

    def bind(self, stream: str, source: AnySource, idle: int | str | None = None) -> None:
        """Say where a stream is read, and its idle time; a `RegistrationError` where that was said before."""
        allowed = None if idle is None else check_idle("idle", idle)
        if stream in self._bound:
            raise RegistrationError(
                f"the stream {iri_to_name(stream)} has a source already; files(…) takes several patterns"
            )
        self._bound[stream] = source
        if idle is not None:
            self._idle[stream] = allowed

    def idle_times(self, queries: Iterable[RegisteredQuery]) -> tuple[tuple[str, int], ...]:
        """The streams of queries that are not waited for after some silence, and how much that is."""
        found: dict[str, int | None] = {}
        for stream in sorted({window.stream.value for query in queries for window in query.plan.windows}):
            source = self._bound.get(stream) or self._located.get(stream)
            if stream in self._idle:
                found[stream] = self._idle[stream]
            elif self._idle_of_all is not None:
                found[stream] = self._idle_of_all[0]
            elif isinstance(source, RecordSource):
                found[stream] = source.usual_idle
        return tuple((stream, idle) for stream, idle in found.items() if idle is not None)

    def __getitem__(self, stream: str) -> AnySource:
        """The source of a stream that `locate` has found."""
        return self._bound[stream] if stream in self._bound else self._located[stream]

    def plan_query(self, parsed: ParsedQuery, name: str) -> QueryPlan:
        """The plan of a query; a `RegistrationError` where it names a file, and queries may not say what is read."""
        plan = plan_query(parsed, name=name, streams=sorted(self._bound))
        if not self._locates and any(isinstance(one, str) for one in rate_sources_of([plan])):
            raise RegistrationError(
                f"query {name!r} names a file with change rates, and this engine reads no files that queries name "
                "(locate_streams=False): give it as service={'rates': …}, or load the rates as a graph"
            )
        return plan

    def locate(self, stream: str, query: str, known: Collection[str]) -> None:
        """Find the source of a stream that nothing feeds; a `RegistrationError` where there is none.

        `query` reads the stream, and `known` are the streams that something feeds: for the message.
        """
        if stream in self._located:
            return
        try:
            source = find_source_at(stream) if self._locates else None
            if source is not None and self._egress is not None:
                check_stream_address(self._egress, stream)
        except SettingError as error:
            raise RegistrationError(f"query {query!r} reads a stream that cannot be located: {error}") from None
        if source is None:
            name = iri_to_name(stream)
            names = ", ".join(sorted(map(iri_to_name, known))) or "none"
            reason = (
                f"Its IRI is no address of a stream ({READABLE})"
                if self._locates
                else "Its IRI is not taken as an address, because locate_streams is off"
            )
            raise RegistrationError(
                f"query {query!r} reads the stream {name}, which has no source; known streams: {names}. {reason}: "
                f"name its source with engine.stream({name!r}, files(…)) or --stream {name}=FILES"
            )
        self._located[stream] = source
