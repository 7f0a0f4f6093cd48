"""A view that changes when its data set changes, as an input like any other.

    Δ₁ = R,   Δₜ = the rows that were added to the view and removed from it since the tick before

State: the changes since the last tick. The rows themselves are kept by the operator that reads this one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headwater.kernel.columns.delta import Delta, no_rows, stack_rows
from headwater.kernel.columns.relation import Relation
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.row_counts import bag_difference
from headwater.kernel.operators.operator import Operator


class ChangingViewOperator(Operator):
    """The rows of a view, then its changes."""

    def __init__(self, variables: tuple[str, ...], relation: Relation) -> None:
        self.variables = variables
        self._added: list[Ints] = [relation.ids()]
        self._removed: list[Ints] = []
        self._nothing = Delta.empty(len(variables))

    def add_change(self, added: Ints, removed: Ints) -> None:
        """Queue rows that were added to the view and rows that were removed, for the next tick."""
        self._added.append(added)
        self._removed.append(removed)

    def apply(self, deltas: Sequence[Delta]) -> Delta:
        width = len(self.variables)
        added, removed = stack_rows(self._added, width), stack_rows(self._removed, width)
        self._added, self._removed = [], []
        if not added.shape[0] and not removed.shape[0]:
            return self._nothing
        if not removed.shape[0]:
            return Delta(added, no_rows(width))
        # Rows that were added and removed between two ticks cancel out.
        return bag_difference(added, removed)

    def ids(self) -> Iterable[Ints]:
        yield from self._added
        yield from self._removed

    @property
    def nbytes(self) -> int:
        return sum(rows.nbytes for rows in (*self._added, *self._removed))
