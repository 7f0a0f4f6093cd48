"""Answers that workers have written: what the driver knows of them, in place of the answers.

A part is what one shard gives of the answers of a query in a batch. Where there is one shard, it is all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from headwater.execution.answer_batch import AnswerBatch
from headwater.terms.ids.term_texts import Ints
from headwater.terms.packing import Plain


class AnswerRecord(NamedTuple):
    """A record for a topic; the headers are a JSON object of texts."""

    query: str
    key: str
    value: bytes
    headers: str


class WorkerOutput(NamedTuple):
    """What a sink makes of answers on a worker: a file that has no name yet, or records for Spark to write."""

    file: str | None = None
    records: Sequence[AnswerRecord] = ()


@dataclass(frozen=True, eq=False, slots=True)
class WrittenPart:
    """What a worker has written of one query in a batch; `shard` is None where the answers are whole.

    `files` has for each sink of the run the file that a worker wrote for it, which has no name yet.
    """

    query: str
    shard: int | None
    times: Ints
    rows: int
    skipped: int
    alerts: int
    files: tuple[str | None, ...] = ()

    @classmethod
    def of(cls, query: str, shard: int | None, answers: AnswerBatch, files: Sequence[str | None]) -> WrittenPart:
        """What is to be known of the answers of a query."""
        counts = answers.row_count, answers.skipped_count, answers.alert_count
        return cls(query, shard, answers.times, *counts, tuple(files))

    def to_plain(self) -> Plain:
        """All of it as plain values."""
        return [self.query, self.shard, self.times, self.rows, self.skipped, self.alerts, list(self.files)]

    @classmethod
    def from_plain(cls, value: Plain) -> WrittenPart:
        """The part that `to_plain` gave."""
        query, shard, times, rows, skipped, alerts, files = value
        return cls(query, shard, times, rows, skipped, alerts, tuple(files))


def count_ticks(parts: Sequence[WrittenPart]) -> int:
    """How many answers the parts of one query are."""
    if len(parts) == 1:
        return len(parts[0].times)
    return int(np.unique(np.concatenate([part.times for part in parts])).size) if parts else 0
