"""The registered queries that run together: batches of elements in, answers out.

A program neither reads files nor knows Spark, so the in-process runner and the stateful step on Spark drive the same
thing and give the same answers. The answers of a REGISTER STREAM feed the queries that read it within the same step,
whatever the order of registration.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from headwater.algebra.plan import QueryPlan
from headwater.execution.answer_batch import AnswerBatch, merge_answers
from headwater.execution.answers import Answer
from headwater.execution.evaluator import Evaluator, EvaluatorState
from headwater.execution.late_queries import NOT_YET, KnownElements, LateStart, find_late_start
from headwater.execution.program_state import ProgramState
from headwater.execution.registered import RegisteredQuery, find_produced_streams, order_producers_first
from headwater.execution.static_data import (
    PreparedData,
    StaticData,
    Version,
    VersionedData,
    can_change_answers,
    is_before,
)
from headwater.execution.stream_reads import EVERYTHING, Patterns, ReadHistory, needed_patterns, union_patterns
from headwater.execution.window_log import LogSegment, StreamKey, WindowLog
from headwater.terms.element_columns import ElementColumns
from headwater.terms.model import BadElement, Element, Literal
from headwater.terms.names import iri_to_name
from headwater.terms.packing import pack, unpack
from headwater.terms.timestamps import parse_time
from headwater.windows.element_sequences import (
    Elements,
    concat_elements,
    elements_of,
    number_elements,
    sort_by_position,
)
from headwater.windows.partitioned_clock import PartitionedClock
from headwater.windows.settings import QuerySettings
from headwater.windows.stream_clock import DerivedStreamClock, StreamClock, combine_clocks

MakeEvaluator: TypeAlias = Callable[[QueryPlan, QuerySettings, StaticData], Evaluator]
"""Makes the evaluator of a plan under its settings, over static data."""


_ETERNITY = 1 << 62

_STEP_SECONDS = 0.02
"""A step with several ticks should take no longer than this, about."""

_MOST_TICKS = 1 << 16


ChooseStep: TypeAlias = Callable[[int], tuple[int, Version]]
"""Called with the last tick that a step would have; gives the last tick that it has, and the version of the data."""

FindFamilies: TypeAlias = Callable[[Sequence[RegisteredQuery], StaticData], Sequence[Evaluator]]
"""Makes evaluators that answer several of the queries each; the other queries get one of their own."""


def no_families(queries: Sequence[RegisteredQuery], static: StaticData) -> Sequence[Evaluator]:
    """Every query is evaluated by itself."""
    return ()


@dataclass(frozen=True, slots=True)
class LateElement:
    """An element that arrived after the watermark had passed its time; with `text` None, the source still has it."""

    time: int
    position: tuple[int, ...]
    text: str | None


@dataclass
class StepResult:
    """What one batch, or one tick of it, led to."""

    answers: AnswerBatch = field(default_factory=AnswerBatch)
    late: list[tuple[str, LateElement]] = field(default_factory=list)
    bad: list[tuple[str, BadElement]] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    """How long each query took."""
    is_last: bool = True
    """Whether it is the last one of its batch."""
    unmerged: list[AnswerBatch] = field(default_factory=list)
    """The answers of each evaluator."""


class TickPace:
    """How many ticks a step takes: more while the data stays as it is, so that no step takes long.

    A change of the data is seen by the next step. After it a step has one tick, because more changes may follow.
    """

    def __init__(self) -> None:
        self.ticks = 1

    def record(self, seconds: float, *, is_other_version: bool) -> None:
        """A step has taken so long; `is_other_version` says that it was the first with its version."""
        if is_other_version:
            self.ticks = 1
        elif seconds < _STEP_SECONDS:
            self.ticks = min(2 * self.ticks, _MOST_TICKS)
        elif seconds > 2 * _STEP_SECONDS:
            self.ticks = max(1, self.ticks // 2)


class Program:
    """The registered queries that run together, and the state of their evaluation.

    `is_filtered` says that the sources leave out triples that no query can match. `idle` and `skews` bound how long
    streams and partitions wait for each other. Without `is_durable` no window log is kept.
    """

    def __init__(
        self,
        queries: Sequence[RegisteredQuery],
        static: StaticData,
        delay: int,
        evaluator: MakeEvaluator,
        *,
        families: FindFamilies = no_families,
        is_durable: bool = True,
        is_filtered: bool = False,
        idle: Mapping[str, int] | None = None,
        skews: Mapping[str, int] | None = None,
    ) -> None:
        self._log = WindowLog() if is_durable else None
        self._versioned_data: VersionedData | None = static if isinstance(static, VersionedData) else None
        self._prepared_data: PreparedData | None = static if isinstance(static, PreparedData) else None
        self._produced = find_produced_streams(queries, static)
        shared = {name: one for one in families(queries, static) for name in one.names}
        self._evaluators = {
            query.plan.name: shared.get(query.plan.name) or evaluator(query.plan, query.settings, static)
            for query in order_producers_first(queries)
        }
        # Members of a family read the same streams, so producers that come before one member come before all.
        self._evaluation_order = tuple(dict.fromkeys(self._evaluators.values()))
        self._queries = {query.plan.name: query for query in queries}
        self._fingerprints = {name: query.fingerprint for name, query in self._queries.items()}
        self._registration_order = {name: place for place, name in enumerate(self._queries)}
        keys = {key for evaluator in self._evaluation_order for key in evaluator.keys}
        self._clocks: dict[StreamKey, StreamClock] = {}
        for key in sorted(keys, key=str):
            silent = (idle or {}).get(key[0])
            # A stream in partitions has no order across them.
            skew = (skews or {}).get(key[0])
            if key[0] in self._produced:
                clock: StreamClock = DerivedStreamClock(idle_limit=silent)
            elif skew is None:
                clock = StreamClock(delay, idle_limit=silent)
            else:
                clock = PartitionedClock(delay, idle_limit=silent, skew=skew)
            self._clocks[key] = clock
        self._is_filtered = is_filtered
        self._reads = ReadHistory(union_patterns(map(self.patterns, self._queries)))
        self._late_starts: dict[str, LateStart] = {}
        self._unread: dict[StreamKey, StreamClock] = {}
        """The clocks of streams that no query reads any more."""
        self._set_data_version()

    @property
    def producers(self) -> frozenset[str]:
        """The names of the queries whose answers are elements for others."""
        read = {stream for stream, _ in self._clocks}
        return frozenset(query.plan.name for stream, query in self._produced.items() if stream in read)

    @property
    def evaluators(self) -> Mapping[str, Evaluator]:
        """The evaluator of each query; members of a family share one."""
        return self._evaluators

    @property
    def inputs(self) -> tuple[str, ...]:
        """The streams that must come from outside."""
        return tuple(dict.fromkeys(stream for stream, _ in self._clocks if stream not in self._produced))

    @property
    def data_version(self) -> Version | None:
        """The version of the static data, if it has versions."""
        return None if self._versioned_data is None else self._versioned_data.version or None

    def move_static_data(self, version: Version) -> None:
        """Move the static data to a version, for all queries from their next tick on."""
        static = self._versioned_data
        if static is None or static.version == version:
            return
        changed = static.differences(version)
        touched = [
            evaluator for evaluator in self._evaluation_order if can_change_answers(evaluator.wanted_patterns, changed)
        ]
        for evaluator in touched:
            evaluator.prepare_static_change()
        static.move(version)
        for evaluator in touched:
            evaluator.apply_static_change()
        self._set_data_version()

    def prepare_version(self, version: Version, patience: float = 0.0) -> Version:
        """The version on the way to this one that a move can go to at once; the rest is prepared in the background."""
        return version if self._prepared_data is None else self._prepared_data.prepare(version, patience)

    def prepare_newest(self) -> None:
        """Prepare the newest version in the background; no tick sees it before a move."""
        static = self._prepared_data
        if static is not None and (newest := static.latest()) != static.version:
            static.prepare(newest, 0.0)

    def _set_data_version(self) -> None:
        version = self.data_version
        for evaluator in self._evaluation_order:
            evaluator.data_version = version

    def advance(
        self, batch: Mapping[str, Elements], ended: Collection[str] = (), version: Version | None = None
    ) -> StepResult:
        """Evaluate one batch; `ended` names the streams that will bring no more.

        `version` is the version of the static data at all ticks of the batch; None leaves it as it is.
        """
        if version is not None:
            self.move_static_data(version)
        step = StepResult()
        self._evaluate_all(self._admit_batch(batch, ended, step), step)
        self._trim_log()
        return self._sort_answers(step)

    def advance_by_ticks(
        self,
        batch: Mapping[str, Elements],
        ended: Collection[str],
        choose: ChooseStep,
        pace: TickPace | None = None,
    ) -> Iterator[StepResult]:
        """Evaluate one batch in steps: one for each instant at which some query has a tick, or one where none has.

        `choose` is called before each step, after the caller has consumed the steps before. With a `pace` a step may
        have more ticks, all with one version.
        """
        step = StepResult()
        # Elements are admitted; no tick is answered yet.
        self._evaluate_all(self._admit_batch(batch, ended, step), step, -_ETERNITY)
        tick = self._next_tick(1 if pace is None else pace.ticks)
        while tick is not None:
            begin, before = time.perf_counter(), self.data_version
            tick, version = choose(tick)
            self.move_static_data(version)
            self._evaluate_all({}, step, tick + 1)
            if pace is not None:
                pace.record(time.perf_counter() - begin, is_other_version=self.data_version != before)
            tick = self._next_tick(1 if pace is None else pace.ticks)
            if tick is not None:
                step.is_last = False
                yield self._sort_answers(step)
                step = StepResult()
        self._trim_log()
        yield self._sort_answers(step)

    def _admit_batch(
        self, batch: Mapping[str, Elements], ended: Collection[str], step: StepResult
    ) -> dict[StreamKey, Elements]:
        """The elements of a batch that are not late, by stream key."""
        arrived: dict[StreamKey, Elements] = {}
        for stream, elements in batch.items():
            self._admit(stream, sort_by_position(elements), arrived, step)
        for key, clock in self._clocks.items():
            if key[0] in ended:
                clock.has_ended = True
        return arrived

    def _sort_answers(self, step: StepResult) -> StepResult:
        """The step, its answers in the order of time and registration."""
        step.answers = merge_answers(step.unmerged, self._registration_order)
        step.unmerged = []
        return step

    def _watermark_of(self, evaluator: Evaluator) -> tuple[int | None, bool, int | None]:
        """The watermark of an evaluator's streams, whether all have ended, and the time after the newest element."""
        clocks = self.clocks_of(evaluator)
        watermark, ended = combine_clocks(clocks)
        return (
            watermark,
            ended,
            max((one.highest_time + 1 for one in clocks if one.highest_time is not None), default=None),
        )

    def _next_tick(self, count: int) -> int | None:
        """The first instant at which a tick is due; with a larger count, one up to which no evaluator has more."""
        found: list[int] = []
        for evaluator in self._evaluation_order:
            watermark, ended, floor = self._watermark_of(evaluator)
            if (ended or watermark is not None) and (
                tick := evaluator.ticker.tick_after(count, watermark, floor)
            ) is not None:
                found.append(tick)
        return min(found, default=None)

    def _evaluate_all(self, arrived: dict[StreamKey, Elements], step: StepResult, until: int | None = None) -> None:
        for evaluator in self._evaluation_order:
            self._evaluate(evaluator, arrived, step, until)

    def _evaluate(
        self, evaluator: Evaluator, arrived: dict[StreamKey, Elements], step: StepResult, until: int | None
    ) -> None:
        """Advance one evaluator; its answers go into `step`, and as elements into the streams that it produces."""
        watermark, ended, floor = self._watermark_of(evaluator)
        mine = {key: arrived[key] for key in evaluator.keys if key in arrived}
        begin = time.perf_counter()
        answers = evaluator.advance(mine, watermark, ended=ended, floor=floor, until=until)
        # An evaluator with ticks left will still feed the streams that it produces.
        ended = ended and (until is None or evaluator.ticker.next_tick(None, floor) is None)
        share = (time.perf_counter() - begin) / len(evaluator.names)
        for name in evaluator.names:
            step.seconds[name] = step.seconds.get(name, 0.0) + share
        if any(name in self._late_starts for name in evaluator.names):
            answers = AnswerBatch([[self._mark_incomplete(answer) for answer in answers]])
        step.unmerged.append(answers)
        answered = evaluator.ticker.last_tick
        if ended and answered is not None:
            for clock in self.clocks_of(evaluator):
                clock.close(answered + 1)
        for produced, query in self._produced.items():
            name = query.plan.name
            if self._evaluators[name] is not evaluator:
                continue
            own = [answer for answer in answers if answer.query == name]
            elements = [Element(answer.time, answer.triples, position=(answer.time, answer.part)) for answer in own]
            self._admit(produced, elements, arrived, step)
            for key, clock in self._clocks.items():
                if key[0] == produced:
                    clock.has_ended = ended

    def _mark_incomplete(self, answer: Answer) -> Answer:
        """The answer, marked incomplete where a late query's windows did not hold everything yet."""
        begun = self._late_starts.get(answer.query)
        if begun is None:
            return answer
        begun = self._late_starts[answer.query] = begun.after_answer(answer)
        return answer if answer.time >= begun.complete_from else replace(answer, complete=False)

    def _admit(self, stream: str, elements: Elements, arrived: dict[StreamKey, Elements], step: StepResult) -> None:
        """Admit elements in arrival order, with the times that each stream key asks for; late ones are put aside."""
        if not len(elements):
            return
        for key, clock in self._clocks.items():
            if key[0] != stream:
                continue
            timestamped = (
                elements if key[1] is None else self._with_own_times(stream, key[1], elements_of(elements), step)
            )
            clock.has_ended = False
            number = clock.element_count
            admitted, late = clock.admit(timestamped)
            step.late.extend((stream, element) for element in _late(late))
            if isinstance(admitted, list):
                # An empty answer of a producing query moves the clock of its stream and nothing else.
                admitted = [element for element in admitted if element.triples]
            admitted = number_elements(admitted, number)
            arrived[key] = concat_elements((arrived.get(key, []), admitted))
            if self._log is not None:
                self._log.append(key, admitted)

    def _trim_log(self) -> None:
        """Remove from the log what no window can show any more."""
        if self._log is None:
            return
        needed: dict[StreamKey, int] = {}
        for evaluator in self._evaluation_order:
            for number, key in enumerate(evaluator.keys):
                oldest = evaluator.needed_from(number)
                needed[key] = min(needed.get(key, _ETERNITY), -_ETERNITY if oldest is None else oldest)
        for key, oldest in needed.items():
            self._log.trim(key, oldest)

    def _with_own_times(
        self, stream: str, predicate: str, elements: Iterable[Element], step: StepResult
    ) -> list[Element]:
        """Elements whose time is the value of a property in their own graph (OA11)."""
        timestamped: list[Element] = []
        for element in elements:
            values = {t.object for t in element.triples if t.predicate.value == predicate}
            reason = f"{len(values)} values of <{predicate}>, which gives the time; expected one"
            if len(values) == 1:
                try:
                    value = values.pop()
                    time = parse_time(value.value if isinstance(value, Literal) else str(value))
                    timestamped.append(replace(element, time=time))
                    continue
                except ValueError as error:
                    reason = f"<{predicate}>: {error}"
            text = " ".join(f"{triple} ." for triple in element.triples)
            step.bad.append((stream, BadElement(reason, text, stream, element.position)))
        return timestamped

    def watermarks(self) -> dict[str, int | None]:
        """The watermark of each stream, by name."""
        return {iri_to_name(stream): clock.watermark for (stream, _), clock in self._clocks.items()}

    def clocks_of(self, evaluator: Evaluator) -> list[StreamClock]:
        """The clocks of the streams that an evaluator reads."""
        return [self._clocks[key] for key in evaluator.keys]

    @property
    def is_durable(self) -> bool:
        """Whether it keeps a window log, from which a checkpoint can be written."""
        return self._log is not None

    @property
    def log(self) -> WindowLog:
        """The elements that the windows can still show."""
        if self._log is None:
            raise RuntimeError("this program keeps no log: make it durable")
        return self._log

    def complete_from(self, name: str) -> int | None:
        """The instant from which the answers of a query are complete; None where they are from the first one on.

        A query that started while its streams were under way has one; it is `NOT_YET` as long as it is not known.
        """
        begun = self._late_starts.get(name)
        return None if begun is None or begun.complete_from == -NOT_YET else begun.complete_from

    def patterns(self, name: str) -> Patterns:
        """The triple patterns by which a query reads its streams."""
        query, evaluator = self._queries[name], self._evaluators[name]
        if not self._is_filtered:
            return {source.stream.value: frozenset({EVERYTHING}) for source in query.plan.windows}
        # In the plan of a family constants have become variables.
        plan = evaluator.plan if len(evaluator.names) == 1 else query.plan
        return needed_patterns(plan, query.settings, all_texts=evaluator.needs_all_texts)

    def state(self) -> ProgramState:
        """What a later process needs besides the window log."""
        states: dict[str, EvaluatorState] = {}
        for evaluator in self._evaluation_order:
            states |= dict.fromkeys(evaluator.names, evaluator.state())
        return ProgramState(
            clocks={**self._unread, **self._clocks},
            states=states,
            queries=self._fingerprints,
            removed=self.log.removed_until,
            reads=self._reads,
            late_starts=self._late_starts,
            data_version=self.data_version,
        )

    def resume(self, state: ProgramState, log: WindowLog) -> None:
        """Continue from a state and the log that belongs to it. The program must be new; its queries may be others.

        A query that was there goes on where it was. A new one starts with what the log holds of its streams.
        """
        version = state.data_version
        if version is not None and self.data_version is not None and is_before(version, self.data_version):
            # The answers before the restart followed from the data at that version.
            self.move_static_data(version)
        self._log, log.removed_until = log, state.removed
        self._unread = {key: clock for key, clock in state.clocks.items() if key not in self._clocks}
        for key, fresh in self._clocks.items():
            if key in state.clocks:
                self._clocks[key] = state.clocks[key].take_limits_of(fresh)
        log.keep_only(self._clocks)
        self._reads = state.reads.continued_with(union_patterns(map(self.patterns, self._queries)), state.next_times)
        retained = {key: log.retained(key) for key in self._clocks}
        for evaluator in self._evaluation_order:
            self._continue(evaluator, state, retained)

    def _continue(self, evaluator: Evaluator, state: ProgramState, retained: Mapping[StreamKey, Elements]) -> None:
        """Restore an evaluator from its state, or start it late where it has none."""
        kept = [name for name in evaluator.names if state.queries.get(name) == self._fingerprints[name]]
        new = [name for name in evaluator.names if name not in kept]
        begun = {name: state.late_starts[name] for name in kept if name in state.late_starts}
        begun |= {name: self._late_start(evaluator, name, state) for name in new}
        if kept:
            # Queries that are evaluated as one know what the oldest of them knows.
            first = min(kept, key=lambda name: begun[name].first_number if name in begun else -1)
            before = begun.get(first)
            evaluator.restore(state.states[first], before.select_known(retained) if before else retained, new)
        else:
            before = LateStart.of_family(list(begun.values()))
            firsts = {key: low for key, clock in self._clocks.items() if (low := clock.lowest_time) is not None}
            evaluator.begin(before.select_known(retained), self._limit(evaluator), firsts)
        for name, one in begun.items():
            self._late_starts[name] = replace(one, known=before.known if before else {})
        for name in kept:
            self._note_changed_producers(evaluator, name, state)

    def _late_start(self, evaluator: Evaluator, name: str, state: ProgramState) -> LateStart:
        """How a new query starts, from what the log holds of its streams."""
        known: dict[StreamKey, KnownElements] = {}
        for key in dict.fromkeys(evaluator.keys):
            held = self._held_since(key, name, state)
            if held is not None:
                known[key] = KnownElements(self._clocks[key].element_count, held)
        return find_late_start(self._queries[name].settings, evaluator.keys, known, self._limit(evaluator))

    def _held_since(self, key: StreamKey, name: str, state: ProgramState) -> int | None:
        """The time from which the log holds every element that a new query needs; None: since the stream began."""
        stream, clock = key[0], self._clocks[key]
        producer = self._produced.get(stream)
        if producer is not None:
            return self._held_since_producer(producer, clock, state)
        if key not in state.clocks and any(stream == other for other, _ in state.clocks):
            # Another clock timed the elements that were removed, so their times by this clock are not known.
            return NOT_YET
        if clock.highest_time is None:
            return None
        held = self.log.removed_until[key] + 1 if key in self.log.removed_until else None
        since = (held, self._reads.since(stream, self.patterns(name)[stream]))
        return max((instant for instant in since if instant is not None), default=None)

    def _held_since_producer(self, producer: RegisteredQuery, clock: StreamClock, state: ProgramState) -> int | None:
        """The same for a stream that another query produces: from when its answers are complete and were logged."""
        name = producer.plan.name
        since = [self.complete_from(name)]
        if clock.highest_time is None:
            answered = self._evaluators[name].ticker.last_tick
            since.append(None if answered is None else answered + 1)
        elif state.queries.get(name) != self._fingerprints[name]:
            since.append(clock.highest_time + 1)
        return max((instant for instant in since if instant is not None), default=None)

    def _note_changed_producers(self, evaluator: Evaluator, name: str, state: ProgramState) -> None:
        """Where a producer of its streams has changed, a query is complete when its windows have passed the change."""
        changed: dict[StreamKey, KnownElements] = {}
        for key in evaluator.keys:
            producer, highest = self._produced.get(key[0]), self._clocks[key].highest_time
            if producer is not None and highest is not None:
                whole = self._late_starts.get(producer.plan.name)
                if state.queries.get(producer.plan.name) != self._fingerprints[producer.plan.name]:
                    changed[key] = KnownElements(0, max(highest + 1, whole.complete_from if whole else highest))
        if changed:
            late = find_late_start(self._queries[name].settings, evaluator.keys, changed, self._limit(evaluator))
            mine = self._late_starts.get(name)
            self._late_starts[name] = late if mine is None else replace(mine, instant=max(mine.instant, late.instant))

    def _limit(self, evaluator: Evaluator) -> int | None:
        """The instant before which all ticks of an evaluator are answered; None where its streams have not begun."""
        clocks = self.clocks_of(evaluator)
        watermark, ended = combine_clocks(clocks)
        if not ended:
            return watermark
        return max(
            (max(c.highest_time + 1, c.closed_before or c.highest_time) for c in clocks if c.highest_time is not None),
            default=None,
        )

    def snapshot(self) -> bytes:
        """State and window log as bytes."""
        return pack([self.state().to_plain(), [segment.to_plain() for segment in self.log]])

    def restore(self, saved: bytes) -> None:
        """Continue from a snapshot."""
        state, segments = unpack(saved)
        self.resume(ProgramState.from_plain(state), WindowLog(map(LogSegment.from_plain, segments)))


def _late(elements: Elements) -> Iterator[LateElement]:
    if isinstance(elements, ElementColumns) and not elements.is_whole:
        for time, position in zip(elements.times.tolist(), elements.positions.tolist(), strict=True):
            yield LateElement(time, tuple(position), None)
        return
    for element in elements_of(elements):
        yield LateElement(element.time, element.position, "\n".join(f"{triple} ." for triple in element.triples))
