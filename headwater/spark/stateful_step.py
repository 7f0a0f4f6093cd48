"""The stateful step on Spark: a batch of chunks in, answers, dead letters and counts out.

The durable state is in Spark's state store: the log of the windows, a segment per batch and stream, and a summary of
clocks and ticks that stays small. A batch writes its own segments and removes those that have expired. The worker
process keeps the live evaluation as a cache. Each state carries a random token: a cached evaluation is used only if it
carries the token that the store has, so a worker that took another batch meanwhile, or took this one in an attempt
that was not committed, throws its copy away and derives it from the log.

A checkpoint that was one of real-time mode has its state in a folder (`spark_handover`). The first batch writes it into
the state store, which knows no shard before.

Spark also starts a process that only lists the states, so the modules that evaluate are imported by the workers alone.
"""

from __future__ import annotations

import time
import uuid
from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from headwater.running.shipping import Shipped
from headwater.spark.chunk_bytes import unpack_chunk
from headwater.terms.packing import pack, unpack

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headwater.execution.window_log import LogSegment
    from headwater.running.evaluation import BatchOutcome, Evaluation
    from headwater.running.program_description import ProgramDescription
    from headwater.running.worker_delivery import WorkerDelivery
    from headwater.sharding.answer_merging import AnswerMerger
    from headwater.sinks.dead_letters import DeadLetter
    from headwater.sinks.written_parts import AnswerRecord

OUTPUT_SCHEMA = (
    "number long, kind string, query string, time_us long, payload binary, answers long, "
    "elements long, late long, bad long, measure string, sink long, key string, headers string"
)
ANSWER, OUTCOME, RECORD, WRITTEN = "answer", "outcome", "record", "written"
"""Rows are answers, the rest of an outcome, records for Spark to write to a sink, or the count of what was written."""

_LIVE_EVALUATIONS: OrderedDict[tuple[str, str], Evaluation] = OrderedDict()
_MOST_LIVE = 4


