"""How a run claims its checkpoint, also one that another mode of Spark has made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from headwater.running.checkpoints import (
    IN_PROCESS,
    IN_REAL_TIME,
    ON_SPARK,
    SPARK_STATE,
    CheckpointClaim,
    CheckpointRecord,
    claim_checkpoint,
    new_run,
)
from headwater.running.delivery import Delivery
from headwater.running.workload import Workload, WorkloadChanges
from headwater.sources.records import RecordSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class ModeSwitch:
    """Has a checkpoint of one mode of Spark go on in the other.

    `make_delivery` makes what delivers a batch of micro-batches, for the name of a run.
    """

    folder: Path
    session: Callable[[], SparkSession]
    workload: Workload
    make_delivery: Callable[[str], Delivery]
    stop: Event

    def __call__(self, known: CheckpointRecord, now: CheckpointRecord) -> CheckpointRecord | None:
        from headwater.spark.realtime.mode_switch import switch_to_micro_batches, switch_to_real_time
        from headwater.spark.spark_logs import check_commits

        if now.runner == ON_SPARK:
            return switch_to_micro_batches(self.session(), self.folder, known, now, self.workload)
        check_commits(self.folder / SPARK_STATE)
        if not self._finish_planned_batch(known):
            return None
        finished = CheckpointRecord.read(self.folder) or known
        return switch_to_real_time(self.session(), self.folder, finished, now, self.workload)

    def _finish_planned_batch(self, known: CheckpointRecord) -> bool:
        """Have micro-batches run again what they have planned, and maybe delivered, and not committed.

        Its windows may have been closed by silence or by the `skew` of partitions, which real-time mode does not know:
        the same answers would have another content there. Gives whether nothing is planned any more.
        """
        from headwater.spark.spark_runner import has_planned_batch, run_on_spark

        record = CheckpointRecord.of(known.run, known.runner, self.workload.description, known.records)
        claim = CheckpointClaim(known.run, None, record, self.folder)
        while has_planned_batch(self.folder) and not self.stop.is_set():
            run_on_spark(
                self.session(),
                self.workload,
                WorkloadChanges(lambda: self.workload),
                self.make_delivery(known.run),
                self.stop,
                follow=True,
                checkpoint=self.folder,
                accept_state=claim.write,
                only_planned=True,
            )
        return not has_planned_batch(self.folder)


def name_runner(*, in_process: bool, realtime: bool) -> str:
    """The runner of a run, as its checkpoint names it."""
    return IN_PROCESS if in_process else IN_REAL_TIME if realtime else ON_SPARK


def claim_for_run(
    folder: Path | None,
    workload: Workload,
    runner: str,
    run: str | None,
    make_switch: Callable[[Path], ModeSwitch],
) -> CheckpointClaim:
    """The name of a run, and what it takes over from its checkpoint; `run` is its name where it has begun already."""
    if folder is None:
        return CheckpointClaim(run or new_run())
    if not workload.description.queries:
        # The first query claims the checkpoint.
        known = CheckpointRecord.read(folder)
        return CheckpointClaim(new_run() if known is None or known.runner != runner else known.run)
    records = [stream for stream, source in workload.sources.items() if isinstance(source, RecordSource)]
    return claim_checkpoint(folder, workload.description, runner, records, run, make_switch(folder))
