"""The engine: streams, linked data and queries, and the run that brings them together.

engine = Engine(in_process=True)
engine.stream("tollgates", files("gates/*.tnq"))
engine.dataset("city.ttl")
query = engine.register("REGISTER QUERY busy AS SELECT … FROM STREAM <tollgates> [RANGE 10m STEP 1m] …")
for answer in query.answers(): …
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from headwater.algebra import plan_query
from headwater.algebra.partitioning import OneShard
from headwater.datasets.dataset import DataSet
from headwater.datasets.linked_data import LinkedData
from headwater.datasets.scratch import Scratch
from headwater.federation.endpoint_settings import EndpointSettings
from headwater.federation.service_settings import ServiceSettings
from headwater.language import parse
from headwater.language.service_options import ServiceOptions
from headwater.language.stream_clauses import Dialect, RegistrationKind, StreamOperator
from headwater.pipeline.checkpoints import claim, new_run
from headwater.pipeline.connectors.addresses import is_address, source_at
from headwater.pipeline.connectors.receiving import (
    ReceivedSource,
    opened,
    readable_as_frames,
    readable_in_process,
)
from headwater.pipeline.connectors.records import RecordSource, skews
from headwater.pipeline.delivery import Answers, Delivery, OnAnswer, OnProgress, Subscription
from headwater.pipeline.evaluation import Definition, EvaluatorName, evaluator_named
from headwater.pipeline.feed import Feed
from headwater.pipeline.in_process import run_in_process
from headwater.pipeline.progress import Progress, RunSummary
from headwater.pipeline.query import Query
from headwater.pipeline.refreshing import Refreshed, is_web_address, refreshing, source_of
from headwater.pipeline.services import endpoint_settings, service_options, with_options
from headwater.pipeline.sharding import Sharding, sharding, spreading_keys
from headwater.pipeline.shared_files import DataFolder
from headwater.pipeline.sinks import Sink
from headwater.pipeline.sources import files
from headwater.pipeline.spans import Source, SourceError
from headwater.pipeline.static_data import Given, in_graph, load, statements
from headwater.pipeline.wanted import wanted
from headwater.reference import Program, Registered, RegistrationError
from headwater.terms.durations import parse_duration
from headwater.terms.inline_layout import NO_TERM
from headwater.terms.model import Quad
from headwater.terms.names import iri_to_name, name_to_iri
from headwater.terms.timestamps import parse_time
from headwater.windows import Bounds, Content, Options, Report, settle

if TYPE_CHECKING:
    from enum import Enum

    from pyspark.sql import DataFrame, SparkSession

    Choice = TypeVar("Choice", bound=Enum)


_LARGEST_LOG = 16 << 20
"""From so many bytes of changes on, a data set is put in order before it is used."""


class Engine:
    """Answers continuous queries, on Spark or, with `in_process`, in a loop of this process.

    `spark` is a session to use; without one an embedded session is started when it is first needed. `delay` is how
    late an element may be: microseconds, or a duration such as `"5s"`. `checkpoint` is a folder from which a later
    run with the same queries goes on. `dead_letters` is a folder for elements that could not be used. `strict` stops
    at the first of those. `batch_bytes` is about how much is read at a time. `evaluator` is `auto` (the incremental
    kernel where it can, the reference where it cannot) or `reference`. `shards` is into how many parts the work is cut
    on Spark, where the queries allow it: as many as Spark runs tasks at a time, unless it is said. `window_cap` is how
    many triples a window may hold before the run ends with a `WindowCapError`: ALL has no other bound.
    """

    def __init__(
        self,
        spark: SparkSession | None = None,
        *,
        in_process: bool = False,
        delay: int | str = 0,
        checkpoint: str | Path | None = None,
        dead_letters: str | Path | None = None,
        strict: bool = False,
        batch_bytes: int | None = None,
        master: str = "local[*]",
        shuffle_partitions: int = 1,
        evaluator: EvaluatorName = "auto",
        shards: int | None = None,
        window_cap: int | None = None,
    ) -> None:
        if evaluator not in get_args(EvaluatorName):
            raise ValueError(f"{evaluator!r} is no evaluator: use one of {', '.join(get_args(EvaluatorName))}")
        self._evaluator: EvaluatorName = evaluator
        if shards is not None and shards < 1:
            raise ValueError(f"there must be at least one shard, not {shards}")
        self._shards = shards
        if window_cap is not None and window_cap < 1:
            raise ValueError(f"window_cap must be at least 1, and it is {window_cap}")
        self._window_cap = window_cap
        self._spark = spark
        self._in_process = in_process
        self._delay = parse_duration(delay) if isinstance(delay, str) else delay
        if self._delay < 0:
            raise ValueError(f"the delay must not be negative, and it is {delay}")
        if batch_bytes is not None and batch_bytes < 1:
            raise ValueError(f"batch_bytes must be at least 1, and it is {batch_bytes}")
        self._checkpoint = None if checkpoint is None else Path(checkpoint).absolute()
        self._dead_letters = None if dead_letters is None else Path(dead_letters).absolute()
        self._strict = strict
        self._batch_bytes = batch_bytes
        self._master = master
        self._shuffle_partitions = shuffle_partitions
        self._sources: dict[str, Source | ReceivedSource] = {}
        self._idle: dict[str, int] = {}
        self._endpoints: dict[str, EndpointSettings] = {}
        self._queries: dict[str, Query] = {}
        self._scratch = Scratch()
        self._datasets: list[DataFolder] = []
        self._refreshed: list[tuple[Scratch, Refreshed]] = []
        self._subscriptions: list[Subscription] = []
        self._stop = threading.Event()
        self._running = threading.Lock()
        self._progress = Progress()

    @property
    def queries(self) -> tuple[Query, ...]:
        """The registered queries in the order of their registration."""
        return tuple(self._queries.values())

    @property
    def progress(self) -> Progress:
        """The counts of the run at work, or of the last one."""
        return self._progress

    def stream(self, name: str, source: Source | ReceivedSource | str | Path, *, idle: int | str | None = None) -> None:
        """Say where the elements of a stream come from: `files(…)`, `kafka(…)`, …, a path or pattern, an address.

        A stream holds back those that are joined with it until its own time has come as far. `idle` bounds that: when
        the others are ahead by so much event time (microseconds, or a duration such as `"30s"`), they go on without
        it, and what it brings from before is late.
        """
        iri = name_to_iri(name).value
        if iri in self._sources:
            raise RegistrationError(
                f"the stream {iri_to_name(iri)} has a source already; files(…) takes several patterns"
            )
        if idle is not None:
            self._idle[iri] = parse_duration(idle) if isinstance(idle, str) else idle
        if isinstance(source, str) and is_address(source):
            source = source_at(source)
        self._sources[iri] = files(source) if isinstance(source, str | Path) else source

    def dataset(self, data: Given, graph: str | None = None, *, refresh: float | str | None = None) -> DataSet:
        """Name linked data: the folder of a data set (`headwater load`), RDF files by path or pattern, the address of a
        document, a pyoxigraph store, or quads. `insert`, `remove` and `update` of the data set that it gives may be
        called while queries run.

        With `graph`, what stands in no named graph goes into the one of that name. `refresh` is how often files or an
        address are looked at again while queries run: seconds, or a duration such as `"30s"`. What is not given as the
        folder of a data set is copied, and all of it that is not refreshed is one data set.
        """
        if isinstance(data, str | Path) and Path(data).is_dir():
            if graph is not None or refresh is not None:
                raise SourceError(
                    f"{data} is the folder of a data set: headwater load --graph chooses the graph, and changes are "
                    "seen without a refresh"
                )
            found = DataSet.open(data)
            if found.log_bytes > _LARGEST_LOG:
                found.compact()
            self._datasets.append(DataFolder(str(found.folder)))
            return found
        seconds = parse_duration(refresh) / 1_000_000 if isinstance(refresh, str) else refresh
        if seconds is None and not is_web_address(data):
            return self._held(self._scratch, statements(data), graph)
        if not isinstance(data, str | Path):
            raise ValueError("only files and addresses can be refreshed: change other data with insert and remove")
        source = source_of(data)
        quads = source.read() or []
        if seconds is None:
            return self._held(self._scratch, quads, graph)
        scratch = Scratch()
        watched = Refreshed(source, self._held(scratch, quads, graph), graph, seconds)
        watched.begin(in_graph(quads, graph))
        self._refreshed.append((scratch, watched))
        return watched.data

    def _held(self, scratch: Scratch, quads: Sequence[Quad], graph: str | None) -> DataSet:
        """A data set of the engine's own with some statements more."""
        load(scratch.folder, quads, graph)
        place = DataFolder(str(scratch.folder), is_temporary=True)
        if place not in self._datasets:
            self._datasets.append(place)
        return DataSet.open(scratch.folder)

    def _linked_data(self) -> LinkedData:
        """All data sets as they are now."""
        return LinkedData([DataSet.open(one.path) for one in self._datasets])

    def endpoint(self, url: str, **settings: Any) -> None:
        """Say how to speak with an endpoint of SERVICE; without it, defaults and the environment's credentials hold.

        `bearer`, `user` and `password`, or `headers` say who asks; `per_second` and `concurrent` limit the requests;
        `timeout` (seconds), `retries`, `largest_response` (bytes) and `method` (GET or POST) say how they are made.
        """
        found = endpoint_settings(url, **settings)
        self._endpoints[found.url] = found

    @property
    def _services(self) -> ServiceSettings:
        return ServiceSettings(tuple(self._endpoints.values()))

    def register(
        self,
        text: str,
        *,
        name: str | None = None,
        dialect: Dialect | str | None = None,
        bounds: Bounds | str | None = None,
        report: Report | str | None = None,
        emit: StreamOperator | str | None = None,
        content: Content | str | None = None,
        t0: int | str | None = None,
        service: ServiceOptions | Mapping[str, Any] | None = None,
    ) -> Query:
        """Register a query of any dialect; a `QueryError` says what is wrong with its text, and where.

        The switches override the defaults of the dialect. `t0` is in microseconds since 1970, or a text such as an
        xsd:dateTime. Streams that the query reads may be named later. `service` says what OPTION (…) can say, for all
        SERVICE clauses of the query: `ServiceOptions(…)`, or a mapping such as `{"latency": "200ms", "budget": 10}`.
        """
        parsed = parse(text, _choice(Dialect, dialect, "dialect"))
        options = Options(
            bounds=_choice(Bounds, bounds, "bounds"),
            report=_choice(Report, report, "report"),
            emit=_choice(StreamOperator, emit, "emit"),
            content=_choice(Content, content, "content"),
            t0=parse_time(t0) if isinstance(t0, str) else t0,
            cap=self._window_cap,
        )
        chosen = name or (parsed.registration.name if parsed.registration else self._free_name())
        goals = service_options(service)
        plan = with_options(plan_query(parsed, name=chosen, streams=sorted(self._sources)), goals)
        settle(plan, options)
        if chosen in self._queries:
            raise RegistrationError(f"two queries are named {chosen!r}; give one another name")
        query = Query(self, parsed, plan, options, goals)
        self._queries[chosen] = query
        return query

    def _free_name(self) -> str:
        number = 1
        while (name := "query" if number == 1 else f"query-{number}") in self._queries:
            number += 1
        return name

    def run(
        self,
        *,
        follow: bool = False,
        drain: bool = True,
        on_answer: OnAnswer | None = None,
        on_progress: OnProgress | None = None,
        sinks: Sequence[Sink] = (),
        trigger_seconds: float = 1.0,
    ) -> RunSummary:
        """Answer everything there is to read, and say how much it was.

        `follow` goes on with what is added to the sources until `stop` is called. `drain` (without `follow`) answers
        the windows that are still open when everything is read; without it they stay open for a later run from the
        same checkpoint. `on_answer` gets every answer in the order of time, `on_progress` the counts after each
        batch. What they raise ends the run. `sinks` take the answers batch by batch, before `on_answer` does.
        """
        if not self._running.acquire(blocking=False):
            raise RuntimeError("this engine is running already: stop it, or wait for its end")
        try:
            self._stop.clear()
            failure: BaseException | None = None
            try:
                return self._run(follow, drain, on_answer, on_progress, sinks, trigger_seconds)
            except BaseException as error:
                failure = error
                raise
            finally:
                subscriptions, self._subscriptions = self._subscriptions, []
                for subscription in subscriptions:
                    subscription.end(failure)
        finally:
            self._running.release()

    def _run(
        self,
        follow: bool,
        drain: bool,
        on_answer: OnAnswer | None,
        on_progress: OnProgress | None,
        sinks: Sequence[Sink],
        trigger_seconds: float,
    ) -> RunSummary:
        queries, program = self._program()
        given = {stream: self._sources[stream] for stream in program.inputs}
        # What is received goes on until somebody stops it.
        endless = any(isinstance(source, ReceivedSource) for source in given.values())
        for sink in sinks:
            sink.open(None if self._in_process else self.session())
        watched = [one for _, one in self._refreshed]
        with opened(given, self._checkpoint, self.stop) as sources, refreshing(watched):
            arguments = follow or endless, drain, on_answer, on_progress, sinks, trigger_seconds
            return self._run_over(sources, queries, program, *arguments)

    def _run_over(
        self,
        sources: dict[str, Source],
        queries: tuple[Registered, ...],
        program: Program,
        follow: bool,
        drain: bool,
        on_answer: OnAnswer | None,
        on_progress: OnProgress | None,
        sinks: Sequence[Sink],
        trigger_seconds: float,
    ) -> RunSummary:
        if self._in_process:
            readable_in_process(sources)
        needed = wanted(queries, program)
        feed = Feed(sources, drain=drain, wanted=needed, datasets=[one.path for one in self._datasets])
        if not follow:
            feed.check()
        definition = self._definition(queries)
        if not self._in_process:
            definition = replace(definition, sharding=self._sharding(queries), skews=skews(sources))
        definition = replace(definition, services=self._services)
        runner = "in process" if self._in_process else "on Spark"
        run = claim(self._checkpoint, definition, runner) if self._checkpoint else new_run()

        def report(progress: Progress) -> None:
            self._progress = progress
            if on_progress is not None:
                on_progress(progress)
            if self._subscriptions and on_answer is None and all(s.closed for s in self._subscriptions):
                self._stop.set()

        delivery = Delivery(
            on_answer=on_answer,
            on_progress=report,
            subscriptions=self._subscriptions,
            sinks=sinks,
            dead_letters=self._dead_letters,
            run=run,
            strict=self._strict,
            line_numbers=feed.line_numbers,
            text_at=feed.text_at,
        )
        if self._in_process:
            run_in_process(
                program,
                feed,
                delivery,
                self._stop,
                follow=follow,
                checkpoint=self._checkpoint,
                batch_bytes=self._batch_bytes,
                data_changes=bool(self._datasets),
                trigger_seconds=trigger_seconds,
            )
        else:
            from headwater.pipeline.spark_runner import run_on_spark

            run_on_spark(
                self.session(),
                definition,
                sources,
                needed,
                delivery,
                self._stop,
                follow=follow,
                drain=drain,
                checkpoint=self._checkpoint,
                batch_bytes=self._batch_bytes,
                trigger_seconds=trigger_seconds,
            )
        summary = delivery.summary(stopped=self._stop.is_set())
        self._progress = summary
        return summary

    def _sharding(self, queries: Sequence[Registered]) -> Sharding | None:
        """How the work is cut on Spark; None where it is not."""
        shards = self._shards or self.session().sparkContext.defaultParallelism
        if shards == 1:
            return None
        has_static = any(graph == NO_TERM for graph, _ in self._linked_data().places())
        found = sharding(queries, spreading_keys(shards), has_static_default=has_static)
        return None if isinstance(found, OneShard) else found

    def _definition(self, queries: tuple[Registered, ...]) -> Definition:
        silent = tuple(sorted(self._idle.items()))
        return Definition(queries, tuple(self._datasets), self._delay, self._evaluator, idle=silent)

    def stop(self) -> None:
        """End the run after the batch at work. May be called from any thread, and from `on_answer`."""
        self._stop.set()

    def session(self) -> SparkSession:
        """The Spark session that this engine uses, started if need be."""
        from headwater.pipeline.session import embedded_session, prepared

        if self._spark is None:
            self._spark = embedded_session(master=self._master, shuffle_partitions=self._shuffle_partitions)
            return self._spark
        return prepared(self._spark)

    def subscribe(self, name: str) -> Answers:
        """What `Query.answers` gives."""
        subscription = Subscription(name)
        self._subscriptions.append(subscription)
        return Answers(subscription, self._start_in_background)

    def _start_in_background(self) -> None:
        if self._running.locked():
            return

        def run() -> None:
            # Whoever takes the answers gets the failure.
            with suppress(BaseException):
                self.run()

        threading.Thread(target=run, name="headwater-run", daemon=True).start()

    def dataframe(self, name: str, *, terms: bool = False, follow: bool = False) -> DataFrame:
        """What `Query.to_dataframe` gives."""
        if self._in_process:
            raise RuntimeError("a streaming DataFrame needs Spark: make the engine without in_process")
        from headwater.pipeline.dataframes import answers_as_rows
        from headwater.pipeline.spark_runner import outcome_rows

        queries, program = self._program()
        sources = readable_as_frames({stream: self._sources[stream] for stream in program.inputs})
        if not follow:
            Feed(sources).check()
        definition = self._definition(queries)
        needed = wanted(queries, program)
        # Whoever starts the DataFrame knows when its records end.
        definition = replace(definition, skews=skews(sources), services=self._services)
        drain = not any(isinstance(source, RecordSource) for source in sources.values())
        rows = outcome_rows(self.session(), definition, sources, needed, drain=drain, batch_bytes=self._batch_bytes)
        plan = next(query.plan for query in queries if query.plan.name == name)
        return answers_as_rows(rows, plan, terms=terms)

    def _program(self) -> tuple[tuple[Registered, ...], Program]:
        """The queries as they run with all streams known, and a program that shows that they can run together."""
        if not self._queries:
            raise RegistrationError("no query is registered; engine.register(text) registers one")
        produced = {
            name: name_to_iri(query.parsed.registration.name).value
            for name, query in self._queries.items()
            if query.parsed.registration is not None and query.parsed.registration.kind is RegistrationKind.STREAM
        }
        for name, stream in produced.items():
            if stream in self._sources:
                raise RegistrationError(
                    f"the stream {iri_to_name(stream)} has a source, and the query {name!r} registers it, too; "
                    "give one of them another name"
                )
        registered: list[Registered] = []
        for name, query in self._queries.items():
            others = {stream for other, stream in produced.items() if other != name}
            plan = plan_query(query.parsed, name=name, streams=sorted(self._sources.keys() | others))
            plan = query.plan = with_options(plan, query.service)
            registered.append(Registered(plan, settle(plan, query.options)))
        self._check_streams(registered, produced)
        return tuple(registered), Program(
            registered,
            self._linked_data(),
            self._delay,
            evaluator_named(self._evaluator, self._services),
            is_durable=self._checkpoint is not None,
            idle=self._idle,
        )

    def _check_streams(self, registered: Iterable[Registered], produced: Mapping[str, str]) -> None:
        known = {*self._sources, *produced.values()}
        for query in registered:
            for window in query.plan.windows:
                if window.stream.value not in known:
                    names = ", ".join(sorted(map(iri_to_name, known))) or "none"
                    wanted = iri_to_name(window.stream.value)
                    raise RegistrationError(
                        f"query {query.plan.name!r} reads the stream {wanted}, which has no source; known streams: "
                        f"{names}. Name its source with engine.stream({wanted!r}, files(…)) or --stream {wanted}=FILES"
                    )


def _choice(kind: type[Choice], given: Choice | str | None, what: str) -> Choice | None:
    if given is None or isinstance(given, kind):
        return given
    for choice in kind:
        if str(given).lower() == choice.value:
            return choice
    raise ValueError(f"{given!r} is no {what}: use one of {', '.join(str(choice.value) for choice in kind)}")
