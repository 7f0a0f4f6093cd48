"""EXISTS as a value: each left row, with a boolean column for whether it has a partner on the right.

    Existence(L, R) = { (μ, true) | n(μ, R) > 0 } + { (μ, false) | n(μ, R) = 0 }

This is for EXISTS inside a larger expression, where a semi-join would drop rows that may still pass.
State: that of `PartnerCounter`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from headwater.kernel.columns.delta import Delta, stack_rows
from headwater.kernel.columns.delta_run import DeltaRun, concat_runs
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.expressions.comparison import FALSE_ID, TRUE_ID
from headwater.kernel.joins.compatibility import MappingLayout
from headwater.kernel.operators.distinct import DistinctOperator
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.partner_counts import PartnerCounter
from headwater.kernel.operators.projection import ProjectionOperator


class ExistenceOperator(Operator):
    """The left rows, with whether they have a partner in the column `name`. Partners agree on `shared`."""

    def __init__(self, left: Operator, right: Operator, shared: tuple[str, ...], name: str, *, negated: bool) -> None:
        self.variables = (*left.variables, name)
        self._ids = (TRUE_ID, FALSE_ID) if negated else (FALSE_ID, TRUE_ID)
        keys = DistinctOperator(ProjectionOperator(right, shared))
        self._partners = PartnerCounter(left, keys, MappingLayout(left.variables, shared, shared))

    def apply(self, deltas: Sequence[Delta]) -> Delta:
        changes = self._partners.apply(deltas)
        return Delta(
            self._mark_rows(changes.unmatched.added, changes.matched.added),
            self._mark_rows(changes.unmatched.removed, changes.matched.removed),
        )

    def apply_run(self, runs: Sequence[DeltaRun]) -> DeltaRun:
        if not any(map(len, runs)):
            return DeltaRun.empty(len(self.variables))
        found = []
        for changes in self._partners.apply_run(runs):
            for term_id, signs in zip(self._ids, (changes.unmatched, changes.matched), strict=True):
                run = changes.select_left_rows(signs)
                found.append(run.with_rows(_append_column(run.rows, term_id)))
        return concat_runs(found, len(self.variables))

    def _mark_rows(self, unmatched: list[Ints], matched: list[Ints]) -> Ints:
        unmatched_id, matched_id = self._ids
        marked = [_append_column(rows, unmatched_id) for rows in unmatched]
        marked += [_append_column(rows, matched_id) for rows in matched]
        return stack_rows(marked, len(self.variables))

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return self._partners.inputs

    def ids(self) -> Iterable[Ints]:
        return self._partners.ids()

    @property
    def nbytes(self) -> int:
        return self._partners.nbytes


def _append_column(rows: Ints, term_id: int) -> Ints:
    longer = np.empty((rows.shape[0], rows.shape[1] + 1), dtype=np.int64)
    longer[:, :-1] = rows
    longer[:, -1] = term_id
    return longer
