"""What the pipeline needs of a sink; `file_sink`, `kafka_sink` and `webhook_sink` are the sinks that there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from headwater.execution.answer_batch import AnswerBatch
from headwater.terms.arguments import check_each

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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


def check_sinks(sinks: Any) -> list[Sink]:
    """The sinks that a user gives; a `SettingError` where something else is among them."""
    wanted = "FileSink(…), KafkaSink(…) or others with open and write"
    return check_each("sinks", sinks, lambda one: hasattr(one, "open") and hasattr(one, "write"), wanted)


def open_sink(sink: Sink, spark: SparkSession | None, policy: EgressPolicy | None) -> None:
    """Prepare a sink for a run under an egress policy."""
    if isinstance(sink, ConfinedSink):
        sink.confine(policy)
    sink.open(spark)
