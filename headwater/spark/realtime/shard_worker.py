"""What a Python worker does in real-time mode: it keeps the evaluation of one shard in memory for a long batch.

Records come in Arrow batches of one record or of many; each Arrow batch is a step. Behind the last one the worker
writes the snapshot of the batch, and its task ends. The next batch of the shard goes on with the evaluation in memory
where it comes to the same process, and with the snapshot where it does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from headwater.running.evaluation import BatchOutcome
from headwater.running.ordered_evaluation import OrderedEvaluation, StreamPartitions, add_outcomes
from headwater.running.program_description import ProgramDescription
from headwater.running.shipping import Shipped
from headwater.sinks.dead_letters import StrictError, write_dead_letters
from headwater.sources.kafka import KafkaReader
from headwater.spark.realtime.shard_snapshots import WINDOWS, ShardSnapshots
from headwater.terms.ids.term_key import ProcessKey

if TYPE_CHECKING:
    import pyarrow as pa

REAL = "real"
"""The column that is false in the rows that only push a record on its way."""
_LIVE: dict[tuple[str, int], tuple[int, ShardState]] = {}
"""By run and shard, the last batch that this process evaluated, and what it holds."""


class OutcomeRows(Protocol):
    """Makes the rows that a worker gives of the outcome of a step. It can be sent to workers."""

    def rows(self, outcome: BatchOutcome, shard: int, batch: int) -> pa.RecordBatch | None:
        """The rows of one outcome; None where there are none."""


@dataclass(frozen=True)
class RunNames:
    """The names of the runs that wrote snapshots, each with the first batch that it ran, in their order."""

    runs: tuple[tuple[str, int], ...]

    @property
    def current(self) -> str:
        """The run that goes on."""
        return self.runs[-1][0]

    def has_state(self, batch: int) -> bool:
        """Whether one of them has written a snapshot of a batch that was logged."""
        return self.runs[0][1] <= batch

    def of(self, batch: int) -> str:
        """The run that logged a batch: the last of those that began with it or before."""
        return [name for name, first in self.runs if first <= batch][-1]


@dataclass(frozen=True)
class DeadLetterFolder:
    """Where dead letters go, under the name of the run; with `strict` the first one ends the run."""

    folder: str | None
    run: str
    strict: bool = False


class ShardState:
    """The evaluation of a shard and its snapshots."""

    def __init__(self, description: ProgramDescription, streams: StreamPartitions, folder: Path, shard: int) -> None:
        self.evaluation = OrderedEvaluation(description, streams, shard)
        self._snapshots = ShardSnapshots(folder / f"shard-{shard}")
        self._total = BatchOutcome()

    def restore(self, run: str, batch: int) -> None:
        """Go on behind a batch that was logged."""
        (state, orders, _), logs = self._snapshots.read(run, batch)
        self.evaluation.evaluation.resume(state, logs.pop(WINDOWS, []))
        self.evaluation.restore_orders(orders, logs)

    def begin(self) -> None:
        """Begin a batch."""
        self._total = BatchOutcome()

    def take(self, outcome: BatchOutcome) -> None:
        """Note the outcome of a step."""
        self._snapshots.note(self.evaluation.evaluation.log_changes())
        self._total = add_outcomes(self._total, outcome)

    def finish(self, run: str, batch: int, letters: DeadLetterFolder) -> None:
        """End a batch: its dead letters and its snapshot, which is what the next one begins with."""
        if letters.folder is not None:
            write_dead_letters(Path(letters.folder), letters.run, batch, self._total.dead_letters)
        state, changes = self.evaluation.evaluation.changes()
        self._snapshots.note(changes)
        for stream, held in self.evaluation.held_changes().items():
            self._snapshots.note(held, stream)
        counts = self._total.to_plain()
        self._snapshots.write(run, batch, [state, self.evaluation.orders_to_plain(), counts])


@dataclass(frozen=True)
class ShardWorker:
    """Evaluates the records of one shard for one long batch, as the function of `mapInArrow`."""

    description: Shipped[ProgramDescription]
    readers: Sequence[tuple[str, KafkaReader]]
    """The streams, by the number that their records carry."""
    streams: StreamPartitions
    folder: str
    runs: RunNames
    output: OutcomeRows
    letters: DeadLetterFolder
    key: ProcessKey = field(default_factory=ProcessKey)
    """Goes with it to the workers."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        batch, shard = int(context.getLocalProperty("streaming.sql.batchId") or 0), context.partitionId()
        if context.attemptNumber():
            raise RuntimeError("a task of a real-time batch cannot be tried alone: the batch begins again")
        state = self._resume(batch, shard)
        for arrow in batches:
            real = arrow.filter(arrow.column(REAL))
            if real.num_rows:
                outcome = self._step(state, real)
                state.take(outcome if shard == 0 else _own_counts(outcome))
                rows = self.output.rows(outcome, shard, batch)
                if rows is not None:
                    yield rows
        state.finish(self.runs.current, batch, self.letters if shard == 0 else DeadLetterFolder(None, ""))
        _LIVE[self.runs.current, shard] = batch, state

    def _resume(self, batch: int, shard: int) -> ShardState:
        """What this process holds of the shard behind the batch before, or what the snapshot has."""
        held = _LIVE.pop((self.runs.current, shard), None)
        for other in [one for one in _LIVE if one[0] != self.runs.current]:
            del _LIVE[other]
        if held is not None and held[0] == batch - 1:
            held[1].begin()
            return held[1]
        state = ShardState(self.description.unpack(), self.streams, Path(self.folder), shard)
        if self.runs.has_state(batch - 1):
            state.restore(self.runs.of(batch - 1), batch - 1)
        return state

    def _step(self, state: ShardState, records: pa.RecordBatch) -> BatchOutcome:
        numbers = records.column("stream").to_pylist()
        places = zip(records.column("topic").to_pylist(), records.column("partition").to_pylist(), strict=True)
        for number, (topic, partition), offset in zip(
            numbers, places, records.column("offset").to_pylist(), strict=True
        ):
            stream, reader = self.readers[number]
            state.evaluation.note_read(stream, reader.item_index(topic, partition), offset)
        chunks = []
        for number in dict.fromkeys(numbers):
            stream, reader = self.readers[number]
            mine = records if len(self.readers) == 1 else _select(records, number)
            chunks.extend(reader.chunks(stream, iter([mine])))
        outcome = state.evaluation.step(chunks)
        if self.letters.strict and outcome.dead_letters:
            raise StrictError(outcome.dead_letters[0])
        return outcome


def _own_counts(outcome: BatchOutcome) -> BatchOutcome:
    """The counts of a shard other than the first: every shard gets all records, which count once."""
    return BatchOutcome(
        outcome.answers,
        tuple(letter for letter in outcome.dead_letters if letter.is_of_shard),
        0,
        outcome.watermarks,
        outcome.measure,
    )


def _select(records: pa.RecordBatch, number: int) -> pa.RecordBatch:
    import pyarrow.compute as pc

    return records.filter(pc.equal(records.column("stream"), number))
