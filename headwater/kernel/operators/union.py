"""UNION: the sum of bags.

    Δ(R₁ ∪ … ∪ Rₙ) = ΔR₁ + … + ΔRₙ

No state. The columns are all variables of the branches; where a branch lacks one, its rows have it unbound.
"""

from __future__ import annotations

from collections.abc import Sequence

from headwater.kernel.columns.delta import Delta, stacked
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.projection import Columns


class Union(Operator):
    """All rows of all branches, with the columns `variables` or, if not given, all there are in order of appearance."""

    def __init__(self, branches: Sequence[Operator], variables: tuple[str, ...] | None = None) -> None:
        if variables is None:
            variables = tuple(dict.fromkeys(variable for branch in branches for variable in branch.variables))
        self.variables = variables
        self._branches = tuple(branches)
        self._columns = [Columns(branch.variables, variables) for branch in branches]

    def advance(self) -> Delta:
        deltas = [columns.of(branch.advance()) for branch, columns in zip(self._branches, self._columns, strict=True)]
        width = len(self.variables)
        return Delta(
            stacked([delta.added for delta in deltas], width), stacked([delta.removed for delta in deltas], width)
        )

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return self._branches
