"""How cost grows with shards on Spark, in processor seconds, and with the share of one key in the stream.

The machine need not have as many cores as there are shards: what a triple costs all processes together says what more
shards add to the work, and so what more cores can take off it.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import headwater as hw
from benchmarks.growth_points import Axis, GrowthPoint, report_point
from benchmarks.growth_streams import (
    SECOND,
    STREAM,
    VOCABULARY,
    columns_of,
    make_program,
    numbers,
    predicate,
    register,
    resources,
)
from benchmarks.pipeline_data import write_stream
from benchmarks.pipeline_queries import WORKLOADS, Workload
from benchmarks.reporting import progress
from headwater.execution.answers import Answer
from headwater.sharding.answer_merging import AnswerMerger, query_of_shard
from headwater.sharding.shard_plan import ShardPlan, find_shard_keys
from headwater.sharding.shard_planning import plan_shards
from headwater.sinks.sink import Sink
from headwater.sources.feed import Chunk
from headwater.terms.ids.term_texts import Ints

WHOLE_GROUPS = (
    "SELECT ?s (AVG(?v) AS ?mean) (COUNT(*) AS ?n) {window} WHERE {{ WINDOW :w {{ ?s :value ?v }} }} GROUP BY ?s"
)
_TICKS = os.sysconf("SC_CLK_TCK")
_PREFIX = f"PREFIX : <{VOCABULARY}> "


@dataclass(frozen=True, slots=True)
class ProcessorTime:
    """The processor seconds of a run so far: of the driver in Python, of Java, and of the workers in Python."""

    driver: float
    java: float
    workers: float
    workers_mb: float

    @property
    def total(self) -> float:
        return self.driver + self.java + self.workers

    @classmethod
    def now(cls) -> ProcessorTime:
        """What this process and those below it have taken, with children that have ended."""
        own = os.getpid()
        stats: dict[int, tuple[str, int, float, float]] = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                text = (folder / "stat").read_text()
            except OSError:
                continue
            name, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
            spent = sum(map(int, rest[11:13])) / _TICKS
            ended = sum(map(int, rest[13:15])) / _TICKS
            stats[int(folder.name)] = name, int(rest[1]), spent + (0.0 if int(folder.name) == own else ended), 0.0
        found = {"driver": stats[own][2], "java": 0.0, "workers": 0.0}
        megabytes = 0.0
        for process, (name, parent, spent, _) in stats.items():
            if process != own and _is_below(own, parent, stats):
                found["java" if name.startswith("java") else "workers"] += spent
                megabytes += 0.0 if name.startswith("java") else _own_mb(process)
        return cls(**found, workers_mb=megabytes)


def _is_below(ancestor: int, process: int, stats: dict[int, tuple[str, int, float, float]]) -> bool:
    while process in stats and process != ancestor:
        process = stats[process][1]
    return process == ancestor


def _own_mb(process: int) -> float:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return next((float(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:")), 0.0)


@dataclass(frozen=True, slots=True)
class PipelineRun:
    """What a run took between its first batch and its last: of which the first makes the evaluators."""

    shards: int
    batches: int
    triples: int
    rows: int
    seconds: float
    processor: dict[str, float]
    steps: dict[str, float]
    workers_mb: float
    elements: int = 0
    workload: str = "aggregate"
    is_written_by_workers: bool = False

    @property
    def processor_seconds(self) -> float:
        """Of all processes together."""
        return sum(self.processor.values())


def run_pipeline(
    engine: hw.Engine, folder: Path, workload: Workload, triples: int, batches: int, sinks: Sequence[Sink] = ()
) -> PipelineRun:
    """Run one workload over a stream in a folder; without sinks a callback takes its answers."""
    (stream,) = workload.streams
    engine._batch_bytes = sum(file.stat().st_size for file in folder.iterdir()) // batches
    engine.stream(stream, hw.files(folder))
    query = engine.register(workload.text, emit="rstream")
    marks: list[tuple[float, ProcessorTime, hw.Progress]] = []
    engine.run(
        on_batch=None if sinks else lambda answers: None,
        on_progress=lambda now: marks.append((time.perf_counter(), ProcessorTime.now(), now)),
        sinks=sinks,
    )
    (begun, before, first), (ended, after, last) = marks[0], marks[-1]
    share = (last.elements - first.elements) / last.elements
    spent = {part: getattr(after, part) - getattr(before, part) for part in ("driver", "java", "workers")}
    steps = {step: last.steps[step] - first.steps.get(step, 0.0) for step in last.steps}
    rows = last.queries[query.name].rows - first.queries[query.name].rows
    shards = last.queries[query.name].shards
    return PipelineRun(
        shards,
        len(marks) - 1,
        int(triples * share),
        rows,
        ended - begun,
        spent,
        steps,
        after.workers_mb,
        last.elements - first.elements,
    )


def run_shards(name: str, counts: Sequence[int], triples: int, batches: Sequence[int]) -> list[PipelineRun]:
    """Runs with so many shards, and so many batches of the same stream each, in one Spark session on two cores."""
    found: list[PipelineRun] = []
    shape = next(iter(WORKLOADS[name].streams.values()))
    with tempfile.TemporaryDirectory(prefix="headwater-growth-") as path:
        written = write_stream(Path(path, "stream"), shape, triples, files=4)
        spark = hw.Engine(master="local[2]").session()
        spark.conf.set("spark.sql.shuffle.partitions", str(max(counts)))
        try:
            # The first pipeline of a session warms Java up.
            for shards, cut in [(counts[0], batches[0]), *((one, cut) for one in counts for cut in batches)]:
                run = run_pipeline(hw.Engine(spark, shards=shards), Path(path, "stream"), WORKLOADS[name], written, cut)
                parts = ", ".join(f"{part} {spent:.2f}" for part, spent in run.processor.items())
                progress(
                    f"shards, {name}, {run.shards}: {run.batches} batches, {run.triples:,} triples, {run.seconds:.1f} s"
                    f", processor {run.processor_seconds:.2f} s ({parts})"
                )
                found.append(run)
        finally:
            spark.stop()
    return found[1:]


def measure_shards(quick: bool) -> Axis:
    """Shards of a grouped aggregate: processor seconds for a thousand triples."""
    counts = (1, 2) if quick else (1, 2, 4, 8)
    workloads: dict[str, list[GrowthPoint]] = {}
    for run in run_shards("aggregate", counts, 200_000 if quick else 1_000_000, (6,)):
        more = {f"{part}_us_per_triple": spent / run.triples * 1e6 for part, spent in run.processor.items()}
        more["clock_triples_per_s"] = run.triples / run.seconds
        seconds = 1_000 * run.processor_seconds / run.triples
        workloads.setdefault("aggregate", []).append(GrowthPoint(run.shards, seconds, run.workers_mb, more))
    return Axis("shards", "shards", "processor time of 1,000 triples", workloads)


def measure_skew(quick: bool) -> Axis:
    """The share of one key in the stream, on eight shards: what the busiest shard takes for a slide.

    by the key      groups by the subject of the only pattern: one shard has all of a group
    spread          the same query, the triples of the large key spread evenly, or those of all keys
    in parts        groups by a variable that does not divide the triples: each shard has a part of each group
    """
    parts = (
        "SELECT ?s (AVG(?v) AS ?mean) (COUNT(*) AS ?n) {window} "
        "WHERE {{ WINDOW :w {{ ?o :by ?s . ?o :value ?v }} }} GROUP BY ?s"
    )
    large = (resources(1_000, 1)[0],)
    workloads: dict[str, list[GrowthPoint]] = {}
    for name, text, is_star, spread in (
        ("by the key", WHOLE_GROUPS, False, None),
        ("spread the large", WHOLE_GROUPS, False, large),
        ("spread all", WHOLE_GROUPS, False, ()),
        ("in parts", parts, True, None),
    ):
        for slide in (20_000,) if quick else (20_000, 200_000):
            for percent in (1, 50) if quick else (1, 10, 25, 50, 90):
                with report_point("skew", f"{name}, {slide:,} readings") as said:
                    said.append(measure_hot_key(text, percent, is_star, 8, slide, spread))
                workloads.setdefault(f"{name}, {slide:,}", []).append(said[0])
    return Axis("skew", "percent of the stream with one key", "a slide in the busiest of 8 shards", workloads)


def measure_hot_key(
    text: str, percent: int, is_star: bool, shards: int, slide: int, spread: Sequence[int] | None
) -> GrowthPoint:
    window = f"FROM NAMED WINDOW :w ON <{STREAM}> [RANGE PT5S STEP PT1S]"
    query = register(_PREFIX + text.format(window=window), "out")
    plan = plan_shards(
        [query],
        find_shard_keys(shards),
        has_static_default=False,
        spreads=spread is not None,
        large=tuple(spread or ()),
    )
    assert isinstance(plan, ShardPlan)
    programs = {key: make_program([query_of_shard(query, plan)]) for key in plan.keys}
    merger = AnswerMerger([query], plan)
    random, sensors = np.random.default_rng(9), resources(1_000, 1)
    spent: dict[int, list[float]] = {key: [] for key in plan.keys}
    merging: list[float] = []
    shares: list[float] = []
    slides, warm = 8, 6
    for second in range(warm + slides):
        chosen = np.where(random.random(slide) < percent / 100, sensors[0], random.choice(sensors, slide))
        triples = _readings(chosen, numbers()[0] + random.integers(0, 1 << 30, slide), second, is_star)
        width = 2 if is_star else 1
        columns = columns_of(triples, chosen, width, second * SECOND + 1, (second + 1) * SECOND, second * slide)
        parts: list[Answer] = []
        sizes = []
        for key, chunk in plan.split(Chunk(STREAM, elements=columns)):
            begun = time.process_time()
            assert not isinstance(chunk.elements, tuple)
            parts.extend(programs[key].advance({STREAM: chunk.elements}).answers)
            spent[key].append(time.process_time() - begun)
            sizes.append(chunk.elements.triples.shape[0])
        begun = time.process_time()
        rows = merger.merge(hw.AnswerBatch([sorted(parts, key=lambda one: one.time)])).row_count
        merging.append(time.process_time() - begun)
        shares.append(max(sizes) / sum(sizes))
    of_shard = [float(np.median(own[warm:])) for own in spent.values()]
    busiest, total = max(of_shard), sum(of_shard)
    more = {
        "largest_share": float(np.mean(shares)),
        "cores_used": total / busiest,
        "merge_ms": float(np.median(merging[warm:])) * 1e3,
        "rows": rows,
        "is_in_parts": float(bool(plan.partial_groups)),
    }
    return GrowthPoint(percent, busiest, 0.0, more)


def _readings(sensors: Ints, values: Ints, second: int, is_star: bool) -> Ints:
    count = sensors.shape[0]
    if not is_star:
        return np.column_stack((sensors, np.full(count, predicate("value")), values))
    rows = np.empty((count, 2, 3), dtype=np.int64)
    rows[:, :, 0] = ((1 << 61) + (second * count + np.arange(count)) * 7919)[:, None]
    rows[:, 0, 1], rows[:, 1, 1] = predicate("by"), predicate("value")
    rows[:, 0, 2], rows[:, 1, 2] = sensors, values
    return rows.reshape(-1, 3)
