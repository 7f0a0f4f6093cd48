"""What `benchmarks.growth` finds on an axis: points with time and memory, and the exponents of their growth.

A cost that is proportional to `size ** e` is a straight line in a log-log plot, whose slope is `e`: 0 where the cost
does not depend on the size, 1 where it is proportional. The slope is that of least squares over all points.
"""

from __future__ import annotations

import gc
import os
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import ParamSpec, TypeVar

import numpy as np

from benchmarks.reporting import Figure, Points, progress, rounded

Arguments = ParamSpec("Arguments")
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class GrowthPoint:
    """The cost at one size: processor seconds, and the megabytes by which the process grew; what else is known."""

    size: float
    seconds: float
    memory_mb: float
    more: dict[str, float] = field(default_factory=dict)

    def to_plain(self) -> dict[str, float]:
        """What the result says of the point."""
        known = {"size": self.size, "ms": self.seconds * 1e3, "memory_mb": self.memory_mb, **self.more}
        return {name: rounded(value) for name, value in known.items()}


@dataclass(frozen=True, slots=True)
class Axis:
    """How a cost grows with one size, for one or more workloads; `limit` is what the exponent of time may be."""

    name: str
    size: str
    cost: str
    workloads: dict[str, list[GrowthPoint]]
    limit: float | None = None

    @property
    def exponents(self) -> dict[str, float]:
        """The exponents of time, by workload."""
        return {name: fit_exponent([(p.size, p.seconds) for p in own]) for name, own in self.workloads.items()}

    @property
    def memory_exponents(self) -> dict[str, float]:
        """The exponents of memory, by workload."""
        return {name: fit_exponent([(p.size, p.memory_mb) for p in own]) for name, own in self.workloads.items()}

    def to_plain(self) -> dict[str, object]:
        """The axis in the result."""
        worst = max(self.exponents.values())
        limits = {} if self.limit is None else {"limit": self.limit, "is_within": worst <= self.limit}
        return {
            "size": self.size,
            "cost": self.cost,
            "exponent": rounded(worst),
            **limits,
            "exponents": {name: rounded(value) for name, value in self.exponents.items()},
            "memory_exponents": {name: rounded(value) for name, value in self.memory_exponents.items()},
            "points": {name: [point.to_plain() for point in own] for name, own in self.workloads.items()},
        }

    @property
    def figure(self) -> Figure:
        """Time and memory over the size, both in powers of ten."""
        lines: dict[str, Points] = {}
        for name, own in self.workloads.items():
            slope = round(self.exponents[name], 2) + 0.0  # Never -0.00.
            lines[f"{name}: ms, exponent {slope:.2f}"] = [(p.size, p.seconds * 1e3) for p in own]
            lines[f"{name}: MB"] = [(p.size, p.memory_mb) for p in own if p.memory_mb > 0]
        return Figure(f"growth-{self.name}", self.cost, self.size, "milliseconds, megabytes", lines)


def fit_exponent(points: Sequence[tuple[float, float]]) -> float:
    """The slope of cost over size in a log-log plot, by least squares; 0 where there are fewer than two sizes."""
    known = np.array([(size, cost) for size, cost in points if size > 0 and cost > 0])
    if len({size for size, _ in known.tolist()}) < 2:
        return 0.0
    sizes, costs = np.log(known).T
    away = sizes - sizes.mean()
    return float(away @ costs / (away @ away))


def in_new_process(run: Callable[Arguments, Found], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Found:
    """The result of a call in a process of its own, whose memory nothing else has touched."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(run, *args, **kwargs).result()


@contextmanager
def report_point(axis: str, workload: str) -> Iterator[list[GrowthPoint]]:
    """Say how a point came out that the body puts into the list."""
    found: list[GrowthPoint] = []
    begun = time.perf_counter()
    yield found
    for point in found:
        more = "".join(f", {name} {value:,.4g}" for name, value in point.more.items())
        progress(
            f"{axis}, {workload}, {point.size:,.0f}: {point.seconds * 1e3:,.3f} ms, {point.memory_mb:,.1f} MB{more}"
            f" ({time.perf_counter() - begun:.0f} s)"
        )


def resident_mb() -> float:
    """The resident memory of this process in megabytes."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def peak_mb() -> float:
    """The most resident memory that this process had, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
