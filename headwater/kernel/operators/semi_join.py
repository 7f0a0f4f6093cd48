"""MINUS, FILTER EXISTS and FILTER NOT EXISTS (OA9; equations 6 to 9 of the paper, the last two corrected).

    (L + μ) \\ R = L \\ R + μ                      if n(μ, R) = 0          otherwise L \\ R           (6)
    L \\ (R + μ) = L \\ R − { μ' ∈ L \\ R | μ' ~ μ }                                                 (7)
    (L − μ) \\ R = L \\ R − μ                      if n(μ, R) = 0          otherwise L \\ R           (8)
    L \\ (R − μ) = L \\ R + { μ' ∈ L | μ' ~ μ, n(μ', R − μ) = 0 }                                    (9)

n counts partners (`PartnerCounter`). Without a condition only the values of the shared variables matter on the right.
Each combination of them is kept once, so right rows with equal values touch the left rows only when the first of them
is added and when the last is removed.
State: the left rows with their counts, and the right keys with theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headwater.kernel.columns.delta import Condition, Delta
from headwater.kernel.columns.delta_run import DeltaRun, concat_runs
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.joins.compatibility import MappingLayout
from headwater.kernel.operators.distinct import DistinctOperator
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.partner_counts import PartnerCounter
from headwater.kernel.operators.projection import ProjectionOperator


def shared_variables(left: Operator, right: Operator) -> tuple[str, ...]:
    return tuple(variable for variable in left.variables if variable in right.variables)


class SemiJoinOperator(Operator):
    """The left rows that have a partner on the right, or with `negated` those that have none.

    `shared` are the variables on which they must agree, by default all that both have; without any, every right row is
    a partner. `condition` is over the columns of the left, then those that only the right has (`joined_variables`).
    """

    def __init__(
        self,
        left: Operator,
        right: Operator,
        shared: tuple[str, ...] | None = None,
        *,
        negated: bool = False,
        condition: Condition | None = None,
    ) -> None:
        self.variables = left.variables
        self._negated = negated
        on = shared_variables(left, right) if shared is None else shared
        self.joined_variables = MappingLayout(left.variables, right.variables, on).variables
        if condition is None:
            right = DistinctOperator(ProjectionOperator(right, on))
        self._partners = PartnerCounter(left, right, MappingLayout(left.variables, right.variables, on), condition)

    def apply(self, deltas: Sequence[Delta]) -> Delta:
        changes = self._partners.apply(deltas)
        rows = changes.unmatched if self._negated else changes.matched
        return rows.build(len(self.variables))

    def apply_run(self, runs: Sequence[DeltaRun]) -> DeltaRun:
        if not any(map(len, runs)):
            return DeltaRun.empty(len(self.variables))
        found = [
            changes.select_left_rows(changes.unmatched if self._negated else changes.matched)
            for changes in self._partners.apply_run(runs)
        ]
        return concat_runs(found, len(self.variables))

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return self._partners.inputs

    def ids(self) -> Iterable[Ints]:
        return self._partners.ids()

    @property
    def nbytes(self) -> int:
        return self._partners.nbytes


class MinusOperator(Operator):
    """The left rows for which no right row agrees on the variables that both bind, of which there must be one or more.

    Without shared variables all left rows stay, and the right input is not read.
    """

    def __init__(self, left: Operator, right: Operator, shared: tuple[str, ...] | None = None) -> None:
        self.variables = left.variables
        self._left = left
        on = shared_variables(left, right) if shared is None else shared
        self._partners: PartnerCounter | None = None
        if on:
            keys = DistinctOperator(ProjectionOperator(right, on))
            self._partners = PartnerCounter(
                left, keys, MappingLayout(left.variables, on, on), has_disjoint_partners=False
            )

    def apply(self, deltas: Sequence[Delta]) -> Delta:
        if self._partners is None:
            return deltas[0]
        return self._partners.apply(deltas).unmatched.build(len(self.variables))

    def apply_run(self, runs: Sequence[DeltaRun]) -> DeltaRun:
        if self._partners is None or not any(map(len, runs)):
            return runs[0]
        found = [changes.select_left_rows(changes.unmatched) for changes in self._partners.apply_run(runs)]
        return concat_runs(found, len(self.variables))

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._left,) if self._partners is None else self._partners.inputs

    def ids(self) -> Iterable[Ints]:
        return () if self._partners is None else self._partners.ids()

    @property
    def nbytes(self) -> int:
        return 0 if self._partners is None else self._partners.nbytes
