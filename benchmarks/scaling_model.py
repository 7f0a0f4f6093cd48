"""What more cores would give: `python -m benchmarks.scaling_model [--triples N] [--rounds N] [--runs FILE]`.

A batch has four steps, each of which waits for the one before. The parameters are fitted by least squares from the
processor times of driver, Java and workers in the runs of `scaling_runs`:

    plan       fixed, in the driver and in Java; and for each shard what the driver gathers of it
    read       per triple, with a part for the shuffle where there are several shards; divided among the cores
    evaluate   per triple, divided among the shards; fixed for each shard; and per element of all shards, because every
               shard gets every element with its time
    deliver    per row, in the driver; or in the evaluation, where workers write

A discrete-event simulation runs batches of such tasks on cores and a driver. Processor times do not say how much of a
core the machine gave: `speed` is found from the runs with one shard, and those with two check the model.

Prints one JSON object last: `parameters` in microseconds; `residuals`, how far the fitted processor times are from the
measured ones; `checks`, by run the measured and the simulated triples per second; `projection`, by workload and cores.
"""

from __future__ import annotations

import argparse
import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.growth_shards import PipelineRun
from benchmarks.reporting import machine, print_result, progress, rounded
from benchmarks.scaling_runs import ScalingRuns, measure_runs

_CORES = (1, 2, 10, 100, 1000)
_TRIPLES_PER_CORE = 500_000
_GROUPS = 1_000
_SLOWEST, _FASTEST = 0.02, 4.0
PARTS = ("driver", "java", "workers")


@dataclass(frozen=True, slots=True)
class WorkloadCost:
    """What is particular to a workload: seconds of a core for a triple, and how much a triple leads to."""

    read: float
    evaluate: float
    rows: float
    """Rows for a triple."""
    elements: float
    """Elements for a triple."""


@dataclass(frozen=True, slots=True)
class CostModel:
    """Seconds of one core."""

    plan: float
    """For a batch."""
    gather: float
    """For a batch and a shard, in the driver."""
    shard: float
    """For a batch and a shard, in the workers and in Java."""
    shuffle: float
    """For a triple where there are several shards."""
    element: float
    """For an element and each shard beyond the first."""
    deliver: float
    """For a row that the driver writes."""
    write: float
    """For a row that a worker writes."""
    merge: float
    """For a group that the driver merges from the parts of shards."""
    workloads: Mapping[str, WorkloadCost]


@dataclass(frozen=True, slots=True)
class Cluster:
    """What the work runs on; a `largest` share of the triples goes to one shard, None: all have equally many."""

    cores: int
    shards: int
    speed: float = 1.0
    largest: float | None = None
    workers_write: bool = False
    merged_groups: int = 0


def simulate_batches(model: CostModel, workload: str, cluster: Cluster, triples: int, batches: int) -> dict[str, float]:
    """Seconds of each step of some batches of so many triples."""
    cost = model.workloads[workload]
    spent = dict.fromkeys(("plan", "read", "evaluate", "deliver"), 0.0)
    is_cut = cluster.shards > 1
    per_triple = cost.read + model.shuffle * is_cut
    rows = triples * cost.rows
    clocks = triples * cost.elements * model.element * is_cut * (cluster.shards - 1) / cluster.shards
    own = cost.evaluate + cost.rows * model.write * cluster.workers_write
    for _ in range(batches):
        spent["plan"] += (model.plan + model.gather * cluster.shards) / cluster.speed
        spent["read"] += _run_tasks([triples * per_triple / cluster.cores] * cluster.cores, cluster)
        spent["evaluate"] += _run_tasks(
            (model.shard + clocks + triples * one * own for one in _shares(cluster)), cluster
        )
        delivery = cluster.merged_groups * model.merge + rows * model.deliver * (not cluster.workers_write)
        spent["deliver"] += delivery / cluster.speed
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


def throughput(model: CostModel, workload: str, cluster: Cluster, triples: int, batches: int = 4) -> float:
    """Triples per second."""
    return triples * batches / sum(simulate_batches(model, workload, cluster, triples, batches).values())


