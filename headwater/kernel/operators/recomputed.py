"""Operators that see all rows at once, such as ORDER BY with LIMIT in a sub-query.

    ΔF(R) = F(R + ΔR) − F(R)

State: the input as a bag, and the last output. The function runs only when something changed, on rows that stand in the
order of their ids, so ties are broken the same way however the stream was cut into batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from headwater.kernel.columns.delta import Delta, no_rows
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.row_counts import RowCounts
from headwater.kernel.operators.operator import Operator


class Recomputed(Operator):
    """A function of the whole bag, given as the difference to its last value."""

    def __init__(
        self, source: Operator, function: Callable[[Ints], Ints], variables: tuple[str, ...] | None = None
    ) -> None:
        self.variables = source.variables if variables is None else variables
        self._source = source
        self._function = function
        self._input = RowCounts(len(source.variables))
        self._output = no_rows(len(self.variables))
        self._is_new = True

    def advance(self) -> Delta:
        delta = self._source.advance()
        if delta.is_empty and not self._is_new:
            return Delta.nothing(len(self.variables))
        self._is_new = False
        self._input.compact()
        self._input.change(delta.removed, -1)
        self._input.change(delta.added, 1)
        before, self._output = self._output, self._function(self._input.bag())
        return difference(self._output, before)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._source,)

    def ids(self) -> Iterable[Ints]:
        yield self._input.ids()
        yield self._output

    @property
    def nbytes(self) -> int:
        return self._input.nbytes + self._output.nbytes


def difference(after: Ints, before: Ints) -> Delta:
    """The smallest difference between two bags."""
    counts = RowCounts(after.shape[1])
    counts.change(after, 1)
    counts.change(before, -1)
    change = counts.counts[: counts.top]
    rows = counts.rows[: counts.top]
    return Delta(np.repeat(rows, np.maximum(change, 0), axis=0), np.repeat(rows, np.maximum(-change, 0), axis=0))
