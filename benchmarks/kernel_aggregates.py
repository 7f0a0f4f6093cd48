"""Incremental aggregates and DISTINCT against re-evaluation (figures 13b to 13d of the paper).

AVG by group right over a window; MIN by group and DISTINCT over the join R(g y) ⋈ S(y v), by the join's selectivity:
the number of its results for each mapping that it takes in. Shown are mappings of the stream per second.

The paper has windows of 10^6 mappings and slides of one element, and so have the figures whose names end with `-ticks`
(`kernel_ticks`). The other figures are our own workload: windows slide by 1 %, and those of a join are smaller. Both
sides must have equally many results.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from benchmarks import kernel_polars
from benchmarks.kernel_feeding import SlidingInput, draw_values, hashed_ids, pairs
from benchmarks.kernel_sizes import Sizes
from benchmarks.kernel_ticks import TickingOperator, TickRates, check_ways, fill_in_parts, rows_for
from benchmarks.reporting import Figure, Findings, Points, in_turns, progress, rounded
from headwater.kernel.aggregation.grouping import AggregateSpec, GroupOperator
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.operators.distinct import DistinctOperator
from headwater.kernel.operators.multiway_join import MultiwayJoinOperator
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.projection import ProjectionOperator
from headwater.terms.ids.inline_layout import INTEGER_ZERO

if TYPE_CHECKING:
    import polars as pl

_WARM_UP = 3
_GROUPS = 1000
_VALUES = 1000
_MOST_RESULTS_IN_POLARS = 30_000_000
_MOST_RESULTS_AT_ONCE = 2_000_000
"""Windows are filled in parts, so that the join has no more results than these in one step."""
_CHECKED_WINDOW = 500
_CHECKED_TICKS = 600
_SELECTIVITY = "selectivity of the join"

Lines = dict[str, Points]
Reevaluation = Callable[[], "pl.DataFrame"]


def measure(sizes: Sizes) -> Findings:
    findings = _measure_slides(sizes)
    for name, title, x, rates in (
        ("avg", f"AVG over a window of {sizes.aggregate_window:,}", "groups", _average_ticks(sizes)),
        ("min-over-join", "MIN over a join", _SELECTIVITY, _join_ticks(sizes, _least_of, kernel_polars.least)),
        (
            "distinct-over-join",
            "DISTINCT over a join",
            _SELECTIVITY,
            _join_ticks(sizes, _distinct_of, kernel_polars.distinct),
        ),
    ):
        findings.values[f"{name.replace('-', '_')}_mappings_per_s"] = rates.values()
        findings.figures.append(rates.figure(f"{name}-ticks", title, x))
    return findings


def _measure_slides(sizes: Sizes) -> Findings:
    """Windows that slide by 1 %."""
    figures = [_averages(sizes)]
    least: Lines = {"kernel": [], "polars, anew": []}
    distinct: Lines = {"kernel": [], "polars, anew": []}
    for selectivity in sizes.selectivities:
        progress(f"MIN and DISTINCT over a join: selectivity {selectivity}")
        for lines, make, reevaluate in (
            (least, _least_of, kernel_polars.least),
            (distinct, _distinct_of, kernel_polars.distinct),
        ):
            window = sizes.selectivity_window
            inputs = _two_windows(window, selectivity, _rows_for(window, sizes))
            root = make(MultiwayJoinOperator(inputs, ("g", "y", "v")))
            _add(lines, selectivity, inputs, root, partial(_reevaluate_join, reevaluate, *inputs), sizes)
    x, y = _SELECTIVITY, "mappings per second"
    figures.append(Figure("min-over-join", "MIN over a join, 1 % per slide", x, y, least))
    figures.append(Figure("distinct-over-join", "DISTINCT over a join, 1 % per slide", x, y, distinct))
    findings = Findings(figures=[*figures])
    for figure in figures:
        kernel, polars_points = figure.lines["kernel"], figure.lines["polars, anew"]
        ratios = {
            f"{at:g}": rounded(ours / theirs) for (at, ours), (_, theirs) in zip(kernel, polars_points, strict=True)
        }
        findings.values[f"{figure.name.replace('-', '_')}_vs_polars"] = ratios
    return findings


def _averages(sizes: Sizes) -> Figure:
    lines: Lines = {"kernel": [], "polars, anew": []}
    random = np.random.default_rng(3)
    window = sizes.aggregate_window
    for groups in sizes.aggregate_groups:
        progress(f"AVG over a window of {window}: {groups} groups")
        leaf = _grouped_window(random, groups, window, _rows_for(window, sizes))
        _add(lines, groups, [leaf], _averages_of(leaf), partial(_reevaluate_averages, leaf), sizes)
    return Figure("avg", f"AVG over a window of {window}, 1 % per slide", "groups", "mappings per second", lines)


def _average_ticks(sizes: Sizes) -> TickRates:
    """AVG over a window that slides by one element, by the number of groups."""

    def make(groups: int, window: int, ticks: int) -> TickingOperator:
        leaf = _grouped_window(np.random.default_rng(3), groups, window, rows_for(window, 1, ticks))
        root = _averages_of(leaf)
        return TickingOperator(root, [leaf], root.advance().added.shape[0])

    check_ways(lambda: make(50, _CHECKED_WINDOW, _CHECKED_TICKS), _CHECKED_TICKS)
    rates = TickRates()
    for groups in sizes.tick_groups:
        progress(f"AVG over a window of {sizes.aggregate_window}, one element per slide: {groups} groups")
        operator = make(groups, sizes.aggregate_window, sizes.ticks)
        anew = {"polars": lambda contents: lambda: kernel_polars.averages(contents[0], INTEGER_ZERO).height}
        rates.add(groups, operator, sizes.ticks, 2, anew)
    return rates


def _join_ticks(
    sizes: Sizes, make_root: Callable[[Operator], Operator], in_polars: Callable[[Ints, Ints], pl.DataFrame]
) -> TickRates:
    """An operator over a join of two windows that slide by one element, by the selectivity of the join."""

    def make(selectivity: float, window: int, ticks: int) -> TickingOperator:
        inputs = _two_windows(window, selectivity, rows_for(window, 2, ticks))
        root = make_root(MultiwayJoinOperator(inputs, ("g", "y", "v")))
        part = max(1, min(window, int(_MOST_RESULTS_AT_ONCE / (2 * selectivity))))
        return TickingOperator(root, inputs, fill_in_parts(root, inputs, window, part))

    check_ways(lambda: make(5, _CHECKED_WINDOW, _CHECKED_TICKS), _CHECKED_TICKS)
    rates = TickRates()
    for selectivity in sizes.selectivities:
        window = sizes.tick_selectivity_window
        progress(f"an operator over a join of windows of {window}, one element per slide: selectivity {selectivity}")
        operator = make(selectivity, window, sizes.ticks)
        is_small = 2 * selectivity * window <= _MOST_RESULTS_IN_POLARS
        anew = {"polars": lambda contents: lambda: in_polars(*contents).height} if is_small else {}
        rates.add(selectivity, operator, sizes.ticks, 4 * selectivity, anew)
    return rates


def _grouped_window(random: np.random.Generator, groups: int, window: int, count: int) -> SlidingInput:
    """A window over so many rows, each with a group and a number."""
    values = INTEGER_ZERO + random.integers(0, 10_000, count)
    rows = pairs(draw_values(random, hashed_ids(random, groups), count), values)
    return SlidingInput(("g", "v"), rows, window)


def _averages_of(leaf: Operator) -> Operator:
    return GroupOperator(leaf, ("g",), (("a", AggregateSpec("AVG", "v")),), Vocabulary())


def _reevaluate_averages(leaf: SlidingInput) -> pl.DataFrame:
    return kernel_polars.averages(leaf.content, INTEGER_ZERO)


def _reevaluate_join(
    reevaluate: Callable[[Ints, Ints], pl.DataFrame], left: SlidingInput, right: SlidingInput
) -> pl.DataFrame:
    return reevaluate(left.content, right.content)


def _least_of(joined: Operator) -> Operator:
    return GroupOperator(joined, ("g",), (("m", AggregateSpec("MIN", "v")),), Vocabulary())


def _distinct_of(joined: Operator) -> Operator:
    return DistinctOperator(ProjectionOperator(joined, ("g", "v")))


def _two_windows(window: int, selectivity: float, count: int) -> list[SlidingInput]:
    """Two windows over so many rows whose join has `selectivity` results for each mapping: 2 s n = n² / keys."""
    random = np.random.default_rng(4)
    keys = hashed_ids(random, max(1, round(window / (2 * selectivity))))
    groups = hashed_ids(random, _GROUPS)
    left = pairs(draw_values(random, groups, count), draw_values(random, keys, count))
    right = pairs(draw_values(random, keys, count), INTEGER_ZERO + random.integers(0, _VALUES, count))
    return [SlidingInput(("g", "y"), left, window), SlidingInput(("y", "v"), right, window)]


def _rows_for(window: int, sizes: Sizes) -> int:
    return window + max(1, window // 100) * (sizes.aggregate_slides + _WARM_UP)


def _add(
    lines: Lines,
    at: float,
    inputs: list[SlidingInput],
    root: Operator,
    reevaluate: Reevaluation,
    sizes: Sizes,
) -> None:
    """Measure one point of both lines."""
    content = inputs[0].content.shape[0]
    by = max(1, content // 100)

    def slide() -> None:
        for one in inputs:
            one.slide(by)

    compared = _ComparedOperator(root, reevaluate)
    compared.advance()
    runs = {"kernel": compared.advance, "polars, anew": compared.reevaluate}
    in_turns(runs, _WARM_UP, slide)
    for name, taken in in_turns(runs, sizes.aggregate_slides, slide).items():
        lines[name].append((at, len(inputs) * by / taken))


class _ComparedOperator:
    """An operator and the same query in polars, with the number of results of both."""

    def __init__(self, root: Operator, reevaluate: Reevaluation) -> None:
        self._root = root
        self._reevaluate = reevaluate
        self._results = 0

    def advance(self) -> None:
        delta = self._root.advance()
        self._results += delta.added.shape[0] - delta.removed.shape[0]

    def reevaluate(self) -> None:
        found = self._reevaluate().height
        if found != self._results:
            raise AssertionError(f"polars has {found} results, the kernel {self._results}")
