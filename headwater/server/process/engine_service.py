"""What the engine process does for the HTTP process: one method for each call, each for any thread.

It owns the registry. A query or stream that a call adds is registered first and noted on disk before the call returns;
after a restart everything is as it was noted, and the run goes on from its checkpoint.
"""

from __future__ import annotations

import json
import logging
import threading
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from headwater.algebra.build import plan_query
from headwater.algebra.plan import QueryPlan
from headwater.egress.policy import EgressPolicy
from headwater.engine.engine import Engine
from headwater.engine.query_handle import Query
from headwater.engine.registering import parse_choice
from headwater.engine.service_arguments import read_endpoint_arguments
from headwater.engine.stream_sources import check_stream_address
from headwater.errors import HeadwaterError, SettingError, StateError
from headwater.execution.registered import RegistrationError
from headwater.federation.rate_reading import rate_sources_of
from headwater.federation.service_settings import ServiceSettings
from headwater.language.parser import parse
from headwater.language.stream_clauses import Dialect, RegistrationKind
from headwater.running.ahead_limits import OFF, choose_max_ahead
from headwater.server.answers.answer_log import AnswerLogSink, Retention
from headwater.server.process.call_errors import NotAllowedHere, TooMany, UnknownName
from headwater.server.process.engine_settings import EngineSettings
from headwater.server.process.previewing import preview_query
from headwater.server.process.query_checks import check_text, describe_plan
from headwater.server.process.registry import PUSH, QueryEntry, Registry, StreamEntry
from headwater.server.process.shown_windows import WindowGraphs
from headwater.server.protocol.data_calls import answer_data_call
from headwater.server.protocol.dataset_service import DataSetService
from headwater.sources.addresses import READABLE, is_stream_address, source_at
from headwater.sources.payloads import Decoder
from headwater.sources.posting.posted import PostedSource
from headwater.sources.receivers import ReceivedSource
from headwater.sources.source import Source
from headwater.terms.arguments import check_duration
from headwater.terms.durable_files import create_folder
from headwater.terms.names import iri_to_name, name_to_iri
from headwater.terms.packing import Plain
from headwater.terms.template import RowTemplate

logger = logging.getLogger(__name__)

SERVED_DATA = "/data"
"""What the data set is called that is read and changed over HTTP."""
_STOP_SECONDS = 7.0
_STATUS_SECONDS = 0.25
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0
Notify = Callable[[str, Plain], None]


