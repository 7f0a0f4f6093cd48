"""An evaluation over streams with partitions whose answers do not depend on how the partitions were interleaved.

    records ─▶ PartitionOrder of their stream ─▶ elements before the watermark, in one order ─▶ Evaluation ─▶ answers

The orders hold an element until every partition has come further, and decide what is late (`windows.partition_order`).
The evaluation behind them sees every stream sorted, and is told how far it has come. All elements see one version of
the linked data. So the same records give the same answers, however they are cut into steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from headwater.execution.program_steps import list_late_elements
from headwater.execution.static_data import Version
from headwater.execution.window_log import LogChanges, LogSegment
from headwater.running.counting import BatchMeasure, add_by_name
from headwater.running.evaluation import BatchOutcome, Evaluation
from headwater.running.program_description import ProgramDescription
from headwater.sinks.dead_letters import DeadLetter
from headwater.sources.chunk_columns import columns_of
from headwater.sources.feed import Chunk
from headwater.terms.element_columns import ElementColumns
from headwater.terms.packing import Plain
from headwater.terms.timestamps import format_time
from headwater.windows.element_sequences import sizes_of
from headwater.windows.heartbeat import Heartbeat
from headwater.windows.partition_order import PartitionOrder

_RANKS = 2
"""Released elements have a position of their own, so long, in front of that in their source."""


@dataclass(frozen=True)
class StreamPartitions:
    """The partitions of each stream, by IRI, as the first numbers of positions, and the version of the linked data.

    Both are as they were when the checkpoint was begun.
    """

    partitions: Mapping[str, Sequence[int]]
    version: Version = ()


class OrderedEvaluation:
    """Evaluates the records of streams with partitions; with `shard`, those triples that belong to one shard."""

    def __init__(self, description: ProgramDescription, streams: StreamPartitions, shard: int | None = None) -> None:
        # The orders admit elements and say how far a stream has come: no clock behind them has to.
        program = replace(description, delay=0, skews=(), idle=(), max_ahead=None).program()
        self.evaluation = Evaluation(program)
        self._sharding = description.sharding
        self._shard = shard or 0
        self._version = streams.version
        self._orders = {
            stream: PartitionOrder(partitions, description.delay, description.max_ahead)
            for stream, partitions in streams.partitions.items()
        }

    def note_read(self, stream: str, partition: int, offset: int) -> None:
        """Note that a record is here (`PartitionOrder.note_read`)."""
        self._orders[stream].note_read(partition, offset)

    def step(self, chunks: Iterable[Chunk]) -> BatchOutcome:
        """Take chunks of records, those of a partition in their order, and answer what is due."""
        letters: list[DeadLetter] = []
        counts: dict[str, int] = {}
        for chunk in chunks:
            if chunk.stream is not None:
                counts[chunk.stream] = counts.get(chunk.stream, 0) + len(chunk.elements)
                letters.extend(self._take(chunk, chunk.stream))
        released = list(self._release())
        if not released:
            outcome = BatchOutcome(measure=BatchMeasure(counts))
        else:
            version = [Chunk(None, version=self._version)] if self._version else []
            outcome = self.evaluation.step([*version, *released])
            letters.extend(map(_with_own_position, outcome.dead_letters))
        measure = replace(outcome.measure, elements=counts)
        return replace(outcome, dead_letters=tuple(letters), elements=sum(counts.values()), measure=measure)

    def _take(self, chunk: Chunk, stream: str) -> Iterator[DeadLetter]:
        """Put the elements of a chunk into the order of their stream; gives those that take no part."""
        for bad in chunk.bad:
            yield DeadLetter("bad", stream, bad.reason, bad.text, bad.source, bad.position, bad.line)
        late, ahead = self._orders[stream].put(columns_of(chunk))
        for one in list_late_elements(late):
            yield DeadLetter("late", stream, "late", one.text, chunk.source, one.position, None, one.time)
        for one in list_late_elements(ahead):
            reason = f"{format_time(one.time)} is too far ahead of the elements before it (--max-ahead)"
            yield DeadLetter("ahead", stream, reason, one.text, chunk.source, one.position, None, one.time)

    def _release(self) -> Iterator[Chunk]:
        """What the orders release, a chunk for each stream that has come further."""
        for stream, order in self._orders.items():
            released = order.release()
            if released is None:
                continue
            elements, mark = released
            ranks = np.zeros((len(elements), _RANKS), dtype=np.int64)
            ranks[:, -1] = np.arange(len(elements))
            ranked = elements.with_positions(np.hstack((ranks, elements.positions)))
            chunk = Chunk(stream, elements=ranked, heartbeat=Heartbeat(0, 0, settled=mark))
            yield chunk if self._sharding is None else self._own_triples(chunk)

    def _own_triples(self, chunk: Chunk) -> Chunk:
        """The chunk with the triples of this shard."""
        assert self._sharding is not None
        return [own for _, own in self._sharding.split(chunk)][self._shard]

    @property
    def awaited(self) -> dict[str, tuple[int, ...]]:
        """By stream, the partitions that have brought nothing yet and hold it back."""
        return {stream: order.awaited for stream, order in self._orders.items() if order.awaited}

    @property
    def held(self) -> int:
        """How many elements wait for their place."""
        return sum(order.held for order in self._orders.values())

    def held_changes(self) -> dict[str, LogChanges]:
        """By stream, the changes of the elements that wait for their place, since the last call."""
        found = {}
        for stream, order in self._orders.items():
            added, removed = order.changes()
            found[stream] = LogChanges([] if added is None else [_segment(stream, *added)], removed)
        return found

    def orders_to_plain(self) -> Plain:
        """The state of the orders as plain values, without the elements that wait."""
        return {stream: order.to_plain() for stream, order in self._orders.items()}

    def restore_orders(self, value: Plain, held: Mapping[str, Iterable[LogSegment]]) -> None:
        """Go on with the orders that `orders_to_plain` gave and the segments of `held_changes`, by stream.

        Streams that are not read any more are left out.
        """
        for stream, order in self._orders.items():
            if stream in value:
                order.restore(value[stream], ((one.number, _columns(one)) for one in held.get(stream, ())))


def _segment(stream: str, number: int, elements: ElementColumns) -> LogSegment:
    """Elements that wait, which are sorted by time, as a segment."""
    return LogSegment(number, (stream, None), int(elements.times[-1]), elements, *sizes_of(elements))


def _columns(segment: LogSegment) -> ElementColumns:
    assert isinstance(segment.elements, ElementColumns)
    return segment.elements


def add_outcomes(before: BatchOutcome, after: BatchOutcome) -> BatchOutcome:
    """The counts of two steps together, without their answers; queries are as the later step left them."""
    known = before.measure.elements
    elements = {
        one: known.get(one, 0) + count for one, count in {**dict.fromkeys(known, 0), **after.measure.elements}.items()
    }
    steps = add_by_name(before.measure.steps, after.measure.steps)
    queries = {
        name: replace(one, seconds=one.seconds + (earlier.seconds if earlier else 0.0))
        for name, one in after.measure.queries.items()
        for earlier in [before.measure.queries.get(name)]
    }
    measure = BatchMeasure(elements, queries or before.measure.queries, after.measure.log, steps)
    if not queries:
        measure = replace(measure, log=before.measure.log)
    return BatchOutcome(
        dead_letters=(*before.dead_letters, *after.dead_letters),
        elements=before.elements + after.elements,
        watermarks=after.watermarks or before.watermarks,
        measure=measure,
    )


def _with_own_position(letter: DeadLetter) -> DeadLetter:
    """A dead letter of the evaluation with the position of its element in the source."""
    return replace(letter, position=letter.position[_RANKS:]) if len(letter.position) > _RANKS else letter
