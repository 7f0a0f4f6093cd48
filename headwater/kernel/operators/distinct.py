"""DISTINCT (OA8; equations 4 and 5, algorithm 7 of the paper).

    ε(R + μ) = ε(R) + μ   if μ ∉ R,       otherwise ε(R)
    ε(R − μ) = ε(R) − μ   if μ ∉ R − μ,   otherwise ε(R)

State: every different row once, with its count. A row is added to the output when its count leaves 0, and removed when
it returns to 0. A row that does both within one delta does not change the output.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from headwater.kernel.columns.delta import Delta
from headwater.kernel.columns.delta_run import DeltaRun
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.row_counts import RowCounts
from headwater.kernel.operators.operator import Operator


class DistinctOperator(Operator):
    """Each row of the input once."""

    def __init__(self, source: Operator) -> None:
        self.variables = source.variables
        self._source = source
        self._counts = RowCounts(len(source.variables))
        self._collapsed = 0
        self.counts_all_copies = False
        """Whether copies of all rows are counted, also of those that a FILTER above removes."""
        self._selections: list[DistinctOperator] = []

    def with_filter_below(self, selected: Operator) -> DistinctOperator:
        """A DISTINCT for a FILTER that was moved below this one; `selected` gives the rows that pass the FILTER.

        The copies that it removes are counted in `collapsed` here, too.
        """
        self._selections.append(DistinctOperator(selected))
        return self._selections[-1]

    @property
    def collapsed(self) -> int:
        """How many rows came while an equal one was there; where nobody reads all rows, of those that are read."""
        return max([self._collapsed, *(one.collapsed for one in self._selections)])

    def apply(self, deltas: Sequence[Delta]) -> Delta:
        (delta,) = deltas
        if delta.is_empty:
            return delta
        if delta.is_reset:
            before, self._counts = self._counts, RowCounts(len(self.variables))
            self._counts.change(delta.added, 1)
            self._collapsed += delta.added.shape[0] - self._counts.top
            # These rows stay as they are: later rows are written behind them.
            return Delta(self._counts.rows[: self._counts.top], before.distinct_rows, is_reset=True)
        counts = self._counts
        counts.compact()
        removed = counts.change(delta.removed, -1)
        added = counts.change(delta.added, 1)
        self._collapsed += delta.added.shape[0] - added.shape[0]
        if removed.shape[0] and added.shape[0]:
            is_back = counts.counts[removed] > 0
            if is_back.any():
                is_unchanged = np.zeros(counts.top, dtype=np.bool_)
                is_unchanged[removed[is_back]] = True
                added, removed = added[~is_unchanged[added]], removed[~is_back]
        return Delta(counts.rows[added], counts.rows[removed])

    def apply_run(self, runs: Sequence[DeltaRun]) -> DeltaRun:
        (run,) = runs
        if not len(run):
            return run
        crossed = self._counts.change_in_turn(run.rows, run.signs)
        self._collapsed += int(np.count_nonzero(run.signs > 0) - np.count_nonzero(run.signs[crossed] > 0))
        return run.select(crossed)

    def needs_rows_of(self, source: Operator) -> bool:
        return self._source.needs_rows_of(source)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._source,)

    def ids(self) -> Iterable[Ints]:
        yield self._counts.ids()

    @property
    def nbytes(self) -> int:
        return self._counts.nbytes