class EvaluationProcessor(StatefulProcessor):
    """Keeps an evaluation and advances it once per batch."""

    def __init__(
        self,
        description: Shipped[ProgramDescription],
        delivery: Shipped[WorkerDelivery] | None = None,
        handover: Path | None = None,
    ) -> None:
        """`handover` is the folder of the state that the first batch begins with, if there is one."""
        self._shipped = description
        self._shipped_delivery = delivery
        self._handover = handover
        self._shard = 0
        # A worker outlives a run: another run may go on with the same state, but with other queries or other data.
        self._run = uuid.uuid4().hex

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._token = handle.getValueState("token", "token string")
        self._summary = handle.getValueState("summary", "summary binary")
        self._segments = handle.getMapState("segments", "number long", "segment binary")

    @cached_property
    def _description(self) -> ProgramDescription:
        # Spark lists the states in a process that gets no rows, and need not unpack the queries.
        return self._shipped.unpack()

    @cached_property
    def _delivery(self) -> WorkerDelivery | None:
        return None if self._shipped_delivery is None else self._shipped_delivery.unpack()

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
        """Evaluate the chunks of one batch for one shard and save its state; gives one outcome."""
        from headwater.execution.query_evaluators import FamilyFailed
        from headwater.running.counting import add_by_name

        begin = time.monotonic()
        self._shard = key[0]
        chunks = [unpack_chunk(bytes(chunk)) for frame in rows for chunk in frame["chunk"]]
        evaluation = self._resume_evaluation()
        unpacked = time.monotonic()
        alone: frozenset[str] = frozenset()
        while True:
            try:
                outcome = evaluation.step(chunks)
                break
            except FamilyFailed as failure:
                # The windows are in the store: the members begin there, one by one.
                alone |= failure.names
                evaluation = self._restore_evaluation(alone)
        evaluated = time.monotonic()
        self._save(evaluation)
        if self._description.watched:
            evaluation.prepare_newest()
        saved = time.monotonic()
        outcome, records = self._deliver(outcome, key[0])
        steps = {"read": unpacked - begin, "save": saved - evaluated, "deliver": time.monotonic() - saved}
        steps = add_by_name(outcome.measure.steps, steps)
        outcome = replace(outcome, measure=replace(outcome.measure, steps=steps))
        sharding = self._description.sharding
        if sharding is not None and key[0] != sharding.keys[0]:
            # Every shard got all elements; only the first one counts them.
            own = tuple(letter for letter in outcome.dead_letters if letter.is_of_shard)
            outcome = replace(outcome, dead_letters=own, elements=0)
        yield outcome_to_frame(outcome, records)

    def _deliver(self, outcome: BatchOutcome, key: int) -> tuple[BatchOutcome, list[tuple[int, AnswerRecord]]]:
        """Write what is written here; gives the rest, and records for Spark by their sink."""
        return (outcome, []) if self._delivery is None else self._delivery.deliver(outcome, key)

    def _save(self, evaluation: Evaluation) -> None:
        """Write the changes of the window log into Spark's state; the evaluation stays live for the next batch."""
        summary, changes = evaluation.changes()
        for segment in changes.added:
            self._segments.updateValue((segment.number,), (pack(segment.to_plain()),))
            # The store has it now; a worker that must begin again reads it there.
            segment.elements = None
        for number in changes.removed:
            self._segments.removeKey((number,))
        token = uuid.uuid4().hex
        self._summary.update((summary,))
        self._token.update((token,))
        _LIVE_EVALUATIONS[self._run, token] = evaluation
        while len(_LIVE_EVALUATIONS) > _MOST_LIVE:
            _LIVE_EVALUATIONS.popitem(last=False)

    def _resume_evaluation(self) -> Evaluation:
        """The evaluation that is live in this worker, or one restored from Spark's state."""
        stored = self._token.get()
        if stored is not None:
            live = _LIVE_EVALUATIONS.pop((self._run, stored[0]), None)
            if live is not None:
                return live
        return self._restore_evaluation()

    def _restore_evaluation(self, alone: Collection[str] = ()) -> Evaluation:
        """The evaluation from Spark's state; the queries in `alone` are evaluated one by one."""
        from headwater.running.evaluation import Evaluation

        stored = self._token.get()
        evaluation = Evaluation(self._description.program(alone=alone))
        if stored is None and self._handover is not None:
            self._take_over(evaluation, self._handover)
        if stored is not None:
            summary = self._summary.get()
            if summary is None:
                raise RuntimeError("the state has a token but no summary: the checkpoint is damaged")
            segments = (segment_from_bytes(bytes(value[0])) for value in self._segments.values())
            evaluation.resume(bytes(summary[0]), segments)
        return evaluation

    def _take_over(self, evaluation: Evaluation, folder: Path) -> None:
        """Go on with the state in a folder, and write its log into Spark's state."""
        from headwater.spark.spark_handover import read_handed_over

        state, segments = read_handed_over(folder, self._shard)
        for segment in segments:
            self._segments.updateValue((segment.number,), (pack(segment.to_plain()),))
        evaluation.resume(state, segments)

    def close(self) -> None:
        return


def segment_from_bytes(data: bytes) -> LogSegment:
    """The segment whose plain values Spark's state store has."""
    from headwater.execution.window_log import LogSegment

    return LogSegment.from_plain(unpack(data))


