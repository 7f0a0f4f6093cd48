"""Joins with a comparison between their inputs, with ordered indexes and without (OA13).

    L(k t) ⋈ R(k u)   FILTER(?u >= ?t && ?u <= ?t + w)

All rows have the same key, so that without an order every pair is tested. The width w decides which share of the pairs
satisfies the condition. `chosen` is what the join decides by itself. All joins are fed the same slides, in turns.
"""

from __future__ import annotations

import numpy as np

from benchmarks.kernel_feeding import SlidingInput
from benchmarks.kernel_sizes import Sizes
from benchmarks.reporting import Figure, Findings, Points, in_turns, progress, rounded
from headwater.explain.notation import Notation
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.compiling.range_filters import RangeFinder
from headwater.kernel.expressions.compiled_expressions import CompiledExpression
from headwater.kernel.operators.multiway_join import MultiwayJoinOperator
from headwater.language.expressions import Constant, Expression, Operation, VariableReference
from headwater.terms.ids.inline_layout import INTEGER_ZERO
from headwater.terms.model import XSD, Literal, NamedNode, Variable

SHARES = (0.001, 0.1, 1.0)
_VALUES = 1_000_000
_KEY = 7
_WARM_UP = 6
_WAYS = ("without", "with", "chosen")


def measure(sizes: Sizes) -> Findings:
    values: dict[str, object] = {}
    lines: dict[str, Points] = {way: [] for way in _WAYS}
    for share in SHARES:
        taken, is_ordered = _times(sizes, share)
        name = f"{share * 100:g}_percent"
        values[f"range_ms_per_slide_{name}"] = {way: rounded(seconds * 1e3) for way, seconds in taken.items()}
        values[f"range_speedup_{name}"] = rounded(taken["without"] / taken["chosen"])
        progress(f"range joins: {share:.1%} of all pairs, {'with' if is_ordered else 'without'} order is chosen")
        for way in _WAYS:
            lines[way].append((share, taken[way] * 1e3))
    title = "A join with a comparison: ordered indexes, all pairs, and what is chosen"
    return Findings(values, [Figure("range", title, "share of pairs that satisfy", "milliseconds per slide", lines)])


def _times(sizes: Sizes, share: float) -> tuple[dict[str, float], bool]:
    """Seconds per slide of 1 % for each way, and whether the join chose ordered indexes."""
    size = sizes.range_window
    step = max(1, size // 100)
    random = np.random.default_rng(13)
    count = size + step * (sizes.range_slides + _WARM_UP)
    windows = [SlidingInput(("k", name), _draw_rows(random, count), size) for name in ("t", "u")]
    joins = {way: _make_join(windows, round(share * _VALUES), has_ranges=way != "without") for way in _WAYS}
    if not joins["with"].range_choice.is_ordered:
        joins["with"].switch_order()
    joins["with"].range_choice.share = float("inf")
    for join in joins.values():
        join.advance()

    def slide() -> None:
        for window in windows:
            window.slide(step)

    runs = {way: join.advance for way, join in joins.items()}
    in_turns(runs, _WARM_UP, slide)
    taken = in_turns(runs, sizes.range_slides, slide)
    if len({join.result_count for join in joins.values()}) != 1:
        raise AssertionError("the joins do not have the same results")
    return taken, joins["chosen"].range_choice.is_ordered


def _draw_rows(random: np.random.Generator, count: int) -> Ints:
    return np.stack([np.full(count, _KEY), INTEGER_ZERO + random.integers(0, _VALUES, count)], axis=1)


def _make_join(windows: list[SlidingInput], width: int, *, has_ranges: bool) -> MultiwayJoinOperator:
    t, u = (VariableReference(Variable(name)) for name in ("t", "u"))
    limit = Constant(Literal(str(width), datatype=NamedNode(XSD + "integer")))
    # With the largest width every value is in the band: it reaches as far to the other side.
    low = Operation("-", (t, limit)) if width >= _VALUES else t
    conditions = [Operation(">=", (u, low)), Operation("<=", (u, Operation("+", (t, limit))))]
    vocabulary, variables = Vocabulary(), ("k", "t", "u")

    def compile_expression(expression: Expression, columns: tuple[str, ...]) -> CompiledExpression:
        return CompiledExpression(expression, columns, vocabulary)

    finder = RangeFinder(windows, frozenset(), Notation(), compile_expression)
    return MultiwayJoinOperator(
        windows,
        variables,
        condition=compile_expression(Operation("&&", tuple(conditions)), variables).test_rows,
        ranges=finder.find(conditions) if has_ranges else (),
    )
