"""FILTER: the rows that satisfy a condition.

    Δσ(R) = σ(ΔR)            σ(ε(R)) = ε(σ(R))

No state: the condition depends on the row alone, so a row that is removed passes if it passed when it was added.
The second law saves state below a filter: DISTINCT over a window counts only the rows that pass, unless the copies of
all must be counted, and a join keeps only the results that pass.
"""

from __future__ import annotations

from collections.abc import Sequence

from headwater.kernel.columns.delta import Condition, Delta
from headwater.kernel.columns.delta_run import DeltaRun
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.joins.range_conditions import RangeCondition
from headwater.kernel.operators.distinct import DistinctOperator
from headwater.kernel.operators.multiway_join import MultiwayJoinOperator
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.triple_patterns import PatternOperator, RenameOperator, SharedOperator


class FilterOperator(Operator):
    """The rows of the source that satisfy a condition."""

    def __init__(self, source: Operator, condition: Condition) -> None:
        self.variables = source.variables
        self._source = source
        self._condition = condition

    def apply(self, deltas: Sequence[Delta]) -> Delta:
        return deltas[0] if deltas[0].is_empty else deltas[0].map_rows(self._filter_rows)

    def apply_run(self, runs: Sequence[DeltaRun]) -> DeltaRun:
        (run,) = runs
        return run.select(self._condition(run.rows)) if len(run) else run

    def _filter_rows(self, rows: Ints) -> Ints:
        return rows[self._condition(rows)] if rows.shape[0] else rows

    def needs_rows_of(self, source: Operator) -> bool:
        return self._source.needs_rows_of(source)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._source,)


def apply_filter(source: Operator, condition: Condition, ranges: Sequence[RangeCondition] = ()) -> Operator:
    """Filter the rows of an operator. The condition moves into a join, and below the DISTINCT of a triple pattern.

    `ranges` are the comparisons in the condition between inputs of the join.
    """
    if isinstance(source, MultiwayJoinOperator) and source.condition is None:
        return MultiwayJoinOperator(source.inputs, source.variables, condition=condition, ranges=ranges)
    distinct = _distinct_pattern(source)
    if distinct is None or distinct.counts_all_copies:
        return FilterOperator(source, condition)
    selected = FilterOperator(distinct.inputs[0], condition)
    return RenameOperator(distinct.with_filter_below(selected), source.variables)


def _distinct_pattern(source: Operator) -> DistinctOperator | None:
    """What makes the matches of a pattern distinct for the source, where other patterns may share its triples."""
    if not isinstance(source, RenameOperator):
        return None
    (shared,) = source.inputs
    distinct = shared.inputs[0] if isinstance(shared, SharedOperator) else None
    if not isinstance(distinct, DistinctOperator):
        return None
    match = distinct.inputs[0]
    return distinct if isinstance(match, PatternOperator) and isinstance(match.inputs[0], SharedOperator) else None
