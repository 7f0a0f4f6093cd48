"""What is measured by `parallel_queries`, and how often: instances of the CQELS queries, and how big a run is."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.kernel_conference import QUERIES
from benchmarks.reporting import Points
from headwater.algebra.build import plan_query
from headwater.execution.registered import RegisteredQuery
from headwater.language.parser import parse
from headwater.windows.settings import resolve_settings

INSTANTIATED = ("Q1", "Q3", "Q4")
PAPER = (1024.0, 1.0)
"""What figure 5 of the paper shows for CQELS at the right end, in seconds."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many queries, and how many elements are measured once the windows are full.

    `in_pipeline` are the numbers of queries on Spark; a batch there has `batch_elements`, enough to fill all windows.
    `remembered` is the number of instances of each query when the memory of a pipeline is measured.
    """

    instances: tuple[int, ...] = tuple(1 << m for m in range(11))
    separate: tuple[int, ...] = (1, 4, 16)
    elements: int = 400
    static_triples: int = 100_000
    in_pipeline: tuple[int, ...] = (1, 4, 16, 64, 256, 1024)
    batch_elements: int = 1600
    batches: int = 4
    remembered: int = 1024


FULL = Sizes()
QUICK = Sizes(
    instances=(1, 32, 1024),
    separate=(1, 4),
    elements=150,
    static_triples=20_000,
    in_pipeline=(1, 32, 1024),
    batches=3,
    remembered=512,
)


def texts(name: str, count: int) -> Iterator[tuple[str, str]]:
    """So many queries that differ in the author's name, each with a name of its own."""
    for number in range(count):
        yield f"{name}-{number}", QUERIES[name].replace('"Author 0"', f'"Author {number}"')


def instances(name: str, count: int) -> Iterator[RegisteredQuery]:
    """The same, registered."""
    for called, text in texts(name, count):
        plan = plan_query(parse(text), name=called)
        yield RegisteredQuery(plan, resolve_settings(plan))


def points(by_count: Mapping[str, float]) -> Points:
    return [(float(count), taken) for count, taken in by_count.items()]


def worst(by_query: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    counts = next(iter(by_query.values()))
    return {count: max(taken[count] for taken in by_query.values()) for count in counts}


def resident() -> float:
    """The resident memory of this process in kilobytes."""
    gc.collect()
    status = Path("/proc/self/status").read_text().splitlines()
    return float(next(line for line in status if line.startswith("VmRSS:")).split()[1])
