"""VALUES and other rows that never change.

    Δ₁ = R,   Δₜ = ∅ for t > 1

State: the rows, until the first tick. The rows of a view come as a `Relation` that several readers share: a join uses
it with its indexes instead of a copy.
"""

from __future__ import annotations

from collections.abc import Sequence

from headwater.kernel.columns.delta import Delta, no_rows
from headwater.kernel.columns.relation import Relation
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.operators.operator import Operator


class ConstantOperator(Operator):
    """Rows that are all added at the first tick and stay."""

    def __init__(self, variables: tuple[str, ...], rows: Ints | Relation) -> None:
        self.variables = variables
        self._nothing = Delta.empty(len(variables))
        self._relation = rows if isinstance(rows, Relation) else None
        self._rows = self._nothing.added if isinstance(rows, Relation) else rows

    @property
    def size(self) -> int:
        """The number of rows, until they are taken."""
        return self._rows.shape[0] if self._relation is None else self._relation.size

    def take_relation(self) -> Relation | None:
        """Hand out the relation of a view, if it is one: `advance` then returns no rows. None otherwise."""
        relation, self._relation = self._relation, None
        return relation

    def apply(self, deltas: Sequence[Delta]) -> Delta:
        relation = self.take_relation()
        if relation is not None:
            return Delta(relation.ids(), no_rows(len(self.variables)))
        if not self._rows.shape[0]:
            return self._nothing
        rows, self._rows = self._rows, self._nothing.added
        return Delta(rows, no_rows(len(self.variables)))

    @property
    def nbytes(self) -> int:
        return self._rows.nbytes
