"""BIND and SELECT (expression AS ?variable): one more column, computed from the row.

    ΔExtend(R) = Extend(ΔR)

No state: the value depends on its row only, so a row that goes gets the value it had when it came.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from headwater.kernel.columns.delta import Delta
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.operators.operator import Operator

Computed = Callable[[Ints], Ints]
"""One id for each row; `UNBOUND` where the expression has an error."""


class Extension(Operator):
    """The rows of the source with a computed column at the end."""

    def __init__(self, source: Operator, variable: str, function: Computed) -> None:
        self.variables = (*source.variables, variable)
        self._source = source
        self._function = function

    def advance(self) -> Delta:
        return self._source.advance().mapped(self._extended)

    def _extended(self, rows: Ints) -> Ints:
        extended = np.empty((rows.shape[0], len(self.variables)), dtype=np.int64)
        extended[:, :-1] = rows
        if rows.shape[0]:
            extended[:, -1] = self._function(rows)
        return extended

    def needs(self, source: Operator) -> bool:
        return self._source.needs(source)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._source,)
