"""The last step of a batch, on the driver: answers to sinks and subscribers, dead letters to their folder, counts."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from headwater.execution.answer_batch import AnswerBatch
from headwater.execution.answers import Answer
from headwater.execution.typed_cells import ColumnTypes
from headwater.running.counting import RunCounts, newly_known_completeness
from headwater.running.evaluation import BatchOutcome
from headwater.running.program_description import ProgramDescription
from headwater.running.progress import Progress, QueryProgress, RunSummary
from headwater.running.subscriptions import Subscription
from headwater.running.worker_delivery import WorkerDelivery, answers_for_driver
from headwater.sinks.dead_letters import (
    LineNumbers,
    StrictError,
    TextAt,
    add_line_numbers,
    add_texts,
    write_dead_letters,
)
from headwater.sinks.sink import PartSink, RewritingSink, Sink
from headwater.terms.timestamps import format_time
from headwater.values.query_guard import QueryGuard

logger = logging.getLogger(__name__)

OnAnswer = Callable[[Answer], object]
OnBatch = Callable[[AnswerBatch], object]
OnProgress = Callable[[Progress], object]
Warn = Callable[[str, Sequence[str]], object]
"""Gets the name of a query and what is probably wrong with it."""


class Delivery:
    """Hands over the outcome of each batch, and keeps the counts of the run."""

    def __init__(
        self,
        *,
        on_answer: OnAnswer | None = None,
        on_batch: OnBatch | None = None,
        on_progress: OnProgress | None = None,
        subscriptions: list[Subscription[Any]] | None = None,
        sinks: Sequence[Sink] = (),
        dead_letters: Path | None = None,
        run: str = "run",
        strict: bool = False,
        line_numbers: LineNumbers,
        text_at: TextAt,
        queries: Mapping[str, QueryProgress] | None = None,
        warn: Warn | None = None,
        types: Mapping[str, ColumnTypes] | None = None,
    ) -> None:
        self._on_answer = on_answer
        self._on_batch = on_batch
        self._on_progress = on_progress
        self._subscriptions = [] if subscriptions is None else subscriptions
        self._sinks = sinks
        self._dead_letters = dead_letters
        self._run = run
        self._delivered = self._tried = -1
        self._strict = strict
        self._line_numbers = line_numbers
        self._text_at = text_at
        self._counts = RunCounts(queries)
        self._warn = warn
        self._types = types or {}

    @property
    def progress(self) -> Progress:
        """The counts so far."""
        return self._counts.progress

    @property
    def has_answer_callback(self) -> bool:
        """Whether `on_answer` is given, which gets the answers of a tick before the next tick is evaluated."""
        return self._on_answer is not None

    @property
    def delivered(self) -> int:
        """The last batch that was handed over; -1 before the first."""
        return self._delivered

    def change_queries(self, queries: Mapping[str, QueryProgress], types: Mapping[str, ColumnTypes]) -> None:
        """The run goes on with other queries; those that stay keep their counts."""
        self._types = types
        self._counts.change_queries(queries)

    def choose_worker_delivery(self, description: ProgramDescription, *, sees_folders: bool) -> WorkerDelivery | None:
        """What workers write of the sinks; `sees_folders`: they are on this machine."""
        how = {"is_taken": self.takes_answers, "sees_folders": sees_folders}
        return WorkerDelivery.choose(description, self._sinks, self._run, self._types, **how)

    @property
    def takes_answers(self) -> bool:
        """Whether a callback or an iterator takes answers, besides the sinks."""
        has_callback = self._on_answer is not None or self._on_batch is not None
        return has_callback or any(not one.closed for one in tuple(self._subscriptions))

    def deliver(
        self,
        batch: int,
        outcome: BatchOutcome,
        *,
        is_repeated: bool = False,
        guard: QueryGuard | None = None,
        workers: WorkerDelivery | None = None,
        records_of: Callable[[int], Any] = lambda sink: None,
    ) -> None:
        """Hand over one batch, once. What raises here fails the batch, and a later run repeats it.

        `is_repeated` says that another run may have delivered it, which ended before it was committed; so may the first
        batch of a run, and one that was tried before. `guard` ends what a sink waits for when the run is stopped.
        `workers` says what workers have written, and `records_of` gives a DataFrame of what Spark is to write.
        """
        if batch <= self._delivered:
            return
        is_repeated = is_repeated or self._tried < 0 or batch <= self._tried
        self._tried = batch
        begin = time.monotonic()
        letters = list(outcome.dead_letters)
        if letters and (self._strict or self._dead_letters is not None):
            letters = add_line_numbers(letters[:1] if self._strict else letters, self._line_numbers)
            letters = add_texts(letters, self._text_at)
        if self._dead_letters is not None:
            write_dead_letters(self._dead_letters, self._run, batch, letters)
        if self._strict and letters:
            raise StrictError(letters[0])
        outcome.answers.set_types(self._types)
        # Sinks come first: a batch that fails here is tried again, with the same answers.
        with guard or nullcontext():
            for place, sink in enumerate(self._sinks):
                answers = outcome.answers
                if workers is not None and workers.writers[place] is not None and isinstance(sink, PartSink):
                    files = {part: part.files[place] for part in outcome.written}
                    sink.commit_parts(self._run, batch, files, records_of(place))
                    answers = answers_for_driver(answers, outcome.written)
                if is_repeated and isinstance(sink, RewritingSink):
                    sink.rewrite(self._run, batch, answers)
                elif len(answers):
                    sink.write(self._run, batch, answers)
        self._hand_over(outcome.answers)
        self._delivered = batch
        before = self.progress
        self._counts.count(outcome, {"deliver": time.monotonic() - begin})
        self._log_completeness(before)
        if self._warn is not None:
            for query, sentence in self._counts.take_warnings():
                self._warn(query, [sentence])
        if self._on_progress is not None:
            self._on_progress(self.progress)

    def _hand_over(self, answers: AnswerBatch) -> None:
        """Hand answers to callbacks and iterators; those who take batches cost no terms."""
        for query, own in answers.by_query().items():
            if self._on_batch is not None:
                self._on_batch(own)
            reason = own.suspended
            for subscription in tuple(self._subscriptions):
                if subscription.takes_batches and subscription.query == query:
                    if reason is None or len(own) > 1:
                        subscription.put(own)
                    if reason is not None:
                        subscription.suspend(reason)
        if self._on_answer is None and all(one.takes_batches for one in self._subscriptions):
            return
        for answer in answers:
            if self._on_answer is not None:
                self._on_answer(answer)
            for subscription in tuple(self._subscriptions):
                if subscription.takes_batches or subscription.query != answer.query:
                    continue
                if answer.suspended is not None:
                    subscription.suspend(answer.suspended)
                else:
                    subscription.put(answer)

    def _log_completeness(self, before: Progress) -> None:
        for name, instant in newly_known_completeness(before, self.progress):
            since = "an instant that is not known yet" if instant is None else format_time(instant)
            logger.warning("%s: its answers are complete from %s", name, since)

    def note_suspended(self, reasons: Mapping[str, str]) -> None:
        """These queries are suspended now, for these reasons; all others are not."""
        self._counts.note_suspended(reasons)

    def add_seconds(self, step: str, seconds: float) -> None:
        """Add the time of a step that follows the delivery."""
        self._counts.add_seconds(step, seconds)

    def summary(self, *, stopped: bool) -> RunSummary:
        """The counts at the end of the run, with the rate over all of it."""
        return self._counts.summary(stopped=stopped)
