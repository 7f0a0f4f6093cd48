"""How accurate and how fast SERVICE is: `python -m benchmarks.service [--quick] [--plots FOLDER]`.

Replays the paper's experiments (tables 1 and 2, figures 3 and 4) on the recorded accounts and on synthetic
backgrounds, through the product's own maintainer on a virtual clock, and compares all policies in the same run. Then
the strategies are compared on a real endpoint (`service_endpoint`). Prints one JSON object last. The full form, 20
seeds, writes its tables and figures into docs/benchmarks; the quick one has one seed.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from benchmarks import service_accuracy, service_endpoint, service_latency, service_tables
from benchmarks.reporting import PLOTS, demand, draw, machine, print_result, progress

FULL_SEEDS, QUICK_SEEDS = 20, 1


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.service", description="How accurate SERVICE is.")
    parser.add_argument("--quick", action="store_true", help="one seed, about half a minute")
    parser.add_argument("--seeds", type=int, help=f"how many seeds; {FULL_SEEDS} in the full form")
    parser.add_argument(
        "--plots", type=Path, help=f"where tables and figures go; of the full form: {PLOTS.name} in docs"
    )
    arguments = parser.parse_args()
    demand("matplotlib")
    facts = machine()
    begun = time.perf_counter()
    seeds = arguments.seeds or (QUICK_SEEDS if arguments.quick else FULL_SEEDS)
    runs = service_accuracy.run_all(seeds)
    latency = service_latency.measure(seeds)
    endpoint = service_endpoint.measure(arguments.quick)
    folder = arguments.plots or (None if arguments.quick else PLOTS)
    if folder is not None:
        draw([*service_accuracy.figures(runs), *latency.figures], folder)
        (folder / "service.md").write_text(service_tables.tables(runs), "utf-8")
    progress(f"{time.perf_counter() - begun:.0f} s")
    print_result(
        {**service_accuracy.values(runs), **latency.values, **endpoint, "quick": arguments.quick, "machine": facts}
    )


if __name__ == "__main__":
    main()