class RunTable:
    """The runs as columns: what the cost of each part of the pipeline is proportional to."""

    def __init__(self, measured: ScalingRuns) -> None:
        runs = measured.runs
        self.names = list(dict.fromkeys(run.workload for run in runs))
        batches, shards, triples, rows, elements = np.array(
            [(run.batches, run.shards, run.triples, run.rows, run.elements) for run in runs], dtype=float
        ).T
        by_workers = np.array([run.is_written_by_workers for run in runs])
        # Answers that a callback takes as columns cost no text.
        by_driver = np.array([run.workload != "aggregate" and not run.is_written_by_workers for run in runs])
        self.is_of = {name: np.array([run.workload == name for run in runs]) for name in self.names}
        self.reading = sum(self.is_of[name] * triples * measured.reading[name] for name in self.names)
        cut = {"shuffle": triples * (shards > 1), "element": elements * (shards - 1)}
        self.columns: dict[str, dict[str, np.ndarray]] = {
            "driver": {"plan": batches, "gather": batches * shards, "deliver": rows * by_driver},
            "java": {"plan": batches, "shard": batches * shards, "read": triples, **cut, "deliver": rows * by_driver},
            "workers": {
                "shard": batches * shards,
                **{f"evaluate {name}": triples * self.is_of[name] for name in self.names},
                **cut,
                "write": rows * by_workers,
            },
        }
        self.seconds = {part: np.array([run.processor[part] for run in runs]) for part in PARTS}
        self.factors = {part: self._fit(part) for part in PARTS}

    def _fit(self, part: str) -> dict[str, float]:
        known = self.reading if part == "workers" else 0.0
        columns = self.columns[part]
        return dict(zip(columns, _least_squares(list(columns.values()), self.seconds[part] - known), strict=True))

    def fitted(self, part: str) -> np.ndarray:
        """The seconds of a part in each run, by the fitted factors."""
        known = self.reading if part == "workers" else 0.0
        found = np.zeros(self.seconds[part].shape[0]) + known
        for name, column in self.columns[part].items():
            found += self.factors[part][name] * column
        return found

    def sum_of(self, name: str) -> float:
        """A factor that several parts have, of all of them."""
        return sum(self.factors[part].get(name, 0.0) for part in PARTS)

    def residuals(self) -> dict[str, float]:
        """The root of the mean square of what is left, as a part of the mean; by part, and of all parts together."""
        left = {part: self.fitted(part) - self.seconds[part] for part in PARTS}
        whole = {"all": (sum(left.values()), sum(self.seconds.values()))}
        whole |= {part: (left[part], self.seconds[part]) for part in PARTS}
        return {name: float(np.sqrt(np.mean(one**2)) / np.mean(of)) for name, (one, of) in whole.items()}


def fit_model(measured: ScalingRuns) -> tuple[CostModel, RunTable]:
    """The parameters by least squares, none of them below zero, and what they were fitted to."""
    table = RunTable(measured)
    workloads: dict[str, WorkloadCost] = {}
    for name in table.names:
        runs = [run for run in measured.runs if run.workload == name]
        rows = float(np.mean([run.rows / run.triples for run in runs]))
        elements = float(np.mean([run.elements / run.triples for run in runs]))
        read = measured.reading[name] + table.factors["java"]["read"]
        workloads[name] = WorkloadCost(read, table.factors["workers"][f"evaluate {name}"], rows, elements)
    shared = {
        name: table.sum_of(name) for name in ("plan", "gather", "shard", "shuffle", "element", "deliver", "write")
    }
    return CostModel(**shared, merge=measured.merging, workloads=workloads), table


def _least_squares(columns: Sequence[np.ndarray], seconds: np.ndarray) -> list[float]:
    """Factors that are not negative: a column whose factor would be is left out."""
    kept = [place for place, column in enumerate(columns) if column.any()]
    while True:
        table = np.column_stack([columns[place] for place in kept])
        scale = np.abs(table).max(axis=0)
        factors = np.linalg.lstsq(table / scale, seconds, rcond=None)[0] / scale
        if (factors >= 0).all() or len(kept) == 1:
            found = dict(zip(kept, factors.tolist(), strict=True))
            return [max(0.0, found.get(place, 0.0)) for place in range(len(columns))]
        kept.pop(int(np.argmin(factors * scale)))


def find_speed(model: CostModel, runs: Sequence[PipelineRun], cores: int) -> float:
    """How fast the cores were in some runs, as a part of what processor times alone would give."""
    low, high = _SLOWEST, _FASTEST
    measured = sum(run.seconds for run in runs)
    for _ in range(60):
        middle = (low * high) ** 0.5
        is_slower = sum(simulated_seconds(model, run, cores, middle) for run in runs) > measured
        low, high = (middle, high) if is_slower else (low, middle)
    return float((low * high) ** 0.5)


