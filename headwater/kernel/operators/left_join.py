"""OPTIONAL (SPARQL 1.1, section 18.5): joined rows, and left rows alone that nothing joins.

    LeftJoin(L, R, c)  =  σ_c(L ⋈ R)  +  { μ ∈ L | n(μ, R) = 0 }

where n counts the partners for which the condition holds (`Matching`). A left row is shown alone when its count returns
to 0, and taken back when it leaves 0; a count that does both within a difference shows nothing.
State: both inputs and one count for each left row.
"""

from __future__ import annotations

from collections.abc import Iterable

from headwater.kernel.columns.delta import Condition, Delta
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.operators.compatibility import Layout
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.partner_counts import Matching
from headwater.kernel.operators.projection import Columns


class LeftJoin(Operator):
    """`condition` is over the columns of the left, then those that only the right has (`joined_variables`)."""

    def __init__(
        self,
        left: Operator,
        right: Operator,
        condition: Condition | None = None,
        variables: tuple[str, ...] | None = None,
    ) -> None:
        self._layout = Layout(left.variables, right.variables)
        self.joined_variables = self._layout.variables
        self.variables = self.joined_variables if variables is None else variables
        self._columns = Columns(self.joined_variables, self.variables)
        self._matching = Matching(left, right, self._layout, condition, wants_joined=True)

    def advance(self) -> Delta:
        matched = self._matching.advance()
        change = matched.joined
        change.added.extend(map(self._layout.padded, matched.alone.added))
        change.removed.extend(map(self._layout.padded, matched.alone.removed))
        return self._columns.of(change.delta(len(self.joined_variables)))

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return self._matching.operators

    def ids(self) -> Iterable[Ints]:
        return self._matching.ids()

    @property
    def nbytes(self) -> int:
        return self._matching.nbytes
