"""All registered queries over their streams: who reads what, who feeds whom, how far each has come.

A program takes batches of elements and gives answers; it neither reads files nor knows Spark, so the in-process
runner and the stateful step of the pipeline drive the same thing and give the same answers. A REGISTER STREAM feeds
the queries that read it within the same step, whatever the order of registration.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeAlias

from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.language.stream_clauses import RegistrationKind
from headwater.reference.answers import Answer
from headwater.reference.evaluator import ReferenceEvaluator
from headwater.reference.log import StreamKey, WindowLog
from headwater.reference.static_data import StaticData, Version, VersionedData, is_before, may_matter
from headwater.reference.ticking import Evaluator, EvaluatorState
from headwater.terms.columns import ElementColumns
from headwater.terms.model import BadElement, Element, Literal
from headwater.terms.names import iri_to_name, name_to_iri
from headwater.terms.timestamps import parse_time
from headwater.windows import QuerySettings, StreamClock, combined
from headwater.windows.arrivals import Arrivals, elements_of, in_arrival_order, joined, numbered
from headwater.windows.parted_clock import PartedClock

MakeEvaluator: TypeAlias = Callable[[QueryPlan, QuerySettings, StaticData], Evaluator]
"""What makes the evaluator of a plan under its settings, over static data."""


_ETERNITY = 1 << 62


class RegistrationError(ValueError):
    """Queries that cannot run together: equal names, a cycle, a stream nobody can provide, a graph that is missing."""


@dataclass(frozen=True)
class Registered:
    """A plan and the settings under which it runs."""

    plan: QueryPlan
    settings: QuerySettings

    @property
    def produces(self) -> str | None:
        """The stream that this query feeds, if it is a REGISTER STREAM."""
        registration = self.plan.registration
        if registration is None or registration.kind is not RegistrationKind.STREAM:
            return None
        return name_to_iri(registration.name).value


FindFamilies: TypeAlias = Callable[[Sequence[Registered], StaticData], Sequence[Evaluator]]
"""What makes evaluators that answer for several of the queries each; the other queries get one of their own."""


def no_families(queries: Sequence[Registered], static: StaticData) -> Sequence[Evaluator]:
    """Every query is evaluated by itself."""
    return ()


@dataclass(frozen=True, slots=True)
class LateElement:
    """An element that came after its time had been answered; `text` is None where the source must be asked for it."""

    time: int
    position: tuple[int, ...]
    text: str | None


@dataclass
class Step:
    """What one batch led to."""

    answers: list[Answer] = field(default_factory=list)
    late: list[tuple[str, LateElement]] = field(default_factory=list)
    bad: list[tuple[str, BadElement]] = field(default_factory=list)


class Program:
    """Registered queries and the state of their evaluation."""

    def __init__(
        self,
        queries: Sequence[Registered],
        static: StaticData,
        delay: int = 0,
        evaluator: MakeEvaluator = ReferenceEvaluator,
        *,
        families: FindFamilies = no_families,
        is_durable: bool = True,
        idle: Mapping[str, int] | None = None,
        skews: Mapping[str, int] | None = None,
    ) -> None:
        self._log = WindowLog() if is_durable else None
        self._versioned = static if isinstance(static, VersionedData) else None
        self._produced = _check(queries, static)
        shared = {name: one for one in families(queries, static) for name in one.names}
        self._evaluators = {
            query.plan.name: shared.get(query.plan.name) or evaluator(query.plan, query.settings, static)
            for query in _ordered(queries)
        }
        # Members of a family read the same streams: those that feed one feed all, and stand before the first of them.
        self._in_turn = tuple(dict.fromkeys(self._evaluators.values()))
        self._queries = {query.plan.name: query for query in queries}
        self._places = {name: place for place, name in enumerate(self._queries)}
        keys = {key for evaluator in self._in_turn for key in evaluator.keys}
        self._clocks: dict[StreamKey, StreamClock] = {}
        for key in sorted(keys, key=str):
            allowed, silent = 0 if key[0] in self._produced else delay, (idle or {}).get(key[0])
            # A stream in partitions has no order across them.
            skew = (skews or {}).get(key[0])
            clock = StreamClock(allowed, idle=silent) if skew is None else PartedClock(allowed, idle=silent, skew=skew)
            self._clocks[key] = clock
        self.ticks = 0
        self.bad = 0
        self._name_version()

    @property
    def evaluators(self) -> Mapping[str, Evaluator]:
        """Who evaluates which query; some may have one evaluator in common."""
        return self._evaluators

    @property
    def inputs(self) -> tuple[str, ...]:
        """The streams that must come from outside."""
        return tuple(dict.fromkeys(stream for stream, _ in self._clocks if stream not in self._produced))

    @property
    def data_version(self) -> Version | None:
        """The version of the static data, if it has versions."""
        return None if self._versioned is None else self._versioned.version or None

    def move_static(self, version: Version) -> None:
        """Have the static data at a version, for all queries from their next tick on."""
        static = self._versioned
        if static is None or static.version == version:
            return
        changed = static.differences(version)
        touched = [evaluator for evaluator in self._in_turn if may_matter(evaluator.wanted, changed)]
        for evaluator in touched:
            evaluator.static_will_change()
        static.move(version)
        for evaluator in touched:
            evaluator.static_changed()
        self._name_version()

    def _name_version(self) -> None:
        version = self.data_version
        for evaluator in self._in_turn:
            evaluator.data_version = version

    def advance(
        self, batch: Mapping[str, Arrivals], ended: Collection[str] = (), version: Version | None = None
    ) -> Step:
        """Take a batch of each stream in; `ended` names the streams that will bring no more.

        `version` is that of the static data at all ticks of the batch; without it, it stays as it was.
        """
        if version is not None:
            self.move_static(version)
        step = Step()
        arrived: dict[StreamKey, Arrivals] = {}
        for stream, elements in batch.items():
            self._admit(stream, in_arrival_order(elements), arrived, step)
        for key, clock in self._clocks.items():
            if key[0] in ended:
                clock.ended = True
        for evaluator in self._in_turn:
            self._evaluate(evaluator, arrived, step)
        self._trim_log()
        step.answers.sort(key=lambda a: (a.time, self._places[a.query], a.part))
        self.ticks += len(step.answers)
        self.bad += len(step.bad)
        return step

    def _evaluate(self, evaluator: Evaluator, arrived: dict[StreamKey, Arrivals], step: Step) -> None:
        clocks = [self._clocks[key] for key in evaluator.keys]
        watermark, ended = combined(clocks)
        floor = max((clock.highest + 1 for clock in clocks if clock.highest is not None), default=None)
        mine = {key: arrived[key] for key in evaluator.keys if key in arrived}
        answers = evaluator.advance(mine, watermark, ended=ended, floor=floor)
        step.answers.extend(answers)
        answered = evaluator.ticker.answered
        if ended and answered is not None:
            for clock in clocks:
                clock.close(answered + 1)
        for produced, query in self._produced.items():
            name = query.plan.name
            if self._evaluators[name] is not evaluator:
                continue
            said = [answer for answer in answers if answer.query == name]
            elements = [Element(answer.time, answer.triples, position=(answer.time, answer.part)) for answer in said]
            self._admit(produced, elements, arrived, step)
            for key, clock in self._clocks.items():
                if key[0] == produced:
                    clock.ended = ended

    def _admit(self, stream: str, arrivals: Arrivals, arrived: dict[StreamKey, Arrivals], step: Step) -> None:
        """Elements in arrival order, stamped as each reader of the stream wants them, late ones put aside."""
        if not len(arrivals):
            return
        for key, clock in self._clocks.items():
            if key[0] != stream:
                continue
            stamped = arrivals if key[1] is None else self._stamped(stream, key[1], elements_of(arrivals), step)
            clock.ended = False
            number = clock.seen
            admitted, late = clock.admit(stamped)
            step.late.extend((stream, element) for element in _late(late))
            if isinstance(admitted, list):
                # What a query that found nothing puts into its stream moves the clock and nothing else.
                admitted = [element for element in admitted if element.triples]
            admitted = numbered(admitted, number)
            arrived[key] = joined((arrived.get(key, []), admitted))
            if self._log is not None:
                self._log.append(key, admitted)

    def _trim_log(self) -> None:
        """Forget what no window can show any more."""
        if self._log is None:
            return
        needed: dict[StreamKey, int] = {}
        for evaluator in self._in_turn:
            for number, key in enumerate(evaluator.keys):
                oldest = evaluator.needed_from(number)
                needed[key] = min(needed.get(key, _ETERNITY), -_ETERNITY if oldest is None else oldest)
        for key, oldest in needed.items():
            self._log.trim(key, oldest)

    def _stamped(self, stream: str, predicate: str, elements: Iterable[Element], step: Step) -> list[Element]:
        """Elements whose time is the value of a property in their own graph (OA11)."""
        stamped: list[Element] = []
        for element in elements:
            values = {t.object for t in element.triples if t.predicate.value == predicate}
            reason = f"{len(values)} values of <{predicate}>, which gives the time; expected one"
            if len(values) == 1:
                try:
                    value = values.pop()
                    time = parse_time(value.value if isinstance(value, Literal) else str(value))
                    stamped.append(replace(element, time=time))
                    continue
                except ValueError as error:
                    reason = f"<{predicate}>: {error}"
            text = " ".join(f"{triple} ." for triple in element.triples)
            step.bad.append((stream, BadElement(reason, text, stream, element.position)))
        return stamped

    def watermarks(self) -> dict[str, int | None]:
        """How far each stream has come."""
        return {iri_to_name(stream): clock.watermark for (stream, _), clock in self._clocks.items()}

    @property
    def late(self) -> int:
        return sum(clock.late for clock in self._clocks.values())

    @property
    def seen(self) -> int:
        """Elements that came from outside."""
        streams: dict[str, int] = {}
        for (stream, _), clock in self._clocks.items():
            if stream not in self._produced:
                streams[stream] = max(streams.get(stream, 0), clock.seen)
        return sum(streams.values())

    @property
    def log(self) -> WindowLog:
        """The elements that the windows can still show."""
        if self._log is None:
            raise RuntimeError("this program keeps no log: make it durable")
        return self._log

    def summary(self) -> object:
        """What must outlive the process besides the log: small, whatever the windows hold."""
        states: dict[str, EvaluatorState] = {}
        for evaluator in self._in_turn:
            states |= dict.fromkeys(evaluator.names, evaluator.state())
        return self._clocks, states, self.ticks, self.bad, self.data_version

    def resume(self, summary: Any, log: WindowLog) -> None:
        """Continue from a summary and the log that belongs to it. The program must be new and have the same queries."""
        self._clocks, states, self.ticks, self.bad, version = summary
        if version is not None and self.data_version is not None and is_before(version, self.data_version):
            # What was said before followed from the data as it was then.
            self.move_static(version)
        self._log = log
        retained = {key: log.retained(key) for key in self._clocks}
        for evaluator in self._in_turn:
            evaluator.restore(states[evaluator.names[0]], retained)

    def snapshot(self, dumps: Callable[[object], bytes] = pickle.dumps) -> bytes:
        """All that must outlive the process, in one piece."""
        return dumps((self.summary(), list(self.log)))

    def restore(self, saved: bytes, loads: Callable[[bytes], Any] = pickle.loads) -> None:
        """Continue where a snapshot left off."""
        summary, segments = loads(saved)
        self.resume(summary, WindowLog(segments))


def _late(arrivals: Arrivals) -> Iterator[LateElement]:
    if isinstance(arrivals, ElementColumns) and not arrivals.is_whole:
        for time, position in zip(arrivals.times.tolist(), arrivals.positions.tolist(), strict=True):
            yield LateElement(time, tuple(position), None)
        return
    for element in elements_of(arrivals):
        yield LateElement(element.time, element.position, "\n".join(f"{triple} ." for triple in element.triples))


def _check(queries: Sequence[Registered], static: StaticData) -> dict[str, Registered]:
    """The streams that queries produce; an error for what cannot work."""
    produced: dict[str, Registered] = {}
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


def _ordered(queries: Sequence[Registered]) -> list[Registered]:
    """The queries such that whoever feeds another comes first."""
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
