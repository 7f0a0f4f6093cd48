"""Registered queries: plans with their settings, whether they can run together, and which feeds which."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.errors import HeadwaterError
from headwater.execution.static_data import StaticData
from headwater.language.stream_clauses import RegistrationKind
from headwater.terms.names import iri_to_name, name_to_iri
from headwater.values.query_limits import QueryLimits
from headwater.windows.settings import QuerySettings


class RegistrationError(HeadwaterError, ValueError):
    """Queries that cannot run together: equal names, a cycle, a stream without a source, a graph that is missing."""


@dataclass(frozen=True)
class RegisteredQuery:
    """A plan, the settings under which it runs, and what it may take."""

    plan: QueryPlan
    settings: QuerySettings
    limits: QueryLimits = field(default_factory=QueryLimits)

    @property
    def produces(self) -> str | None:
        """The stream that this query feeds, if it is a REGISTER STREAM."""
        registration = self.plan.registration
        if registration is None or registration.kind is not RegistrationKind.STREAM:
            return None
        return name_to_iri(registration.name).value

    @property
    def fingerprint(self) -> str:
        """Equal for queries that can continue each other's state."""
        parts = (self.plan.text, self.plan.windows, self.settings)
        return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def find_produced_streams(queries: Sequence[RegisteredQuery], static: StaticData) -> dict[str, RegisteredQuery]:
    """The streams that queries produce; a `RegistrationError` where the queries cannot run together."""
    produced: dict[str, RegisteredQuery] = {}
    names: set[str] = set()
    known = {graph.value for graph in static.named_graphs()}
    for query in queries:
        if query.plan.name in names:
            raise RegistrationError(f"two queries are named {query.plan.name!r}; give one another name")
        names.add(query.plan.name)
        if query.produces is not None:
            produced[query.produces] = query
        for graph in (*(query.plan.default_graphs or ()), *(query.plan.named_graphs or ())):
            if graph.value not in known:
                raise RegistrationError(
                    f"query {query.plan.name!r} reads FROM <{iri_to_name(graph.value)}>, but no such graph is loaded; "
                    f"load it with --data FILE@{iri_to_name(graph.value)} or engine.dataset(FILE, graph=…)"
                )
    for query in queries:
        for source in query.plan.windows:
            feeder = produced.get(source.stream.value)
            if feeder is not None and feeder.plan.kind not in (QueryKind.CONSTRUCT, QueryKind.DESCRIBE):
                raise RegistrationError(
                    f"query {query.plan.name!r} reads the stream {feeder.plan.name!r}, which gives rows, "
                    "not triples; only CONSTRUCT and DESCRIBE make an RDF stream"
                )
            if source.graph is not None and source.graph.value in known:
                raise RegistrationError(f"<{source.graph.value}> is the name of a stream and of a loaded graph")
    return produced


def order_producers_first(queries: Sequence[RegisteredQuery]) -> list[RegisteredQuery]:
    """The queries, each after those whose streams it reads."""
    by_name = {query.plan.name: query for query in queries}
    feeders = {query.produces: query.plan.name for query in queries if query.produces is not None}
    graph = {
        query.plan.name: {
            feeders[source.stream.value] for source in query.plan.windows if source.stream.value in feeders
        }
        for query in queries
    }
    try:
        return [by_name[name] for name in TopologicalSorter(graph).static_order()]
    except CycleError as error:
        circle = " → ".join(str(name) for name in error.args[1])
        raise RegistrationError(f"these queries feed each other in a circle: {circle}") from error
