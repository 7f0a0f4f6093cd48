"""BIND and SELECT (expression AS ?variable): one more column, computed from the row.

    ΔExtend(R) = Extend(ΔR)

No state: the value depends on the row alone, so a row that is removed gets the value that it had when it was added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from headwater.kernel.columns.delta import Delta
from headwater.kernel.columns.delta_run import DeltaRun
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.operators.operator import Operator

ColumnFunction = Callable[[Ints], Ints]
"""Computes one id for each row; `UNBOUND` where the expression has an error."""


class ExtendOperator(Operator):
    """The rows of the source with a computed column at the end."""

    def __init__(self, source: Operator, variable: str, function: ColumnFunction) -> None:
        self.variables = (*source.variables, variable)
        self._source = source
        self._compute_column = function
        self._nothing = Delta.empty(len(self.variables))

    def apply(self, deltas: Sequence[Delta]) -> Delta:
        return self._nothing if deltas[0].is_empty else deltas[0].map_rows(self._extend)

    def apply_run(self, runs: Sequence[DeltaRun]) -> DeltaRun:
        return runs[0].with_rows(self._extend(runs[0].rows))

    def _extend(self, rows: Ints) -> Ints:
        if not rows.shape[0]:
            return self._nothing.added
        extended = np.empty((rows.shape[0], len(self.variables)), dtype=np.int64)
        extended[:, :-1] = rows
        extended[:, -1] = self._compute_column(rows)
        return extended

    def needs_rows_of(self, source: Operator) -> bool:
        return self._source.needs_rows_of(source)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._source,)
