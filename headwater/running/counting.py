"""Counting: each evaluation measures its batches, the driver merges the shards and adds up the run.

A `BatchMeasure` is what an evaluation knows after a batch; those of several shards are merged. `RunCounts` makes the
`Progress` of a run from the outcomes of its batches.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import chain
from typing import TYPE_CHECKING

from headwater.execution.answer_batch import AnswerBatch
from headwater.execution.collapsed_triples import CollapsedTriples, add_collapsed, collapse_warning
from headwater.execution.evaluator import Choice, Evaluator
from headwater.execution.late_queries import NOT_YET
from headwater.execution.program import Program
from headwater.execution.program_clocks import list_awaited_streams
from headwater.execution.program_steps import Lateness
from headwater.execution.registered import RegisteredQuery
from headwater.execution.window_log import Size
from headwater.linting.implausible_times import implausible_time_text, is_implausible
from headwater.linting.late_elements import late_cure, unawaited_cure
from headwater.running.progress import Progress, QueryProgress, RunSummary, StreamProgress
from headwater.sinks.written_parts import WrittenPart, count_ticks
from headwater.terms.names import iri_to_name
from headwater.terms.packing import Plain
from headwater.terms.timestamps import format_time
from headwater.windows.stream_clock import combine_clocks

if TYPE_CHECKING:
    from headwater.running.evaluation import BatchOutcome
    from headwater.running.named_evaluators import QueryOutline
    from headwater.sinks.dead_letters import DeadLetter


_NOTHING = Size(0, 0)
_NO_ANSWERS = AnswerBatch()


@dataclass(frozen=True, slots=True)
class QueryMeasure:
    """One query after a batch: how long it took, how far it is, how much it holds."""

    seconds: float
    watermark: int | None
    newest: int | None
    answered: int | None
    size: Size
    complete_from: int | None
    choices: tuple[Choice, ...] = ()
    suspended: str | None = None
    awaited: tuple[str, ...] = ()
    collapsed: tuple[CollapsedTriples, ...] = ()

    def merge(self, other: QueryMeasure) -> QueryMeasure:
        """The measures of two shards together."""
        rows = self.size.rows + other.size.rows
        known = self.size.bytes is not None and other.size.bytes is not None
        size = Size(rows, (self.size.bytes or 0) + (other.size.bytes or 0) if known else None)
        choices = self.choices + other.choices
        suspended = self.suspended or other.suspended
        return replace(
            self,
            seconds=self.seconds + other.seconds,
            size=size,
            choices=choices,
            suspended=suspended,
            collapsed=add_collapsed(self.collapsed, other.collapsed),
        )


_PLACES = [part.name for part in fields(QueryMeasure)]
_SIZE_PLACE, _COLLAPSED_PLACE = _PLACES.index("size"), _PLACES.index("collapsed")


@dataclass(frozen=True, slots=True)
class BatchMeasure:
    """One batch where it was evaluated: elements by stream, queries, the log, seconds by step, triples, late elements.

    Before the last tick of a batch `queries` and `log` are empty. `largest` are the triples of the shard that had most.
    """

    elements: Mapping[str, int] = field(default_factory=dict)
    queries: Mapping[str, QueryMeasure] = field(default_factory=dict)
    log: Size = _NOTHING
    steps: Mapping[str, float] = field(default_factory=dict)
    triples: int = 0
    largest: int = 0
    lateness: Mapping[str, Lateness] = field(default_factory=dict)

    def to_json(self) -> str:
        """All of it as one line of JSON."""
        queries = {name: {**asdict(one), "size": one.size._asdict()} for name, one in self.queries.items()}
        found = {"elements": dict(self.elements), "queries": queries, "log": self.log._asdict(), "steps": self.steps}
        found["triples"] = self.triples
        return json.dumps(found)

    def to_plain(self) -> Plain:
        """All of it as plain values."""
        queries = {name: [getattr(one, part.name) for part in fields(one)] for name, one in self.queries.items()}
        for values in queries.values():
            values[_SIZE_PLACE] = tuple(values[_SIZE_PLACE])
            values[_COLLAPSED_PLACE] = [tuple(asdict(one).values()) for one in values[_COLLAPSED_PLACE]]
        steps, lateness = dict(self.steps), dict(self.lateness)
        return [dict(self.elements), queries, tuple(self.log), steps, self.triples, self.largest, lateness]

    @classmethod
    def from_plain(cls, value: Plain) -> BatchMeasure:
        """The measures that `to_plain` gave."""
        elements, queries, log, steps, triples, largest, lateness = value
        for values in queries.values():
            values[_SIZE_PLACE] = Size(*values[_SIZE_PLACE])
            values[_COLLAPSED_PLACE] = tuple(CollapsedTriples(*one) for one in values[_COLLAPSED_PLACE])
        found = {name: QueryMeasure(*one) for name, one in queries.items()}
        late = {stream: (by, unawaited) for stream, (by, unawaited) in lateness.items()}
        return cls(elements, found, Size(*log), steps, triples, largest, late)

    def merge(self, other: BatchMeasure) -> BatchMeasure:
        """The measures of two shards together; every shard gets every element, so elements count once."""
        names = {**self.queries, **other.queries}
        mine, yours = self.queries, other.queries
        return BatchMeasure(
            self.elements or other.elements,
            {n: mine[n].merge(yours[n]) if n in mine and n in yours else one for n, one in names.items()},
            Size(self.log.rows + other.log.rows, (self.log.bytes or 0) + (other.log.bytes or 0)),
            add_by_name(self.steps, other.steps),
            self.triples + other.triples,
            max(self.largest, other.largest),
            self.lateness or other.lateness,
        )


def measure_batch(
    program: Program, elements: Mapping[str, int], seconds: Mapping[str, float], triples: int = 0
) -> BatchMeasure:
    """Measure a program after a batch of so many triples; `seconds` is how long each query took."""
    queries: dict[str, QueryMeasure] = {}
    for evaluator in dict.fromkeys(program.evaluators.values()):
        clocks = program.clocks_of(evaluator)
        watermark, _ = combine_clocks(clocks)
        newest = max((clock.highest_time for clock in clocks if clock.highest_time is not None), default=None)
        size, answered = program.size_of(evaluator), evaluator.ticker.last_tick
        awaited = list_awaited_streams(evaluator, clocks)
        counted: Evaluator | None = None
        for name in evaluator.names:
            own = evaluator.evaluator_of(name)
            if own is not counted:
                counted, choices, collapsed = own, own.choices(), own.take_collapsed()
            complete_from = program.complete_from(name)
            taken = seconds.get(name, 0.0)
            reason = program.suspensions[name].reason if name in program.suspensions else None
            queries[name] = QueryMeasure(
                taken, watermark, newest, answered, size, complete_from, choices, reason, awaited, collapsed
            )
            # The choices of a plan that many queries share count once.
            choices = ()
    log = program.log.size if program.is_durable else _NOTHING
    return BatchMeasure(elements, queries, log, triples=triples, largest=triples)


def add_by_name(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    """The sums of two mappings, name by name."""
    return {name: one.get(name, 0.0) + other.get(name, 0.0) for name in {**one, **other}}


def initial_progress(
    queries: Collection[RegisteredQuery], outlines: Mapping[str, QueryOutline], shards: int
) -> dict[str, QueryProgress]:
    """The queries of a run with nothing counted yet: who evaluates each, and in how many shards."""
    progress: dict[str, QueryProgress] = {}
    for query in queries:
        outline = outlines[query.plan.name]
        streams = dict.fromkeys(iri_to_name(source.stream.value) for source in query.plan.windows)
        progress[query.plan.name] = QueryProgress(outline.kind, outline.fallback_reason, shards, tuple(streams))
    return progress


@dataclass
class StreamTroubles:
    """The elements of a stream in a run, and how many of them took no part in any answer."""

    elements: int = 0
    late: int = 0
    bad: int = 0
    ahead: int = 0
    first_bad: str = ""
    first_ahead: str = ""
    first_late: str = ""
    late_by: int = 0
    """How far late elements were behind one before them, at most."""
    unawaited: int = 0
    """How many were late only because their windows had been closed without waiting for them."""
    watermark: int | None = None

    def count(self, letter: DeadLetter) -> None:
        """Count a dead letter by its kind, and keep the place and reason of the first one."""
        line = "" if letter.line is None else f", line {letter.line}"
        what = f"{letter.source}{line}: {letter.reason}"
        if letter.kind == "late":
            self.late += 1
            if letter.time is not None:
                self.first_late = self.first_late or f"{letter.source}: its time is {format_time(letter.time)}"
        elif letter.kind == "ahead":
            self.ahead += 1
            self.first_ahead = self.first_ahead or what
        else:
            self.bad += 1
            self.first_bad = self.first_bad or what

    def to_progress(self) -> StreamProgress:
        """The counts alone."""
        return StreamProgress(self.elements, self.late, self.bad, self.ahead, self.watermark)

    def describe(self, stream: str) -> Iterator[str]:
        """What a person should know of them, and do."""
        name, keep = iri_to_name(stream), "--dead-letters DIR keeps them with the reasons"
        if self.bad:
            some = "1 element" if self.bad == 1 else f"{self.bad:,} elements"
            yield f"{some} of the stream {name} could not be read; the first: {self.first_bad} ({keep})"
        if 2 * self.late > self.elements:
            mark = "" if self.watermark is None else f" of {format_time(self.watermark)}"
            yield (
                f"{self.late:,} of {self.elements:,} elements of the stream {name} came late, behind an element{mark} "
                "that was ahead of them: check the times; put such an element aside with --max-ahead (such as "
                f"--max-ahead 1h), or allow for it with --delay ({keep})"
            )
        elif self.late > 1:
            yield (
                f"{self.late:,} of {self.elements:,} elements of the stream {name} came late and are in no answer; "
                f"{self._cure()} ({keep})"
            )

    def _cure(self) -> str:
        return late_cure(self.late_by) if self.late > self.unawaited else unawaited_cure()

    def describe_times(self, stream: str) -> Iterator[tuple[str, str]]:
        """What a person should know of its times at once, with a word for what it is about."""
        if self.watermark is not None and is_implausible(self.watermark):
            yield "1970", implausible_time_text(stream, self.watermark)
        if self.late:
            yield (
                "late",
                f"an element of the stream {iri_to_name(stream)} came late and is in no answer, as others will be "
                f"(the summary counts them, --dead-letters DIR keeps them): {self.first_late}; {self._cure()}",
            )
        if self.ahead:
            yield (
                "ahead",
                f"an element of the stream {iri_to_name(stream)} jumped ahead in time and was put aside, as others "
                f"will be (the summary counts them, --dead-letters DIR keeps them): {self.first_ahead}",
            )


class RunCounts:
    """The progress of a run."""

    def __init__(
        self,
        queries: Mapping[str, QueryProgress] | None = None,
        clock: Callable[[], float] = time.monotonic,
        day: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._begin = self._last = clock()
        self._day = day
        self._begun_at = day()
        self._heard: dict[str, float] = {}
        """When each stream brought something last, by name and time of day."""
        self.progress = Progress(queries=dict(queries or {}))
        self._troubles: dict[str, StreamTroubles] = {}
        self._told: set[tuple[str, ...]] = set()
        self._triples = self._of_largest = 0

    def count(self, outcome: BatchOutcome, steps: Mapping[str, float]) -> Progress:
        """Add a batch; `steps` are the seconds of what happened to it besides its evaluation."""
        now = self._clock()
        seconds = max(now - self._last, 1e-6)
        before, measure = self.progress, outcome.measure
        late, ahead = (sum(one.kind == kind for one in outcome.dead_letters) for kind in ("late", "ahead"))
        written = _parts_by_query(outcome)
        for stream, elements in measure.elements.items():
            self._troubles.setdefault(stream, StreamTroubles()).elements += elements
            if elements:
                self._heard[iri_to_name(stream)] = self._day()
        for letter in outcome.dead_letters:
            self._troubles.setdefault(letter.stream, StreamTroubles()).count(letter)
        for stream, (late_by, unawaited) in measure.lateness.items():
            self._troubles[stream].late_by = max(self._troubles[stream].late_by, late_by)
            self._troubles[stream].unawaited += unawaited
        for stream, troubles in self._troubles.items():
            troubles.watermark = outcome.watermarks.get(iri_to_name(stream), troubles.watermark)
        self._triples += measure.triples
        self._of_largest += measure.largest
        self.progress = Progress(
            largest_shard=self._of_largest / self._triples if self._triples else before.largest_shard,
            elements=before.elements + outcome.elements,
            late=before.late + late,
            bad=before.bad + len(outcome.dead_letters) - late - ahead,
            ahead=before.ahead + ahead,
            ticks=before.ticks + len(outcome.answers) + sum(map(count_ticks, written.values())),
            batches=before.batches + 1,
            seconds=now - self._begin,
            rate=outcome.elements / seconds,
            watermarks=outcome.watermarks or before.watermarks,
            alerts=before.alerts + outcome.answers.alert_count + sum(one.alerts for one in chain(*written.values())),
            state_rows=measure.log.rows if measure.queries else before.state_rows,
            state_bytes=measure.log.bytes or 0 if measure.queries else before.state_bytes,
            steps=add_by_name(add_by_name(before.steps, measure.steps), steps),
            queries=self._count_queries(outcome, seconds, written),
            streams={iri_to_name(stream): one.to_progress() for stream, one in self._troubles.items()},
        )
        self._last = now
        return self.progress

    def take_warnings(self) -> list[tuple[str, str]]:
        """What a person should know while the run goes on, each once: a query, or nothing, and a sentence."""
        found: list[tuple[tuple[str, ...], str, str]] = [
            ((stream, about), "", sentence)
            for stream, troubles in self._troubles.items()
            for about, sentence in troubles.describe_times(stream)
        ]
        found += [
            ((name, one.window, one.pattern), name, collapse_warning(one))
            for name, query in self.progress.queries.items()
            for one in query.collapsed
            if one.is_aggregated
        ]
        new = [(query, sentence) for key, query, sentence in found if key not in self._told]
        self._told.update(key for key, _, _ in found)
        return new

    def change_queries(self, queries: Mapping[str, QueryProgress]) -> None:
        """Count other queries from now on; queries that stay keep their counts."""
        known = self.progress.queries
        self.progress = replace(self.progress, queries={name: known.get(name, one) for name, one in queries.items()})

    def note_suspended(self, reasons: Mapping[str, str]) -> None:
        """These queries are suspended now, for these reasons; all others are not."""
        known = self.progress.queries
        queries = {name: replace(one, suspended=reasons.get(name)) for name, one in known.items()}
        self.progress = replace(self.progress, queries=queries)

    def add_seconds(self, step: str, seconds: float) -> None:
        """Add the time of a step that follows the counting."""
        self.progress = replace(self.progress, steps=add_by_name(self.progress.steps, {step: seconds}))

    def _count_queries(
        self, outcome: BatchOutcome, seconds: float, written: Mapping[str, Sequence[WrittenPart]]
    ) -> dict[str, QueryProgress]:
        """Add a batch to the progress of each query: its answers, rows and dead letters, and the rates of `seconds`."""
        dead_letters: dict[tuple[str, str], int] = {}
        for dead_letter in outcome.dead_letters:
            key = (iri_to_name(dead_letter.stream), dead_letter.kind)
            dead_letters[key] = dead_letters.get(key, 0) + 1
        answers = outcome.answers.by_query()
        arrived = {iri_to_name(stream): count for stream, count in outcome.measure.elements.items()}
        found: dict[str, QueryProgress] = {}
        for name, before in self.progress.queries.items():
            elements = sum(arrived.get(stream, 0) for stream in before.streams)
            own, parts = answers.get(name, _NO_ANSWERS), written.get(name, ())
            counted = replace(
                before,
                elements=before.elements + elements,
                rate=elements / seconds,
                late=before.late + sum(dead_letters.get((stream, "late"), 0) for stream in before.streams),
                bad=before.bad + sum(dead_letters.get((stream, "bad"), 0) for stream in before.streams),
                ahead=before.ahead + sum(dead_letters.get((stream, "ahead"), 0) for stream in before.streams),
                ticks=before.ticks + len(own) + count_ticks(parts),
                rows=before.rows + own.row_count + sum(part.rows for part in parts),
                skipped=before.skipped + own.skipped_count + sum(part.skipped for part in parts),
            )
            measure = outcome.measure.queries.get(name)
            found[name] = counted if measure is None else self._add_measure(counted, measure)
        return found

    def _add_measure(self, counted: QueryProgress, measure: QueryMeasure) -> QueryProgress:
        newest, answered = measure.newest, measure.answered
        return replace(
            counted,
            watermark=measure.watermark,
            answered=answered,
            lag=None if newest is None or answered is None else max(0, newest - answered),
            state_rows=measure.size.rows,
            state_bytes=measure.size.bytes,
            seconds=counted.seconds + measure.seconds,
            complete_from=measure.complete_from,
            choices=measure.choices,
            suspended=measure.suspended,
            collapsed=add_collapsed(counted.collapsed, measure.collapsed),
            waits_for={stream: int(self._heard.get(stream, self._begun_at) * 1_000_000) for stream in measure.awaited},
        )

    def summary(self, *, stopped: bool) -> RunSummary:
        """The counts at the end of the run, with the rate over all of it."""
        seconds = self._clock() - self._begin
        counts = {name: getattr(self.progress, name) for name in Progress.__dataclass_fields__}
        rate = self.progress.elements / max(seconds, 1e-6)
        warnings = [text for stream, troubles in self._troubles.items() for text in troubles.describe(stream)]
        counts |= {"seconds": seconds, "rate": rate}
        return RunSummary(**counts, stopped=stopped, warnings=tuple(warnings))


def _parts_by_query(outcome: BatchOutcome) -> dict[str, list[WrittenPart]]:
    """What workers have written of the answers that did not come to the driver."""
    found: dict[str, list[WrittenPart]] = {}
    known = outcome.answers.by_query() if outcome.written else {}
    for part in outcome.written:
        if part.query not in known:
            found.setdefault(part.query, []).append(part)
    return found


def newly_known_completeness(before: Progress, now: Progress) -> list[tuple[str, int | None]]:
    """The queries whose completeness became known, with the instant from which they are complete; None: not yet."""
    found: list[tuple[str, int | None]] = []
    for name, query in now.queries.items():
        known = before.queries[name].complete_from if name in before.queries else None
        if query.complete_from is not None and query.complete_from != known:
            found.append((name, None if query.complete_from == NOT_YET else query.complete_from))
    return found
