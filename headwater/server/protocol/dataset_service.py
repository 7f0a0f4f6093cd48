"""The service over a data set in a folder: it lives in the process that has the data.

Reads are evaluated on a `StoreMirror`, changes are made in the data set itself, so they are durable when they are
answered. Each call works in a thread of a pool. An evaluation whose time is up cannot be interrupted: it is left alone,
and while too many of these are at work, requests are refused with 503.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from pyoxigraph import DefaultGraph

from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.datasets.dataset import DataSet
from headwater.datasets.errors import DataSetError, UpdateSyntaxError
from headwater.datasets.folder import MANIFEST
from headwater.datasets.loading.new_dataset import create_dataset
from headwater.datasets.remote_updates import RemoteAccess
from headwater.datasets.updates import check_update_syntax, evaluate_update
from headwater.egress.documents import WebError
from headwater.egress.policy import EgressError, EgressPolicy
from headwater.errors import HeadwaterError
from headwater.federation.endpoint.endpoint_errors import EndpointError, EndpointForbidden
from headwater.federation.service_settings import ServiceSettings
from headwater.federation.services import Services
from headwater.language.errors import QueryError
from headwater.server.problems import Problem
from headwater.server.protocol.data_service import (
    ANY_READER,
    DataDescription,
    GraphChange,
    GraphReader,
    GraphSize,
    Precondition,
    PropertySize,
    QueryRequest,
    QueryResult,
    RdfDocument,
    UpdateRequest,
    WrittenGraph,
)
from headwater.server.protocol.media_types import GRAPH_FORMATS, MAIN_GRAPH_TYPES, MAIN_RESULT_TYPES
from headwater.server.protocol.modifications import read_modification
from headwater.server.protocol.plain_queries import PlainQueries, PlainResult, plan_plain_query
from headwater.server.protocol.result_texts import write_boolean, write_graph, write_rows
from headwater.server.protocol.shown_graphs import graphs_read_by, hide_graphs
from headwater.server.protocol.store_mirror import ExtraGraphs, MirroredVersion, StoreMirror, graph_of, quads_in
from headwater.server.protocol.update_texts import with_graph_choice
from headwater.terms.ids.inline_layout import NO_TERM
from headwater.terms.model import NamedNode, Quad, Triple
from headwater.terms.rdf_documents import RdfSyntaxError, read_quads
from headwater.values.query_guard import QueryGuard
from headwater.values.query_limits import LimitError, QueryLimits, limit_error

Result = TypeVar("Result")
_LOG = logging.getLogger(__name__)
_REPEATED_READS = 3


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """What one request may take, and how many may be at work.

    `queries` holds for each query and update: its time, the rows and bytes of its result. Beyond `at_work` requests at
    a time others wait, at most `waiting` of them. `abandoned` is how many evaluations whose time is up may go on.
    """

    queries: QueryLimits = field(default_factory=lambda: QueryLimits(30.0, rows=2_000_000, bytes=256 << 20))
    at_work: int = 4
    waiting: int = 64
    abandoned: int = 2


class _WorkGuard(QueryGuard):
    """Holds one request to its limits, and counts the calls that go on after its end."""

    def __init__(self, limits: QueryLimits, count: NativeCalls) -> None:
        super().__init__(limits)
        self._count = count

    def check_time(self) -> None:
        try:
            super().check_time()
        except LimitError:
            raise limit_error("seconds", self.limits.seconds, "the request takes longer than it may") from None

    def call(self, work: Callable[[], Result]) -> Result:
        return super().call(partial(self._count.run, work))


class NativeCalls:
    """Counts the calls into pyoxigraph that are at work."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.at_work = 0

    def run(self, work: Callable[[], Result]) -> Result:
        with self._lock:
            self.at_work += 1
        try:
            return work()
        finally:
            with self._lock:
                self.at_work -= 1