def outcome_to_frame(outcome: BatchOutcome, records: Sequence[tuple[int, AnswerRecord]] = ()) -> pd.DataFrame:
    """A row for the columns of many answers or for a single answer, one for each record, and a last one with the rest.

    Records come by the number of their sink.
    """
    from headwater.execution.answer_batch import AnswerBatch
    from headwater.execution.answer_bytes import pack_answers
    from headwater.execution.answer_columns import AnswerColumns

    rest = replace(outcome, answers=AnswerBatch(order=outcome.answers.order))
    late = sum(dead_letter.kind == "late" for dead_letter in outcome.dead_letters)
    # Of Spark's metrics an element that jumped ahead is a bad one.
    counts = (outcome.elements, late, len(outcome.dead_letters) - late, outcome.measure.to_json())
    no_counts, no_record = (None, None, None, None), (None, None, None)
    rows: list[tuple[object, ...]] = []
    for part in outcome.answers.parts:
        if isinstance(part, AnswerColumns):
            last = int(part.times[-1])
            packed = pack_answers(part)
            rows.append((len(rows), ANSWER, part.query, last, packed, len(part), *no_counts, *no_record))
        else:
            for answer in part:
                packed = pack_answers([answer])
                rows.append((len(rows), ANSWER, answer.query, answer.time, packed, 1, *no_counts, *no_record))
    known = outcome.answers.by_query() if outcome.written else {}
    for written in outcome.written:
        if written.query not in known:
            # Spark's metrics count what was written, too.
            last, count = int(written.times[-1]), len(written.times)
            rows.append((len(rows), WRITTEN, written.query, last, None, count, *no_counts, *no_record))
    for sink, one in records:
        rows.append((len(rows), RECORD, one.query, None, one.value, None, *no_counts, sink, one.key, one.headers))
    rows.append((len(rows), OUTCOME, None, None, pack(rest.to_plain()), None, *counts, *no_record))
    names = [field.strip().partition(" ")[0] for field in OUTPUT_SCHEMA.split(",")]
    frame = pd.DataFrame(dict(zip(names, zip(*rows, strict=True), strict=True)))
    return frame.astype(
        {"number": "int64", **dict.fromkeys(("time_us", "answers", "elements", "late", "bad", "sink"), "Int64")}
    )


def observe_counts(rows: DataFrame) -> DataFrame:
    """The same rows, counted batch by batch in Spark's own progress, where every listener finds it.

    `event.progress.observedMetrics["headwater"]` has `answers`, `elements`, `late`, `bad`, the last tick as
    `answered_us`, and `shards`: a JSON text for each shard, with the `counting.BatchMeasure` of each query.
    """
    from pyspark.sql import functions as f

    return rows.observe(
        "headwater",
        *(f.sum(name).alias(name) for name in ("answers", "elements", "late", "bad")),
        f.max("time_us").alias("answered_us"),
        f.collect_list("measure").alias("shards"),
    )


def _merge_letters(known: tuple[DeadLetter, ...], more: tuple[DeadLetter, ...]) -> tuple[DeadLetter, ...]:
    """The dead letters of several shards; an element whose statements collide in two of them is one."""
    places = {(one.stream, one.position) for one in known if one.is_of_shard}
    return (*known, *(one for one in more if not one.is_of_shard or (one.stream, one.position) not in places))


def rows_to_outcome(rows: list[Any], merger: AnswerMerger | None = None) -> BatchOutcome:
    """The outcome of a batch from the rows that the stateful step gave, those of all shards together."""
    from headwater.execution.answer_batch import AnswerBatch
    from headwater.execution.answer_bytes import unpack_answers
    from headwater.running.evaluation import BatchOutcome

    ordered = sorted(rows, key=lambda row: row["number"])
    answers = AnswerBatch()
    for row in ordered:
        if row["kind"] == ANSWER:
            answers.append(unpack_answers(row["payload"]))
    outcome = BatchOutcome()
    for row in ordered:
        if row["kind"] == OUTCOME:
            part = BatchOutcome.from_plain(unpack(row["payload"]))
            answers.order = part.answers.order
            outcome = BatchOutcome(
                AnswerBatch(),
                _merge_letters(outcome.dead_letters, part.dead_letters),
                outcome.elements + part.elements,
                part.watermarks,
                outcome.measure.merge(part.measure),
                outcome.written + part.written,
            )
    suspended = {name for name, one in outcome.measure.queries.items() if one.suspended is not None}
    # Of a query that is suspended in some shard, the others have parts of answers, which nobody needs.
    outcome = replace(outcome, written=tuple(part for part in outcome.written if part.query not in suspended))
    return replace(outcome, answers=answers if merger is None else merger.merge(answers, suspended))
