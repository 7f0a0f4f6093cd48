"""All registered queries over their streams: who reads what, who feeds whom, how far each has come.

A program takes batches of elements and gives answers; it neither reads files nor knows Spark, so the in-process
runner and the stateful step of the pipeline drive the same thing and give the same answers. A REGISTER STREAM feeds
the queries that read it within the same step, whatever the order of registration.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from headwater.algebra.plan import QueryPlan
from headwater.execution.answers import Answer
from headwater.execution.evaluator import Evaluator, EvaluatorState
from headwater.execution.late_queries import NOT_YET, Beginning, Known, beginning
from headwater.execution.registered import Registered, feeders_first, streams_produced
from headwater.execution.static_data import PreparedData, StaticData, Version, VersionedData, is_before, may_matter
from headwater.execution.stream_reads import EVERYTHING, Patterns, Reads, patterns_of, union
from headwater.execution.window_log import StreamKey, WindowLog
from headwater.terms.element_columns import ElementColumns
from headwater.terms.model import BadElement, Element, Literal
from headwater.terms.names import iri_to_name
from headwater.terms.timestamps import parse_time
from headwater.windows.element_sequences import (
    Elements,
    concat_elements,
    elements_of,
    number_elements,
    sort_by_position,
)
from headwater.windows.partitioned_clock import PartedClock
from headwater.windows.settings import QuerySettings
from headwater.windows.stream_clock import FedClock, StreamClock, combined

MakeEvaluator: TypeAlias = Callable[[QueryPlan, QuerySettings, StaticData], Evaluator]
"""What makes the evaluator of a plan under its settings, over static data."""


_ETERNITY = 1 << 62


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
    seconds: dict[str, float] = field(default_factory=dict)
    """How long each query took."""
    is_last: bool = True
    """Whether the batch is done with it."""


@dataclass
class Summary:
    """What must outlive the process besides the log: small, whatever the windows hold.

    `queries` has the fingerprint of each query, `gone` and `reads` say what the log holds, `begun` has the queries that
    came when their streams were under way.
    """

    clocks: dict[StreamKey, StreamClock]
    states: dict[str, EvaluatorState]
    queries: dict[str, str]
    gone: dict[StreamKey, int]
    reads: Reads
    begun: dict[str, Beginning]
    data_version: Version | None

    @property
    def reached(self) -> dict[str, int | None]:
        """By stream, the first instant that it has not come to; None where it has shown nothing."""
        found: dict[str, int | None] = {}
        for (stream, _), clock in self.clocks.items():
            marks = [
                mark
                for mark in (found.get(stream), None if clock.highest is None else clock.highest + 1)
                if mark is not None
            ]
            found[stream] = max(marks, default=None)
        return found


class Program:
    """Registered queries and the state of their evaluation.

    `is_filtered` where the elements that it is told lack the triples that no query asks for. With `encodes_rows`,
    answers have their rows as ids where evaluators can do so (`Answer.encoded`).
    """

    def __init__(
        self,
        queries: Sequence[Registered],
        static: StaticData,
        delay: int,
        evaluator: MakeEvaluator,
        *,
        families: FindFamilies = no_families,
        is_durable: bool = True,
        is_filtered: bool = False,
        idle: Mapping[str, int] | None = None,
        skews: Mapping[str, int] | None = None,
        encodes_rows: bool = False,
    ) -> None:
        self._log = WindowLog() if is_durable else None
        self._versioned: VersionedData | None = static if isinstance(static, VersionedData) else None
        self._in_background: PreparedData | None = static if isinstance(static, PreparedData) else None
        self._produced = streams_produced(queries, static)
        shared = {name: one for one in families(queries, static) for name in one.names}
        self._evaluators = {
            query.plan.name: shared.get(query.plan.name) or evaluator(query.plan, query.settings, static)
            for query in feeders_first(queries)
        }
        # Members of a family read the same streams: those that feed one feed all, and stand before the first of them.
        self._in_turn = tuple(dict.fromkeys(self._evaluators.values()))
        for one in self._in_turn if encodes_rows else ():
            one.encode_rows()
        self._queries = {query.plan.name: query for query in queries}
        self._fingerprints = {name: query.fingerprint for name, query in self._queries.items()}
        self._places = {name: place for place, name in enumerate(self._queries)}
        keys = {key for evaluator in self._in_turn for key in evaluator.keys}
        self._clocks: dict[StreamKey, StreamClock] = {}
        for key in sorted(keys, key=str):
            silent = (idle or {}).get(key[0])
            # A stream in partitions has no order across them.
            skew = (skews or {}).get(key[0])
            if key[0] in self._produced:
                clock: StreamClock = FedClock(idle=silent)
            elif skew is None:
                clock = StreamClock(delay, idle=silent)
            else:
                clock = PartedClock(delay, idle=silent, skew=skew)
            self._clocks[key] = clock
        self._is_filtered = is_filtered
        self._reads = Reads(union(map(self.patterns, self._queries)))
        self._begun: dict[str, Beginning] = {}
        self._unread: dict[StreamKey, StreamClock] = {}
        """The clocks of streams that were read before, and that nobody reads now."""
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

    def prepared(self, version: Version, patience: float = 0.0) -> Version:
        """How far on the way to a version `move_static` comes without a pause; the rest is done in the background."""
        return version if self._in_background is None else self._in_background.prepared(version, patience)

    def prepare_newest(self) -> None:
        """Begin with the version that is the newest one now, for whoever will ask for it. Nothing is seen of it yet."""
        static = self._in_background
        if static is not None and (newest := static.latest()) != static.version:
            static.prepared(newest, 0.0)

    def _name_version(self) -> None:
        version = self.data_version
        for evaluator in self._in_turn:
            evaluator.data_version = version

    def advance(
        self, batch: Mapping[str, Elements], ended: Collection[str] = (), version: Version | None = None
    ) -> Step:
        """Take a batch of each stream in; `ended` names the streams that will bring no more.

        `version` is that of the static data at all ticks of the batch; without it, it stays as it was.
        """
        if version is not None:
            self.move_static(version)
        step = Step()
        self._evaluate_all(self._arrived(batch, ended, step), step)
        self._trim_log()
        return self._told(step)

    def ticks(
        self, batch: Mapping[str, Elements], ended: Collection[str], version: Callable[[], Version]
    ) -> Iterator[Step]:
        """As `advance`, in steps: one for each instant at which some query has a tick, or one where none has.

        `version` is asked before each of them, when the steps before have been given out.
        """
        step = Step()
        # What has come is taken in, and nothing answered yet.
        self._evaluate_all(self._arrived(batch, ended, step), step, -_ETERNITY)
        tick = self._next_tick()
        while tick is not None:
            self.move_static(version())
            self._evaluate_all({}, step, tick + 1)
            tick = self._next_tick()
            if tick is not None:
                step.is_last = False
                yield self._told(step)
                step = Step()
        self._trim_log()
        yield self._told(step)

    def _arrived(self, batch: Mapping[str, Elements], ended: Collection[str], step: Step) -> dict[StreamKey, Elements]:
        """What a batch has in time, by those who read it."""
        arrived: dict[StreamKey, Elements] = {}
        for stream, elements in batch.items():
            self._admit(stream, sort_by_position(elements), arrived, step)
        for key, clock in self._clocks.items():
            if key[0] in ended:
                clock.ended = True
        return arrived

    def _told(self, step: Step) -> Step:
        """A step that is complete."""
        step.answers.sort(key=lambda a: (a.time, self._places[a.query], a.part))
        return step

    def _reach(self, evaluator: Evaluator) -> tuple[int | None, bool, int | None]:
        """How far the streams of an evaluator have come, whether all have ended, and if so since when."""
        clocks = self.clocks_of(evaluator)
        watermark, ended = combined(clocks)
        return watermark, ended, max((one.highest + 1 for one in clocks if one.highest is not None), default=None)

    def _next_tick(self) -> int | None:
        """The first instant at which an evaluator has a tick that is due."""
        found: list[int] = []
        for evaluator in self._in_turn:
            watermark, ended, floor = self._reach(evaluator)
            if (ended or watermark is not None) and (tick := evaluator.ticker.next(watermark, floor)) is not None:
                found.append(tick)
        return min(found, default=None)

    def _evaluate_all(self, arrived: dict[StreamKey, Elements], step: Step, until: int | None = None) -> None:
        for evaluator in self._in_turn:
            self._evaluate(evaluator, arrived, step, until)

    def _evaluate(
        self, evaluator: Evaluator, arrived: dict[StreamKey, Elements], step: Step, until: int | None
    ) -> None:
        watermark, ended, floor = self._reach(evaluator)
        mine = {key: arrived[key] for key in evaluator.keys if key in arrived}
        begin = time.perf_counter()
        answers = evaluator.advance(mine, watermark, ended=ended, floor=floor, until=until)
        # One with ticks left has more to say to those whom it feeds.
        ended = ended and (until is None or evaluator.ticker.next(None, floor) is None)
        share = (time.perf_counter() - begin) / len(evaluator.names)
        for name in evaluator.names:
            step.seconds[name] = step.seconds.get(name, 0.0) + share
        if self._begun:
            answers = [self._judged(answer) for answer in answers]
        step.answers.extend(answers)
        answered = evaluator.ticker.answered
        if ended and answered is not None:
            for clock in self.clocks_of(evaluator):
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

    def _judged(self, answer: Answer) -> Answer:
        """An answer of a query that came later says whether its windows held everything."""
        begun = self._begun.get(answer.query)
        if begun is None:
            return answer
        begun = self._begun[answer.query] = begun.after(answer)
        return answer if answer.time >= begun.complete_from else replace(answer, complete=False)

    def _admit(self, stream: str, elements: Elements, arrived: dict[StreamKey, Elements], step: Step) -> None:
        """Elements in arrival order, stamped as each reader of the stream wants them, late ones put aside."""
        if not len(elements):
            return
        for key, clock in self._clocks.items():
            if key[0] != stream:
                continue
            stamped = elements if key[1] is None else self._stamped(stream, key[1], elements_of(elements), step)
            clock.ended = False
            number = clock.seen
            admitted, late = clock.admit(stamped)
            step.late.extend((stream, element) for element in _late(late))
            if isinstance(admitted, list):
                # What a query that found nothing puts into its stream moves the clock and nothing else.
                admitted = [element for element in admitted if element.triples]
            admitted = number_elements(admitted, number)
            arrived[key] = concat_elements((arrived.get(key, []), admitted))
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

    def clocks_of(self, evaluator: Evaluator) -> list[StreamClock]:
        """The clocks of the streams that an evaluator reads."""
        return [self._clocks[key] for key in evaluator.keys]

    @property
    def is_durable(self) -> bool:
        """Whether it keeps a log."""
        return self._log is not None

    @property
    def log(self) -> WindowLog:
        """The elements that the windows can still show."""
        if self._log is None:
            raise RuntimeError("this program keeps no log: make it durable")
        return self._log

    def complete_from(self, name: str) -> int | None:
        """The instant from which the answers of a query are complete; None where they are from the first one on.

        A query that came when its streams were under way has one: `NOT_YET` where nobody can tell.
        """
        begun = self._begun.get(name)
        return None if begun is None or begun.complete_from == -NOT_YET else begun.complete_from

    def patterns(self, name: str) -> Patterns:
        """What a query must be told of its streams."""
        query, evaluator = self._queries[name], self._evaluators[name]
        if not self._is_filtered:
            return {source.stream.value: frozenset({EVERYTHING}) for source in query.plan.windows}
        # The evaluator of many queries has a plan of its own, in which constants have become variables.
        plan = evaluator.plan if len(evaluator.names) == 1 else query.plan
        return patterns_of(plan, query.settings, all_texts=evaluator.needs_all_texts)

    def summary(self) -> Summary:
        """What must outlive the process besides the log: small, whatever the windows hold."""
        states: dict[str, EvaluatorState] = {}
        for evaluator in self._in_turn:
            states |= dict.fromkeys(evaluator.names, evaluator.state())
        return Summary(
            clocks={**self._unread, **self._clocks},
            states=states,
            queries=self._fingerprints,
            gone=self.log.gone,
            reads=self._reads,
            begun=self._begun,
            data_version=self.data_version,
        )

    def resume(self, summary: Summary, log: WindowLog) -> None:
        """Continue from a summary and the log that belongs to it. The program must be new; its queries may be others.

        A query that was there goes on where it was. One that was not begins with what the log holds of its streams.
        """
        version = summary.data_version
        if version is not None and self.data_version is not None and is_before(version, self.data_version):
            # What was said before followed from the data as it was then.
            self.move_static(version)
        self._log, log.gone = log, summary.gone
        self._unread = {key: clock for key, clock in summary.clocks.items() if key not in self._clocks}
        for key, fresh in self._clocks.items():
            if key in summary.clocks:
                self._clocks[key] = summary.clocks[key].with_limits_of(fresh)
        log.keep_only(self._clocks)
        self._reads = summary.reads.continued(union(map(self.patterns, self._queries)), summary.reached)
        retained = {key: log.retained(key) for key in self._clocks}
        for evaluator in self._in_turn:
            self._continue(evaluator, summary, retained)

    def _continue(self, evaluator: Evaluator, summary: Summary, retained: Mapping[StreamKey, Elements]) -> None:
        """Let an evaluator go on from its state, or begin it where it has none."""
        kept = [name for name in evaluator.names if summary.queries.get(name) == self._fingerprints[name]]
        new = [name for name in evaluator.names if name not in kept]
        begun = {name: summary.begun[name] for name in kept if name in summary.begun}
        begun |= {name: self._beginning(evaluator, name, summary) for name in new}
        if kept:
            # Queries that are evaluated as one know what that one knows which was there first.
            first = min(kept, key=lambda name: begun[name].since if name in begun else -1)
            before = begun.get(first)
            evaluator.restore(summary.states[first], before.retained(retained) if before else retained, new)
        else:
            before = Beginning.of_all(list(begun.values()))
            firsts = {key: low for key, clock in self._clocks.items() if (low := clock.lowest) is not None}
            evaluator.begin(before.retained(retained), self._limit(evaluator), firsts)
        for name, one in begun.items():
            self._begun[name] = replace(one, known=before.known if before else {})
        for name in kept:
            self._hear_of_others(evaluator, name, summary)

    def _beginning(self, evaluator: Evaluator, name: str, summary: Summary) -> Beginning:
        """How a new query begins, from what the log holds of its streams."""
        known: dict[StreamKey, Known] = {}
        for key in dict.fromkeys(evaluator.keys):
            held = self._held(key, name, summary)
            if held is not None:
                known[key] = Known(self._clocks[key].seen, held)
        return beginning(self._queries[name].settings, evaluator.keys, known, self._limit(evaluator))

    def _held(self, key: StreamKey, name: str, summary: Summary) -> int | None:
        """The instant from which all elements of a stream are there for a new query; None where all ever are."""
        stream, clock = key[0], self._clocks[key]
        producer = self._produced.get(stream)
        if producer is not None:
            return self._held_of(producer, clock, summary)
        if key not in summary.clocks and any(stream == other for other, _ in summary.clocks):
            # By this clock nothing was timed yet, and the times of the elements that are gone are not known.
            return NOT_YET
        if clock.highest is None:
            return None
        held = self.log.gone[key] + 1 if key in self.log.gone else None
        since = (held, self._reads.since(stream, self.patterns(name)[stream]))
        return max((instant for instant in since if instant is not None), default=None)

    def _held_of(self, producer: Registered, clock: StreamClock, summary: Summary) -> int | None:
        """The same for the answers of another query: its own completeness counts, and whether somebody listened."""
        name = producer.plan.name
        since = [self.complete_from(name)]
        if clock.highest is None:
            answered = self._evaluators[name].ticker.answered
            since.append(None if answered is None else answered + 1)
        elif summary.queries.get(name) != self._fingerprints[name]:
            since.append(clock.highest + 1)
        return max((instant for instant in since if instant is not None), default=None)

    def _hear_of_others(self, evaluator: Evaluator, name: str, summary: Summary) -> None:
        """A query over the answers of one that has changed is complete when its windows have passed the change."""
        changed: dict[StreamKey, Known] = {}
        for key in evaluator.keys:
            producer, highest = self._produced.get(key[0]), self._clocks[key].highest
            if producer is not None and highest is not None:
                whole = self._begun.get(producer.plan.name)
                if summary.queries.get(producer.plan.name) != self._fingerprints[producer.plan.name]:
                    changed[key] = Known(0, max(highest + 1, whole.complete_from if whole else highest))
        if changed:
            late = beginning(self._queries[name].settings, evaluator.keys, changed, self._limit(evaluator))
            mine = self._begun.get(name)
            self._begun[name] = late if mine is None else replace(mine, instant=max(mine.instant, late.instant))

    def _limit(self, evaluator: Evaluator) -> int | None:
        """The instant before which the ticks of an evaluator are past; None where its streams have not begun."""
        clocks = self.clocks_of(evaluator)
        watermark, ended = combined(clocks)
        if not ended:
            return watermark
        return max((max(c.highest + 1, c.closed or c.highest) for c in clocks if c.highest is not None), default=None)

    def snapshot(self, dumps: Callable[[object], bytes] = pickle.dumps) -> bytes:
        """All that must outlive the process, in one piece."""
        return dumps((self.summary(), list(self.log)))

    def restore(self, saved: bytes, loads: Callable[[bytes], Any] = pickle.loads) -> None:
        """Continue where a snapshot left off."""
        summary, segments = loads(saved)
        self.resume(summary, WindowLog(segments))


def _late(elements: Elements) -> Iterator[LateElement]:
    if isinstance(elements, ElementColumns) and not elements.is_whole:
        for time, position in zip(elements.times.tolist(), elements.positions.tolist(), strict=True):
            yield LateElement(time, tuple(position), None)
        return
    for element in elements_of(elements):
        yield LateElement(element.time, element.position, "\n".join(f"{triple} ." for triple in element.triples))
