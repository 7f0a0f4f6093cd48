"""Incremental aggregates and DISTINCT against re-evaluation (figures 13b to 13d of the paper).

AVG by group right over a window; MIN by group and DISTINCT over the join R(g y) ⋈ S(y v), by the join's selectivity:
the number of its results for each mapping that it takes in. Shown are mappings of the stream per second, the windows
sliding by 1 %. At every slide both sides must have equally many results.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from benchmarks import kernel_polars
from benchmarks.kernel_feeding import SlidingInput, draw_values, hashed_ids, pairs
from benchmarks.kernel_sizes import Sizes
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

Lines = dict[str, Points]
Reevaluation = Callable[[], "pl.DataFrame"]


def measure(sizes: Sizes) -> Findings:
    findings = Findings()
    findings.figures.append(_averages(sizes))
    least: Lines = {"kernel": [], "polars, anew": []}
    distinct: Lines = {"kernel": [], "polars, anew": []}
    for selectivity in sizes.selectivities:
        progress(f"MIN and DISTINCT over a join: selectivity {selectivity}")
        for lines, make, reevaluate in (
            (least, _least_of, kernel_polars.least),
            (distinct, _distinct_of, kernel_polars.distinct),
        ):
            inputs = _two_windows(sizes, selectivity)
            root = make(MultiwayJoinOperator(inputs, ("g", "y", "v")))
            _add(lines, selectivity, inputs, root, partial(_reevaluate_join, reevaluate, *inputs), sizes)
    x, y = "selectivity of the join", "mappings per second"
    findings.figures.append(Figure("min-over-join", "MIN over a join, 1 % per slide", x, y, least))
    findings.figures.append(Figure("distinct-over-join", "DISTINCT over a join, 1 % per slide", x, y, distinct))
    for figure in findings.figures:
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
        count = _rows_for(window, sizes)
        rows = pairs(
            draw_values(random, hashed_ids(random, groups), count), INTEGER_ZERO + random.integers(0, 10_000, count)
        )
        leaf = SlidingInput(("g", "v"), rows, window)
        root = GroupOperator(leaf, ("g",), (("a", AggregateSpec("AVG", "v")),), Vocabulary())
        _add(lines, groups, [leaf], root, partial(_reevaluate_averages, leaf), sizes)
    return Figure("avg", f"AVG over a window of {window}, 1 % per slide", "groups", "mappings per second", lines)


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


def _two_windows(sizes: Sizes, selectivity: float) -> list[SlidingInput]:
    """Two windows whose join has `selectivity` results for each mapping of both: 2 s n = n² / keys."""
    random = np.random.default_rng(4)
    window = sizes.selectivity_window
    keys = hashed_ids(random, max(1, round(window / (2 * selectivity))))
    count = _rows_for(window, sizes)
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
