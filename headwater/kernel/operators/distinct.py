"""DISTINCT (OA8; equations 4 and 5, algorithm 7 of the paper).

    ε(R + μ) = ε(R) + μ   if μ ∉ R,       otherwise ε(R)
    ε(R − μ) = ε(R) − μ   if μ ∉ R − μ,   otherwise ε(R)

State: every different row once, with its count. A row is passed on when its count leaves 0 and taken back when it
returns there; one that does both within a difference stays as it was.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from headwater.kernel.columns.delta import Delta
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.row_counts import RowCounts
from headwater.kernel.operators.operator import Operator


class Distinct(Operator):
    """Each row of the input once."""

    def __init__(self, source: Operator) -> None:
        self.variables = source.variables
        self._source = source
        self._counts = RowCounts(len(source.variables))

    def advance(self) -> Delta:
        delta = self._source.advance()
        if delta.is_empty:
            return delta
        if delta.is_fresh:
            before, self._counts = self._counts, RowCounts(len(self.variables))
            self._counts.change(delta.added, 1)
            # The first rows of all; nothing is ever written over them.
            return Delta(self._counts.rows[: self._counts.top], before.present, is_fresh=True)
        counts = self._counts
        counts.compact()
        gone = counts.change(delta.removed, -1)
        come = counts.change(delta.added, 1)
        if gone.shape[0] and come.shape[0]:
            is_back = counts.counts[gone] > 0
            if is_back.any():
                stayed = np.zeros(counts.top, dtype=np.bool_)
                stayed[gone[is_back]] = True
                come, gone = come[~stayed[come]], gone[~is_back]
        return Delta(counts.rows[come], counts.rows[gone])

    def needs(self, source: Operator) -> bool:
        return self._source.needs(source)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._source,)

    def ids(self) -> Iterable[Ints]:
        yield self._counts.ids()

    @property
    def nbytes(self) -> int:
        return self._counts.nbytes
