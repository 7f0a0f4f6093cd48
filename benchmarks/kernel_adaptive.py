"""Adaptive probing against every fixed order, on a stream whose selectivities flip and on one where they stay.

    S(x a) ⋈ R(x y) ⋈ T(y b)

Most new rows are in R. They have many partners in S by x and hardly any in T by y; after the flip it is the other way
round. A fixed order is good before the flip or after it; the adaptive join chooses by the counts of the indexes.
All joins are fed the same slides, in turns, so that other load on the machine affects them alike.
"""

from __future__ import annotations

import time
from itertools import permutations

import numpy as np

from benchmarks.kernel_feeding import SlidingInput, draw_values, hashed_ids, pairs
from benchmarks.kernel_sizes import Sizes
from benchmarks.reporting import Figure, Findings, Points, progress, rounded
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.operators.multiway_join import MultiwayJoinOperator

_PARTNERS = 100
"""How many partners a mapping has on the side where it has many."""
_MISSES = 100
"""Of so many mappings, one has a partner on the other side: both ends of the selectivities that the paper varies."""
_WARM_UP = 5
_ADAPTIVE = "adaptive"


def measure(sizes: Sizes) -> Findings:
    progress("adaptive probing: selectivities flip")
    flipping = _times_per_slide(sizes, flips=True)
    progress("adaptive probing: selectivities stay")
    steady = _times_per_slide(sizes, flips=False)
    per_flipping, per_steady = _typical(flipping), _typical(steady)
    best_flipping = min(taken for name, taken in per_flipping.items() if name != _ADAPTIVE)
    best_steady = min(taken for name, taken in per_steady.items() if name != _ADAPTIVE)
    shown = [_ADAPTIVE, "S R T", "T R S"]
    lines: dict[str, Points] = {
        name: [(i, taken * 1e3) for i, taken in enumerate(flipping[name])] for name in shown if name in flipping
    }
    figure = Figure(
        "adaptive",
        "Selectivities flip in the middle of the stream",
        "slide",
        "milliseconds per slide",
        lines,
        logarithmic=False,
    )
    values: dict[str, object] = {
        "adaptive_vs_best_fixed": rounded(best_flipping / per_flipping[_ADAPTIVE]),
        "adaptive_steady_overhead": rounded(per_steady[_ADAPTIVE] / best_steady - 1),
        "adaptive_ms_per_slide": {name: rounded(taken * 1e3) for name, taken in per_flipping.items()},
        "adaptive_steady_ms_per_slide": {name: rounded(taken * 1e3) for name, taken in per_steady.items()},
    }
    return Findings(values, [figure])


def _typical(times: dict[str, list[float]]) -> dict[str, float]:
    """The mean of the medians of both halves of the stream, which hiccups of the machine leave alone."""
    middle = len(next(iter(times.values()))) // 2
    return {name: float(np.median(taken[:middle]) + np.median(taken[middle:])) / 2 for name, taken in times.items()}


def _times_per_slide(sizes: Sizes, *, flips: bool) -> dict[str, list[float]]:
    """For each way to join, the seconds of every slide."""
    slow, fast = max(1, sizes.adaptive_window // 1000), max(1, sizes.adaptive_window // 20)
    inputs = _windows(sizes, slow, fast, flips=flips)
    variables = ("x", "a", "y", "b")
    joins = {_ADAPTIVE: MultiwayJoinOperator(inputs, variables)}
    for order in permutations(range(3)):
        joins[" ".join("SRT"[i] for i in order)] = MultiwayJoinOperator(inputs, variables, order=order)
    for join in joins.values():
        join.advance()
    times: dict[str, list[float]] = {name: [] for name in joins}
    for number in range(_WARM_UP + sizes.adaptive_slides):
        for one, by in zip(inputs, (slow, fast, slow), strict=True):
            one.slide(by)
        results: set[int] = set()
        for name, join in joins.items():
            begun = time.perf_counter()
            delta = join.advance()
            taken = time.perf_counter() - begun
            results.add(delta.added.shape[0])
            if number >= _WARM_UP:
                times[name].append(taken)
        if len(results) != 1:
            raise AssertionError(f"the orders differ in their results: {results}")
    return times


def _windows(sizes: Sizes, slow: int, fast: int, *, flips: bool) -> list[SlidingInput]:
    random = np.random.default_rng(6)
    window, slides = sizes.adaptive_window, _WARM_UP + sizes.adaptive_slides
    many = hashed_ids(random, max(1, window // _PARTNERS))
    few = hashed_ids(random, window * _MISSES)
    before = window + fast * (_WARM_UP + sizes.adaptive_slides // 2)
    after = window + fast * slides - before
    first = pairs(draw_values(random, many, before), draw_values(random, few, before))
    second = pairs(draw_values(random, many, after), draw_values(random, few, after))
    between = np.concatenate([first, second[:, ::-1] if flips else second])
    sides = window + slow * slides
    return [
        SlidingInput(("x", "a"), _side(random, many, few, sides), 2 * window),
        SlidingInput(("x", "y"), np.ascontiguousarray(between), window),
        SlidingInput(("y", "b"), _side(random, many, few, sides), 2 * window),
    ]


def _side(random: np.random.Generator, many: Ints, few: Ints, count: int) -> Ints:
    """Rows of S or T, in turn with a key that many rows have and with one that hardly any has."""
    keys = np.stack([draw_values(random, many, count), draw_values(random, few, count)], axis=1).reshape(-1)
    return pairs(keys, np.arange(keys.shape[0]))
