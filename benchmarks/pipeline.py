"""How much the whole pipeline takes in: `python -m benchmarks.pipeline [--triples N] [--only QUERY …]`.

Files of timed N-Quads through Spark on two cores, parsing included, in steady state: from the end of the first batch to
the end of the last. Compared in the same run with evaluation anew on pyoxigraph in the same pipeline, over a smaller
part of the same stream. Prints one JSON object last:

- `triples_per_s`: by query
- `vs_reference`: how many times as fast as evaluation anew
- `shard_speedup`: two shards over one, both on two cores: reading and parsing have both of them in any case, so it says
  how much of the work is evaluation (all but a little for `rises`, the least for `star`)
- `most_by_shards`: what it would be if shards halved all that they can share, which is what one shard does in its step:
  unpacking, evaluating and saving, measured in one more run of one shard
- `core_speedup`: two shards on two cores over one shard on one core

SRBench and LSBench have the windows of their texts here, in time and with a slide; the Operator-aware paper ran them
with count windows and a tick for each triple, which `benchmarks.eager` does.

The speed of a machine may change from minute to minute: what is compared takes turns, and the best of each counts.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import headwater as hw
from benchmarks.pipeline_data import write_stream
from benchmarks.pipeline_queries import WORKLOADS, Workload, static_data
from benchmarks.reporting import machine, print_result, progress, rounded
from headwater.running.named_evaluators import EvaluatorName

_TRIPLES = 10_000_000
_REFERENCE_SHARE = 200
_SMALLEST_REFERENCE = 14_000
_BATCHES = 6
_STEPS = ("read", "evaluate", "save")
"""What a shard does."""
_PARTED = ("star", "aggregate", "rises")
_TURNS = 2
_TURNS_OF_SHARDS = 3


class Runs:
    """Runs workloads over streams that are written once, in one Spark session."""

    def __init__(self, folder: Path, triples: int, master: str = "local[2]") -> None:
        self._folder = folder
        self._triples = triples
        self._static = static_data()
        self._spark = hw.Engine(master=master).session()

    def stop(self) -> None:
        """Another session may follow."""
        self._spark.stop()

    def rate(
        self, workload: Workload, *, shards: int | None = None, evaluator: EvaluatorName = "auto", share: int = 1
    ) -> float:
        """Triples per second in steady state."""
        return self.run(workload, shards=shards, evaluator=evaluator, share=share)[0]

    def most_by_shards(self, workload: Workload) -> float:
        """How many times as fast two shards could be as one, if they halved what one does in its step."""
        _, in_step = self.run(workload, shards=1)
        return 1 / (1 - in_step / 2)

    def run(
        self, workload: Workload, *, shards: int | None = None, evaluator: EvaluatorName = "auto", share: int = 1
    ) -> tuple[float, float]:
        """Triples per second in steady state, and which part of that time the steps of the shards took together."""
        triples = max(self._triples // max(share, workload.share), _SMALLEST_REFERENCE if share > 1 else 0)
        sizes, elements = 0, 0
        engine = hw.Engine(self._spark, shards=shards, evaluator=evaluator)
        largest = next(iter(workload.streams.values()))
        for stream, shape in workload.streams.items():
            part = triples * largest.apart // shape.apart * shape.per_element // largest.per_element
            folder = self._folder / f"{shape.name}-{part}"
            if not folder.exists():
                progress(f"writing {part} triples of {stream}")
                write_stream(folder, shape, part, files=4)
            sizes += sum(file.stat().st_size for file in folder.iterdir())
            elements += part // shape.per_element
            engine.stream(stream, hw.files(folder))
        engine._batch_bytes = max(sizes // _BATCHES, 1 << 16)
        engine.dataset(self._static)
        engine.register(workload.text, emit="rstream")
        marks: list[tuple[float, int, float]] = []
        rows = 0

        def count(answer: hw.Answer) -> None:
            nonlocal rows
            rows += len(answer.rows)

        def mark(progress: hw.Progress) -> None:
            in_steps = sum(progress.steps.get(step, 0.0) for step in _STEPS)
            marks.append((time.perf_counter(), progress.elements, in_steps))

        engine.run(on_answer=count, on_progress=mark)
        (begun, first, before), (ended, last, after) = marks[0], marks[-1]
        steady = (last - first) / elements * triples / (ended - begun)
        progress(f"  {steady:,.0f} triples/s ({len(marks)} batches, {rows} rows, {evaluator}, shards {shards})")
        return steady, (after - before) / (ended - begun)


def measure(triples: int, names: Sequence[str]) -> dict[str, object]:
    """The rates of the workloads, and what shards and the kernel add."""
    rates: dict[str, float] = {}
    against: dict[str, float] = {}
    shards: dict[str, float] = {}
    most: dict[str, float] = {}
    cores: dict[str, float] = {}
    parted = [name for name in _PARTED if name in names]
    with tempfile.TemporaryDirectory(prefix="headwater-benchmark-") as folder:
        runs = Runs(Path(folder), triples)
        for name in names:
            progress(f"{name}:")
            ours, anew = _in_turn(
                _TURNS,
                partial(runs.rate, WORKLOADS[name]),
                partial(runs.rate, WORKLOADS[name], evaluator="reference", share=_REFERENCE_SHARE),
            )
            rates[name], against[name] = ours, ours / anew
        two: dict[str, float] = {}
        for name in parted:
            ways = (partial(runs.rate, WORKLOADS[name], shards=count) for count in (2, 1))
            two[name], one = _in_turn(_TURNS_OF_SHARDS, *ways)
            shards[name] = two[name] / one
            most[name] = runs.most_by_shards(WORKLOADS[name])
        runs.stop()
        if parted:
            runs = Runs(Path(folder), triples, "local[1]")
            cores = {name: two[name] / runs.rate(WORKLOADS[name], shards=1) for name in parted}
            runs.stop()
    return {
        "triples_per_s": {name: rounded(rate) for name, rate in rates.items()},
        "vs_reference": {name: rounded(ratio) for name, ratio in against.items()},
        "shard_speedup": {name: rounded(ratio) for name, ratio in shards.items()},
        "most_by_shards": {name: rounded(ratio) for name, ratio in most.items()},
        "core_speedup": {name: rounded(ratio) for name, ratio in cores.items()},
        "triples": triples,
    }


def _in_turn(turns: int, *ways: Callable[[], float]) -> list[float]:
    """The best rate of each way, when they are tried one after the other and then again."""
    return [max(found) for found in zip(*([way() for way in ways] for _ in range(turns)), strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline", description="How fast the pipeline is.")
    parser.add_argument("--triples", type=int, default=_TRIPLES, help="how many triples each stream has")
    parser.add_argument("--only", choices=WORKLOADS, nargs="+", default=list(WORKLOADS), help="some queries alone")
    arguments = parser.parse_args()
    facts = machine()
    print_result({**measure(arguments.triples, arguments.only), "machine": facts})


if __name__ == "__main__":
    main()
