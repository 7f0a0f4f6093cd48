"""What the pipeline needs of a sink; `file_sink` and `kafka_sink` are the sinks that there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from headwater.execution.answer_batch import AnswerBatch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Sink(Protocol):
    """Where the answers of a run go, batch by batch.

    A batch is written twice when the process died between writing and commit. It has the same id and the same answers
    then: a sink replaces what is there, or lets readers recognise the repetition.
    """

    def open(self, spark: SparkSession | None) -> None:
        """Prepare for a run on Spark, or, with None, in process."""

    def write(self, run: str, batch: int, answers: AnswerBatch) -> None:
        """Take the answers of a batch; they are safe when this returns."""
