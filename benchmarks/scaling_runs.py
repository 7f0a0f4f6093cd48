"""The runs from which the model of the pipeline is fitted (`scaling_model`), in one Spark session on two cores.

    aggregate    few rows, taken by a callback: 1, 2, 4 and 8 shards, and few batches or many with 1 and 2
    rows         many rows, to files: written by the driver, and by the workers; 1 and 2 shards

Reading is measured by itself, in this process: what reading and packing take for a triple. So are the groups that the
driver merges where the triples of a large key are spread.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import headwater as hw
from benchmarks.delivery import ROWS_WORKLOAD, measure_way
from benchmarks.growth_shards import WHOLE_GROUPS, PipelineRun, measure_hot_key, run_pipeline
from benchmarks.growth_streams import resources
from benchmarks.pipeline_data import write_stream
from benchmarks.pipeline_queries import READINGS_SHAPE, STAR_SHAPE, WORKLOADS, Workload
from benchmarks.reporting import progress
from headwater.sources.feed import Feed
from headwater.sources.offsets import Offset
from headwater.spark.chunk_bytes import pack_chunk

AGGREGATE, ROWS = "aggregate", "rows"
_FEW, _MANY = 5, 20
_AGGREGATE_RUNS = ((1, _FEW), (2, _FEW), (1, _MANY), (2, _MANY), (4, _FEW), (8, _FEW))
_ROWS_RUNS = ((1, "driver"), (2, "driver"), (1, "workers"), (2, "workers"))


@dataclass(frozen=True, slots=True)
class ScalingRuns:
    """What was measured: runs, the seconds of reading a triple by workload, and of merging a group."""

    runs: tuple[PipelineRun, ...]
    reading: Mapping[str, float]
    merging: float

    def save(self, path: Path) -> None:
        """Write all of it as JSON."""
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def load(cls, path: Path) -> ScalingRuns:
        """What was measured before."""
        plain = json.loads(path.read_text())
        return cls(tuple(PipelineRun(**one) for one in plain["runs"]), plain["reading"], plain["merging"])


def measure_runs(triples: int, rounds: int) -> ScalingRuns:
    """Run everything so many times, in turns."""
    found: list[PipelineRun] = []
    with tempfile.TemporaryDirectory(prefix="headwater-scaling-") as path:
        folders = {name: Path(path, name) for name in (AGGREGATE, ROWS)}
        written = {
            AGGREGATE: write_stream(folders[AGGREGATE], READINGS_SHAPE, triples, files=8),
            ROWS: write_stream(folders[ROWS], STAR_SHAPE, triples, files=8),
        }
        reading = {
            name: measure_reading(folders[name], workload, written[name])
            for name, workload in ((AGGREGATE, WORKLOADS[AGGREGATE]), (ROWS, ROWS_WORKLOAD))
        }
        spark = hw.Engine(master="local[2]").session()
        try:
            for turn in range(rounds + 1):
                for shards, batches in _AGGREGATE_RUNS:
                    engine = hw.Engine(spark, shards=shards)
                    folder = folders[AGGREGATE]
                    run = run_pipeline(engine, folder, WORKLOADS[AGGREGATE], written[AGGREGATE], batches)
                    if not turn:
                        # The first pipeline of a session warms Java up.
                        break
                    found.append(_report(run))
                for shards, way in _ROWS_RUNS if turn else ():
                    run, _ = measure_way(spark, folders[ROWS], written[ROWS], way, shards, _FEW)
                    found.append(_report(replace(run, workload=ROWS, is_written_by_workers=way == "workers")))
        finally:
            spark.stop()
    hot = measure_hot_key(WHOLE_GROUPS, 50, False, 8, 20_000, [int(resources(1_000, 1)[0])])
    return ScalingRuns(tuple(found), reading, hot.more["merge_ms"] / hot.more["rows"] / 1e3)


def measure_reading(folder: Path, workload: Workload, triples: int, rounds: int = 3) -> float:
    """The processor seconds of reading and packing a triple, for one shard."""
    engine = hw.Engine(in_process=True)
    (stream,) = workload.streams
    source = hw.files(folder)
    engine.stream(stream, source)
    engine.register(workload.text, emit="rstream")
    wanted = engine._description().outline().wanted_patterns
    seconds: list[float] = []
    for _ in range(rounds):
        feed = Feed({stream: source}, wanted=wanted)
        feed.finish()
        begun = time.process_time()
        for task in feed.read_tasks(Offset(), feed.next_offset(Offset(), None), 1 << 20):
            for chunk in feed.read(task):
                pack_chunk(chunk)
        seconds.append(time.process_time() - begun)
    # The first round has compiled.
    return statistics.median(seconds[1:]) / triples


def _report(run: PipelineRun) -> PipelineRun:
    parts = ", ".join(f"{part} {spent:.2f}" for part, spent in run.processor.items())
    way = ", workers write" * run.is_written_by_workers
    progress(
        f"{run.workload}, {run.shards} shards, {run.batches} batches{way}: {run.triples:,} triples, {run.rows:,} rows, "
        f"{run.seconds:.1f} s, processor {run.processor_seconds:.2f} s ({parts})"
    )
    return run
