"""What more cores would give: `python -m benchmarks.scaling_model [--triples N] [--runs FILE]`.

A batch has four steps, each of which waits for the one before. Parameters are fitted from runs of the aggregate of
`benchmarks.pipeline` on Spark with one shard and with two, in few batches and in many (`growth_shards.run_shards`):

    plan       fixed, in the driver and in Java
    read       per triple, divided among the cores; with several shards a part for the shuffle
    evaluate   per triple, divided among the shards by their share of the triples; fixed for each shard
    deliver    per row of the answers, in the driver alone

A discrete-event simulation runs batches of such tasks on cores and a driver. Processor times do not say how much of a
core the machine gave: `speed` is found from the run with one shard, and the other runs check the model.

Prints one JSON object last: `parameters` in microseconds, `speed`, `checks` (by run the measured and the simulated
triples per second), `projection` by cores: triples per second, the part of the time in each step, and the same where
executors deliver, and with a key that has half of the stream.
"""

from __future__ import annotations

import argparse
import heapq
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.growth_shards import PipelineRun, run_shards
from benchmarks.reporting import machine, print_result, progress, rounded

READ_SHARE = 0.45
"""The part of what one shard's workers do for a triple that is reading: a guess, to be measured."""
_CORES = (1, 2, 10, 100, 1000)
_TRIPLES_PER_CORE = 500_000
_SLOWEST, _FASTEST = 0.02, 4.0


