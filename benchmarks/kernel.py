"""How fast the kernel is: `python -m benchmarks.kernel [--quick] [--plots FOLDER]`.

Indexes, joins, aggregates, latency, adaptivity and range joins, compared in the same run with re-evaluation in
pyoxigraph and in
polars. Prints one JSON object last. The full form draws its figures into docs/benchmarks; the quick one takes less than
a minute and draws only where it is told.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import (
    kernel_adaptive,
    kernel_aggregates,
    kernel_index,
    kernel_joins,
    kernel_latency,
    kernel_memory,
    kernel_range,
)
from benchmarks.kernel_sizes import FULL, QUICK, Sizes
from benchmarks.reporting import PLOTS, Findings, demand, draw, machine, print_result, progress

PARTS: dict[str, Callable[[Sizes], Findings]] = {
    "index": kernel_index.measure,
    "joins": kernel_joins.measure,
    "memory": kernel_memory.measure,
    "aggregates": kernel_aggregates.measure,
    "latency": kernel_latency.measure,
    "adaptive": kernel_adaptive.measure,
    "range": kernel_range.measure,
}


def measure(sizes: Sizes, parts: Sequence[str] = tuple(PARTS)) -> Findings:
    """What all parts found, together."""
    findings = Findings()
    for name in parts:
        begun = time.perf_counter()
        found = PARTS[name](sizes)
        findings.values |= found.values
        findings.figures += found.figures
        findings.maps += found.maps
        progress(f"{name}: {time.perf_counter() - begun:.1f} s")
    return findings


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernel", description="How fast the kernel is.")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, less than a minute")
    parser.add_argument("--plots", type=Path, help=f"where figures go; of the full form: {PLOTS.name} in docs")
    parser.add_argument("--only", choices=PARTS, nargs="+", default=list(PARTS), help="some parts alone")
    arguments = parser.parse_args()
    demand("polars", "matplotlib")
    facts = machine()
    findings = measure(QUICK if arguments.quick else FULL, arguments.only)
    folder = arguments.plots or (None if arguments.quick else PLOTS)
    if folder is not None:
        draw([*findings.figures, *findings.maps], folder)
    print_result({**findings.values, "quick": arguments.quick, "machine": facts})


if __name__ == "__main__":
    main()
