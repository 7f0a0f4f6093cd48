"""An answer at every element, as in tables 1 and 2 of the Operator-aware paper: `python -m benchmarks.eager`.

SRBench and LSBench with count windows, evaluated eagerly (section 5.3): a tick for each triple. Files of timed N-Quads
are read, parsed and evaluated; every answer is counted with its rows. Rates are steady: from the end of the first batch
to the end of the last. Prints one JSON object last; each figure by way (`in_process`, `spark`) and query:

- `triples_per_s`
- `vs_paper`: how many times as fast as CQELS in table 1
- `vs_before`: how many times as fast as with one tick in each step, over a part of the same stream, in process
- `windows`: the sizes of the count windows, in triples; `large_windows`: in process, `triples_per_s` with 15,000

The memory of each query, in process (table 2):

- `memory_mb`: the most that its windows and the state of its operators had, at the end of a batch
- `allocated_mb`: the most that Python and numpy held at the end of a batch, over a part of the stream. The state is in
  it, and the texts of terms and the static data; the program and pyoxigraph's store are not. While a batch is read, its
  buffers are about 30 MB more, whatever the query
- `memory_vs_paper`: how many times less `allocated_mb` is than CQELS has in table 2

The better of two turns counts, because the speed of a machine may change from minute to minute.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import headwater as hw
from benchmarks.eager_queries import QUERIES, EagerQuery, static_data, write_triples
from benchmarks.reporting import machine, print_result, progress, rounded
from headwater.kernel.kernel_evaluator import KernelEvaluator

_TRIPLES = 1_000_000
_BEFORE_TRIPLES = 20_000
_TRACED_TRIPLES = 200_000
_SPARK_BATCHES = 4
_BATCH_BYTES = 2 << 20
_FEWEST_BATCHES = 8
"""A short stream has smaller batches in process, since the first one is not counted."""
_LARGE_WINDOW = 15_000
_TURNS = 2


@contextmanager
def one_tick_in_each_step() -> Iterator[None]:
    """The kernel takes ticks one by one."""
    takes_runs, KernelEvaluator._takes_runs = KernelEvaluator._takes_runs, False
    try:
        yield
    finally:
        KernelEvaluator._takes_runs = takes_runs


class EagerRun(NamedTuple):
    """Triples per second in steady state, how many rows all answers had, and the most memory at the end of a batch.

    `allocated_bytes` is 0 unless allocations are traced.
    """

    rate: float
    rows: int
    state_bytes: int
    allocated_bytes: int


class EagerRuns:
    """Runs queries over streams that are written once."""

    def __init__(self, folder: Path, triples: int) -> None:
        self._folder = folder
        self._triples = triples
        self._static = static_data()

    def run(
        self, query: EagerQuery, engine: hw.Engine, *, triples: int | None = None, window: int | None = None
    ) -> EagerRun:
        """Run a query over a stream of so many triples."""
        total, size = triples or self._triples, 0
        for place, (stream, shape) in enumerate(query.streams.items()):
            part = total // len(query.streams)
            path = self._folder / f"{shape.name}-{part}.tnq"
            if not path.exists():
                write_triples(path, shape.statements, part, place)
            size += path.stat().st_size
            engine.stream(stream, hw.files(path))
        in_process = min(_BATCH_BYTES, size // _FEWEST_BATCHES)
        engine._batch_bytes = in_process if engine._in_process else size // _SPARK_BATCHES
        engine.dataset(self._static)
        engine.register(query.text(window))
        marks: list[tuple[float, int]] = []
        rows = state_bytes = allocated_bytes = 0

        def count(answers: hw.AnswerBatch) -> None:
            nonlocal rows
            rows += answers.row_count

        def mark(counts: hw.Progress) -> None:
            nonlocal state_bytes, allocated_bytes
            marks.append((time.perf_counter(), counts.elements))
            state_bytes = max(state_bytes, *(one.state_bytes or 0 for one in counts.queries.values()))
            allocated_bytes = max(allocated_bytes, tracemalloc.get_traced_memory()[0])

        engine.run(on_batch=count, on_progress=mark)
        # The first elements are read with the first batch; an element is a triple.
        first = next(place for place, (_, elements) in enumerate(marks) if elements)
        (begun, before), (ended, after) = marks[first], marks[-1]
        return EagerRun((after - before) / (ended - begun), rows, state_bytes, allocated_bytes)

    def allocated_bytes(self, query: EagerQuery) -> int:
        """The most that Python and numpy hold at the end of a batch while a query runs over a part of the stream."""
        gc.collect()
        tracemalloc.start()
        try:
            triples = min(self._triples, _TRACED_TRIPLES)
            return self.run(query, hw.Engine(in_process=True), triples=triples).allocated_bytes
        finally:
            tracemalloc.stop()


def measure(triples: int, names: Sequence[str], *, spark: bool) -> dict[str, object]:
    """The rates of the queries, in process and on Spark."""
    rates: dict[str, dict[str, float]] = {"in_process": {}, "spark": {}}
    before: dict[str, float] = {}
    large: dict[str, float] = {}
    memory: dict[str, int] = {}
    allocated: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="headwater-benchmark-") as folder:
        runs = EagerRuns(Path(folder), triples)
        part = min(triples, _BEFORE_TRIPLES)
        for name in names:
            query = QUERIES[name]
            best = max(runs.run(query, hw.Engine(in_process=True)) for _ in range(_TURNS))
            rates["in_process"][name], rows, memory[name], _ = best
            in_runs = runs.run(query, hw.Engine(in_process=True), triples=part).rows
            with one_tick_in_each_step():
                alone = runs.run(query, hw.Engine(in_process=True), triples=part)
            before[name], one_by_one = alone.rate, alone.rows
            if in_runs != one_by_one:
                raise AssertionError(f"{name}: {in_runs} rows in runs, {one_by_one} tick by tick")
            if query.window != _LARGE_WINDOW:
                large[name] = runs.run(query, hw.Engine(in_process=True), window=_LARGE_WINDOW).rate
            allocated[name] = runs.allocated_bytes(query)
            progress(f"{name}: {rates['in_process'][name]:,.0f} triples/s, {rows} rows; before {before[name]:,.0f}")
        if spark:
            session = hw.Engine().session()
            for name in names:
                best = max(runs.run(QUERIES[name], hw.Engine(session)) for _ in range(_TURNS))
                rates["spark"][name] = best.rate
                progress(f"{name} on Spark: {best.rate:,.0f} triples/s, {best.rows} rows")
            session.stop()
    return {
        "triples_per_s": {way: {name: rounded(rate) for name, rate in own.items()} for way, own in rates.items()},
        "vs_paper": {
            way: {name: rounded(rate / QUERIES[name].paper) for name, rate in own.items()} for way, own in rates.items()
        },
        "vs_before": {"in_process": {name: rounded(rate / before[name]) for name, rate in rates["in_process"].items()}},
        "windows": {name: QUERIES[name].window for name in names},
        "large_windows": {name: rounded(rate) for name, rate in large.items()},
        "memory_mb": {name: rounded(size / 1e6) for name, size in memory.items()},
        "allocated_mb": {name: rounded(size / 1e6) for name, size in allocated.items()},
        "memory_vs_paper": {name: rounded(QUERIES[name].paper_mb / (size / 1e6)) for name, size in allocated.items()},
        "triples": triples,
        "machine": machine(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--triples", type=int, default=_TRIPLES)
    parser.add_argument("--only", nargs="+", choices=list(QUERIES), default=list(QUERIES))
    parser.add_argument("--no-spark", action="store_true", help="in process only")
    arguments = parser.parse_args()
    print_result(measure(arguments.triples, arguments.only, spark=not arguments.no_spark))


if __name__ == "__main__":
    main()
