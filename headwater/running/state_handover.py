"""The state of a shard in micro-batches as real-time mode goes on with it, and the other way round.

    micro-batches     the clock of a stream decides what is late, and says how far it has come
    real-time mode    a `PartitionOrder` in front of the evaluation does both; the clock behind it follows

Windows, ticks and what the queries remember are the same in both. What differs is where an element is that the
watermark has not passed. Micro-batches have it in the window log, where evaluators hold it back. In real-time mode it
is in the order, and not in the log yet. Going to real-time mode, such elements stay in the log: evaluators sort them
among those that the order releases later. Going back, the order's elements are added to the log, as admitted: whether
they are late was decided when they came.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from headwater.execution.program_state import ProgramState
from headwater.execution.static_data import Version
from headwater.execution.window_log import LogSegment, StreamKey
from headwater.sharding.shard_plan import ShardPlan
from headwater.sources.feed import Chunk
from headwater.terms.element_columns import ElementColumns
from headwater.terms.packing import Plain, pack, unpack
from headwater.windows.element_sequences import sizes_of
from headwater.windows.partition_order import PartitionOrder
from headwater.windows.partitioned_clock import PartitionedClock
from headwater.windows.stream_clock import StreamClock

OwnTriples = Callable[[str, ElementColumns], ElementColumns]
"""Leaves those triples of a stream's elements that belong to a shard."""


@dataclass(frozen=True, slots=True)
class ReadPartitions:
    """How far the partitions of a stream were read: the offset that comes next, for all that the stream has."""

    next_offsets: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class OrderedState:
    """A shard in real-time mode: the packed state of its program, and that of the orders of its streams."""

    program: bytes
    orders: Plain
    version: Version | None
    """The version of the linked data that the last tick saw."""


def to_ordered_state(program: bytes, streams: Mapping[str, ReadPartitions]) -> OrderedState:
    """The state of a shard in real-time mode that goes on where micro-batches have left it. The log stays as it is."""
    state = ProgramState.from_plain(unpack(program))
    orders: dict[str, Plain] = {}
    for stream, read in streams.items():
        order = PartitionOrder(read.next_offsets, delay=0)
        clock = state.clocks.get((stream, None))
        if clock is not None:
            order.follow(_as_partitioned(clock), read.next_offsets)
            state.clocks[stream, None] = _clock_behind_order(clock)
        orders[stream] = order.to_plain()
    return OrderedState(pack(state.to_plain()), orders, state.data_version)


def _as_partitioned(clock: StreamClock) -> PartitionedClock:
    """The clock itself; one without partitions knows none of them."""
    if isinstance(clock, PartitionedClock):
        return clock
    return PartitionedClock(highest_watermark=clock.watermark)


def _clock_behind_order(clock: StreamClock) -> StreamClock:
    """A clock that has come as far as another one, and then as far as an order says."""
    mark, newest = clock.watermark, clock.newest_time
    return StreamClock(
        highest_time=None if newest is None or mark is None else min(newest, mark),
        lowest_time=clock.lowest_time,
        late_count=clock.late_count,
        element_count=clock.element_count,
        closed_before=mark,
        admitted_until=newest,
    )


def to_batch_state(
    program: bytes,
    segments: Sequence[LogSegment],
    orders: Plain,
    held: Mapping[str, Sequence[LogSegment]],
    own_triples: OwnTriples = lambda stream, elements: elements,
) -> tuple[bytes, list[LogSegment]]:
    """The packed state and the log of a shard in micro-batches that go on where real-time mode has left it.

    `held` are the segments of the elements that wait in the orders, by stream.
    """
    state = ProgramState.from_plain(unpack(program))
    log = list(segments)
    for stream, value in orders.items():
        order = PartitionOrder.from_plain(value, [(one.number, _columns(one)) for one in held.get(stream, ())])
        key: StreamKey = (stream, None)
        behind = state.clocks.get(key, StreamClock())
        waiting = own_triples(stream, order.elements_held())
        state.clocks[key] = _clock_of_order(order, behind, waiting)
        if len(waiting):
            number = max((one.number for one in log), default=-1) + 1
            log.append(_admit(state, key, waiting, behind.element_count, number))
    return pack(state.to_plain()), log


def _clock_of_order(order: PartitionOrder, behind: StreamClock, waiting: ElementColumns) -> PartitionedClock:
    """The clock that stands for an order and the clock behind it, with all that waits admitted."""
    lowest = [behind.lowest_time, int(waiting.times[0]) if len(waiting) else None]
    clock = order.to_clock()
    return replace(
        clock,
        lowest_time=min((one for one in lowest if one is not None), default=None),
        late_count=behind.late_count,
        element_count=behind.element_count + len(waiting),
        admitted_until=behind.admitted_until,
    )


def _admit(state: ProgramState, key: StreamKey, elements: ElementColumns, first: int, number: int) -> LogSegment:
    """Have all evaluators of a stream hold elements back; gives the segment of the log with these elements."""
    numbers = np.arange(first, first + len(elements))
    for one in {id(one): one for one in state.states.values()}.values():
        one.waiting[key] = np.concatenate((one.waiting.get(key, numbers[:0]), numbers))
    admitted = elements.with_positions(numbers.reshape(-1, 1)).with_own_texts()
    return LogSegment(number, key, int(admitted.times.max()), admitted, *sizes_of(admitted))


def own_triples_of(sharding: ShardPlan | None, shard: int) -> OwnTriples:
    """What leaves the triples of one of the shards."""

    def select(stream: str, elements: ElementColumns) -> ElementColumns:
        if sharding is None:
            return elements
        parts = [part for _, part in sharding.split(Chunk(stream, elements=elements))]
        return _elements_of(parts[shard])

    return select


def _elements_of(chunk: Chunk) -> ElementColumns:
    assert isinstance(chunk.elements, ElementColumns)
    return chunk.elements


def _columns(segment: LogSegment) -> ElementColumns:
    assert isinstance(segment.elements, ElementColumns)
    return segment.elements
