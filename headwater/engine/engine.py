"""The engine: streams, linked data and queries, and the run that brings them together."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from headwater.algebra.nodes import Node
from headwater.datasets.dataset import DataSet
from headwater.datasets.remote_updates import RemoteAccess
from headwater.egress.credentials import check_credentials
from headwater.egress.policy import EgressPolicy
from headwater.engine import realtime_runs
from headwater.engine.checkpoint_claims import ModeSwitch, claim_for_run, name_runner
from headwater.engine.engine_data import EngineData
from headwater.engine.explaining import explain_answer
from headwater.engine.function_arguments import add_function
from headwater.engine.lifecycle import RunsInBackground, Takers, check_trigger
from headwater.engine.query_handle import Query
from headwater.engine.query_warnings import QueryWarnings
from headwater.engine.registering import check_any_query, make_query_name, parse_choice, read_options, resolve_queries
from headwater.engine.service_arguments import (
    apply_service_options,
    check_service_addresses,
    read_endpoint_arguments,
    read_service_options,
)
from headwater.engine.static_files import Given
from headwater.engine.stream_sources import AnySource, StreamSources, as_source, check_records_are_open
from headwater.errors import SettingError, StateError
from headwater.execution.registered import RegisteredQuery, RegistrationError
from headwater.federation.endpoint.endpoint_settings import EndpointSettings
from headwater.federation.rate_reading import rate_sources_of, read_rates_file
from headwater.federation.service_settings import ServiceSettings
from headwater.federation.services import Services
from headwater.federation.view.given_rates import GivenRates
from headwater.language.parser import parse
from headwater.language.service_options import RatesSource, ServiceOptions
from headwater.language.stream_clauses import Dialect, StreamOperator
from headwater.running.ahead_limits import check_max_ahead, choose_max_ahead
from headwater.running.checkpoints import (
    CheckpointClaim,
    CheckpointRecord,
    Continued,
    adopt_checkpoint_key,
    check_spread,
    choose_shard_plan,
    lock_checkpoint,
)
from headwater.running.delivery import Delivery, OnAnswer, OnBatch, OnProgress
from headwater.running.in_process import run_in_process
from headwater.running.named_evaluators import EvaluatorName
from headwater.running.overload import Overload, check_overload
from headwater.running.program_description import ProgramDescription
from headwater.running.progress import Progress, RunSummary
from headwater.running.tick_explaining import Explanation, RowChoice
from headwater.running.workload import Workload, WorkloadChanges
from headwater.sharding.shard_plan import ShardPlan
from headwater.sharding.shard_planning import keep_shard_plan
from headwater.sinks.sink import Sink, open_sink
from headwater.sources.feed import Feed
from headwater.sources.live_streams import are_all_closed, has_received
from headwater.sources.receivers import ReceivedSource, RunSignals, check_readable_in_process, run_receivers
from headwater.sources.records import skews_of
from headwater.sources.source import Source
from headwater.terms.arguments import (
    check_duration,
    check_flag,
    check_folder,
    check_path,
    check_text,
    check_type,
    check_whole,
    make_folder,
)
from headwater.terms.model import Row
from headwater.terms.names import name_to_iri
from headwater.values.query_guard import Interruption
from headwater.values.query_limits import QueryLimits
from headwater.windows.model import Bounds
from headwater.windows.settings import Content, Report, resolve_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Engine(RunsInBackground):
    """Answers continuous queries, on Spark or, with `in_process`, in a loop of this process.

    `spark` is a session to use; without one an embedded session is started when it is first needed. `delay` is how
    late an element may be: microseconds, or a duration such as `"5s"`. `checkpoint` is a folder from which a later
    run with the same queries goes on. `dead_letters` is a folder for elements that could not be used. `strict` stops
    at the first of those. `batch_bytes` is about how much is read at a time. `evaluator` is `auto` (the incremental
    kernel where it can, the reference where it cannot), `fixed-order` (the same with joins that do not adapt) or
    `reference`. `shards` is into how many parts the work is cut on Spark, where the queries allow it: as many as
    Spark runs tasks at a time, unless it is said. `spread` has the IRIs of keys with much of a stream, whose triples
    all shards share; True: those of all keys. `window_cap` is how many triples a window may hold before the run ends
    with a `WindowCapError`: ALL has no other bound. `locate_streams` lets a query name the address of a stream, as in
    `FROM STREAM <tcp://host:9999>`; without it only streams that were bound with `stream` can be read. `overload` is
    what a run that follows its sources does when it falls behind: `wait` evaluates every tick, later; `coarsen` skips
    ticks, in process and without a checkpoint. `egress` says which addresses may be asked by SERVICE, LOAD, web
    documents and the streams that queries locate: `EgressPolicy(…)`, or a list of addresses; everything, unless it is
    given. `limits` says what each query may take (`QueryLimits`), such as `{"seconds": 10, "rows": 100_000}`. `idle` is
    after how much silence, such as `"2s"`, followed streams are not waited for; `stream` may say another one.
    `max_ahead` is how far the time of an element may be ahead of those before it, such as `"1h"` or `"off"`; others are
    dead letters. It is a day where a run follows its sources, and off where it reads what is there.
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
        spread: bool | Iterable[str] = False,
        window_cap: int | None = None,
        locate_streams: bool = True,
        overload: Overload = "wait",
        egress: EgressPolicy | Mapping[str, Any] | Iterable[str] | None = None,
        limits: QueryLimits | Mapping[str, Any] | None = None,
        idle: int | str | None = None,
        max_ahead: int | str | None = None,
    ) -> None:
        super().__init__()
        if evaluator not in get_args(EvaluatorName):
            raise SettingError(f"{evaluator!r} is no evaluator: use one of {', '.join(get_args(EvaluatorName))}")
        self._evaluator: EvaluatorName = evaluator
        self._shards = None if shards is None else check_whole("shards", shards, 1)
        self._spread = check_spread(spread)
        self._window_cap = None if window_cap is None else check_whole("window_cap", window_cap, 1)
        self._skips_ticks = check_overload(overload, in_process=in_process, has_checkpoint=checkpoint is not None)
        self._spark = spark
        self._in_process = in_process
        self._delay = check_duration("delay", delay)
        self._max_ahead = check_max_ahead(max_ahead)
        self._realtime = False
        self._checkpoint = None if checkpoint is None else check_folder("checkpoint", checkpoint)
        if self._checkpoint is not None:
            adopt_checkpoint_key(self._checkpoint)
        self._dead_letters = None if dead_letters is None else check_path("dead_letters", dead_letters).absolute()
        self._strict = strict
        self._batch_bytes = None if batch_bytes is None else check_whole("batch_bytes", batch_bytes, 1)
        self._master = check_text("master", master)
        self._shuffle_partitions = check_whole("shuffle_partitions", shuffle_partitions, 1)
        self._warnings = QueryWarnings()
        self._egress = EgressPolicy.of(egress)
        self._limits = QueryLimits.of(limits)
        self._resumed: dict[str, str] = {}
        self._interruption = Interruption()
        locates = check_flag("locate_streams", locate_streams)
        self._sources = StreamSources(locates=locates, egress=self._egress, idle=idle)
        self._endpoints: dict[str, EndpointSettings] = {}
        self._rate_files: dict[RatesSource, GivenRates] = {}
        self._queries: dict[str, Query] = {}
        self._data = EngineData(RemoteAccess(self._fetch_solutions, self._egress))
        self._progress = Progress()
        self._changing = threading.Lock()
        self._changes = WorkloadChanges(lambda: self._open_workload({}, ExitStack()), self._woken)
        self._workload: Workload | None = None
        """The workload of the current run; None while nothing runs."""
        self._has_evaluated = False
        """Whether the current run has had a query."""
        self._continued: Continued | None = None
        self._claimed = CheckpointClaim("")

    @property
    def continued(self) -> Continued | None:
        """What the run took over from its checkpoint, query by query; None where it began anew."""
        return self._continued

    @property
    def queries(self) -> tuple[Query, ...]:
        """The registered queries in the order of their registration."""
        return tuple(self._queries.values())

    @property
    def progress(self) -> Progress:
        """The counts of the run that goes on, or of the last one."""
        return self._progress

    def stream(self, name: str, source: Source | ReceivedSource | str | Path, *, idle: int | str | None = None) -> None:
        """Say where the elements of a stream come from: `files(…)`, `kafka(…)`, …, a path or pattern, an address.

        A followed stream that brings nothing for the time `idle` (microseconds, or a duration such as `"2s"`) is not
        waited for: its windows close by the machine's clock, and what it brings from before is late. `"off"`: it is
        waited for. Without it, the engine's holds; else streams that are stamped by arrival go on at once, records of
        Kafka after five seconds, and others are waited for.
        """
        iri = name_to_iri(name).value
        self._sources.bind(iri, as_source(source), idle)

    def dataset(self, data: Given, graph: str | None = None, *, refresh: float | str | None = None) -> DataSet:
        """Name linked data: the folder of a data set (`headwater load`), RDF files by path or pattern, the address of a
        document, a pyoxigraph store, or quads. `insert`, `remove` and `update` of the data set that it gives may be
        called while queries run.

        With `graph`, what stands in no named graph goes into the one of that name. `refresh` is how often files or an
        address are looked at again while queries run: seconds, or a duration such as `"30s"`. What is not given as the
        folder of a data set is copied, and all of it that is not refreshed is one data set.
        """
        return self._data.add(data, graph, refresh)

    def function(self, iri: str, function: Callable[..., Any], *, aggregate: bool = False, terms: bool = False) -> None:
        """Let queries that are registered from now on call a function as `<iri>(…)`.

        It gets Python's numbers, booleans, datetimes and texts, and returns one of those, a term, or None for an error;
        with `terms` it gets RDF terms. With `aggregate` it is called with the list of the values of a group. The same
        values must give the same result. It belongs to the process, and goes to the workers of Spark with the queries.
        """
        add_function(iri, function, aggregate=aggregate, terms=terms)

    def endpoint(self, url: str, **settings: Any) -> None:
        """Set how an endpoint of SERVICE is asked; without it, defaults and the environment's credentials hold.

        `bearer`, `user` and `password`, or `headers` say who asks; `per_second`, `burst` (how many may follow
        each other at once) and `concurrent` limit the requests; `timeout` (seconds), `retries`, `largest_response`
        (bytes) and `method` (GET or POST) say how they are made.
        """
        endpoint = read_endpoint_arguments(url, settings)
        self._endpoints[endpoint.url] = endpoint

    def _services(self, queries: Sequence[RegisteredQuery]) -> ServiceSettings:
        check_credentials()
        rates = self._rate_files | self._data.read_rates(queries)
        return ServiceSettings(tuple(self._endpoints.values()), self._egress, rates=tuple(rates.items()))

    def _fetch_solutions(self, url: str, pattern: Node) -> Sequence[Row]:
        """Ask an endpoint for a SERVICE of an update."""
        return Services(ServiceSettings(tuple(self._endpoints.values()), self._egress)).fetch_solutions(url, pattern)

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
        limits: QueryLimits | Mapping[str, Any] | None = None,
    ) -> Query:
        """Register a query of any dialect; a `QueryError` says what is wrong with its text, and where.

        The switches override the defaults of the dialect. `t0` is in microseconds since 1970, or a text such as an
        xsd:dateTime. Streams that the query reads may be named later. `service` says what OPTION (…) can say, for all
        SERVICE clauses of the query: `ServiceOptions(…)`, or a mapping such as `{"latency": "200ms", "budget": 10}`.
        `limits` says what it may take, such as `{"rows": 1000}`; the others are those of the engine.

        A run at work takes the query up after the batch that it is at; then it is in `progress.queries`, which says
        from when its answers are complete. It begins with what the windows of the others still hold.
        """
        check_type("text", text, str, "the text of a query")
        parsed = parse(text, parse_choice(Dialect, dialect, "dialect"))
        options = read_options(bounds, report, emit, content, t0, self._window_cap)
        if name is not None:
            check_type("name", name, str, "a text")
        called = name or (parsed.registration.name if parsed.registration else make_query_name(self._queries))
        goals = read_service_options(service)
        allowed = QueryLimits.of(limits, self._limits)
        plan = apply_service_options(self._sources.plan_query(parsed, called), goals)
        self._warnings.check_query(plan, resolve_settings(plan, options))
        check_service_addresses(plan, self._egress)
        self._rate_files |= {one: read_rates_file(one) for one in rate_sources_of([plan]) if isinstance(one, str)}
        with self._changing:
            if called in self._queries:
                raise RegistrationError(f"two queries are named {called!r}; give one another name")
            query = Query(self, parsed, plan, options, goals, allowed)
            self._interruption.keep(called)
            self._change({**self._queries, called: query})
        return query

    def drop(self, query: Query | str) -> None:
        """Forget a query; the iterators over its answers end."""
        name = query.name if isinstance(query, Query) else query
        with self._changing:
            self._find_query(name)
            self._change({other: one for other, one in self._queries.items() if other != name})
            self._resumed.pop(name, None)
            self._interruption.drop(name)
        for subscription in [one for one in self._subscriptions if one.query == name]:
            self._subscriptions.remove(subscription)
            subscription.end(None)

    def _find_query(self, name: str) -> Query:
        if name in self._queries:
            return self._queries[name]
        known = ", ".join(map(repr, self._queries)) or "none"
        raise RegistrationError(f"no query is named {name!r}; registered: {known}")

    def resume(self, query: Query | str) -> None:
        """Have a suspended query go on, as one that is registered now; while nothing runs, in the next run."""
        name = query.name if isinstance(query, Query) else query
        with self._changing:
            self._find_query(name)
            if self._workload is not None and name not in self._progress.suspended:
                raise StateError(f"the query {name!r} is not suspended")
            self._resumed[name] = uuid.uuid4().hex
            self._changes.request()

    def _change(self, queries: dict[str, Query]) -> None:
        """Replace the registered queries; a run that goes on takes them up, if it can."""
        before, self._queries = self._queries, queries
        if self._workload is None:
            return
        try:
            description = self._description()
            if not self._in_process:
                self._sharding(description.queries)
            if self._realtime:
                realtime_runs.check_queries_in_real_time(description.queries)
            inputs = {stream: self._sources[stream] for stream in description.outline().inputs}
            check_records_are_open(inputs, self._workload.sources)
        except BaseException:
            self._queries = before
            raise
        self._changes.request()

    def run(
        self,
        *,
        follow: bool = False,
        drain: bool = True,
        on_answer: OnAnswer | None = None,
        on_batch: OnBatch | None = None,
        on_progress: OnProgress | None = None,
        sinks: Sequence[Sink] = (),
        trigger_seconds: float | None = None,
        realtime: bool = False,
    ) -> RunSummary:
        """Answer everything there is to read, and say how much it was.

        `follow` goes on with what is added to the sources until `stop` is called. `drain` (without `follow`) answers
        the windows that are still open when everything is read; without it they stay open for a later run from the
        same checkpoint. `on_answer` gets every answer, those of a query in the order of time, `on_progress` the counts
        after each batch. `on_batch` gets the answers of a query in a batch together, as an `AnswerBatch`, which is
        faster where there are many. What they raise ends the run. `sinks` take the answers of each batch before these.
        `trigger_seconds` is how often the clock and the data are looked at, and no batch on Spark begins sooner then.
        `realtime` (experimental) follows topics of Kafka in Spark's real-time mode, from Kafka to Kafka.
        """
        takers = Takers.check(on_answer, on_batch, on_progress, sinks, realtime=realtime)
        check_trigger(trigger_seconds)
        self._claim_run()
        return self._run_claimed(takers, trigger_seconds, follow=follow or realtime, drain=drain)

    def _run_claimed(
        self,
        takers: Takers,
        trigger_seconds: float | None,
        *,
        follow: bool,
        drain: bool = True,
        on_open: Callable[[], None] = lambda: None,
    ) -> RunSummary:
        failure: BaseException | None = None
        try:
            self._stop.clear()
            self._woken.clear()
            self._interruption.clear()
            if self._dead_letters is not None:
                make_folder("dead letters", self._dead_letters)
            return self._open_and_run(follow, drain, takers, trigger_seconds, on_open)
        except BaseException as error:
            failure = error
            raise
        finally:
            self._end_run(failure)

    def _open_and_run(
        self, follow: bool, drain: bool, takers: Takers, trigger_seconds: float | None, on_open: Callable[[], None]
    ) -> RunSummary:
        """Open the sources and sinks, and run; the sources are closed at the end."""
        if not follow:
            check_any_query(self._queries)
        with ExitStack() as stack:
            if self._checkpoint is not None:
                stack.enter_context(lock_checkpoint(self._checkpoint))
            self._follows = follow
            open_sources: dict[str, Source] = {}
            self._has_evaluated, registered = False, self._queries
            self._realtime = realtime_runs.check_real_time_is_possible(takers.realtime, in_process=self._in_process)
            workload = self._open_workload(open_sources, stack)
            if self._realtime:
                self._realtime = realtime_runs.choose_real_time(
                    workload, takers, self._subscriptions, self._master, self.session
                )
            stack.enter_context(self._data.refresh_while_running())
            for sink in takers.sinks:
                open_sink(sink, None if self._in_process else self.session(), self._egress)

            deliver = partial(self._make_delivery, takers, open_sources)

            def renew() -> Workload:
                self._workload = self._open_workload(open_sources, stack)
                if self._workload.description.queries:
                    before = self._claimed
                    self._claimed = self._claim(self._workload, deliver, before.run)
                    self._claimed.write()
                    if before.record is None:
                        self._continued = self._claimed.continued
                delivery.change_queries(self._workload.initial_progress(), self._workload.column_types())
                self._progress = delivery.progress
                return self._workload

            self._changes, self._workload = WorkloadChanges(renew, self._woken), workload
            if self._queries is not registered:  # They were changed while the sources were opened.
                self._changes.request()
            self._claimed = self._claim(workload, deliver)
            self._continued = self._claimed.continued
            delivery = deliver(workload, self._claimed.run)
            on_open()
            try:
                return self._run_workload(workload, delivery, follow, drain, trigger_seconds, takers)
            finally:
                self._workload = None

    def _open_workload(self, open_sources: dict[str, Source], stack: ExitStack) -> Workload:
        """What the run evaluates; opens its sources into `open_sources`, which `stack` closes."""
        description = self._description()
        outline = description.outline()
        closed = {stream: self._sources[stream] for stream in outline.inputs if stream not in open_sources}
        open_sources |= stack.enter_context(
            run_receivers(closed, self._checkpoint, RunSignals(self.stop, self._woken.set))
        )
        sources = {stream: open_sources[stream] for stream in outline.inputs}
        is_live = self._follows or has_received(self._sources[stream] for stream in sources)
        description = replace(description, max_ahead=choose_max_ahead(self._max_ahead, is_live=is_live))
        if self._in_process:
            check_readable_in_process(sources)
        else:
            from headwater.spark.shard_count import choose_shard_count

            shards = partial(choose_shard_count, self.session, sources, is_live=is_live)
            cut = self._sharding(description.queries, shards)
            description = replace(description, sharding=cut, skews=skews_of(sources))
        self._has_evaluated = self._has_evaluated or bool(description.queries)
        return Workload(description, outline, sources)

    def _make_delivery(
        self, takers: Takers, open_sources: Mapping[str, Source], workload: Workload, run: str, in_batches: bool = False
    ) -> Delivery:
        """What takes the outcomes of batches where they go, under the name of a run. `open_sources` may become more."""
        # In real-time mode Spark and its workers write, but not the batch that micro-batches have left.
        writes = in_batches or not self._realtime

        def report(progress: Progress) -> None:
            self._progress = progress
            if takers.on_progress is not None:
                takers.on_progress(progress)
            if self._subscriptions and not takers.is_taken and all(one.closed for one in self._subscriptions):
                self._stop.set()

        return Delivery(
            on_answer=takers.on_answer,
            on_batch=takers.on_batch,
            on_progress=report,
            subscriptions=self._subscriptions,
            sinks=takers.sinks if writes else (),
            dead_letters=self._dead_letters if writes else None,
            run=run,
            strict=self._strict and writes,
            line_numbers=lambda *place: Feed(open_sources).line_numbers(*place),
            text_at=lambda *place: Feed(open_sources).text_at(*place),
            queries=workload.initial_progress(),
            warn=self._warnings.tell,
            types=workload.column_types(),
        )

    def _run_workload(
        self, workload: Workload, delivery: Delivery, follow: bool, drain: bool, seconds: float | None, takers: Takers
    ) -> RunSummary:
        """Drive all batches, in process or on Spark, and return the counts of the run."""
        # What is received has no end: the run goes on until it is stopped, or all push sources are closed.
        is_endless = has_received(self._sources_at_work().values())
        is_finished = None if follow else lambda: are_all_closed(self._sources_at_work())
        follow = follow or is_endless
        if not follow:
            workload.feed(drain=drain).check()
        self._warnings.check_start(workload)
        how: dict[str, Any] = {
            "follow": follow,
            "drain": drain,
            "checkpoint": self._checkpoint,
            "accept_state": lambda: self._claimed.write(),
            "batch_bytes": self._batch_bytes,
            "trigger_seconds": seconds,
            "on_read": self._note_read,
            "is_finished": is_finished,
        }
        if self._in_process:
            how |= {"skips_ticks": self._skips_ticks, "data_changes": bool(self._data.folders)}
            how |= {"interruption": self._interruption, "woken": self._woken}
            run_in_process(workload, self._changes, delivery, self._stop, **how)
        elif self._realtime:
            from headwater.spark.realtime.realtime_runner import run_in_real_time

            letters = (self._dead_letters, self._claimed.run, self._strict)
            run = realtime_runs.real_time_run(takers, self._subscriptions, letters, self._checkpoint)
            run_in_real_time(self.session(), workload, self._changes, delivery, self._stop, run, how["accept_state"])
        else:
            from headwater.spark.spark_runner import run_on_spark

            run_on_spark(self.session(), workload, self._changes, delivery, self._stop, **how)
        summary = delivery.summary(stopped=self._stop.is_set())
        self._progress = summary = self._warnings.conclude(summary, workload, self._data)
        if not follow:
            summary.raise_if_all_suspended()
        return summary

    def _is_changing(self) -> bool:
        return self._changes.is_pending

    def _sources_at_work(self) -> dict[str, AnySource]:
        return {} if self._workload is None else {one: self._sources[one] for one in self._workload.sources}

    def _claim(self, workload: Workload, deliver: Callable[..., Delivery], run: str | None = None) -> CheckpointClaim:
        """The name of the run, and what it takes over from the checkpoint; `deliver` is `_make_delivery`."""
        runner = name_runner(in_process=self._in_process, realtime=self._realtime)
        made = partial(deliver, workload, in_batches=True)
        return claim_for_run(
            self._checkpoint, workload, runner, run, lambda at: ModeSwitch(at, self.session, workload, made, self._stop)
        )

    def _sharding(self, queries: Sequence[RegisteredQuery], usual: Callable[[], int] = lambda: 1) -> ShardPlan | None:
        """How the work is cut on Spark; None where it is not. What has been cut once stays cut so."""
        if self._workload is not None and (self._has_evaluated or not queries):
            cut = self._workload.description.sharding
            return cut and keep_shard_plan(cut, queries, has_static_default=self._data.has_default_graph)
        known = None if self._checkpoint is None else CheckpointRecord.read(self._checkpoint)
        usual = (lambda: 1) if self._realtime else usual
        how: dict[str, Any] = {"has_static_default": self._data.has_default_graph, "spread": self._spread}
        return choose_shard_plan(queries, known, self._shards, usual, **how)

    def _description(self) -> ProgramDescription:
        """What is to be evaluated, all streams known; a `RegistrationError` where one has no source, or two."""
        queries = resolve_queries(self._queries, self._sources)
        self._warnings.check_data(queries, self._data.observe())
        return ProgramDescription(
            queries,
            self._data.folders,
            self._delay,
            self._evaluator,
            idle=self._sources.idle_times(queries),
            services=self._services(queries),
            resumed=tuple(sorted(self._resumed.items())),
            statistics=None if self._evaluator == "reference" else self._data.statistics(queries),
        )

    def stop(self) -> None:
        """End the run after the current batch. Any thread may call it, a signal handler, and `on_answer`.

        A batch that does not end in a few seconds is given up; a run from the checkpoint repeats it.
        """
        self._stop.set()
        self._woken.set()
        self._interruption.stop()

    def session(self) -> SparkSession:
        """The Spark session that this engine uses, started if need be."""
        if self._spark is None:
            self._spark = realtime_runs.start_session(self._master, self._shuffle_partitions, realtime=self._realtime)
        return self._spark

    def explain(self, name: str, **how: Any) -> str:
        """What `Query.explain` gives."""
        from headwater.engine.query_explanation import explain_query

        query = self._find_query(name)
        return explain_query(query.plan, query.settings, self._data, **how)

    def why(self, name: str, tick: int, row: RowChoice = None) -> Explanation:
        """Explain the answer of a query at a tick, for `Query.why`."""
        query, max_ahead = self._find_query(name), choose_max_ahead(self._max_ahead, is_live=self._follows)
        return explain_answer(replace(self._description(), max_ahead=max_ahead), self._sources, query.name, tick, row)

    def dataframe(self, name: str, *, follow: bool = False, **how: Any) -> DataFrame:
        """What `Query.to_dataframe` gives."""
        from headwater.engine.answer_dataframe import check_dataframe, make_dataframe

        check_dataframe(in_process=self._in_process, has_checkpoint=self._checkpoint is not None)
        description = replace(self._description(), max_ahead=choose_max_ahead(self._max_ahead, is_live=follow))
        how |= {"follow": follow, "batch_bytes": self._batch_bytes}
        return make_dataframe(self.session(), description, self._sources, name, **how)
