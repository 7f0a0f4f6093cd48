"""OPTIONAL (SPARQL 1.1, section 18.5): the joined rows, and the left rows that have no partner.

    LeftJoin(L, R, c)  =  σ_c(L ⋈ R)  +  { μ ∈ L | n(μ, R) = 0 }

where n counts the partners for which the condition holds (`PartnerCounter`). A left row without partners is added when
its count returns to 0, and removed when it leaves 0; a count that does both within one delta changes nothing.
State: both inputs and one count for each left row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headwater.kernel.columns.delta import Condition, Delta
from headwater.kernel.columns.delta_run import DeltaRun, concat_runs
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.joins.compatibility import MappingLayout
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.partner_counts import PartnerCounter
from headwater.kernel.operators.projection import ColumnMapping


class LeftJoinOperator(Operator):
    """`condition` is over the columns of the left, then those that only the right has (`joined_variables`)."""

    def __init__(
        self,
        left: Operator,
        right: Operator,
        condition: Condition | None = None,
        variables: tuple[str, ...] | None = None,
    ) -> None:
        self._layout = MappingLayout(left.variables, right.variables)
        self.joined_variables = self._layout.variables
        self.variables = self.joined_variables if variables is None else variables
        self._columns = ColumnMapping(self.joined_variables, self.variables)
        self._partners = PartnerCounter(left, right, self._layout, condition, needs_joined_rows=True)

    def apply(self, deltas: Sequence[Delta]) -> Delta:
        changes = self._partners.apply(deltas)
        rows = changes.joined
        rows.added.extend(map(self._layout.pad_left, changes.unmatched.added))
        rows.removed.extend(map(self._layout.pad_left, changes.unmatched.removed))
        return self._columns.map_delta(rows.build(len(self.joined_variables)))

    def apply_run(self, runs: Sequence[DeltaRun]) -> DeltaRun:
        if not any(map(len, runs)):
            return DeltaRun.empty(len(self.variables))
        found = []
        for changes in self._partners.apply_run(runs):
            unmatched = changes.select_left_rows(changes.unmatched)
            found += [changes.joined_run(), unmatched.with_rows(self._layout.pad_left(unmatched.rows))]
        run = concat_runs(found, len(self.joined_variables))
        return run.with_rows(self._columns.map_rows(run.rows))

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return self._partners.inputs

    def ids(self) -> Iterable[Ints]:
        return self._partners.ids()

    @property
    def nbytes(self) -> int:
        return self._partners.nbytes
