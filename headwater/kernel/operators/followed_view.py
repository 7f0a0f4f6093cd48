"""A view that changes now and then, as an input like any other.

    Δ₁ = R,   Δₜ = what came to the view and what went since the tick before

State: what no tick has seen yet. A reader keeps the rows it needs, as it does of every input.
"""

from __future__ import annotations

from collections.abc import Iterable

from headwater.kernel.columns.delta import Delta, no_rows, stacked
from headwater.kernel.columns.relation import Relation
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.recomputed import difference


class Followed(Operator):
    """The rows of a view, and from then on its differences."""

    def __init__(self, variables: tuple[str, ...], relation: Relation) -> None:
        self.variables = variables
        self._added: list[Ints] = [relation.ids()]
        self._removed: list[Ints] = []
        self._nothing = Delta.nothing(len(variables))

    def differ(self, added: Ints, removed: Ints) -> None:
        """Rows that have come to the view and rows that have gone."""
        self._added.append(added)
        self._removed.append(removed)

    def advance(self) -> Delta:
        width = len(self.variables)
        added, removed = stacked(self._added, width), stacked(self._removed, width)
        self._added, self._removed = [], []
        if not added.shape[0] and not removed.shape[0]:
            return self._nothing
        if not removed.shape[0]:
            return Delta(added, no_rows(width))
        # What came and went in between was never there for those who read this.
        return difference(added, removed)

    def ids(self) -> Iterable[Ints]:
        yield from self._added
        yield from self._removed

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in (*self._added, *self._removed))
