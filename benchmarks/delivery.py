"""What delivery costs the driver: `python -m benchmarks.delivery [--triples N] [--rounds N]`.

A query whose answers are many rows is run on Spark, and its answers go to files as JSON, in one shard and in two. The
ways take turns in one session:

    driver      answers go through the driver, which makes the text
    workers     each worker writes what it has; with two shards in parts

By shards and way: the processor seconds of driver, Java and workers, the bytes that the driver collects, and the time
on the clock, all for a million rows, as medians of the rounds. Prints one JSON object last.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

import headwater as hw
from benchmarks.growth_shards import PipelineRun, run_pipeline
from benchmarks.pipeline_data import DATA, OM, write_stream
from benchmarks.pipeline_queries import OBSERVATIONS, STAR_SHAPE, Workload
from benchmarks.reporting import machine, print_result, progress, rounded
from headwater.execution.answer_batch import AnswerBatch
from headwater.running.evaluation import BatchOutcome
from headwater.spark import stateful_step

ROWS_WORKLOAD = Workload(
    f"""PREFIX om: <{OM}> PREFIX d: <{DATA}>
    SELECT ?o ?sensor ?value FROM NAMED WINDOW d:w ON <{OBSERVATIONS}> [RANGE PT1S STEP PT1S]
    WHERE {{ WINDOW d:w {{ ?o om:procedure ?sensor ; om:floatValue ?value }} }}"""
)
BATCHES = 6
_MILLION = 1_000_000


class DriverSink(hw.FileSink):
    """Files that only the driver writes."""

    def write(self, run: str, batch: int, answers: AnswerBatch) -> None:
        super().write(run, batch, answers)


class CollectedBytes:
    """Counts the bytes that the driver collects from the stateful step."""

    def __init__(self) -> None:
        self.count = 0
        self._read = stateful_step.rows_to_outcome

    def rows_to_outcome(self, rows: list[Any], merger: Any = None) -> BatchOutcome:
        """What the function of that name gives."""
        self.count += sum(len(row["payload"] or b"") for row in rows)
        return self._read(rows, merger)


def measure_way(
    spark: Any, folder: Path, triples: int, way: str, shards: int, batches: int = BATCHES
) -> tuple[PipelineRun, int]:
    """A run, and the bytes that the driver collected in it."""
    collected = CollectedBytes()
    stateful_step.rows_to_outcome = collected.rows_to_outcome
    try:
        with tempfile.TemporaryDirectory(prefix="headwater-answers-") as out:
            sink = DriverSink(out) if way == "driver" else hw.FileSink(out, parts=shards > 1)
            run = run_pipeline(hw.Engine(spark, shards=shards), folder, ROWS_WORKLOAD, triples, batches, [sink])
    finally:
        stateful_step.rows_to_outcome = collected._read
    return run, collected.count


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.delivery", description="What delivery costs.")
    parser.add_argument("--triples", type=int, default=400_000, help="of the stream that is run")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each way")
    arguments = parser.parse_args()
    facts = machine()
    found: dict[str, list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="headwater-delivery-") as path:
        folder = Path(path, "stream")
        written = write_stream(folder, STAR_SHAPE, arguments.triples, files=4)
        spark = hw.Engine(master="local[2]").session()
        try:
            # The first pipeline of a session warms Java up.
            measure_way(spark, folder, written, "driver", 1)
            for _ in range(arguments.rounds):
                for shards in (1, 2):
                    for way in ("driver", "workers"):
                        run, collected = measure_way(spark, folder, written, way, shards)
                        per_million = _MILLION / run.rows
                        # Bytes are those of all batches, the rest begins behind the first.
                        share = run.triples / written
                        one = {f"{part}_s": spent * per_million for part, spent in run.processor.items()}
                        one |= {"collected_mb": collected * share * per_million / 1e6}
                        one |= {"clock_s": run.seconds * per_million}
                        found.setdefault(f"{shards} {way}", []).append(one)
                        progress(f"{shards} {way}: " + ", ".join(f"{name} {value:.2f}" for name, value in one.items()))
        finally:
            spark.stop()
    medians = {
        name: {key: rounded(statistics.median(one[key] for one in runs)) for key in runs[0]}
        for name, runs in found.items()
    }
    print_result({"per_million_rows": medians, "triples": written, "machine": facts})


if __name__ == "__main__":
    main()