def simulated_seconds(model: CostModel, run: PipelineRun, cores: int, speed: float) -> float:
    """The seconds that the simulation takes for what was run."""
    cluster = Cluster(cores, run.shards, speed, workers_write=run.is_written_by_workers)
    # A callback that takes columns has no delivery.
    silent = model if run.workload != "aggregate" else replace(model, deliver=0.0)
    return sum(simulate_batches(silent, run.workload, cluster, run.triples // run.batches, run.batches).values())


def project(model: CostModel, workload: str) -> dict[str, object]:
    """What other numbers of cores would give, with as many shards, and batches that grow with them."""
    found: dict[str, object] = {}
    for cores in _CORES:
        plain = Cluster(cores, cores)
        triples = _TRIPLES_PER_CORE * cores
        ways = {
            "driver_writes": plain,
            "workers_write": replace(plain, workers_write=True),
            "half_in_one_key": replace(plain, workers_write=True, largest=0.5),
            "half_spread": replace(plain, workers_write=True, merged_groups=_GROUPS),
        }
        found[str(cores)] = {name: _describe(model, workload, cluster, triples) for name, cluster in ways.items()}
    return found


def _describe(model: CostModel, workload: str, cluster: Cluster, triples: int) -> dict[str, object]:
    """Throughput, the part of the time in each step, and in the clocks of all elements."""
    spent = simulate_batches(model, workload, cluster, triples, 4)
    whole = sum(spent.values())
    silent = simulate_batches(replace(model, element=0.0), workload, cluster, triples, 4)
    parts = {step: round(seconds / whole, 3) for step, seconds in spent.items()}
    parts["clocks"] = round((spent["evaluate"] - silent["evaluate"]) / whole, 3)
    return {"triples_per_s": rounded(triples * 4 / whole), "parts": parts}


def describe_model(measured: ScalingRuns, cores: int = 2) -> dict[str, object]:
    """Parameters, residuals, checks and projection."""
    model, table = fit_model(measured)
    speed = find_speed(model, [run for run in measured.runs if run.shards == 1], cores)
    checks: dict[str, dict[str, float]] = {}
    for shards, batches, workload, by_workers in dict.fromkeys(map(_kind_of, measured.runs)):
        runs = [run for run in measured.runs if _kind_of(run) == (shards, batches, workload, by_workers)]
        seconds = sum(simulated_seconds(model, run, cores, speed) for run in runs)
        triples, taken = sum(run.triples for run in runs), sum(run.seconds for run in runs)
        name = f"{workload}, {shards} shards, {batches} batches{', workers write' * by_workers}"
        progress(f"{name}: {triples / taken:,.0f}/s measured, {triples / seconds:,.0f}/s simulated")
        error = taken / seconds - 1
        found = {"measured": triples / taken, "simulated": triples / seconds, "error": error}
        checks[name] = {key: rounded(value) for key, value in found.items()}
    plain = asdict(model)
    workloads = plain.pop("workloads")
    parameters: dict[str, object] = {name: rounded(value * 1e6) for name, value in plain.items()}
    for name, one in workloads.items():
        parameters[name] = {
            key: rounded(value * (1e6 if key in ("read", "evaluate") else 1)) for key, value in one.items()
        }
    return {
        "parameters": parameters,
        "residuals": {name: rounded(value) for name, value in table.residuals().items()},
        "speed": rounded(speed),
        "checks": checks,
        "projection": {workload: project(model, workload) for workload in model.workloads},
    }


def _kind_of(run: PipelineRun) -> tuple[int, int, str, bool]:
    return run.shards, run.batches, run.workload, run.is_written_by_workers


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scaling_model", description="What more cores would give."
    )
    parser.add_argument("--triples", type=int, default=1_000_000, help="of each stream that is run")
    parser.add_argument("--rounds", type=int, default=3, help="how often each run is made, in turns")
    parser.add_argument("--runs", type=Path, help="a file of runs: they are read where it exists, else written")
    arguments = parser.parse_args()
    facts = machine()
    if arguments.runs is not None and arguments.runs.exists():
        measured = ScalingRuns.load(arguments.runs)
    else:
        measured = measure_runs(arguments.triples, arguments.rounds)
        if arguments.runs is not None:
            measured.save(arguments.runs)
    print_result({**describe_model(measured), "machine": facts})


if __name__ == "__main__":
    main()
