"""What the pipeline needs of a sink; `file_sink`, `kafka_sink` and `webhook_sink` are the sinks that there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from headwater.execution.answer_batch import AnswerBatch
from headwater.sinks.written_parts import WorkerOutput, WrittenPart
from headwater.terms.arguments import check_each

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headwater.egress.policy import EgressPolicy


class Sink(Protocol):
    """Where the answers of a run go, batch by batch.

    A batch is written twice when the process died between writing and commit. It has the same number, the same elements
    and the same version of the data then: a sink replaces what is there, or lets readers recognise the repetition.
    """

    def open(self, spark: SparkSession | None) -> None:
        """Prepare for a run on Spark, or, with None, in process."""

    def write(self, run: str, batch: int, answers: AnswerBatch) -> None:
        """Take the answers of a batch; they are safe when this returns."""


@runtime_checkable
class ConfinedSink(Protocol):
    """A sink that sends answers over a network, and keeps to the egress policy of the engine."""

    def confine(self, policy: EgressPolicy | None) -> None:
        """Keep to a policy; None allows everything. Called before `open`."""


@runtime_checkable
class RewritingSink(Protocol):
    """A sink that can also take back what an earlier attempt at a batch wrote.

    Answers that rest on SERVICE may be others when a batch is run again, and there may be none.
    """

    def rewrite(self, run: str, batch: int, answers: AnswerBatch) -> None:
        """Take the answers of a batch that may have been written before, and remove what is not among them."""


class PartWriter(Protocol):
    """Takes answers where they are evaluated; it can be sent to workers."""

    @property
    def gives_records(self) -> bool:
        """Whether it gives Spark records to write, and does not write itself."""

    def write_part(self, run: str, answers: AnswerBatch) -> WorkerOutput:
        """Take the answers of one query in a batch, such that nobody sees them before the driver commits them."""


@runtime_checkable
class PartSink(Protocol):
    """A sink that workers can write; the driver commits a batch of it without seeing the answers."""

    parts: bool
    """Whether the answer of a tick may come in parts, one from each shard."""

    def part_writer(self) -> PartWriter | None:
        """What workers write with; None where they cannot."""

    def commit_parts(
        self, run: str, batch: int, files: Mapping[WrittenPart, str | None], records: DataFrame | None
    ) -> None:
        """Make visible what workers have written of a batch; it is safe when this returns.

        `files` are those that the writer named. `records` are those that it gave to Spark. Called before `write` or
        `rewrite`, which get the answers of the other queries.
        """


def check_sinks(sinks: Any) -> list[Sink]:
    """The sinks that a user gives; a `SettingError` where something else is among them."""
    wanted = "FileSink(…), KafkaSink(…) or others with open and write"
    return check_each("sinks", sinks, lambda one: hasattr(one, "open") and hasattr(one, "write"), wanted)


def open_sink(sink: Sink, spark: SparkSession | None, policy: EgressPolicy | None) -> None:
    """Prepare a sink for a run under an egress policy."""
    if isinstance(sink, ConfinedSink):
        sink.confine(policy)
    sink.open(spark)
