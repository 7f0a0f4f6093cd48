"""One batch through the registered queries: what both runners do between reading and delivering."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from headwater.execution.answers import Answer
from headwater.execution.program import LateElement, Program, Step
from headwater.execution.static_data import Version
from headwater.execution.window_log import Changes, Segment, WindowLog
from headwater.running.counting import Measure, added, measured
from headwater.sinks.dead_letters import Letter
from headwater.sources.feed import Chunk
from headwater.terms.packing import pack, unpack
from headwater.windows.element_sequences import Elements, concat_elements

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one batch led to: answers in time order, what was put aside, and counts of this batch alone."""

    answers: tuple[Answer, ...] = ()
    letters: tuple[Letter, ...] = ()
    elements: int = 0
    watermarks: dict[str, int | None] = field(default_factory=dict)
    measure: Measure = field(default_factory=Measure)


@dataclass(frozen=True, slots=True)
class _Batch:
    """The chunks of a batch put together; `seconds` is how long it took to read them, `read` is when that was done."""

    elements: Mapping[str, Elements] = field(default_factory=dict)
    ended: frozenset[str] = frozenset()
    letters: tuple[Letter, ...] = ()
    sources: Mapping[tuple[str, int], str] = field(default_factory=dict)
    version: Version | None = None
    seconds: float = 0.0
    read: float = field(default_factory=time.monotonic)


class Evaluation:
    """A program at work, new or continued from a snapshot."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def step(self, chunks: Iterable[Chunk]) -> Outcome:
        """Take one batch in, whole: the order of its chunks does not matter."""
        batch = _gathered(chunks)
        return self._outcome(batch, self._program.advance(batch.elements, batch.ended, batch.version))

    def ticks(self, chunks: Iterable[Chunk], version: Callable[[], Version]) -> Iterator[Outcome]:
        """Take one batch in, and give what each of its ticks led to; `version` says of each what data it sees."""
        batch = _gathered(chunks)
        seconds: dict[str, float] = {}
        for step in self._program.ticks(batch.elements, batch.ended, version):
            seconds = step.seconds = added(seconds, step.seconds)
            yield self._outcome(batch, step)
            # What it told of the batch is told once.
            batch = _Batch(sources=batch.sources)

    def _outcome(self, batch: _Batch, step: Step) -> Outcome:
        letters = [*batch.letters]
        for stream, element in step.late:
            letters.append(_late(stream, element, batch.sources))
        for stream, bad in step.bad:
            source = batch.sources.get((stream, bad.position[0] if bad.position else 0), bad.source)
            letters.append(Letter("bad", stream, bad.reason, bad.text, source, bad.position, bad.line))
        letters.sort(key=lambda letter: (letter.stream, letter.position, letter.kind))
        counts = {stream: len(elements) for stream, elements in batch.elements.items()}
        # To look at all of the state takes longer than a tick.
        measure = measured(self._program, counts, step.seconds) if step.is_last else Measure(counts)
        measure = replace(measure, steps={"read": batch.seconds, "evaluate": time.monotonic() - batch.read})
        return Outcome(tuple(step.answers), tuple(letters), sum(counts.values()), self._program.watermarks(), measure)

    @property
    def data_version(self) -> Version:
        """The version of the data that the last tick saw."""
        return self._program.data_version or ()

    def prepared(self, version: Version, patience: float) -> Version:
        """How far on the way to a version of the data the next batch can go without a pause."""
        return self._program.prepared(version, patience)

    def prepare_newest(self) -> None:
        """Begin with the data as it is now in the background; no batch sees anything of it that does not name it."""
        self._program.prepare_newest()

    def go_on_with(self, program: Program) -> None:
        """Have a new program, whose queries may be others, take over where this one is."""
        program.resume(self._program.summary(), self._program.log)
        self._program = program

    def changes(self) -> tuple[bytes, Changes]:
        """What must outlive the process: a small summary, and what came to the log of the windows and what went."""
        return pack(self._program.summary()), self._program.log.changes()

    def resume(self, summary: bytes, segments: Iterable[Segment]) -> None:
        """Continue a program that is new."""
        self._program.resume(unpack(summary), WindowLog(segments))

    def snapshot(self) -> bytes:
        """All that must outlive the process, in one piece."""
        return self._program.snapshot(pack)

    def restore(self, saved: bytes) -> None:
        """Continue a program that is new from a snapshot."""
        self._program.restore(saved, unpack)


def _gathered(chunks: Iterable[Chunk]) -> _Batch:
    batch: dict[str, list[Elements]] = {}
    ended: set[str] = set()
    letters: list[Letter] = []
    sources: dict[tuple[str, int], str] = {}
    begin = time.monotonic()
    version: Version | None = None
    for chunk in chunks:
        if chunk.stream is None:
            version = chunk.version or version
            continue
        elements = chunk.elements
        batch.setdefault(chunk.stream, []).append(list(elements) if isinstance(elements, tuple) else elements)
        if chunk.source:
            sources[chunk.stream, chunk.number] = chunk.source
        letters.extend(
            Letter("bad", chunk.stream, bad.reason, bad.text, bad.source, bad.position, bad.line) for bad in chunk.bad
        )
        if chunk.ended:
            ended.add(chunk.stream)
    by_stream = {stream: concat_elements(sequences) for stream, sequences in batch.items()}
    return _Batch(by_stream, frozenset(ended), tuple(letters), sources, version, time.monotonic() - begin)


def _late(stream: str, element: LateElement, sources: Mapping[tuple[str, int], str]) -> Letter:
    number = element.position[0] if element.position else 0
    source = sources.get((stream, number), stream)
    return Letter("late", stream, "late", element.text, source, element.position, None, element.time)
