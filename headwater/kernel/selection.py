"""FILTER: the rows that satisfy a condition.

    Δσ(R) = σ(ΔR)

No state: the condition depends on its row only, so a row that goes is judged as it was when it came.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from headwater.kernel.delta import Delta
from headwater.kernel.index import Ints
from headwater.kernel.operator import Operator

Mask = npt.NDArray[np.bool_]
Condition = Callable[[Ints], Mask]
"""Which of the rows satisfy a condition; an error counts as not."""


class Selection(Operator):
    """The rows of the source that satisfy a condition."""

    def __init__(self, source: Operator, condition: Condition) -> None:
        self.variables = source.variables
        self._source = source
        self._condition = condition

    def advance(self) -> Delta:
        return self._source.advance().mapped(self._kept)

    def _kept(self, rows: Ints) -> Ints:
        return rows[self._condition(rows)] if rows.shape[0] else rows

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._source,)
