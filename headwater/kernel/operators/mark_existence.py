"""EXISTS as a value: each row with a column that says whether it has a partner on the right.

    Marked(L, R) = { (μ, true) | n(μ, R) > 0 } + { (μ, false) | n(μ, R) = 0 }

For EXISTS inside a larger expression, where a semi-join (`negation`) would drop rows that count. State: that of
`Matching`.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from headwater.kernel.columns.delta import Delta, stacked
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.expressions.comparison import FALSE_ID, TRUE_ID
from headwater.kernel.operators.compatibility import Layout
from headwater.kernel.operators.distinct import Distinct
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.partner_counts import Matching
from headwater.kernel.operators.projection import Projection


class Marked(Operator):
    """The left rows with the truth about their partners in the column `name`; `shared` is what partners agree on."""

    def __init__(self, left: Operator, right: Operator, shared: tuple[str, ...], name: str, *, negated: bool) -> None:
        self.variables = (*left.variables, name)
        self._ids = (TRUE_ID, FALSE_ID) if negated else (FALSE_ID, TRUE_ID)
        keys = Distinct(Projection(right, shared))
        self._matching = Matching(left, keys, Layout(left.variables, shared, shared))

    def advance(self) -> Delta:
        matched = self._matching.advance()
        alone, accompanied = self._ids
        return Delta(
            self._marked(matched.alone.added, alone, matched.accompanied.added, accompanied),
            self._marked(matched.alone.removed, alone, matched.accompanied.removed, accompanied),
        )

    def _marked(self, alone: list[Ints], is_alone: int, accompanied: list[Ints], is_accompanied: int) -> Ints:
        marked = [_with_mark(rows, is_alone) for rows in alone]
        marked += [_with_mark(rows, is_accompanied) for rows in accompanied]
        return stacked(marked, len(self.variables))

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return self._matching.operators

    def ids(self) -> Iterable[Ints]:
        return self._matching.ids()

    @property
    def nbytes(self) -> int:
        return self._matching.nbytes


def _with_mark(rows: Ints, mark: int) -> Ints:
    marked = np.empty((rows.shape[0], rows.shape[1] + 1), dtype=np.int64)
    marked[:, :-1] = rows
    marked[:, -1] = mark
    return marked
