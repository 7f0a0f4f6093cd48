"""How cost grows: `python -m benchmarks.growth [--only AXIS] [--quick] [--large] [--plots FOLDER]`.

Each axis makes one size larger and leaves the others as they are. Its exponent is the slope of the cost in a log-log
plot (`growth_points`): 0 where the cost does not depend on the size, 1 where it is proportional to it. Costs are
processor seconds, which other work on the machine changes less than the time on the clock; memory is measured beside.

    window      what a window holds, 10^3 to 10^7 triples, at a slide of 1,000: the cost of a slide
    slide       what a slide brings, the window has ten of them
    keys        groups of an aggregate
    patterns    triple patterns of a query, of each of which equally many triples come
    queries     queries of different shapes
    streams     streams that are read, of all of which together equally many triples come
    static      static triples in a data set on disk, which is loaded from a generator through a pipe: up to 10^7, and
                with --large up to 10^8
    shards      shards on Spark: processor seconds for a triple, of driver, Java and workers
    skew        the share of one key in the stream

Prints one JSON object last: by axis the points, the fitted exponents, and whether they are within their limits.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from benchmarks.growth_points import Axis
from benchmarks.growth_queries import measure_queries, measure_streams
from benchmarks.growth_shards import measure_shards, measure_skew
from benchmarks.growth_static import measure_large_static, measure_static
from benchmarks.growth_windows import measure_keys, measure_patterns, measure_slide, measure_window
from benchmarks.reporting import PLOTS, demand, draw, machine, print_result, progress

AXES: dict[str, Callable[[bool], Axis]] = {
    "window": measure_window,
    "slide": measure_slide,
    "keys": measure_keys,
    "patterns": measure_patterns,
    "queries": measure_queries,
    "streams": measure_streams,
    "static": measure_static,
    "shards": measure_shards,
    "skew": measure_skew,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description="How cost grows.")
    parser.add_argument("--only", action="append", choices=tuple(AXES), help="one axis; may be repeated")
    parser.add_argument("--quick", action="store_true", help="fewer and smaller sizes")
    parser.add_argument("--large", action="store_true", help="ten times as many static triples: 10^8, minutes to load")
    parser.add_argument("--plots", type=Path, help=f"where the figures go; of the full form: {PLOTS.name} in docs")
    arguments = parser.parse_args()
    demand("matplotlib")
    facts = machine()
    folder = arguments.plots or (None if arguments.quick else PLOTS)
    result: dict[str, object] = {}
    for name in arguments.only or AXES:
        measure = measure_large_static if name == "static" and arguments.large else AXES[name]
        axis = measure(arguments.quick)
        result[name] = axis.to_plain()
        progress(f"{name}: " + ", ".join(f"{one} {slope:.2f}" for one, slope in axis.exponents.items()))
        if folder is not None:
            draw([axis.figure], folder)
    print_result({**result, "quick": arguments.quick, "machine": facts})


if __name__ == "__main__":
    main()