class EngineService:
    """An engine that goes on until `close`, its registry and its answer log.

    `notify` is called with the name of a notice and its value: `answers` with the queries that have new ones, `status`
    with `status()`.
    """

    def __init__(self, settings: EngineSettings, notify: Notify) -> None:
        self._settings = settings
        self._notify = notify
        self._policy = EgressPolicy.of(settings.egress) or EgressPolicy()
        self._state = Path(settings.state)
        create_folder(self._state, mode=0o700)
        self._registry = Registry(self._state / "registry.json")
        self._registry.add_fixed(settings.queries, settings.streams)
        retention = Retention(settings.retention_seconds, settings.retention_bytes)
        self._log = AnswerLogSink(
            self._state / "answers",
            retention,
            is_logged=lambda query: query in self._registry.queries,
            on_write=lambda queries: notify("answers", queries),
        )
        self._posted: dict[str, PostedSource] = {}
        self.data_folders: dict[str, Path] = {}
        """The folders of the linked data, by names that people read."""
        self._failed: dict[str, str] = {}
        self._changing = threading.RLock()
        self._closing = threading.Event()
        self._data = self._open_data()
        self._engine = self._make_engine()
        self._run_failure: str | None = None
        self._restarts = 0
        self._has_news = threading.Event()
        self._runner = threading.Thread(target=self._run_until_closed, name="headwater-service", daemon=True)
        self._teller = threading.Thread(target=self._tell_until_closed, name="headwater-status", daemon=True)

    @property
    def engine(self) -> Engine:
        """The engine that runs now."""
        return self._engine

    @property
    def letters(self) -> Path:
        """The folder of the dead letters."""
        return self._state / "dead-letters"

    def sources(self) -> dict[str, Source | ReceivedSource]:
        """The sources of the streams by name, without those that cannot be read."""
        found = {name: self._source_of(name) for name in list(self._registry.streams)}
        return {name: source for name, source in found.items() if source is not None}

    def active_entries(self) -> dict[str, QueryEntry]:
        """The queries that are evaluated now."""
        known = self._registry.queries
        return {query.name: known[query.name] for query in self._engine.queries if query.name in known}

    def start(self) -> None:
        """Begin the run."""
        self._runner.start()
        self._teller.start()

    # The linked data of the server itself

    def _open_data(self) -> DataSetService:
        """The data set that is changed over HTTP; queries join with it, too."""
        settings = self._settings
        endpoints = tuple(read_endpoint_arguments(**_split_endpoint(one)) for one in settings.endpoints)
        services = ServiceSettings(endpoints, EgressPolicy.of(settings.egress))
        delay = check_duration("delay", settings.engine.get("delay", 0))
        windows = WindowGraphs(self._state, delay, self._evaluated, self._stream_at)
        return DataSetService.open_or_create(
            self._state / "data", services=services, find_extra_graphs=windows, may_see=windows.may_see
        )

    def _evaluated(self) -> list[Query]:
        """The queries that are evaluated now and known by name."""
        return [query for query in self._engine.queries if query.name in self._registry.queries]

    def _stream_at(self, iri: str) -> object:
        """The source of the stream of an IRI; None where it cannot be read."""
        for name, entry in list(self._registry.streams.items()):
            if name_to_iri(name).value == iri:
                with suppress(HeadwaterError):
                    return self._open_source(name, entry)
        return None

    def data(self, method: str, values: Plain) -> Plain:
        """What a method of the data service gives (`protocol.data_calls`)."""
        return answer_data_call(self._data, method, values)

    # The run

    def _make_engine(self) -> Engine:
        """An engine with everything that is registered; what cannot be registered now is in `_failed`."""
        settings = self._settings
        engine = Engine(
            in_process=settings.in_process,
            checkpoint=self._state / "checkpoint",
            dead_letters=self.letters,
            egress=self._policy,
            **{"locate_streams": False, **settings.engine},
        )
        for endpoint in settings.endpoints:
            engine.endpoint(**endpoint)
        self.data_folders = {_data_name(data): engine.dataset(**data).folder for data in settings.data}
        self.data_folders[SERVED_DATA] = engine.dataset(self._state / "data").folder
        self._failed = {}
        for name, stream in self._registry.streams.items():
            try:
                engine.stream(name, self._open_source(name, stream), idle=stream.idle)
            except (HeadwaterError, OSError) as error:
                logger.error("the stream %s cannot be read: %s", name, error)
                self._failed[name] = str(error)
        self._registry.save()
        active = {name: query for name, query in self._registry.queries.items() if not query.is_paused}
        for name in self._find_registrable(active):
            try:
                self._register(engine, name, active[name])
            except HeadwaterError as error:
                logger.error("the query %s cannot be registered: %s", name, error)
                self._failed[name] = str(error)
        return engine

    def _find_registrable(self, queries: Mapping[str, QueryEntry]) -> list[str]:
        """The queries whose streams are there; the others are noted as failed."""
        plans: dict[str, QueryPlan] = {}
        for name, query in queries.items():
            try:
                plans[name] = self._plan(query.text, name, query.options.get("dialect"))
            except HeadwaterError as error:
                self._failed[name] = str(error)
        if self._settings.engine.get("locate_streams"):
            return list(plans)
        while True:
            known = {name_to_iri(name).value for name in self._registry.streams if name not in self._failed}
            known |= {_produced_stream(queries[name].text) for name in plans}
            lacking = {
                name: window.stream.value
                for name, plan in plans.items()
                for window in plan.windows
                if window.stream.value not in known
            }
            if not lacking:
                return list(plans)
            for name, stream in lacking.items():
                self._failed[name] = f"the stream {iri_to_name(stream)} is not there"
                del plans[name]

    def _plan(self, text: str, name: str, dialect: Any) -> QueryPlan:
        parsed = parse(text, parse_choice(Dialect, dialect, "dialect"))
        return plan_query(parsed, name=name, streams=sorted(name_to_iri(one).value for one in self._registry.streams))

    def _register(self, engine: Engine, name: str, entry: QueryEntry) -> None:
        engine.register(entry.text, name=name, **entry.options)

    def _run_until_closed(self) -> None:
        """Run the engine; after a failure, or a change that a run cannot take up, begin again from the checkpoint."""
        pause = _FIRST_PAUSE
        while not self._closing.is_set():
            with self._changing:
                engine = self._engine
            try:
                engine.start(
                    sinks=[self._log],
                    on_progress=lambda progress: self._has_news.set(),
                    trigger_seconds=self._settings.trigger_seconds,
                )
                if self._engine is not engine or self._closing.is_set():
                    # It was asked to stop before it had begun.
                    engine.stop()
                self._tell_status()
                engine.wait()
                pause = _FIRST_PAUSE
            except BaseException as error:
                logger.error("the run ended: %s", error, exc_info=not isinstance(error, HeadwaterError))
                self._run_failure = "the run has failed and is begun again: the server's log says why"
                self._restarts += 1
                self._tell_status()
                self._closing.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            with self._changing:
                if self._engine is engine and not self._closing.is_set():
                    self._engine = self._make_engine()

    def _tell_status(self) -> None:
        self._notify("status", self.status())

    def _tell_until_closed(self) -> None:
        """Tell the counts after batches, some times a second at most."""
        while not self._closing.wait(_STATUS_SECONDS):
            if self._has_news.is_set():
                self._has_news.clear()
                self._tell_status()

    def _begin_again(self) -> None:
        """Let another engine go on, with what is registered now; called with the lock held."""
        before, self._engine = self._engine, self._make_engine()
        before.stop()

    def close(self) -> None:
        """End the run in order; what was delivered is committed when this returns."""
        self._closing.set()
        with self._changing:
            self._engine.stop()
        self._runner.join(_STOP_SECONDS)
        self._data.close()
        for source in self._posted.values():
            source.__exit__()

    # Queries

    def put_query(
        self, name: str, text: str, options: dict[str, Any], gauges: bool = False, callback: str = "", owner: str = ""
    ) -> dict[str, Any]:
        """Register a query, or replace the one of that name; nothing happens where it is the same."""
        with self._changing:
            before = self._registry.queries.get(name)
            entry = QueryEntry(text, options, gauges, callback, owner=owner)
            if callback:
                self._policy.check_url(callback)
            if before is not None:
                self._check_not_fixed("query", name, before.is_fixed)
                if replace(before, is_paused=False, owner=owner) == entry and name not in self._failed:
                    return {"created": False, "changed": False}
            elif len(self._registry.queries) >= self._settings.most_queries:
                raise TooMany(f"there are {len(self._registry.queries)} queries, and no more are allowed: drop one")
            self._plan_allowed(text, name, options.get("dialect"))
            was_active = self._is_active(name)
            if was_active:
                self._engine.drop(name)
            try:
                self._register(self._engine, name, entry)
            except BaseException:
                if was_active and before is not None:
                    self._register(self._engine, name, before)
                raise
            if before is not None:
                self._log.forget(name)
            self._failed.pop(name, None)
            self._registry.queries[name] = entry
            self._registry.save()
            self._tell_status()
            return {"created": before is None, "changed": True}

    def _plan_allowed(self, text: str, name: str, dialect: Any) -> QueryPlan:
        """The plan of a query that came over HTTP; an error where it names a file, or a stream that is not there."""
        plan = self._plan(text, name, dialect)
        if any(isinstance(one, str) for one in rate_sources_of([plan])):
            raise NotAllowedHere("RATES names a file: a query that comes over HTTP may name a graph of the data")
        known = {name_to_iri(one).value for one in self._registry.streams}
        known |= {_produced_stream(one.text) for one in self._registry.queries.values()}
        locates = self._settings.engine.get("locate_streams")
        for window in plan.windows:
            stream = window.stream.value
            # The engine's own error names all streams, and the caller may not know them.
            if stream not in known and not (locates and is_stream_address(stream)):
                what = f"is not there, and its IRI is no address of one ({READABLE})" if locates else "is not there"
                raise RegistrationError(
                    f"the query reads the stream {iri_to_name(stream)}, which {what}: make it first"
                )
        return plan

    def _is_active(self, name: str) -> bool:
        return any(query.name == name for query in self._engine.queries)

    def _query(self, name: str) -> QueryEntry:
        if name not in self._registry.queries:
            raise UnknownName(f"no query is named {name!r}")
        return self._registry.queries[name]

    def _check_not_fixed(self, what: str, name: str, is_fixed: bool) -> None:
        if is_fixed:
            raise NotAllowedHere(f"the {what} {name!r} stands in the settings file of the server: change it there")

    def drop_query(self, name: str) -> None:
        """Forget a query and its answers."""
        with self._changing:
            self._check_not_fixed("query", name, self._query(name).is_fixed)
            if self._is_active(name):
                self._engine.drop(name)
            del self._registry.queries[name]
            self._registry.save()
            self._failed.pop(name, None)
            self._log.forget(name)
            self._tell_status()

    def pause_query(self, name: str) -> None:
        """Evaluate a query no more until it is resumed; its answers stay."""
        with self._changing:
            entry = self._query(name)
            if self._is_active(name):
                self._engine.drop(name)
            self._registry.queries[name] = replace(entry, is_paused=True)
            self._registry.save()
            self._tell_status()

    def resume_query(self, name: str) -> None:
        """Evaluate a query again that was paused or suspended, as one that is registered now."""
        with self._changing:
            entry = replace(self._query(name), is_paused=False)
            if not self._is_active(name):
                self._register(self._engine, name, entry)
            elif name in self._engine.progress.suspended:
                self._engine.resume(name)
            self._failed.pop(name, None)
            self._registry.queries[name] = entry
            self._registry.save()
            self._tell_status()

    def plan(self, name: str, format: str, graph: str | None = None, stage: str = "evaluated") -> Any:
        """How a query is evaluated: as text, Mermaid, SVG, or as values of JSON."""
        entry = self._query(name)
        if not self._is_active(name):
            raise StateError(f"the query {name!r} is not evaluated now: resume it first")
        if format == "json":
            return describe_plan(next(one for one in self._engine.queries if one.name == name), entry)
        return self._engine.explain(name, format=format, graph=graph, stage=stage)

    def validate(self, text: str, dialect: str | None = None) -> dict[str, Any]:
        """What is wrong with a query, and where; what it would read, if nothing is."""
        return check_text(text, dialect, set(self._registry.streams))

    def preview(self, text: str, options: dict[str, Any]) -> Any:
        """The answer of a query over what the windows hold now; nothing is registered."""
        plan = self._plan_allowed(text, "preview", options.get("dialect"))
        read = {window.stream.value for window in plan.windows}
        sources = {name: self._source_of(name) for name in self._registry.streams if name_to_iri(name).value in read}
        return preview_query(self._settings, text, options, sources)

    # Streams

    def put_stream(self, name: str, entry: dict[str, Any], owner: str = "") -> dict[str, Any]:
        """Make a stream, or check that the one of that name is the same."""
        with self._changing:
            wanted = StreamEntry(**entry, owner=owner)
            before = self._registry.streams.get(name)
            if before is not None:
                if before.is_same(wanted):
                    return {"created": False, "changed": False}
                raise RegistrationError(f"the stream {name!r} is there, and is another one: delete it first")
            if len(self._registry.streams) >= self._settings.most_streams:
                raise TooMany(f"there are {len(self._registry.streams)} streams, and no more are allowed: delete one")
            if wanted.source != PUSH and not wanted.source.lower().startswith("file:"):
                check_stream_address(self._policy, wanted.source)
            source = self._open_source(name, wanted)
            try:
                self._engine.stream(name, source, idle=wanted.idle)
            except BaseException:
                self._close_source(name)
                raise
            self._registry.streams[name] = self._with_folder(name, wanted)
            self._registry.save()
            self._tell_status()
            return {"created": True, "changed": True}

    def drop_stream(self, name: str) -> None:
        """Forget a stream that no query reads, and what was kept of it."""
        with self._changing:
            if name not in self._registry.streams:
                raise UnknownName(f"no stream is named {name!r}")
            self._check_not_fixed("stream", name, self._registry.streams[name].is_fixed)
            iri = name_to_iri(name).value
            readers = [
                one
                for one, query in self._registry.queries.items()
                if iri in {w.stream.value for w in self._plan(query.text, one, query.options.get("dialect")).windows}
            ]
            if readers:
                raise RegistrationError(f"the stream {name!r} is read by {', '.join(sorted(readers))}: drop them first")
            del self._registry.streams[name]
            self._registry.save()
            self._begin_again()
            self._close_source(name)
            self._tell_status()

    def _open_source(self, name: str, entry: StreamEntry) -> Source | ReceivedSource | Any:
        template = None if entry.template is None else f"{entry.template}\n"
        if entry.source != PUSH:
            is_file = entry.source.lower().startswith("file:") and template is not None
            return source_at(entry.source, template=RowTemplate(template or "") if is_file else template)
        if name not in self._posted:
            is_decoded = template is not None or entry.format is not None or entry.time is not None
            decoder = Decoder.of(entry.format, template=template, time=entry.time) if is_decoded else None
            engine = self._settings.engine
            max_ahead = engine.get("max_ahead")
            if isinstance(max_ahead, str) and max_ahead != OFF:
                max_ahead = check_duration("max_ahead", max_ahead)
            folder = entry.folder or uuid.uuid4().hex
            source = PostedSource(
                self._state / "streams" / folder,
                decoder,
                delay=check_duration("delay", engine.get("delay", 0)),
                max_ahead=choose_max_ahead(max_ahead, is_live=True),
                most_unread=self._settings.most_unread,
            )
            source.__enter__()
            self._posted[name] = source
            if name in self._registry.streams:
                self._registry.streams[name] = self._with_folder(name, entry)
        return self._posted[name]

    def _with_folder(self, name: str, entry: StreamEntry) -> StreamEntry:
        source = self._posted.get(name)
        return entry if source is None else replace(entry, folder=source.folder.name)

    def _close_source(self, name: str) -> None:
        source = self._posted.pop(name, None)
        if source is not None:
            source.remove()

    def _source_of(self, name: str) -> Source | ReceivedSource | None:
        entry = self._registry.streams[name]
        with suppress(HeadwaterError):
            return self._posted.get(name) or source_at(entry.source)
        return None

    def post(
        self, stream: str, body: bytes, format: str, key: str | None = None, at: int | None = None
    ) -> dict[str, Any]:
        """Take a body of a stream that is fed over HTTP; it is on disk when this returns."""
        source = self._posted.get(stream)
        if source is None:
            if stream in self._registry.streams:
                raise NotAllowedHere(f"the stream {stream!r} has a source of its own: it is not fed over HTTP")
            raise UnknownName(f"no stream is named {stream!r}")
        return asdict(source.post(body, format=format, key=key, at=at))

    # What there is

    def status(self) -> dict[str, Any]:
        """Queries and streams with their counts, and how the run is doing."""
        progress = json.loads(self._engine.progress.to_json())
        counts = progress.pop("queries")
        emits = {query.name: query.settings.emit.value for query in self._engine.queries}
        queries = {}
        for name, entry in list(self._registry.queries.items()):
            own = counts.get(name, {})
            queries[name] = {
                **{key: value for key, value in asdict(entry).items() if key not in ("is_paused", "is_fixed")},
                "status": self._status_of(name, entry, own),
                "reason": self._failed.get(name) or own.get("suspended"),
                "fixed": entry.is_fixed,
                "emit": emits.get(name),
                "counts": {key: value for key, value in own.items() if key not in ("choices", "suspended")},
            }
        streams = {}
        for name, stream in list(self._registry.streams.items()):
            source = self._posted.get(name)
            iri = name_to_iri(name).value
            streams[name] = {
                **{key: value for key, value in asdict(stream).items() if key not in ("folder", "is_fixed")},
                "iri": iri,
                "fixed": stream.is_fixed,
                "watermark": progress["watermarks"].get(iri_to_name(iri)),
                "unread_bytes": 0 if source is None else source.unread_bytes,
                "reason": self._failed.get(name),
            }
        progress["restarts"] = self._restarts
        return {"queries": queries, "streams": streams, "run": progress, "failure": self._run_failure}

    def _status_of(self, name: str, entry: QueryEntry, counts: Mapping[str, Any]) -> str:
        if entry.is_paused:
            return "paused"
        if name in self._failed:
            return "failed"
        return "suspended" if counts.get("suspended") is not None else "running"


def _split_endpoint(table: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `read_endpoint_arguments` of an endpoint in the settings."""
    if "url" not in table:
        raise SettingError("an endpoint in [[endpoints]] needs a url")
    return {"url": table["url"], "settings": {name: value for name, value in table.items() if name != "url"}}


def _produced_stream(text: str) -> str:
    """The IRI of the stream that a query registers; empty where it registers none."""
    registration = parse(text).registration
    if registration is None or registration.kind is not RegistrationKind.STREAM:
        return ""
    return name_to_iri(registration.name).value


def _data_name(arguments: Mapping[str, Any]) -> str:
    """What linked data is called: the last part of where it comes from, and its graph."""
    name = str(arguments["data"]).rstrip("/").rpartition("/")[2]
    graph = arguments.get("graph")
    return name if graph is None else f"{name} in {iri_to_name(str(graph))}"
