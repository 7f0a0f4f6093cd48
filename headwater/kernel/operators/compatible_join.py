"""The join of two inputs whose shared variables may be unbound (SPARQL 1.1, section 18.5).

    L' ⋈ R'  −  L ⋈ R   =   ΔL ⋈ R  +  L' ⋈ ΔR        Join(Ω₁, Ω₂) = { μ₁ ∪ μ₂ | μ₁ ~ μ₂ }

State: both inputs, no results. What a row made is found again by the same probes when it goes.
"""

from __future__ import annotations

from collections.abc import Iterable

from headwater.kernel.columns.delta import Delta, stacked
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.operators.compatibility import Layout, Side
from headwater.kernel.operators.operator import Operator


class CompatibleJoin(Operator):
    """All unions of compatible rows; columns of the left, then those that only the right has."""

    def __init__(self, left: Operator, right: Operator) -> None:
        self._layout = Layout(left.variables, right.variables)
        self.variables = self._layout.variables
        self._operators = (left, right)
        self._left = Side(len(left.variables), self._layout.left_shared)
        self._right = Side(len(right.variables), self._layout.right_shared)

    def advance(self) -> Delta:
        left, right = self._left, self._right
        left_delta, right_delta = self._operators[0].advance(), self._operators[1].advance()
        gone, left_come = left.exchange(left_delta)
        removed = [self._from_left(left.marked_rows(gone))]
        gone, right_come = right.exchange(right_delta)
        removed.append(self._from_right(right.marked_rows(gone)))
        left.add(left_come)
        added = [self._from_left(left_come)]
        right.add(right_come)
        added.append(self._from_right(right_come))
        return Delta(stacked(added, len(self.variables)), stacked(removed, len(self.variables)))

    def _from_left(self, marked: Ints) -> Ints:
        which, found = self._right.partners(marked, self._layout.left_shared)
        return self._layout.joined(marked[which, 1:], self._right.rows(found))

    def _from_right(self, marked: Ints) -> Ints:
        which, found = self._left.partners(marked, self._layout.right_shared)
        return self._layout.joined(self._left.rows(found), marked[which, 1:])

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return self._operators

    def ids(self) -> Iterable[Ints]:
        return self._left.ids(), self._right.ids()

    @property
    def nbytes(self) -> int:
        return self._left.nbytes + self._right.nbytes