class DataSetService:
    """A `DataService` over one data set."""

    def __init__(
        self,
        folder: str | Path,
        *,
        limits: ServiceLimits | None = None,
        services: ServiceSettings | None = None,
        find_extra_graphs: Callable[[], ExtraGraphs] | None = None,
        may_see: Callable[[NamedNode, GraphReader], bool] = lambda graph, reader: True,
    ) -> None:
        """`services` says how SERVICE and LOAD reach what is elsewhere; `find_extra_graphs` gives graphs of windows,
        `may_see` whether a reader sees one of them.

        Without an egress policy nothing elsewhere is asked: requests come from others than those who run the server.
        """
        settings = services or ServiceSettings()
        egress = EgressPolicy() if settings.egress is None else settings.egress
        self._data = DataSet.open(folder)
        self._limits = limits or ServiceLimits()
        fetch = Services(replace(settings, egress=egress)).fetch_solutions
        self._data.remote = RemoteAccess(fetch, egress)
        self._queries = PlainQueries(fetch)
        self._find_extra_graphs = find_extra_graphs
        self._may_see = may_see
        self._mirror = StoreMirror(self._data.folder, find_extra_graphs)
        self._pool = ThreadPoolExecutor(self._limits.at_work, thread_name_prefix="headwater-sparql")
        self.calls = NativeCalls()
        """The calls into pyoxigraph, those whose time is up included."""
        self._requests = 0
        # Calls may come from event loops of several threads.
        self._counting = threading.Lock()
        self._description: DataDescription | None = None

    @classmethod
    def open_or_create(cls, folder: Path, **arguments: Any) -> DataSetService:
        """The service over the data set of a folder; a new one where there is none."""
        if not (folder / MANIFEST).exists():
            create_dataset(folder)
        return cls(folder, **arguments)

    def close(self) -> None:
        """Take no more requests; those at work are waited for."""
        self._pool.shutdown(cancel_futures=True)

    def prepare(self) -> None:
        """Read the data set into the store that queries are asked of; otherwise the first query does."""
        self._mirror.latest(())

    async def query(self, request: QueryRequest) -> QueryResult:
        return await self._work(partial(self._query, request))

    async def update(self, request: UpdateRequest) -> int:
        return await self._work(partial(self._update, request))

    async def read_graph(
        self, graph: str | None, media_type: str, reader: GraphReader = ANY_READER
    ) -> WrittenGraph | None:
        return await self._work(partial(self._read_graph, graph, media_type, reader))

    async def replace_graph(
        self, graph: str | None, documents: Sequence[RdfDocument], condition: Precondition
    ) -> GraphChange:
        return await self._work(partial(self._put_graph, graph, documents, condition, keeps_old=False))

    async def merge_graph(
        self, graph: str | None, documents: Sequence[RdfDocument], condition: Precondition
    ) -> GraphChange:
        return await self._work(partial(self._put_graph, graph, documents, condition, keeps_old=True))

    async def delete_graph(self, graph: str | None, condition: Precondition) -> GraphChange:
        return await self._work(partial(self._put_graph, graph, (), condition, keeps_old=False))

    async def describe(self) -> DataDescription:
        return await self._work(self._describe)

    async def _work(self, work: Callable[[], Result]) -> Result:
        """Do something in a thread of the pool."""
        limits = self._limits
        if self._requests >= limits.at_work + limits.waiting:
            raise _busy("Too many requests wait for this data set.")
        if self.calls.at_work >= limits.at_work + limits.abandoned:
            raise _busy("Evaluations whose time is up are still at work.")
        with self._counting:
            self._requests += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, self._explain_errors, work)
        finally:
            with self._counting:
                self._requests -= 1

    def _explain_errors(self, work: Callable[[], Result]) -> Result:
        """The result of some work, whose errors become problems."""
        try:
            return work()
        except HeadwaterError as error:
            raise self._problem_of(error) from None

    def _problem_of(self, error: HeadwaterError) -> Problem:
        """What the client is told of an error."""
        # What stopped an update is the context of the error that says that nothing is changed.
        reason = error.__context__ if isinstance(error, DataSetError) else error
        match reason:
            case EgressError() | EndpointForbidden():
                return Problem(403, "The address may not be asked", f"{error}.")
            case EndpointError() | WebError():
                return Problem(502, "Another server did not answer", f"{error}.")
        match error:
            case QueryError():
                return Problem(400, "The text is not valid", str(error))
            case UpdateSyntaxError():
                return Problem(400, "The update is not valid", f"{error}.")
            case RdfSyntaxError():
                return Problem(400, "The document is not valid", str(error))
            case LimitError():
                return Problem(422, "A limit is exceeded", f"{error}.")
            case DataSetError() if str(self._data.folder) not in str(error):
                return Problem(409, "The change was not made", f"{error}.")
            case DataSetError():
                _LOG.error("%s", error)
                text = "The log of the server says why."
                return Problem(503, "The data set cannot be used", text, {"Retry-After": "30"})
        return Problem(422, "The request cannot be done", f"{error}.")

    @contextmanager
    def _guard(self) -> Iterator[QueryGuard]:
        """A context in which the limits of one request hold; making the store takes none of its time."""
        self.prepare()
        guard = _WorkGuard(self._limits.queries, self.calls)
        with guard:
            yield guard

    def _query(self, request: QueryRequest) -> QueryResult:
        plan = plan_plain_query(request.text, request.base, request.graphs)
        accepted = request.accepted
        by_kind = {QueryKind.SELECT: accepted.rows, QueryKind.ASK: accepted.boolean}
        media_type = by_kind.get(plan.kind, accepted.graph)
        if media_type is None:
            offered = MAIN_RESULT_TYPES if plan.kind in by_kind else MAIN_GRAPH_TYPES
            raise Problem(406, "No such format", f"The result of {plan.kind.name} can be had as {', '.join(offered)}.")
        with self._guard() as guard:
            for _ in range(_REPEATED_READS):
                seen, version = self._see(plan, request.reader)
                result = self._queries.evaluate(seen, version, guard)
                now = self._mirror.latest(())
                # Literals in forms of their own need another text of the query; descriptions read several times.
                is_same = now.version == version.version or plan.kind is not QueryKind.DESCRIBE
                if is_same and now.holds_stored_forms == version.holds_stored_forms:
                    break
            content = _write(result, media_type)
            guard.check_answer_bytes(len(content))
            guard.check_time()
        return QueryResult(media_type, content)

    def _update(self, request: UpdateRequest) -> int:
        text = with_graph_choice(request.text, request.graphs)
        check_update_syntax(text, request.base)
        modification = read_modification(text, request.base)
        with self._guard() as guard:

            def find_changes(data: DataSet) -> tuple[Collection[Quad], Collection[Quad]]:
                if modification is None:
                    changes = evaluate_update(data, text, request.base)
                else:
                    seen, version = self._see(modification.plan, request.reader)
                    rows = self._queries.solve(seen, version, guard)
                    changes = modification.changes(data, rows)
                for graph in {quad.graph_name for quad in changes[0]}:
                    self._check_target(graph)
                return changes

            return self._data.revise(find_changes)

    def _see(self, plan: QueryPlan, reader: GraphReader) -> tuple[QueryPlan, MirroredVersion]:
        """The newest version, and the plan over what the reader may see of it."""
        wanted = graphs_read_by(plan)
        version = self._mirror.latest(wanted)
        extra = [] if self._find_extra_graphs is None else [*self._find_extra_graphs()]
        hidden = {one for one in extra if not self._may_see(one, reader) and self._mirror.is_extra(one)}
        return (hide_graphs(plan, version.named_graphs, hidden) if hidden else plan), version

    def _check_target(self, graph: object) -> None:
        """Refuse to change a graph that stands for a window."""
        if isinstance(graph, NamedNode) and self._mirror.is_extra(graph):
            raise Problem(409, "The graph is that of a window", "Choose another name: windows change by themselves.")

    def _read_graph(self, graph: str | None, media_type: str, reader: GraphReader) -> WrittenGraph | None:
        name = graph_of(graph)
        is_window = self._mirror.is_extra(name)
        if is_window and isinstance(name, NamedNode) and not self._may_see(name, reader):
            return None
        triples, version = self._mirror.read_graph(name)
        if not triples and graph is not None and not is_window:
            return None
        content = write_graph(triples, media_type)
        if len(content) > self._limits.queries.bytes:
            raise Problem(422, "The graph is too large", "Ask for a part of it with a CONSTRUCT query.")
        # A window changes without a version of the data set.
        tag = sha256(content).hexdigest()[:24] if is_window else _tag(version)
        return WrittenGraph(media_type, content, tag)

    def _put_graph(
        self, graph: str | None, documents: Sequence[RdfDocument], condition: Precondition, *, keeps_old: bool
    ) -> GraphChange:
        """Add documents to a graph, or put them in its place."""
        name = graph_of(graph)
        new = set(quads_in(_read_documents(documents), name))
        change = GraphChange(existed=False, exists=False, tag="")

        def find_changes(data: DataSet) -> tuple[Collection[Quad], Collection[Quad]]:
            nonlocal change
            tag = _tag(self._mirror.graph_version(name))
            old = set(_quads_of(data, name))
            existed = bool(old) or isinstance(name, DefaultGraph)
            _check_condition(condition, existed, tag)
            self._check_target(name)
            removed = set() if keeps_old else old - new
            added = new - old
            change = GraphChange(existed, bool(new) or (keeps_old and bool(old)) or isinstance(name, DefaultGraph), tag)
            return added, removed

        self._data.revise(find_changes)
        return GraphChange(change.existed, change.exists, _tag(self._mirror.graph_version(name)))

    def _describe(self) -> DataDescription:
        data = DataSet.open(self._data.folder)
        known = self._description
        if known is not None and known.version == data.version:
            return known
        graphs: dict[str | None, int] = {None: 0}
        properties: dict[str, int] = {}
        for key in data.columns.group_keys():
            count = int(data.columns.pairs_by_subject(key)[0].shape[0])
            name = None if key[0] == NO_TERM else data.term_of(key[0])
            property_ = data.term_of(key[1])
            if not count or not isinstance(property_, NamedNode) or not isinstance(name, NamedNode | None):
                continue
            shown = None if name is None else name.value
            graphs[shown] = graphs.get(shown, 0) + count
            properties[property_.value] = properties.get(property_.value, 0) + count
        self._description = DataDescription(
            data.version,
            tuple(GraphSize(name, graphs[name]) for name in sorted(graphs, key=lambda one: one or "")),
            tuple(PropertySize(name, properties[name]) for name in sorted(properties)),
        )
        return self._description