@dataclass(frozen=True, slots=True)
class CostModel:
    """Seconds of one core."""

    plan: float
    """For a batch."""
    shard: float
    """For a batch and a shard, in the workers and in Java."""
    read: float
    """For a triple."""
    shuffle: float
    """For a triple where there are several shards."""
    evaluate: float
    """For a triple."""
    deliver: float
    """For a row."""
    rows: float
    """Rows for a triple."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """What the work runs on; a `largest` share of the triples goes to one shard, None: all have equally many."""

    cores: int
    shards: int
    speed: float = 1.0
    largest: float | None = None
    delivers_on_executors: bool = False


def simulate_batches(model: CostModel, cluster: Cluster, triples: int, batches: int) -> dict[str, float]:
    """Seconds of each step of some batches of so many triples."""
    spent = dict.fromkeys(("plan", "read", "evaluate", "deliver"), 0.0)
    shares = _shares(cluster)
    per_triple = model.read + (model.shuffle if cluster.shards > 1 else 0.0)
    for _ in range(batches):
        spent["plan"] += model.plan / cluster.speed
        tasks = [triples * per_triple / cluster.cores] * cluster.cores
        spent["read"] += _run_tasks(tasks, cluster)
        tasks = [model.shard + triples * share * model.evaluate for share in shares]
        spent["evaluate"] += _run_tasks(tasks, cluster)
        delivery = triples * model.rows * model.deliver
        parts = cluster.shards if cluster.delivers_on_executors else 1
        spent["deliver"] += _run_tasks([delivery / parts] * parts, cluster)
    return spent


def _shares(cluster: Cluster) -> Sequence[float]:
    if cluster.largest is None or cluster.shards == 1:
        return [1 / cluster.shards] * cluster.shards
    # The other keys are spread over all shards.
    rest = (1 - cluster.largest) / cluster.shards
    return [cluster.largest + rest, *[rest] * (cluster.shards - 1)]


def _run_tasks(tasks: Iterable[float], cluster: Cluster) -> float:
    """The seconds until the last of some tasks has ended: each begins on the core that is free first."""
    free = [0.0] * cluster.cores
    for seconds in tasks:
        begun = heapq.heappop(free)
        heapq.heappush(free, begun + seconds / cluster.speed)
    return max(free)


def throughput(model: CostModel, cluster: Cluster, triples: int, batches: int = 4) -> float:
    """Triples per second."""
    return triples * batches / sum(simulate_batches(model, cluster, triples, batches).values())


def fit_model(runs: Sequence[PipelineRun]) -> CostModel:
    """The parameters by least squares over the processor times of the parts of all runs; none is below zero."""
    batches = np.array([run.batches for run in runs], dtype=float)
    shards = np.array([run.shards for run in runs], dtype=float)
    triples = np.array([run.triples for run in runs], dtype=float)
    shuffled = triples * (shards > 1)
    rows = np.array([run.rows for run in runs], dtype=float)
    of = {part: np.array([run.processor[part] for run in runs]) for part in ("driver", "java", "workers")}
    shard_workers, triple, shuffle_workers = _least_squares((batches * shards, triples, shuffled), of["workers"])
    plan, shard_java, triple_java = _least_squares((batches, batches * shards, triples), of["java"])
    driver, deliver = _least_squares((batches, rows), of["driver"])
    return CostModel(
        plan + driver,
        shard_workers + shard_java,
        READ_SHARE * triple + triple_java,
        shuffle_workers,
        (1 - READ_SHARE) * triple,
        deliver,
        float((rows / triples).mean()),
    )


def _least_squares(columns: Sequence[np.ndarray], seconds: np.ndarray) -> list[float]:
    """Factors that are not negative: a column whose factor would be is left out."""
    kept = list(range(len(columns)))
    while True:
        table = np.column_stack([columns[place] for place in kept])
        scale = np.abs(table).max(axis=0)
        scale[scale == 0] = 1.0
        factors = np.linalg.lstsq(table / scale, seconds, rcond=None)[0] / scale
        if (factors >= 0).all() or len(kept) == 1:
            found = dict(zip(kept, factors.tolist(), strict=True))
            return [max(0.0, found.get(place, 0.0)) for place in range(len(columns))]
        kept.pop(int(np.argmin(factors * scale)))


def find_speed(model: CostModel, run: PipelineRun, cores: int) -> float:
    """How fast the cores were in one run, as a part of what processor times alone would give."""
    low, high = _SLOWEST, _FASTEST
    for _ in range(60):
        middle = (low * high) ** 0.5
        is_slower = simulated_seconds(model, run, Cluster(cores, run.shards, middle)) > run.seconds
        low, high = (middle, high) if is_slower else (low, middle)
    return float((low * high) ** 0.5)


def simulated_seconds(model: CostModel, run: PipelineRun, cluster: Cluster) -> float:
    """The seconds that the simulation takes for what was run."""
    return sum(simulate_batches(model, cluster, run.triples // run.batches, run.batches).values())


def project(model: CostModel) -> dict[str, object]:
    """What other numbers of cores would give, with as many shards, and batches that grow with them."""
    found: dict[str, object] = {}
    for cores in _CORES:
        plain = Cluster(cores, cores)
        triples = _TRIPLES_PER_CORE * cores
        spent = simulate_batches(model, plain, triples, 4)
        whole = sum(spent.values())
        found[str(cores)] = {
            "triples_per_s": rounded(throughput(model, plain, triples)),
            "parts": {step: rounded(seconds / whole) for step, seconds in spent.items()},
            "executors_deliver": rounded(throughput(model, replace(plain, delivers_on_executors=True), triples)),
            "half_in_one_key": rounded(throughput(model, replace(plain, largest=0.5), triples)),
        }
    return found


def describe_model(model: CostModel, runs: Sequence[PipelineRun], cores: int = 2) -> dict[str, object]:
    """Parameters, checks and projection."""
    ones = [run for run in runs if run.shards == 1]
    speeds = [find_speed(model, run, cores) for run in ones]
    speed = float(np.exp(np.mean(np.log(speeds))))
    checks = []
    for run in runs:
        seconds = simulated_seconds(model, run, Cluster(cores, run.shards, speed))
        measured, simulated = run.triples / run.seconds, run.triples / seconds
        progress(
            f"{run.shards} shards, {run.batches} batches: {measured:,.0f}/s measured, {simulated:,.0f}/s simulated"
        )
        checks.append(
            {
                "shards": run.shards,
                "batches": run.batches,
                "measured": rounded(measured),
                "simulated": rounded(simulated),
                "processor_s": {part: rounded(spent) for part, spent in run.processor.items()},
            }
        )
    micros = {name: rounded(value * (1 if name == "rows" else 1e6)) for name, value in asdict(model).items()}
    return {"parameters": micros, "speed": rounded(speed), "checks": checks, "projection": project(model)}


def load_runs(path: Path) -> list[PipelineRun]:
    """Runs that were measured before."""
    plain: list[Mapping[str, object]] = json.loads(path.read_text())
    return [PipelineRun(**one) for one in plain]  # type: ignore[arg-type]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scaling_model", description="What more cores would give."
    )
    parser.add_argument("--triples", type=int, default=1_000_000, help="of the stream that is run")
    parser.add_argument("--runs", type=Path, help="a file of runs: they are read where it exists, else written")
    arguments = parser.parse_args()
    facts = machine()
    if arguments.runs is not None and arguments.runs.exists():
        runs = load_runs(arguments.runs)
    else:
        runs = run_shards("aggregate", (1, 2), arguments.triples, (5, 20))
        if arguments.runs is not None:
            arguments.runs.write_text(json.dumps([asdict(run) for run in runs]))
    print_result({**describe_model(fit_model(runs), runs), "machine": facts})


if __name__ == "__main__":
    main()
