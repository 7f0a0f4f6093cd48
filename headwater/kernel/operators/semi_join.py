"""MINUS, FILTER EXISTS and FILTER NOT EXISTS (OA9; equations 6 to 9 of the paper, the last two corrected).

    (L + μ) \\ R = L \\ R + μ                      if n(μ, R) = 0          otherwise L \\ R           (6)
    L \\ (R + μ) = L \\ R − { μ' ∈ L \\ R | μ' ~ μ }                                                 (7)
    (L − μ) \\ R = L \\ R − μ                      if n(μ, R) = 0          otherwise L \\ R           (8)
    L \\ (R − μ) = L \\ R + { μ' ∈ L | μ' ~ μ, n(μ', R − μ) = 0 }                                    (9)

n counts partners (`Matching`). Without a condition only the values of the shared variables matter on the right, each
once, so a key that many right rows have touches the left rows when the first comes and when the last goes.
State: the left rows with their counts, and the right keys with theirs.
"""

from __future__ import annotations

from collections.abc import Iterable

from headwater.kernel.columns.delta import Condition, Delta
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.operators.compatibility import Layout
from headwater.kernel.operators.distinct import Distinct
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.partner_counts import Matching
from headwater.kernel.operators.projection import Projection


def shared_variables(left: Operator, right: Operator) -> tuple[str, ...]:
    return tuple(variable for variable in left.variables if variable in right.variables)


class SemiJoin(Operator):
    """The left rows that have a partner on the right, or with `negated` those that have none.

    `shared` are the variables on which they must agree, by default all that both have; without any, every right row is
    a partner. `condition` is over the columns of the left, then those that only the right has (`joined_variables`).
    """

    def __init__(
        self,
        left: Operator,
        right: Operator,
        shared: tuple[str, ...] | None = None,
        *,
        negated: bool = False,
        condition: Condition | None = None,
    ) -> None:
        self.variables = left.variables
        self._negated = negated
        on = shared_variables(left, right) if shared is None else shared
        self.joined_variables = Layout(left.variables, right.variables, on).variables
        if condition is None:
            right = Distinct(Projection(right, on))
        self._matching = Matching(left, right, Layout(left.variables, right.variables, on), condition)

    def advance(self) -> Delta:
        matched = self._matching.advance()
        change = matched.alone if self._negated else matched.accompanied
        return change.delta(len(self.variables))

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return self._matching.operators

    def ids(self) -> Iterable[Ints]:
        return self._matching.ids()

    @property
    def nbytes(self) -> int:
        return self._matching.nbytes


class Minus(Operator):
    """The left rows that agree with no right row on the variables that both bind, where there is at least one.

    Without a shared variable nothing is ever removed, and the right is not looked at.
    """

    def __init__(self, left: Operator, right: Operator, shared: tuple[str, ...] | None = None) -> None:
        self.variables = left.variables
        self._left = left
        on = shared_variables(left, right) if shared is None else shared
        self._matching: Matching | None = None
        if on:
            keys = Distinct(Projection(right, on))
            self._matching = Matching(left, keys, Layout(left.variables, on, on), disjoint=False)

    def advance(self) -> Delta:
        if self._matching is None:
            return self._left.advance()
        return self._matching.advance().alone.delta(len(self.variables))

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._left,) if self._matching is None else self._matching.operators

    def ids(self) -> Iterable[Ints]:
        return () if self._matching is None else self._matching.ids()

    @property
    def nbytes(self) -> int:
        return 0 if self._matching is None else self._matching.nbytes
