"""The memory of joins of two to eight windows (table 2 of the paper: 18.7 MB for eight of 10^4 mappings, Esper 27.4).

    R₀(x₀ x₁) ⋈ R₁(x₁ x₂) ⋈ …      each mapping has one partner in each neighbour

What Python and numpy allocate is counted while the windows are filled and slide by 1 % twenty times, everything that a
join keeps included: rows, indexes, results and their links.
"""

from __future__ import annotations

import tracemalloc

import numpy as np

from benchmarks.kernel_feeding import SlidingInput, pairs
from benchmarks.kernel_sizes import Sizes
from benchmarks.reporting import Figure, Findings, Points, progress, rounded
from headwater.kernel.operators.multiway_join import MultiwayJoinOperator

_SLIDES = 20


def measure(sizes: Sizes) -> Findings:
    progress(f"memory: joins of windows of {sizes.memory_window} mappings")
    _megabytes(2, 100)
    points: Points = [(ways, _megabytes(ways, sizes.memory_window)) for ways in sizes.memory_ways]
    figure = Figure(
        "join-memory",
        f"Memory of joins, {sizes.memory_window} mappings per window",
        "joined windows",
        "megabytes",
        {"kernel": points},
        logarithmic=False,
    )
    return Findings({"join8_mb": rounded(points[-1][1])}, [figure])


def _megabytes(ways: int, window: int) -> float:
    random = np.random.default_rng(5)
    slide = max(1, window // 100)
    # Every `window` rows each key occurs once, so that each mapping has one partner at any time, or a few less.
    rounds = 2 + _SLIDES * slide // window
    domain = np.arange(window)
    inputs = []
    for i in range(ways):
        columns = [np.concatenate([random.permutation(domain)] * rounds) for _ in range(2)]
        inputs.append(SlidingInput((f"x{i}", f"x{i + 1}"), pairs(*columns), window))
    tracemalloc.start()
    try:
        join = MultiwayJoinOperator(inputs, tuple(f"x{i}" for i in range(ways + 1)))
        if join.advance().added.shape[0] != window:
            raise AssertionError("each mapping should have one partner in each window")
        for _ in range(_SLIDES):
            for one in inputs:
                one.slide(slide)
            join.advance()
        traced, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return max(traced, join.nbytes) / 1e6
