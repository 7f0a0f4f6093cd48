"""VALUES and other rows that are known from the start.

    Δ₁ = R,   Δₜ = 0 for all later t

State: the rows, until the first tick has taken them.
"""

from __future__ import annotations

from headwater.kernel.delta import Delta, no_rows
from headwater.kernel.index import Ints
from headwater.kernel.operator import Operator


class Constant(Operator):
    """Rows that all come at the first tick and stay."""

    def __init__(self, variables: tuple[str, ...], rows: Ints) -> None:
        self.variables = variables
        self._rows = rows
        self._nothing = Delta.nothing(len(variables))

    def advance(self) -> Delta:
        if not self._rows.shape[0]:
            return self._nothing
        rows, self._rows = self._rows, self._nothing.added
        return Delta(rows, no_rows(len(self.variables)))

    @property
    def nbytes(self) -> int:
        return self._rows.nbytes
