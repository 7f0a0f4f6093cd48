"""VALUES and other rows that are known from the start.

    Δ₁ = R,   Δₜ = 0 for all later t

State: the rows, until the first tick has taken them. Rows of a view are a relation that others read, too: a join takes
it as it is, with its indexes, and nobody copies the rows.
"""

from __future__ import annotations

from headwater.kernel.columns.delta import Delta, no_rows
from headwater.kernel.columns.relation import Relation
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.operators.operator import Operator


class Constant(Operator):
    """Rows that all come at the first tick and stay."""

    def __init__(self, variables: tuple[str, ...], rows: Ints | Relation) -> None:
        self.variables = variables
        self._nothing = Delta.nothing(len(variables))
        self._relation = rows if isinstance(rows, Relation) else None
        self._rows = self._nothing.added if isinstance(rows, Relation) else rows

    def taken(self) -> Relation | None:
        """The relation of a view, for a reader that takes it instead of asking for the rows."""
        relation, self._relation = self._relation, None
        return relation

    def advance(self) -> Delta:
        relation = self.taken()
        if relation is not None:
            return Delta(relation.ids(), no_rows(len(self.variables)))
        if not self._rows.shape[0]:
            return self._nothing
        rows, self._rows = self._rows, self._nothing.added
        return Delta(rows, no_rows(len(self.variables)))

    @property
    def nbytes(self) -> int:
        return self._rows.nbytes
