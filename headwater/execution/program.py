"""The registered queries that run together: batches of elements in, answers out.

A program neither reads files nor knows Spark, so the in-process runner and the stateful step on Spark drive the same
thing and give the same answers. The answers of a REGISTER STREAM feed the queries that read it within the same step,
whatever the order of registration.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from headwater.execution.answer_batch import AnswerBatch, merge_answers
from headwater.execution.answers import Answer
from headwater.execution.evaluator import Evaluator, EvaluatorState
from headwater.execution.late_queries import NOT_YET, KnownElements, LateStart, find_late_start
from headwater.execution.program_clocks import (
    find_answer_limit,
    is_answer_due,
    keys_by_stream,
    make_clocks,
    pass_watermark_on,
    take_heartbeats,
    watermark_of,
)
from headwater.execution.program_state import ProgramState
from headwater.execution.program_steps import ChooseStep, StepResult, TickPace, with_own_times
from headwater.execution.query_evaluators import FamilyFailed, FindFamilies, MakeEvaluator, QueryEvaluators, no_families
from headwater.execution.registered import RegisteredQuery, find_produced_streams
from headwater.execution.static_data import (
    PreparedData,
    StaticData,
    Version,
    VersionedData,
    can_change_answers,
    is_before,
)
from headwater.execution.stream_reads import EVERYTHING, Patterns, ReadHistory, needed_patterns, union_patterns
from headwater.execution.suspension import StateLimits, SuspendedEvaluator, Suspension
from headwater.execution.window_log import LogSegment, Size, StreamKey, WindowLog
from headwater.terms.model import Element
from headwater.terms.names import iri_to_name
from headwater.terms.packing import pack, unpack
from headwater.values.query_guard import Interruption, QueryDropped, RunStopped
from headwater.values.query_limits import LimitError
from headwater.windows.element_sequences import (
    Elements,
    concat_elements,
    elements_of,
    number_elements,
    select_elements,
    sequence_numbers_of,
    sort_by_position,
)
from headwater.windows.heartbeat import NO_HEARTBEATS, Heartbeats
from headwater.windows.stream_clock import StreamClock

_ETERNITY = 1 << 62

_TOKEN = "#"
"""Stands between the fingerprint of a query and the token under which it was resumed."""


class Program:
    """The registered queries that run together, and the state of their evaluation.

    `is_filtered` says that the sources leave out triples that no query can match. `idle` is after how much silence
    live streams are not waited for, `skews` how far apart the partitions of a stream may be, `max_ahead` how far an
    element may be ahead of those before it in its stream. Without `is_durable` no window log is kept. `resumed` has a
    token for each query that begins anew although a state knows it, and was never resumed under that token; queries in
    `alone` are evaluated one by one. `interruption` is how other threads end an evaluation.
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
        max_ahead: int | None = None,
        resumed: Mapping[str, str] | None = None,
        alone: Collection[str] = (),
        interruption: Interruption | None = None,
    ) -> None:
        self._log = WindowLog() if is_durable else None
        self._versioned_data: VersionedData | None = static if isinstance(static, VersionedData) else None
        self._prepared_data: PreparedData | None = static if isinstance(static, PreparedData) else None
        self._produced = find_produced_streams(queries, static)
        self._all = QueryEvaluators(queries, static, evaluator, families, alone, interruption)
        self._queries = {query.plan.name: query for query in queries}
        tokens = resumed or {}
        self._fingerprints = {
            name: query.fingerprint + (_TOKEN + tokens[name] if name in tokens else "")
            for name, query in self._queries.items()
        }
        self._patterns = {name: self._find_patterns(name, is_filtered) for name in self._queries}
        self._failures: dict[Evaluator, Exception] = {}
        """What evaluators raised when the static data moved."""
        self._limits = StateLimits()
        self._registration_order = {name: place for place, name in enumerate(self._queries)}
        keys = {key for evaluator in self._all.order for key in evaluator.keys}
        self._clocks = make_clocks(keys, self._produced, delay, idle or {}, skews or {}, max_ahead)
        self._keys_of_stream = keys_by_stream(self._clocks)
        read = self._produced.keys() & self._keys_of_stream.keys()
        self._stream_of_producer = {self._produced[stream].plan.name: stream for stream in read}
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
        return self._all.by_name

    @property
    def suspensions(self) -> Mapping[str, Suspension]:
        """The queries that are suspended, and why."""
        return self._all.suspensions

    def size_of(self, evaluator: Evaluator) -> Size:
        """How much it held after the last batch."""
        return self._limits.sizes.get(evaluator) or evaluator.size()

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
        touched = [evaluator for evaluator in self._all.order if can_change_answers(evaluator.wanted_patterns, changed)]
        for evaluator in touched:
            self._change_data(evaluator, evaluator.prepare_static_change)
        static.move(version)
        collision = self._all.follow_static_data(changed)
        for evaluator in touched:
            if collision is not None:
                self._failures.setdefault(evaluator, collision)
            self._change_data(evaluator, evaluator.apply_static_change)
        self._set_data_version()

    def _change_data(self, evaluator: Evaluator, change: Callable[[], None]) -> None:
        """Have an evaluator follow a change of the data; a failure counts at its next tick."""
        try:
            with evaluator.guard:
                change()
        except RunStopped:
            raise
        except Exception as error:
            self._failures.setdefault(evaluator, error)

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
        for evaluator in self._all.order:
            evaluator.data_version = version

    def advance(
        self,
        batch: Mapping[str, Elements],
        ended: Collection[str] = (),
        version: Version | None = None,
        heartbeats: Heartbeats = NO_HEARTBEATS,
    ) -> StepResult:
        """Evaluate one batch; `ended` names the streams that will bring no more.

        `version` is the version of the static data at all ticks of the batch; None leaves it as it is. `heartbeats` of
        live streams come behind the elements.
        """
        if version is not None:
            self.move_static_data(version)
        step = StepResult()
        self._evaluate_all(self._admit_batch(batch, ended, heartbeats, step), step)
        self._end_batch(step)
        return self._sort_answers(step)

    def advance_by_ticks(
        self,
        batch: Mapping[str, Elements],
        ended: Collection[str],
        choose: ChooseStep,
        pace: TickPace | None = None,
        heartbeats: Heartbeats = NO_HEARTBEATS,
    ) -> Iterator[StepResult]:
        """Evaluate one batch in steps: one for each instant at which some query has a tick, or one where none has.

        `choose` is called before each step, after the caller has consumed the steps before. With a `pace` a step may
        have more ticks, all with one version.
        """
        step = StepResult()
        # Elements are admitted; no tick is answered yet.
        self._evaluate_all(self._admit_batch(batch, ended, heartbeats, step), step, -_ETERNITY)
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
        self._end_batch(step)
        yield self._sort_answers(step)

    def is_answer_due(self, heartbeats: Heartbeats) -> bool:
        """Whether a batch of these heartbeats alone would make a tick due."""
        return is_answer_due(self._all.order, self._clocks, self._produced, heartbeats)

    def _admit_batch(
        self, batch: Mapping[str, Elements], ended: Collection[str], heartbeats: Heartbeats, step: StepResult
    ) -> dict[StreamKey, Elements]:
        """The elements of a batch that are not late, by stream key."""
        arrived: dict[StreamKey, Elements] = {}
        for stream, elements in batch.items():
            self._admit(stream, sort_by_position(elements), arrived, step)
        for stream in ended:
            for key in self._keys_of_stream.get(stream, ()):
                self._clocks[key].has_ended = True
        take_heartbeats(self._clocks, heartbeats)
        return arrived

    def _sort_answers(self, step: StepResult) -> StepResult:
        """The step, its answers in the order of time and registration."""
        if self._all.notices:
            step.unmerged.append(AnswerBatch([self._all.notices]))
            self._all.notices = []
        step.answers = merge_answers(step.unmerged, self._registration_order)
        step.unmerged = []
        return step

    def _next_tick(self, count: int) -> int | None:
        """The first instant at which a tick is due; with a larger count, one up to which no evaluator has more."""
        found: list[int] = []
        for evaluator in self._all.order:
            if isinstance(evaluator, SuspendedEvaluator):
                continue
            watermark, ended, floor = watermark_of(self.clocks_of(evaluator))
            if (ended or watermark is not None) and (
                tick := evaluator.ticker.tick_after(count, watermark, floor)
            ) is not None:
                found.append(tick)
        return min(found, default=None)

    def _evaluate_all(self, arrived: dict[StreamKey, Elements], step: StepResult, until: int | None = None) -> None:
        for evaluator in self._all.order:
            self._evaluate(evaluator, arrived, step, until)

    def _evaluate(
        self, evaluator: Evaluator, arrived: dict[StreamKey, Elements], step: StepResult, until: int | None
    ) -> None:
        """Advance one evaluator; its answers go into `step`, and as elements into the streams that it produces.

        One that fails is suspended; members of a family that fails are evaluated one by one.
        """
        if isinstance(evaluator, SuspendedEvaluator):
            self._pass_over(evaluator)
            return
        watermark, ended, floor = watermark_of(self.clocks_of(evaluator))
        mine, begin = {key: arrived[key] for key in evaluator.keys if key in arrived}, time.perf_counter()
        savepoint = evaluator.savepoint() if len(evaluator.names) > 1 else None
        evaluator.answers_so_far = AnswerBatch()
        failure: Exception | None = None
        try:
            with evaluator.guard:
                if evaluator in self._failures:
                    raise self._failures.pop(evaluator)
                answers = evaluator.advance(mine, watermark, ended=ended, floor=floor, until=until)
        except RunStopped:
            raise
        except Exception as error:
            if savepoint is not None and not isinstance(error, QueryDropped):
                for single in self._split(evaluator, savepoint(), mine):
                    self._evaluate(single, arrived, step, until)
                return
            failure, answers = error, evaluator.answers_so_far
        failures = evaluator.take_failures()
        # An evaluator with ticks left will still feed the streams that it produces.
        if failure is None:
            ended = ended and (until is None or evaluator.ticker.next_tick(None, floor) is None)
        for name, share in evaluator.split_seconds(time.perf_counter() - begin).items():
            step.seconds[name] = step.seconds.get(name, 0.0) + share
        if any(name in self._late_starts for name in evaluator.names) or self._is_deprived(evaluator):
            answers = answers.change(self._can_be_incomplete, self._mark_incomplete)
        step.unmerged.append(answers)
        answered = evaluator.ticker.last_tick
        if ended and answered is not None:
            for clock in self.clocks_of(evaluator):
                clock.close(answered + 1)
        for name in self._stream_of_producer.keys() & set(evaluator.names) if self._produced else ():
            produced = self._stream_of_producer[name]
            own = answers.by_query().get(name, ())
            elements = [Element(one.time, one.triples, position=(one.time, one.part)) for one in own]
            self._admit(produced, elements, arrived, step)
            if until != -_ETERNITY:
                pass_watermark_on(self._clocks, produced, watermark, until)
            for key in self._keys_of_stream.get(produced, ()):
                self._clocks[key].has_ended = ended
        if failure is not None or failures:
            times = [watermark, floor, *answers.times[-1:].tolist()]
            now = max((at for at in times if at is not None), default=0)
            suspended = [self._all.suspend_one(evaluator, name, error, now) for name, error in failures.items()]
            if failure is not None and evaluator.names:
                suspended += self._all.suspend(evaluator, failure, now)
            for place in suspended:
                self._late_starts.pop(place.plan.name, None)
                self._pass_over(place)

    def _split(
        self, family: Evaluator, state: EvaluatorState, arrived: Mapping[StreamKey, Elements]
    ) -> tuple[Evaluator, ...]:
        """Evaluate the members of a family one by one, from the state before the elements that have just arrived."""
        if self._log is None or not self._log.is_whole:
            raise FamilyFailed(family.names)
        retained = {key: self._log.retained(key) for key in dict.fromkeys(family.keys)}
        for key, elements in arrived.items():
            is_new = np.isin(sequence_numbers_of(retained[key]), sequence_numbers_of(elements))
            retained[key] = select_elements(retained[key], ~is_new)
        return self._all.split(family, state, retained, self._late_starts)

    def _pass_over(self, evaluator: Evaluator) -> None:
        """Have a stream that a suspended query produces go on without elements."""
        watermark, ended, _ = watermark_of(self.clocks_of(evaluator))
        produced = self._stream_of_producer.get(evaluator.plan.name, "")
        for clock in (self._clocks[key] for key in self._keys_of_stream.get(produced, ())):
            clock.has_ended = ended
            if watermark is not None and (clock.highest_time is None or clock.highest_time < watermark - 1):
                clock.highest_time = watermark - 1

    def _is_deprived(self, evaluator: Evaluator) -> bool:
        """Whether an evaluator reads, at first hand or not, a stream whose query is suspended."""
        if not self._all.suspensions:
            return False
        producers = [self._produced[key[0]].plan.name for key in evaluator.keys if key[0] in self._produced]
        return any(name in self._all.suspensions or self._is_deprived(self._all.by_name[name]) for name in producers)

    def _end_batch(self, step: StepResult) -> None:
        """After a batch: forget what no window can show, and hold queries to the limits of state and memory."""
        self._trim_log()
        self._limits.check(self._all.order, self._suspend_after_batch)

    def _suspend_after_batch(self, evaluator: Evaluator, name: str | None, error: Exception) -> None:
        """Suspend one query of an evaluator, or all of them."""
        time = find_answer_limit(self.clocks_of(evaluator)) or 0
        if name is None:
            self._all.suspend(evaluator, error, time)
        else:
            self._all.suspend_one(evaluator, name, error, time)

    def _can_be_incomplete(self, name: str) -> bool:
        return name in self._late_starts or self._is_deprived(self._all.by_name[name])

    def _mark_incomplete(self, answer: Answer) -> Answer:
        """The answer, marked incomplete where a late query's windows did not hold everything yet."""
        if self._is_deprived(self._all.by_name[answer.query]):
            return replace(answer, complete=False)
        begun = self._late_starts.get(answer.query)
        if begun is not None:
            begun = self._late_starts[answer.query] = begun.after_answer(answer)
        return answer if begun is None or answer.time >= begun.complete_from else replace(answer, complete=False)

    def _admit(self, stream: str, elements: Elements, arrived: dict[StreamKey, Elements], step: StepResult) -> None:
        """Admit elements in arrival order, with the times that each stream key asks for; others are put aside."""
        if not len(elements):
            return
        for key in self._keys_of_stream.get(stream, ()):
            clock = self._clocks[key]
            timestamped = elements if key[1] is None else with_own_times(stream, key[1], elements_of(elements), step)
            clock.has_ended = False
            number = clock.element_count
            timely, ahead = clock.split_ahead(timestamped)
            admitted, late = clock.admit(timely)
            step.put_aside(stream, late, ahead, (clock.late_by, clock.unawaited))
            if isinstance(admitted, list):
                # An empty answer of a producing query moves the clock of its stream; a named graph has a time to show.
                admitted = [element for element in admitted if element.triples or element.graph is not None]
            admitted = number_elements(self._all.owners.admit(stream, admitted, step), number)
            arrived[key] = concat_elements((arrived.get(key, []), admitted))
            if self._log is not None:
                self._log.append(key, admitted)

    def _trim_log(self) -> None:
        """Remove from the log, and from the owners of ids, what no window can show any more."""
        needed = self._all.needed_times()
        self._all.owners.forget_before(min(needed.values(), default=-_ETERNITY))
        if self._log is not None:
            for key, oldest in needed.items():
                self._log.trim(key, oldest)

    def watermarks(self) -> dict[str, int | None]:
        """The watermark of each stream, by name."""
        return {iri_to_name(stream): clock.reached for (stream, _), clock in self._clocks.items()}

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
        if self._is_deprived(self._all.by_name[name]):
            return NOT_YET
        begun = self._late_starts.get(name)
        return None if begun is None or begun.complete_from == -NOT_YET else begun.complete_from

    def patterns(self, name: str) -> Patterns:
        """The triple patterns by which a query reads its streams."""
        return self._patterns[name]

    def _find_patterns(self, name: str, is_filtered: bool) -> Patterns:
        query, evaluator = self._queries[name], self._all.by_name[name]
        if not is_filtered:
            return {source.stream.value: frozenset({EVERYTHING}) for source in query.plan.windows}
        evaluator = evaluator.evaluator_of(name)
        # In the plan of a family constants have become variables.
        plan = evaluator.plan if len(evaluator.names) == 1 else query.plan
        return needed_patterns(plan, query.settings, all_texts=evaluator.needs_all_texts)

    def state(self) -> ProgramState:
        """What a later process needs besides the window log."""
        states: dict[str, EvaluatorState] = {}
        for evaluator in self._all.order:
            states |= dict.fromkeys(evaluator.names, evaluator.state())
        return ProgramState(
            clocks={**self._unread, **self._clocks},
            states=states,
            queries=self._fingerprints,
            removed=self.log.removed_until,
            reads=self._reads,
            late_starts=self._late_starts,
            data_version=self.data_version,
            suspended={name: one.to_plain() for name, one in self.suspensions.items()},
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
        for name, mark in self._fingerprints.items():
            if _TOKEN not in mark and state.queries.get(name, "").partition(_TOKEN)[0] == mark:
                self._fingerprints[name] = state.queries[name]
        for name, plain in state.suspended.items():
            if name in self._queries and state.queries[name] == self._fingerprints[name]:
                self._all.keep_suspended(name, Suspension.from_plain(plain))
        self._unread = {key: clock for key, clock in state.clocks.items() if key not in self._clocks}
        for key, fresh in self._clocks.items():
            if key in state.clocks:
                self._clocks[key] = state.clocks[key].take_limits_of(fresh)
        log.keep_only(self._clocks)
        self._reads = state.reads.continued_with(union_patterns(map(self.patterns, self._queries)), state.next_times)
        # Where a term of a new query has the id of another one, the statements with that one are left out.
        retained = {key: self._all.owners.admit(key[0], log.retained(key), StepResult()) for key in self._clocks}
        for evaluator in self._all.order:
            try:
                with evaluator.guard:
                    self._continue(evaluator, state, retained)
            except (LimitError, MemoryError) as error:
                self._all.suspend(evaluator, error, find_answer_limit(self.clocks_of(evaluator)) or 0)

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
            evaluator.begin(before.select_known(retained), find_answer_limit(self.clocks_of(evaluator)), firsts)
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
        return find_late_start(
            self._queries[name].settings, evaluator.keys, known, find_answer_limit(self.clocks_of(evaluator))
        )

    def _held_since(self, key: StreamKey, name: str, state: ProgramState) -> int | None:
        """The time from which the log holds every element that a new query needs; None: since the stream began."""
        stream, clock = key[0], self._clocks[key]
        producer = self._produced.get(stream)
        if producer is not None:
            return self._held_since_producer(producer, clock, state)
        if key not in state.clocks and any(stream == other for other, _ in state.clocks):
            # Another clock timed the elements that were removed, so their times by this clock are not known.
            return NOT_YET
        if clock.newest_time is None:
            return None
        held = self.log.removed_until[key] + 1 if key in self.log.removed_until else None
        since = (held, self._reads.since(stream, self.patterns(name)[stream]))
        return max((instant for instant in since if instant is not None), default=None)

    def _held_since_producer(self, producer: RegisteredQuery, clock: StreamClock, state: ProgramState) -> int | None:
        """The same for a stream that another query produces: from when its answers are complete and were logged."""
        name = producer.plan.name
        since = [self.complete_from(name)]
        if clock.highest_time is None:
            answered = self._all.by_name[name].ticker.last_tick
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
            late = find_late_start(
                self._queries[name].settings, evaluator.keys, changed, find_answer_limit(self.clocks_of(evaluator))
            )
            mine = self._late_starts.get(name)
            self._late_starts[name] = late if mine is None else replace(mine, instant=max(mine.instant, late.instant))

    def snapshot(self) -> bytes:
        """State and window log as bytes."""
        return pack([self.state().to_plain(), [segment.to_plain() for segment in self.log]])

    def restore(self, saved: bytes) -> None:
        """Continue from a snapshot."""
        state, segments = unpack(saved)
        self.resume(ProgramState.from_plain(state), WindowLog(map(LogSegment.from_plain, segments)))
