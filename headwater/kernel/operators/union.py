"""UNION: the sum of bags.

    Δ(R₁ ∪ … ∪ Rₙ) = ΔR₁ + … + ΔRₙ

No state. The columns are all variables of the branches; a variable that a branch lacks is unbound in its rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from headwater.kernel.columns.delta import Delta, stack_rows
from headwater.kernel.columns.delta_run import DeltaRun, concat_runs
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.projection import ColumnMapping


class UnionOperator(Operator):
    """All rows of all branches, with the columns `variables`: by default all variables, in order of appearance."""

    def __init__(self, branches: Sequence[Operator], variables: tuple[str, ...] | None = None) -> None:
        if variables is None:
            variables = tuple(dict.fromkeys(variable for branch in branches for variable in branch.variables))
        self.variables = variables
        self._branches = tuple(branches)
        self._columns = [ColumnMapping(branch.variables, variables) for branch in branches]

    def apply(self, deltas: Sequence[Delta]) -> Delta:
        mapped = [columns.map_delta(delta) for columns, delta in zip(self._columns, deltas, strict=True)]
        width = len(self.variables)
        return Delta(
            stack_rows([delta.added for delta in mapped], width), stack_rows([delta.removed for delta in mapped], width)
        )

    def apply_run(self, runs: Sequence[DeltaRun]) -> DeltaRun:
        mapped = [run.with_rows(columns.map_rows(run.rows)) for columns, run in zip(self._columns, runs, strict=True)]
        return concat_runs(mapped, len(self.variables))

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return self._branches
