"""The memory of joins of two to eight windows (table 2 of the paper; `eager` has that of the benchmarks' queries).

    R₀(x₀ x₁) ⋈ R₁(x₁ x₂) ⋈ …      each mapping has one partner in each neighbour

The windows have 10^4 mappings and as many values to join by, as the paper's have.

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
_PAPER_MB = {2: 12.36, 3: 13.41, 4: 14.74, 6: 16.95, 8: 18.69}
"""CQELS by the number of windows; Esper has 8.93, 12.04, 15.13, 21.26 and 27.44."""


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
    megabytes = {int(ways): rounded(mb) for ways, mb in points}
    values: dict[str, object] = {
        "join8_mb": rounded(points[-1][1]),
        "join_mb": {str(ways): mb for ways, mb in megabytes.items()},
        "paper_vs_join_mb": {
            str(ways): rounded(paper / megabytes[ways]) for ways, paper in _PAPER_MB.items() if ways in megabytes
        },
    }
    return Findings(values, [figure])


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
