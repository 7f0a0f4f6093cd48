"""The join of two inputs whose shared variables may be unbound (SPARQL 1.1, section 18.5).

    L' ⋈ R'  −  L ⋈ R   =   ΔL ⋈ R  +  L' ⋈ ΔR        Join(Ω₁, Ω₂) = { μ₁ ∪ μ₂ | μ₁ ~ μ₂ }

State: both inputs, no results. When a row is removed, the same probes find the results to remove.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headwater.kernel.columns.delta import Delta, stack_rows
from headwater.kernel.columns.delta_run import DeltaRun, concat_runs
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.joins.compatibility import JoinSide, MappingLayout
from headwater.kernel.joins.pair_runs import PairFinder
from headwater.kernel.operators.operator import Operator


class CompatibleJoinOperator(Operator):
    """The union of each pair of compatible rows: the columns of the left, then those that only the right has."""

    def __init__(self, left: Operator, right: Operator) -> None:
        self._layout = MappingLayout(left.variables, right.variables)
        self.variables = self._layout.variables
        self._inputs = (left, right)
        self._left = JoinSide(len(left.variables), self._layout.left_shared)
        self._right = JoinSide(len(right.variables), self._layout.right_shared)
        self._pairs = PairFinder(self._left, self._right, (self._layout.left_shared, self._layout.right_shared))

    def apply(self, deltas: Sequence[Delta]) -> Delta:
        left, right = self._left, self._right
        left_delta, right_delta = deltas
        removed_ids, left_added = left.cancel_and_take(left_delta)
        removed = [self._join_left_rows(left.masked_rows(removed_ids))]
        removed_ids, right_added = right.cancel_and_take(right_delta)
        removed.append(self._join_right_rows(right.masked_rows(removed_ids)))
        left.add(left_added)
        added = [self._join_left_rows(left_added)]
        right.add(right_added)
        added.append(self._join_right_rows(right_added))
        return Delta(stack_rows(added, len(self.variables)), stack_rows(removed, len(self.variables)))

    def apply_run(self, runs: Sequence[DeltaRun]) -> DeltaRun:
        if not any(map(len, runs)):
            return DeltaRun.empty(len(self.variables))
        found = []
        for pairs in self._pairs.find(runs):
            rows = self._layout.join_pairs(self._left.rows(pairs.left_rows), self._right.rows(pairs.right_rows))
            found.append(pairs.make_run(rows, pairs.places, pairs.signs[pairs.places]))
        return concat_runs(found, len(self.variables))

    def _join_left_rows(self, masked: Ints) -> Ints:
        places, row_ids = self._right.find_partners(masked, self._layout.left_shared)
        return self._layout.join_pairs(masked[places, 1:], self._right.rows(row_ids))

    def _join_right_rows(self, masked: Ints) -> Ints:
        places, row_ids = self._left.find_partners(masked, self._layout.right_shared)
        return self._layout.join_pairs(self._left.rows(row_ids), masked[places, 1:])

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return self._inputs

    def ids(self) -> Iterable[Ints]:
        return self._left.ids(), self._right.ids()

    @property
    def nbytes(self) -> int:
        return self._left.nbytes + self._right.nbytes
