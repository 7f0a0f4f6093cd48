"""Operators that need all rows at once, such as ORDER BY with LIMIT in a sub-query.

    ΔF(R) = F(R + ΔR) − F(R)

State: the input as a bag, and the last output. The function is called only when the input changed, on rows in the order
of their ids, so that ties are broken in the same way however the stream is divided into batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from headwater.kernel.columns.delta import Delta, no_rows
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.row_counts import RowCounts, bag_difference
from headwater.kernel.operators.operator import Operator


class RecomputeOperator(Operator):
    """Applies a function to the whole input, and returns the difference to its last output."""

    def __init__(
        self, source: Operator, function: Callable[[Ints], Ints], variables: tuple[str, ...] | None = None
    ) -> None:
        self.variables = source.variables if variables is None else variables
        self._source = source
        self._function = function
        self._input = RowCounts(len(source.variables))
        self._output = no_rows(len(self.variables))
        self._is_first_tick = True

    def apply(self, deltas: Sequence[Delta]) -> Delta:
        (delta,) = deltas
        if delta.is_empty and not self._is_first_tick:
            return Delta.empty(len(self.variables))
        self._is_first_tick = False
        self._input.compact()
        self._input.change(delta.removed, -1)
        self._input.change(delta.added, 1)
        before, self._output = self._output, self._function(self._input.bag())
        return bag_difference(self._output, before)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._source,)

    def ids(self) -> Iterable[Ints]:
        yield self._input.ids()
        yield self._output

    @property
    def nbytes(self) -> int:
        return self._input.nbytes + self._output.nbytes
