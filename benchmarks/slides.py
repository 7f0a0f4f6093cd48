"""What small slides cost: `python -m benchmarks.slides [--triples N]`.

The aggregate of `benchmarks.pipeline` (AVG and COUNT for each sensor over 60 s), in process, parsing included, with new
rows only (ISTREAM). It is evaluated every second, and every 10 ms. Prints one JSON object last:

- `triples_per_s`: by slide, the best of three turns
- `rows`: how many rows all answers have, by slide
- `cost_of_small_slides`: how many times as long a triple takes with the small slide
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import headwater as hw
from benchmarks.pipeline_data import write_stream
from benchmarks.pipeline_queries import WORKLOADS, Workload
from benchmarks.reporting import machine, print_result, progress, rounded

_TRIPLES = 2_000_000
_TURNS = 3
_SLIDES = {"1s": "PT1S", "10ms": "PT0.01S"}


def run_once(workload: Workload, paths: dict[str, Path], slide: str) -> tuple[float, int]:
    """The seconds of a run with a slide, and how many rows its answers have; `paths` has the folder of each stream."""
    engine = hw.Engine(in_process=True)
    for stream, path in paths.items():
        engine.stream(stream, hw.files(path / "*.tnq"))
    engine.register(workload.text.replace("STEP PT1S", f"STEP {slide}"), emit="istream")
    rows = 0

    def count(answers: hw.AnswerBatch) -> None:
        nonlocal rows
        rows += answers.row_count

    begun = time.perf_counter()
    engine.run(on_batch=count)
    return time.perf_counter() - begun, rows


def measure(triples: int) -> dict[str, object]:
    """The rates with each slide, in turns."""
    workload = WORKLOADS["aggregate"]
    best = dict.fromkeys(_SLIDES, float("inf"))
    rows: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="headwater-benchmark-") as folder:
        paths = {}
        for stream, shape in workload.streams.items():
            paths[stream] = Path(folder, shape.name)
            triples = write_stream(paths[stream], shape, triples)
        for _ in range(_TURNS):
            for name, slide in _SLIDES.items():
                seconds, rows[name] = run_once(workload, paths, slide)
                best[name] = min(best[name], seconds)
                progress(f"every {name}: {triples / seconds:,.0f} triples/s, {rows[name]} rows")
    return {
        "triples_per_s": {name: rounded(triples / seconds) for name, seconds in best.items()},
        "rows": rows,
        "cost_of_small_slides": rounded(best["10ms"] / best["1s"]),
        "triples": triples,
        "machine": machine(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--triples", type=int, default=_TRIPLES)
    print_result(measure(parser.parse_args().triples))


if __name__ == "__main__":
    main()
