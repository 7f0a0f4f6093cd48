"""The evaluation of one batch: what both runners do between reading and delivering."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace

from headwater.execution.answer_batch import AnswerBatch
from headwater.execution.id_owners import COLLISION_REASON
from headwater.execution.program import Program
from headwater.execution.program_state import ProgramState
from headwater.execution.program_steps import ChooseStep, LeftOutElement, StepResult, TickPace
from headwater.execution.static_data import Version
from headwater.execution.suspension import Suspension
from headwater.execution.tick_thinning import Clock, TickThinner, can_skip_ticks
from headwater.execution.window_log import LogChanges, LogSegment, WindowLog
from headwater.running.counting import BatchMeasure, add_by_name, measure_batch
from headwater.sinks.dead_letters import DeadLetter
from headwater.sinks.written_parts import WrittenPart
from headwater.sources.feed import Chunk
from headwater.terms.packing import Plain, pack, unpack
from headwater.terms.timestamps import format_time
from headwater.windows.element_sequences import Elements, concat_elements, sizes_of
from headwater.windows.heartbeat import Heartbeat, Heartbeats


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """What one batch led to: answers in time order, dead letters, and the counts of this batch alone.

    `written` are the answers that workers have written; they are among `answers` only where the driver needs them.
    """

    answers: AnswerBatch = field(default_factory=AnswerBatch)
    dead_letters: tuple[DeadLetter, ...] = ()
    elements: int = 0
    watermarks: dict[str, int | None] = field(default_factory=dict)
    measure: BatchMeasure = field(default_factory=BatchMeasure)
    written: tuple[WrittenPart, ...] = ()

    def to_plain(self) -> Plain:
        """All but the answers as plain values; of those, their order (`AnswerBatch.order`)."""
        letters = [tuple(getattr(one, part.name) for part in fields(one)) for one in self.dead_letters]
        written = [one.to_plain() for one in self.written]
        return [self.answers.order, letters, self.elements, self.watermarks, self.measure.to_plain(), written]

    @classmethod
    def from_plain(cls, value: Plain) -> BatchOutcome:
        """The outcome that `to_plain` gave, without the answers."""
        order, letters, elements, watermarks, measure, written = value
        dead_letters = tuple(DeadLetter(*one) for one in letters)
        parts = tuple(map(WrittenPart.from_plain, written))
        measures = BatchMeasure.from_plain(measure)
        return cls(AnswerBatch(order=order), dead_letters, elements, watermarks, measures, parts)


@dataclass(frozen=True, slots=True)
class _Batch:
    """The chunks of a batch put together; `seconds` is how long it took to read them, `read` is when that was done."""

    elements: Mapping[str, Elements] = field(default_factory=dict)
    ended: frozenset[str] = frozenset()
    dead_letters: tuple[DeadLetter, ...] = ()
    sources: Mapping[tuple[str, int], str] = field(default_factory=dict)
    version: Version | None = None
    heartbeats: Heartbeats = field(default_factory=dict)
    seconds: float = 0.0
    read: float = field(default_factory=time.monotonic)


class Evaluation:
    """Evaluates batches with a program."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def thin_ticks(self, clock: Clock) -> None:
        """Have queries that fall behind skip ticks, where the meaning of their ticks allows it."""
        evaluators = dict.fromkeys(self._program.evaluators.values())
        for evaluator in evaluators:
            if can_skip_ticks(evaluator.settings) and not self._program.producers & set(evaluator.names):
                evaluator.tick_thinner = TickThinner(1 / len(evaluators), clock)

    def step(self, chunks: Iterable[Chunk]) -> BatchOutcome:
        """Evaluate one batch; the order of its chunks does not matter."""
        batch = _collect_chunks(chunks)
        step = self._program.advance(batch.elements, batch.ended, batch.version, batch.heartbeats)
        return self._make_outcome(batch, step)

    def is_answer_due(self, heartbeats: Heartbeats) -> bool:
        """Whether a batch of these heartbeats alone would make a tick due."""
        return self._program.is_answer_due(heartbeats)

    def step_by_ticks(
        self, chunks: Iterable[Chunk], choose: ChooseStep, pace: TickPace | None = None
    ) -> Iterator[BatchOutcome]:
        """Evaluate one batch and give the outcome of each step, which `choose` has decided upon.

        With a `pace` several ticks may have one outcome.
        """
        batch = _collect_chunks(chunks)
        seconds: dict[str, float] = {}
        for step in self._program.advance_by_ticks(batch.elements, batch.ended, choose, pace, batch.heartbeats):
            seconds = step.seconds = add_by_name(seconds, step.seconds)
            yield self._make_outcome(batch, step)
            # Elements and dead letters of the batch count once, with its first step.
            batch = _Batch(sources=batch.sources)

    def _make_outcome(self, batch: _Batch, step: StepResult) -> BatchOutcome:
        """The outcome of a step: answers, dead letters by stream and position, counts and measures."""
        dead_letters = [*batch.dead_letters]
        for stream, element in step.late:
            dead_letters.append(_dead_letter("late", stream, "late", element, batch.sources))
        for stream, element in step.ahead:
            reason = f"{format_time(element.time)} is too far ahead of the elements before it (max_ahead)"
            dead_letters.append(_dead_letter("ahead", stream, reason, element, batch.sources))
        for stream, element in step.colliding:
            letter = _dead_letter("bad", stream, COLLISION_REASON, element, batch.sources)
            dead_letters.append(replace(letter, is_of_shard=True))
        for stream, bad in step.bad:
            source = batch.sources.get((stream, bad.position[0] if bad.position else 0), bad.source)
            dead_letters.append(DeadLetter("bad", stream, bad.reason, bad.text, source, bad.position, bad.line))
        dead_letters.sort(key=lambda dead_letter: (dead_letter.stream, dead_letter.position, dead_letter.kind))
        counts = {stream: len(elements) for stream, elements in batch.elements.items()}
        triples = sum(sizes_of(elements)[0] for elements in batch.elements.values())
        # Measuring all of the state takes longer than a tick.
        measure = (
            measure_batch(self._program, counts, step.seconds, triples)
            if step.is_last
            else BatchMeasure(counts, triples=triples, largest=triples)
        )
        seconds = {"read": batch.seconds, "evaluate": time.monotonic() - batch.read}
        measure = replace(measure, lateness=step.lateness, steps=seconds)
        return BatchOutcome(
            step.answers, tuple(dead_letters), sum(counts.values()), self._program.watermarks(), measure
        )

    @property
    def data_version(self) -> Version:
        """The version of the data that the last tick saw."""
        return self._program.data_version or ()

    def prepare_version(self, version: Version, patience: float) -> Version:
        """The version on the way to this one that the next batch can see without a pause."""
        return self._program.prepare_version(version, patience)

    def prepare_newest(self) -> None:
        """Prepare the newest version of the data in the background; a batch sees it only if it names it."""
        self._program.prepare_newest()

    @property
    def suspensions(self) -> Mapping[str, Suspension]:
        """The queries that are suspended, and why."""
        return self._program.suspensions

    def raise_if_all_suspended(self) -> None:
        """Raise the error of a query if all of them are suspended: nothing is left to evaluate."""
        if len(self.suspensions) == len(self._program.evaluators):
            for name, suspension in self.suspensions.items():
                raise suspension.to_error(name)

    def replace_program(self, program: Program) -> None:
        """Continue with a new program, whose queries may be others."""
        program.resume(self._program.state(), self._program.log)
        self._program = program

    def changes(self) -> tuple[bytes, LogChanges]:
        """The packed state of the program, and the changes of the window log since the last call."""
        return pack(self._program.state().to_plain()), self.log_changes()

    def log_changes(self) -> LogChanges:
        """The changes of the window log since the last call; the state of the program can wait."""
        return self._program.log.changes()

    def resume(self, state: bytes, segments: Iterable[LogSegment]) -> None:
        """Continue a program that is new."""
        self._program.resume(ProgramState.from_plain(unpack(state)), WindowLog(segments))

    def snapshot(self) -> bytes:
        """State and window log as bytes."""
        return self._program.snapshot()

    def restore(self, saved: bytes) -> None:
        """Continue a program that is new from a snapshot."""
        self._program.restore(saved)


