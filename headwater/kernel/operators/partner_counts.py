"""How many partners each left row has on the right: what OPTIONAL, MINUS and EXISTS share (OA9).

    n(μ, R) = | { μ' ∈ R | μ' ~ μ and the condition holds for μ ∪ μ' } |        n(μ, R + ΔR) = n(μ, R) + n(μ, ΔR)

The printed equations 8 and 9 of the paper need care. A left row that goes takes away what it stood for, by whether it
had partners: it does not add anything. A right row that goes changes a left row's state only if it was its last
partner. Both follow from the counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from headwater.kernel.columns.delta import Condition, Delta, no_rows, stacked
from headwater.kernel.columns.ring_index import Ints, Links
from headwater.kernel.columns.row_numbers import enlarged, grown
from headwater.kernel.operators.compatibility import Layout, Pairs, Side
from headwater.kernel.operators.operator import Operator


@dataclass(slots=True)
class Change:
    """Rows that came and rows that went, as they are found."""

    added: list[Ints] = field(default_factory=list)
    removed: list[Ints] = field(default_factory=list)

    def delta(self, width: int) -> Delta:
        return Delta(stacked(self.added, width), stacked(self.removed, width))


@dataclass(slots=True)
class Matched:
    """What changed: left rows without a partner, left rows with one, and the joined rows."""

    alone: Change = field(default_factory=Change)
    accompanied: Change = field(default_factory=Change)
    joined: Change = field(default_factory=Change)


class Matching:
    """Two inputs, and for each left row the number of its partners."""

    def __init__(
        self,
        left: Operator,
        right: Operator,
        layout: Layout,
        condition: Condition | None = None,
        *,
        disjoint: bool = True,
        wants_joined: bool = False,
    ) -> None:
        self.operators = (left, right)
        self._layout = layout
        self._condition = condition
        self._wants_joined = wants_joined
        self._wants_rows = wants_joined or condition is not None
        self._none = no_rows(len(layout.variables))
        self._left = Side(len(left.variables), layout.left_shared, disjoint=disjoint)
        self._right = Side(len(right.variables), layout.right_shared, disjoint=disjoint)
        self._counts: Links = np.empty(0, dtype=np.int32)

    def advance(self) -> Matched:
        """Rows go first, so that nothing is made that would not last."""
        matched = Matched()
        left_delta, right_delta = self.operators[0].advance(), self.operators[1].advance()
        gone, come = self._left.exchange(left_delta)
        if gone.shape[0]:
            self._left_rows_go(gone, matched)
        if not right_delta.is_empty:
            self._right_rows_change(right_delta, matched)
        if come.shape[0]:
            self._left_rows_come(come, matched)
        return matched

    def _left_rows_go(self, gone: Ints, matched: Matched) -> None:
        rows = self._left.rows(gone)
        had = self._counts[gone] > 0
        matched.alone.removed.append(rows[~had])
        matched.accompanied.removed.append(rows[had])
        if self._wants_joined:
            matched.joined.removed.append(self._from_left(self._left.marked_rows(gone))[1])

    def _right_rows_change(self, delta: Delta, matched: Matched) -> None:
        gone, come = self._right.exchange(delta)
        lost, joined = self._from_right(self._right.marked_rows(gone))
        matched.joined.removed.append(joined)
        self._right.add(come)
        won, joined = self._from_right(come)
        matched.joined.added.append(joined)
        if not lost.shape[0] and not won.shape[0]:
            return
        # Those with no partner now had one, and those that had none have one, or no pair would have touched them.
        touched, place = np.unique(np.concatenate((lost, won)), return_inverse=True)
        before = self._counts[touched].astype(np.int64)
        after = before - np.bincount(place[: lost.shape[0]], minlength=touched.shape[0])
        after += np.bincount(place[lost.shape[0] :], minlength=touched.shape[0])
        self._counts[touched] = after
        became_alone = self._left.rows(touched[after == 0])
        became_accompanied = self._left.rows(touched[before == 0])
        matched.alone.added.append(became_alone)
        matched.alone.removed.append(became_accompanied)
        matched.accompanied.added.append(became_accompanied)
        matched.accompanied.removed.append(became_alone)

    def _left_rows_come(self, come: Ints, matched: Matched) -> None:
        which, joined = self._from_left(come)
        matched.joined.added.append(joined)
        counts = np.bincount(which, minlength=come.shape[0])
        numbers = self._left.add(come)
        if self._left.capacity > self._counts.shape[0]:
            self._counts = enlarged(self._counts, grown(self._left.capacity, self._counts.shape[0]))
        self._counts[numbers] = counts
        has = counts > 0
        matched.alone.added.append(come[~has, 1:])
        matched.accompanied.added.append(come[has, 1:])

    def _from_left(self, marked: Ints) -> Pairs:
        """Partners of left rows: places, once for each pair, and joined rows where wanted."""
        which, found = self._right.partners(marked, self._layout.left_shared)
        if not which.shape[0] or not self._wants_rows:
            return which, self._none
        return self._judged(which, self._layout.joined(marked[which, 1:], self._right.rows(found)))

    def _from_right(self, marked: Ints) -> Pairs:
        """Partners of right rows: left row numbers, once for each pair, and joined rows where wanted."""
        which, found = self._left.partners(marked, self._layout.right_shared)
        if not which.shape[0] or not self._wants_rows:
            return found, self._none
        return self._judged(found, self._layout.joined(self._left.rows(found), marked[which, 1:]))

    def _judged(self, which: Ints, joined: Ints) -> Pairs:
        if self._condition is None:
            return which, joined
        holds = self._condition(joined)
        return which[holds], joined[holds]

    def ids(self) -> tuple[Ints, Ints]:
        """The values of both sides."""
        return self._left.ids(), self._right.ids()

    @property
    def nbytes(self) -> int:
        return self._left.nbytes + self._right.nbytes + self._counts.nbytes
