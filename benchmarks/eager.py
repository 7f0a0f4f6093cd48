"""An answer at every element, as the Operator-aware paper measured table 1: `python -m benchmarks.eager [--triples N]`.

SRBench and LSBench with count windows, evaluated eagerly (section 5.3): a tick for each triple. Files of timed N-Quads
are read, parsed and evaluated; every answer is counted with its rows. Rates are steady: from the end of the first batch
to the end of the last. Prints one JSON object last; each figure by way (`in_process`, `spark`) and query:

- `triples_per_s`
- `vs_paper`: how many times as fast as CQELS in table 1
- `vs_before`: how many times as fast as with one tick in each step, over a part of the same stream, in process
- `windows`: the sizes of the count windows, in triples; `large_windows`: in process, `triples_per_s` with 15,000

The better of two turns counts, because the speed of a machine may change from minute to minute.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import headwater as hw
from benchmarks.eager_queries import QUERIES, EagerQuery, static_data, write_triples
from benchmarks.reporting import machine, print_result, progress, rounded
from headwater.kernel.kernel_evaluator import KernelEvaluator

_TRIPLES = 1_000_000
_BEFORE_TRIPLES = 20_000
_SPARK_BATCHES = 4
_BATCH_BYTES = 2 << 20
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


class EagerRuns:
    """Runs queries over streams that are written once."""

    def __init__(self, folder: Path, triples: int) -> None:
        self._folder = folder
        self._triples = triples
        self._static = static_data()

    def rate(
        self, query: EagerQuery, engine: hw.Engine, *, triples: int | None = None, window: int | None = None
    ) -> tuple[float, int]:
        """Triples per second in steady state, and how many rows all answers had."""
        total, size = triples or self._triples, 0
        for place, (stream, shape) in enumerate(query.streams.items()):
            part = total // len(query.streams)
            path = self._folder / f"{shape.name}-{part}.tnq"
            if not path.exists():
                write_triples(path, shape.statements, part, place)
            size += path.stat().st_size
            engine.stream(stream, hw.files(path))
        engine._batch_bytes = _BATCH_BYTES if engine._in_process else size // _SPARK_BATCHES
        engine.dataset(self._static)
        engine.register(query.text(window))
        marks: list[tuple[float, int]] = []
        rows = 0

        def count(answers: hw.AnswerBatch) -> None:
            nonlocal rows
            rows += answers.row_count

        def mark(counts: hw.Progress) -> None:
            marks.append((time.perf_counter(), counts.elements))

        engine.run(on_batch=count, on_progress=mark)
        # The first elements are read with the first batch; an element is a triple.
        first = next(place for place, (_, elements) in enumerate(marks) if elements)
        (begun, before), (ended, after) = marks[first], marks[-1]
        return (after - before) / (ended - begun), rows


def measure(triples: int, names: Sequence[str], *, spark: bool) -> dict[str, object]:
    """The rates of the queries, in process and on Spark."""
    rates: dict[str, dict[str, float]] = {"in_process": {}, "spark": {}}
    before: dict[str, float] = {}
    large: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="headwater-benchmark-") as folder:
        runs = EagerRuns(Path(folder), triples)
        for name in names:
            query = QUERIES[name]
            turns = [runs.rate(query, hw.Engine(in_process=True)) for _ in range(_TURNS)]
            rates["in_process"][name], rows = max(turns)
            _, in_runs = runs.rate(query, hw.Engine(in_process=True), triples=_BEFORE_TRIPLES)
            with one_tick_in_each_step():
                before[name], one_by_one = runs.rate(query, hw.Engine(in_process=True), triples=_BEFORE_TRIPLES)
            if in_runs != one_by_one:
                raise AssertionError(f"{name}: {in_runs} rows in runs, {one_by_one} tick by tick")
            if query.window != _LARGE_WINDOW:
                large[name], _ = runs.rate(query, hw.Engine(in_process=True), window=_LARGE_WINDOW)
            progress(f"{name}: {rates['in_process'][name]:,.0f} triples/s, {rows} rows; before {before[name]:,.0f}")
        if spark:
            session = hw.Engine().session()
            for name in names:
                turns = [runs.rate(QUERIES[name], hw.Engine(session)) for _ in range(_TURNS)]
                rates["spark"][name], rows = max(turns)
                progress(f"{name} on Spark: {rates['spark'][name]:,.0f} triples/s, {rows} rows")
            session.stop()
    return {
        "triples_per_s": {way: {name: rounded(rate) for name, rate in own.items()} for way, own in rates.items()},
        "vs_paper": {
            way: {name: rounded(rate / QUERIES[name].paper) for name, rate in own.items()} for way, own in rates.items()
        },
        "vs_before": {"in_process": {name: rounded(rate / before[name]) for name, rate in rates["in_process"].items()}},
        "windows": {name: QUERIES[name].window for name in names},
        "large_windows": {name: rounded(rate) for name, rate in large.items()},
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