def _write(result: PlainResult, media_type: str) -> bytes:
    match result.kind:
        case QueryKind.SELECT:
            return write_rows(result.variables, result.rows, media_type)
        case QueryKind.ASK:
            return write_boolean(result.boolean, media_type)
    return write_graph(result.triples, media_type, result.prefixes)


def _quads_of(data: DataSet, graph: NamedNode | DefaultGraph) -> list[Quad]:
    """The statements of one graph."""
    return list(data.quads(graph=graph))


def _read_documents(documents: Sequence[RdfDocument]) -> list[Triple]:
    """The triples of some documents, with blank nodes that nothing else has."""
    triples: list[Triple] = []
    for document in documents:
        format = GRAPH_FORMATS.get(document.media_type)
        if format is None:
            raise Problem(
                415, "RDF of another type", f"Send a graph as one of {', '.join(MAIN_GRAPH_TYPES)}, in UTF-8."
            )
        scope = uuid.uuid4().hex
        quads = read_quads(document.content, format=format, base_iri=document.base, scope=scope, name="the document")
        for quad in quads:
            if not isinstance(quad.graph_name, DefaultGraph):
                raise Problem(
                    400, "The document has named graphs", "Send each graph by itself, or use a SPARQL Update."
                )
            triples.append(quad.triple)
    return triples


def _tag(version: int) -> str:
    return str(version)


def _check_condition(condition: Precondition, exists: bool, tag: str) -> None:
    """Raise a `Problem` unless what a request asks for holds."""
    match, none_match = condition.if_match, condition.if_none_match
    holds = match is None or (exists and ("*" in match or tag in match))
    holds = holds and (none_match is None or not (exists and ("*" in none_match or tag in none_match)))
    if not holds:
        raise Problem(
            412, "The graph is another one by now", "Get the graph, apply your change to it and send it with its ETag."
        )


def _busy(reason: str) -> Problem:
    return Problem(503, "Busy", f"{reason} Ask again in a few seconds.", {"Retry-After": "5"})
