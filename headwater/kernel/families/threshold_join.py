"""A join by a condition alone: the pairs of a row and a member for which it holds.

    ?sensor :value ?v   ⋈   members (?m ?p0)   FILTER(?v > ?p0)

    Δ(L ⋈_c R) = σ_c( L' × ΔR⁺ + ΔL⁺ × R' )  −  σ_c( L' × ΔR⁻ + ΔL⁻ × R )        L' what stays, R' all there is now

There is no shared variable to index, so every new row is tried with every member. Pairs that fail are not kept, as they
would be in a join below a filter. The condition of a pair that goes has the value that it had when the pair came.
State: the rows of both sides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from headwater.kernel.columns.delta import Condition, Delta, stack_rows
from headwater.kernel.columns.relation import Relation
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.operators.operator import Operator

_AT_ONCE = 1 << 18
"""So many pairs are made at a time."""


class ThresholdJoinOperator(Operator):
    """The pairs that satisfy a condition, which is over the columns of the left, then those of the right."""

    def __init__(self, left: Operator, right: Operator, condition: Condition) -> None:
        self.variables = (*left.variables, *right.variables)
        self._operators = (left, right)
        self._condition = condition
        self._left = Relation(len(left.variables))
        self._right = Relation(len(right.variables))
        self._nothing = Delta.empty(len(self.variables))

    def apply(self, deltas: Sequence[Delta]) -> Delta:
        left, right = deltas
        if left.is_empty and right.is_empty:
            return self._nothing
        if left.is_reset:
            return self._restart(left, right)
        lost, came = self._left.cancel_and_take(left.added, left.removed)
        removed = self._satisfying_pairs(self._left.rows[lost], self._right.ids()) if lost.shape[0] else []
        if not right.is_empty:
            stays = self._left.ids()
            gone, new = self._right.cancel_and_take(right.added, right.removed)
            removed += self._satisfying_pairs(stays, self._right.rows[gone])
            self._right.add(new)
            added = self._satisfying_pairs(stays, new)
        else:
            added = []
        if came.shape[0]:
            added += self._satisfying_pairs(came, self._right.ids())
            self._left.add(came)
        width = len(self.variables)
        return Delta(stack_rows(added, width), stack_rows(removed, width))

    def _restart(self, left: Delta, right: Delta) -> Delta:
        """The delta where the rows of the left were replaced altogether."""
        width = len(self.variables)
        lost, members = self._left.ids(), self._right.ids()
        self._left = Relation(left.added.shape[1])
        self._left.add(left.added)
        _, new = self._right.cancel_and_take(right.added, right.removed)
        self._right.add(new)
        added = stack_rows(self._satisfying_pairs(left.added, self._right.ids()), width)
        return Delta(added, lambda: stack_rows(self._satisfying_pairs(lost, members), width), is_reset=True)

    def _satisfying_pairs(self, left: Ints, right: Ints) -> list[Ints]:
        """The pairs of two bags for which the condition holds."""
        if not left.shape[0] or not right.shape[0]:
            return []
        size = max(1, _AT_ONCE // right.shape[0])
        batches: list[Ints] = []
        for low in range(0, left.shape[0], size):
            some = left[low : low + size]
            pairs = np.empty((some.shape[0] * right.shape[0], len(self.variables)), dtype=np.int64)
            pairs[:, : left.shape[1]] = np.repeat(some, right.shape[0], axis=0)
            pairs[:, left.shape[1] :] = np.tile(right, (some.shape[0], 1))
            holding = pairs[self._condition(pairs)]
            if holding.shape[0]:
                batches.append(holding)
        return batches

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return self._operators

    def ids(self) -> Iterable[Ints]:
        yield self._left.ids()
        yield self._right.ids()

    @property
    def nbytes(self) -> int:
        return self._left.nbytes + self._right.nbytes
