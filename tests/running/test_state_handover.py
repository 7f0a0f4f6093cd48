"""An evaluation that goes over from micro-batches to real-time mode and back gives the answers of one that does not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headwater as hw
from headwater.execution.answers import Answer
from headwater.execution.program_state import ProgramState
from headwater.execution.window_log import LogChanges, LogSegment
from headwater.running.evaluation import BatchOutcome, Evaluation
from headwater.running.ordered_evaluation import OrderedEvaluation, StreamPartitions
from headwater.running.program_description import ProgramDescription
from headwater.running.state_handover import ReadPartitions, own_triples_of, to_batch_state, to_ordered_state
from headwater.sharding.shard_plan import ShardPlan, find_shard_keys
from headwater.sharding.shard_planning import plan_shards
from headwater.sources.chunk_columns import with_columns
from headwater.sources.feed import Chunk
from headwater.terms.model import Element, Literal, NamedNode, Triple
from headwater.terms.packing import Plain, pack, unpack
from headwater.windows.heartbeat import Heartbeat

S, T = "http://ex/s", "http://ex/t"
HEAD = "PREFIX : <http://ex/>\n"
TOTALS = f"""{HEAD}REGISTER QUERY totals AS
SELECT ?sensor (COUNT(?value) AS ?n) (GROUP_CONCAT(?value) AS ?values)
FROM STREAM <{S}> [RANGE 10us STEP 2us] WHERE {{ ?sensor :value ?value }} GROUP BY ?sensor"""
LAST = f"""{HEAD}REGISTER QUERY latest AS
SELECT ?sensor ?value FROM STREAM <{S}> [RANGE TRIPLES 3] WHERE {{ ?sensor :value ?value }}"""
PAIRS = f"""{HEAD}REGISTER QUERY pairs AS
SELECT ?sensor ?value ?other FROM STREAM <{S}> [RANGE 9us STEP 3us] FROM STREAM <{T}> [RANGE 6us STEP 3us]
WHERE {{ ?sensor :value ?value . ?sensor :other ?other }}"""
FAR = 1 << 50


def description(*queries: str, delay: int = 0, max_ahead: int | None = None) -> ProgramDescription:
    engine = hw.Engine(in_process=True, delay=delay)
    for stream in (S, T):
        engine.stream(stream, hw.memory([]))
    for query in queries:
        engine.register(query)
    skews = tuple((stream, FAR) for stream in (S, T))
    return replace(engine._description(), skews=skews, max_ahead=max_ahead)


STREAMS = StreamPartitions({S: [0, 1], T: [0, 1]})


def element(stream: str, time: int, partition: int, offset: int) -> Element:
    name = "value" if stream == S else "other"
    value = Literal(f"{stream[-1]}{partition}.{offset}")
    triple = Triple(NamedNode(f"http://ex/{'ab'[offset % 2]}"), NamedNode(f"http://ex/{name}"), value)
    return Element(time, (triple,), None, (partition, offset))


Record = tuple[str, Element]


def chunks_of(records: Sequence[Record]) -> list[Chunk]:
    """The chunks of records, one for each partition."""
    places: dict[tuple[str, int], list[Element]] = defaultdict(list)
    for stream, one in records:
        places[stream, one.position[0]].append(one)
    return [with_columns(Chunk(*place, "topic", tuple(some))) for place, some in places.items()]


@dataclass
class Store:
    """What a store has of a log: the segments that were added and not removed."""

    segments: dict[int, LogSegment] = field(default_factory=dict)

    def take(self, changes: LogChanges) -> None:
        for one in changes.added:
            self.segments[one.number] = LogSegment.from_plain(repacked(one.to_plain()))
        for number in changes.removed:
            del self.segments[number]


def repacked(plain: Plain) -> Plain:
    """A plain value as it comes back from a store."""
    return unpack(pack(plain))


class MicroBatches:
    """A shard in micro-batches."""

    def __init__(self, made: ProgramDescription, state: bytes | None = None, log: Iterable[LogSegment] = ()) -> None:
        self.evaluation = Evaluation(made.program())
        self.store = Store({one.number: one for one in log})
        if state is not None:
            self.evaluation.resume(state, self.store.segments.values())

    def step(self, chunks: list[Chunk]) -> BatchOutcome:
        return self.evaluation.step(chunks)

    def state(self) -> bytes:
        state, changes = self.evaluation.changes()
        self.store.take(changes)
        return state


class RealTime:
    """A shard in real-time mode."""

    def __init__(self, made: ProgramDescription, shard: int = 0) -> None:
        self.evaluation = OrderedEvaluation(made, STREAMS, shard)
        self.store = Store()
        self.held: dict[str, Store] = {S: Store(), T: Store()}

    def step(self, chunks: list[Chunk]) -> BatchOutcome:
        return self.evaluation.step(chunks)


def go_to_real_time(
    before: MicroBatches, made: ProgramDescription, read: Mapping[str, Mapping[int, int]], shard: int = 0
) -> RealTime:
    state = to_ordered_state(before.state(), {stream: ReadPartitions(one) for stream, one in read.items()})
    after = RealTime(made, shard)
    after.store = before.store
    after.evaluation.evaluation.resume(state.program, after.store.segments.values())
    after.evaluation.restore_orders(repacked(state.orders), {})
    return after


def go_to_micro_batches(before: RealTime, made: ProgramDescription, shard: int = 0) -> MicroBatches:
    state, changes = before.evaluation.evaluation.changes()
    before.store.take(changes)
    for stream, held in before.evaluation.held_changes().items():
        before.held[stream].take(held)
    held_segments = {stream: list(one.segments.values()) for stream, one in before.held.items()}
    orders = repacked(before.evaluation.orders_to_plain())
    own = own_triples_of(made.sharding, shard)
    log = sorted(before.store.segments.values(), key=lambda one: one.number)
    program, segments = to_batch_state(state, log, orders, held_segments, own)
    return MicroBatches(made, program, segments)


Content = list[tuple[str, int, int, Any]]


def content(answers: Iterable[Answer]) -> Content:
    return [(one.query, one.time, one.part, one.rows) for one in answers]


@dataclass
class Run:
    """What came of a run."""

    answers: Content = field(default_factory=list)
    letters: list[tuple[str, str, tuple[int, ...]]] = field(default_factory=list)

    def take(self, outcome: BatchOutcome) -> None:
        self.answers += content(outcome.answers)
        self.letters += [(one.kind, one.stream, one.position) for one in outcome.dead_letters]


def run(made: ProgramDescription, records: Sequence[Record], size: int, switches: Sequence[bool]) -> Run:
    """Evaluate records so many at a time; the switches say behind which steps the other mode goes on."""
    found, read = Run(), {stream: {0: 0, 1: 0} for stream in (S, T)}
    shard: MicroBatches | RealTime = MicroBatches(made)
    for number, begin in enumerate(range(0, len(records), size)):
        some = records[begin : begin + size]
        for stream, one in some:
            partition, offset = one.position
            read[stream][partition] = offset + 1
            if isinstance(shard, RealTime):
                shard.evaluation.note_read(stream, partition, offset)
        found.take(shard.step(chunks_of(some)))
        if number < len(switches) and switches[number]:
            is_real_time = isinstance(shard, RealTime)
            shard = (
                go_to_micro_batches(shard, made) if isinstance(shard, RealTime) else go_to_real_time(shard, made, read)
            )
            assert is_real_time != isinstance(shard, RealTime)
    return found


@st.composite
def streams_of_records(draw: st.DrawFn) -> list[Record]:
    """Records of two streams with two partitions, somehow interleaved. All partitions begin at once.

    Times are in order but for a few, and no two of a stream are equal.
    """
    queues: list[list[Record]] = []
    for stream in (S, T):
        for partition in (0, 1):
            steps = draw(st.lists(st.integers(-2, 5), min_size=1, max_size=14))
            times, now = [0], 0
            for one in steps:
                now = max(0, now + one)
                times.append(now)
            queues.append(
                [(stream, element(stream, 2 * time + partition, partition, place)) for place, time in enumerate(times)]
            )
    records = [queue.pop(0) for queue in queues]
    for turn in draw(st.lists(st.integers(0, 3), max_size=60)):
        rest = [queue for queue in queues if queue]
        if rest:
            records.append(rest[turn % len(rest)].pop(0))
    return records + [one for queue in queues for one in queue]


@given(
    streams_of_records(),
    st.integers(4, 9),
    st.lists(st.booleans(), max_size=12),
    st.sampled_from([0, 3, 20]),
    st.sampled_from([None, 8]),
)
def test_switches_change_no_answer(
    records: list[Record], size: int, switches: list[bool], delay: int, max_ahead: int | None
) -> None:
    made = description(TOTALS, PAIRS, delay=delay, max_ahead=max_ahead)
    expected, found = run(made, records, size, ()), run(made, records, size, switches)
    assert _without_order(found.answers) == _without_order(expected.answers)
    assert sorted(found.letters) == sorted(expected.letters)


@given(streams_of_records(), st.integers(4, 9), st.lists(st.booleans(), max_size=12), st.sampled_from([0, 5]))
def test_count_windows_go_on(records: list[Record], size: int, switches: list[bool], delay: int) -> None:
    made = description(LAST, delay=delay)
    only = _with_distinct_times([one for one in records if one[0] == S])
    expected, found = run(made, only, size, ()), run(made, only, size, switches)
    assert _without_order(found.answers) == _without_order(expected.answers)
    assert sorted(found.letters) == sorted(expected.letters)


def _without_order(answers: Content) -> list[Any]:
    """The answers, each with its rows and the parts of a joined text in an order of their own."""

    def cell(term: Any) -> str:
        return " ".join(sorted(str(getattr(term, "value", term)).split(" ")))

    # With several queries a step may have the ticks of one before those of the other.
    return sorted(
        (query, time, part, sorted(tuple(map(cell, row)) for row in rows)) for query, time, part, rows in answers
    )


def _with_distinct_times(records: list[Record]) -> list[Record]:
    """The records with times of which no two are equal: elements of one instant have no order of their own."""
    return [
        (stream, replace(one, time=40 * one.time + one.position[1] % 20 * 2 + one.position[0]))
        for stream, one in records
    ]


def seconds(count: int) -> list[Record]:
    """Records of both partitions of a stream, in the order of time; partition 1 is behind."""
    made: list[Record] = []
    for place in range(count):
        made.append((S, element(S, 2 * place, 0, place)))
        if place >= 4:
            made.append((S, element(S, 2 * (place - 4) + 1, 1, place - 4)))
    return made


def test_what_waits_for_a_slow_partition_is_in_the_answers() -> None:
    made, records = description(TOTALS, delay=3), seconds(40)
    whole = run(made, records, 5, ())
    assert len(whole.answers) > 20
    for at in range(12):
        switches = [number in (at, at + 1) for number in range(14)]
        assert run(made, records, 5, switches).answers == whole.answers
    assert run(made, records, 5, [True] * 20).answers == whole.answers


def test_what_micro_batches_gave_up_is_late_in_real_time_mode() -> None:
    made = replace(description(TOTALS), skews=((S, 6),))
    shard = MicroBatches(made)
    shard.step(chunks_of([(S, element(S, 0, 1, 0)), (S, element(S, 0, 0, 0))]))
    outcome = shard.step(chunks_of([(S, element(S, 30, 0, 1))]))
    # Partition 1 is not waited for behind 24.
    assert max(one.time for one in outcome.answers) == 22
    after = go_to_real_time(shard, made, {S: {0: 2, 1: 1}})
    with pytest.raises(ValueError, match="offset 1 of partition 0 comes behind offset 1"):
        after.evaluation.note_read(S, 0, 1)
    after.evaluation.note_read(S, 1, 1)
    # It comes nearer, and what it has is late still.
    outcome = after.step(chunks_of([(S, element(S, 23, 1, 1))]))
    assert [(one.kind, one.position) for one in outcome.dead_letters] == [("late", (1, 1))]
    outcome = after.step(chunks_of([(S, element(S, 23, 1, 2)), (S, element(S, 24, 1, 3))]))
    assert [(one.kind, one.position) for one in outcome.dead_letters] == [("late", (1, 2))]
    assert list(outcome.answers) == []
    # From here on both partitions are waited for; 24 of partition 1 and 30 of partition 0 are in the windows.
    outcome = after.step(chunks_of([(S, element(S, 60, 0, 2)), (S, element(S, 41, 1, 4))]))
    totals = {one.time: {str(row[2]).strip('"') for row in one.rows} for one in outcome.answers}
    assert totals[24] == {"s1.3"}
    assert totals[30] == {"s0.1 s1.3"}
    assert totals[36] == {"s0.1"}
    assert max(totals) == 40


def test_what_a_silence_has_closed_stays_closed() -> None:
    made = description(TOTALS)
    shard = MicroBatches(made)
    first = [(S, element(S, 4, 0, 0)), (S, element(S, 4, 1, 0))]
    silence = Chunk(S, heartbeat=Heartbeat(0, 0, settled=9))
    outcome = shard.step([*chunks_of(first), silence])
    assert max(one.time for one in outcome.answers) == 8
    after = go_to_real_time(shard, made, {S: {0: 1, 1: 1}})
    assert after.step([]).watermarks == {}
    state, _ = after.evaluation.evaluation.changes()
    assert ProgramState.from_plain(unpack(state)).clocks[S, None].watermark == 9
    some = [(S, element(S, 8, 0, 1)), (S, element(S, 9, 0, 2)), (S, element(S, 11, 1, 1))]
    outcome = after.step(chunks_of(some))
    assert [(one.kind, one.position) for one in outcome.dead_letters] == [("late", (0, 1))]
    assert list(outcome.answers) == []
    back = go_to_micro_batches(after, made)
    outcome = back.step(chunks_of([(S, element(S, 8, 1, 2)), (S, element(S, 20, 0, 3)), (S, element(S, 20, 1, 3))]))
    assert [(one.kind, one.position) for one in outcome.dead_letters] == [("late", (1, 2))]
    assert [one.time for one in outcome.answers] == [10, 12, 14, 16, 18]


def test_a_clock_that_knows_no_partitions_goes_over() -> None:
    made = replace(description(TOTALS), skews=())
    shard = MicroBatches(made)
    shard.step(chunks_of([(S, element(S, 0, 0, 0)), (S, element(S, 30, 0, 1))]))
    after = go_to_real_time(shard, made, {S: {0: 2, 1: 0}})
    # What each partition has come to is not known.
    assert after.evaluation.awaited[S] == (0, 1)
    program, _ = to_batch_state(after.evaluation.evaluation.changes()[0], [], after.evaluation.orders_to_plain(), {})
    assert ProgramState.from_plain(unpack(program)).next_times[S] == 31
    outcome = after.step(chunks_of([(S, element(S, 29, 0, 2)), (S, element(S, 31, 0, 3)), (S, element(S, 40, 1, 0))]))
    assert [(one.kind, one.position) for one in outcome.dead_letters] == [("late", (0, 2))]
    assert [one.time for one in outcome.answers] == [30]


def test_a_stream_that_has_brought_nothing_goes_over() -> None:
    made = description(TOTALS)
    shard = MicroBatches(made)
    shard.step([])
    after = go_to_real_time(shard, made, {S: {0: 0, 1: 0}})
    assert after.evaluation.awaited == {S: (0, 1), T: (0, 1)}
    back = go_to_micro_batches(after, made)
    outcome = back.step(chunks_of([(S, element(S, 0, 0, 0)), (S, element(S, 5, 0, 1)), (S, element(S, 5, 1, 0))]))
    assert [one.time for one in outcome.answers] == [0, 2, 4]


def test_triples_that_nobody_asked_for_are_known_to_be_missing() -> None:
    made = description(TOTALS)
    shard = MicroBatches(made)
    shard.step(chunks_of([(S, element(S, 0, 1, 0)), (S, element(S, 30, 0, 0))]))
    before = ProgramState.from_plain(unpack(shard.state()))
    ordered = to_ordered_state(shard.state(), {S: ReadPartitions({0: 1, 1: 1})})
    state = ProgramState.from_plain(unpack(ordered.program))
    # A query that comes later has all triples of what comes behind 30, although the stream has come to 0 only.
    assert state.next_times == before.next_times == {S: 31}
    after = go_to_real_time(shard, made, {S: {0: 1, 1: 1}})
    program, _ = to_batch_state(after.evaluation.evaluation.changes()[0], [], after.evaluation.orders_to_plain(), {})
    assert ProgramState.from_plain(unpack(program)).next_times[S] == 31


def test_shards_go_over() -> None:
    whole, records = description(TOTALS, delay=3), seconds(40)
    plan = plan_shards(whole.queries, find_shard_keys(2), has_static_default=False)
    assert isinstance(plan, ShardPlan)
    cut = replace(whole, sharding=plan)
    rows: dict[int, list[Any]] = defaultdict(list)
    for number in (0, 1):
        shard: MicroBatches | RealTime = MicroBatches(cut)
        for step, begin in enumerate(range(0, len(records), 5)):
            some = chunks_of(records[begin : begin + 5])
            mine = [[one for _, one in plan.split(chunk)][number] for chunk in some]
            outcome = shard.step(some if isinstance(shard, RealTime) else mine)
            for answer in outcome.answers:
                rows[answer.time] += answer.rows
            if step in (4, 9):
                last = {
                    partition: 1 + max(o.position[1] for _, o in records[: begin + 5] if o.position[0] == partition)
                    for partition in (0, 1)
                }
                shard = (
                    go_to_micro_batches(shard, cut, number)
                    if isinstance(shard, RealTime)
                    else go_to_real_time(shard, cut, {S: last}, number)
                )
    expected = {time: sorted(map(str, some)) for _, time, _, some in run(whole, records, 5, ()).answers}
    assert {time: sorted(map(str, some)) for time, some in rows.items()} == expected