def _collect_chunks(chunks: Iterable[Chunk]) -> _Batch:
    """Gather the chunks of a batch by stream; bad elements become dead letters."""
    batch: dict[str, list[Elements]] = {}
    ended: set[str] = set()
    dead_letters: list[DeadLetter] = []
    sources: dict[tuple[str, int], str] = {}
    begin = time.monotonic()
    version: Version | None = None
    heartbeats: dict[str, Heartbeat] = {}
    for chunk in chunks:
        if chunk.stream is None:
            version = chunk.version or version
            continue
        elements = chunk.elements
        batch.setdefault(chunk.stream, []).append(list(elements) if isinstance(elements, tuple) else elements)
        if chunk.source:
            sources[chunk.stream, chunk.item_index] = chunk.source
        dead_letters.extend(
            DeadLetter("bad", chunk.stream, bad.reason, bad.text, bad.source, bad.position, bad.line)
            for bad in chunk.bad
        )
        if chunk.has_ended:
            ended.add(chunk.stream)
        if chunk.heartbeat is not None:
            heartbeats[chunk.stream] = chunk.heartbeat
    by_stream = {stream: concat_elements(sequences) for stream, sequences in batch.items()}
    seconds = time.monotonic() - begin
    return _Batch(by_stream, frozenset(ended), tuple(dead_letters), sources, version, heartbeats, seconds)


def _dead_letter(
    kind: str, stream: str, reason: str, element: LeftOutElement, sources: Mapping[tuple[str, int], str]
) -> DeadLetter:
    number = element.position[0] if element.position else 0
    source = sources.get((stream, number), stream)
    return DeadLetter(kind, stream, reason, element.text, source, element.position, None, element.time)
