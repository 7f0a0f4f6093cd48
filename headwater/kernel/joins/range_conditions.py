"""Comparisons between inputs of a join, for which the join may keep ordered indexes (OA13).

    ?a :at ?t1 . ?b :at ?t2   FILTER(?t2 > ?t1 && ?t2 <= ?t1 + 5)

A comparison is solved for an expression of each input, which gives an order and a bound: ?t2 of the second input is
bounded by ?t1 and ?t1 + 5 of the first, and ?t1 of the first by ?t2 - 5 and ?t2 of the second. The order keys
(`columns.order_keys`) of these become columns of the inputs, behind those of their variables. A row of one input then
finds its partners by an ordered index of the other, between two of its own columns.

The keys narrow the choice of partners. Whether a result satisfies the condition, the condition itself decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from headwater.kernel.columns.order_keys import write_order_keys
from headwater.kernel.columns.ring_index import Ints

EXCHANGED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}

Place = tuple[int, int]
"""A value of a joined row: the input and the column."""


@dataclass(frozen=True, slots=True)
class RangeSide:
    """One side of a comparison: an expression over one input, as text, and the ids of its values for some rows.

    `is_moved`: a constant was brought to this side (`columns.order_keys`).
    """

    input_index: int
    text: str
    compute: Callable[[Ints], Ints]
    is_moved: bool = False

    @property
    def identity(self) -> tuple[int, str, bool]:
        """What sides with the same values have in common."""
        return self.input_index, self.text, self.is_moved


@dataclass(frozen=True, slots=True)
class RangeCondition:
    """A comparison by `<`, `<=`, `>`, `>=` or `=`, solved for an expression of one input: its order, and its bound."""

    order: RangeSide
    operator: str
    bound: RangeSide

    @classmethod
    def both_ways(cls, left: RangeSide, operator: str, right: RangeSide) -> list[RangeCondition]:
        """A comparison solved for either side."""
        return [cls(left, operator, right), cls(right, EXCHANGED[operator], left)]

    def __str__(self) -> str:
        return f"{self.order.text} {self.operator} {self.bound.text}"


@dataclass(frozen=True, slots=True)
class RangeBounds:
    """How rows of an input are found by an order: the column with their order keys, and where the bounds are."""

    column: int
    lower: tuple[Place, ...]
    upper: tuple[Place, ...]


class JoinRanges:
    """The comparisons between inputs of a join of which each has so many columns.

    `self_joins` has the second of two inputs that share a relation by the first: the columns of both are in it.
    """

    def __init__(
        self, conditions: Sequence[RangeCondition], widths: Sequence[int], self_joins: Mapping[int, int]
    ) -> None:
        self.conditions = tuple(conditions)
        self._widths = widths
        self._owners = {second: first for first, second in self_joins.items()}
        self._sides: dict[int, list[RangeSide]] = {}
        for condition in conditions:
            for side in (condition.order, condition.bound):
                sides = self._sides.setdefault(self._owner(side.input_index), [])
                if not any(side.identity == other.identity for other in sides):
                    sides.append(side)
        self.bounds_of = cache(self._find_bounds)

    def _owner(self, input_index: int) -> int:
        """The input whose relation it shares, or itself."""
        return self._owners.get(input_index, input_index)

    def width_of(self, input_index: int) -> int:
        """The number of columns of an input, with those of the order keys."""
        return self._widths[input_index] + len(self._sides.get(self._owner(input_index), ()))

    def widen(self, input_index: int, rows: Ints) -> Ints:
        """Rows of an input with their order keys."""
        sides = self._sides.get(self._owner(input_index), ())
        if not sides:
            return rows
        width = self._widths[input_index]
        wide = np.empty((rows.shape[0], width + len(sides)), dtype=np.int64)
        wide[:, :width] = rows
        for place, side in enumerate(sides, width):
            write_order_keys(side.compute(rows), wide, place, is_moved=side.is_moved)
        return wide

    def column_names(self, input_index: int, variables: tuple[str, ...]) -> tuple[str, ...]:
        """The columns of an input in words: its variables, then the expressions of its order keys."""
        return (*variables, *(side.text for side in self._sides.get(self._owner(input_index), ())))

    def _column(self, side: RangeSide) -> int:
        sides = self._sides[self._owner(side.input_index)]
        return self._widths[side.input_index] + [other.identity for other in sides].index(side.identity)

    def _find_bounds(self, joined: int, input_index: int) -> RangeBounds | None:
        """How rows of an input are found from those of the inputs `joined` (as bits); None if nothing compares them.

        If several expressions of the input are compared, the one with the most comparisons is its order.
        """
        found: dict[int, tuple[list[Place], list[Place]]] = {}
        for one in self.conditions:
            if one.order.input_index == input_index and joined >> one.bound.input_index & 1:
                lower, upper = found.setdefault(self._column(one.order), ([], []))
                place = (one.bound.input_index, self._column(one.bound))
                lower.extend([place] * (one.operator in (">", ">=", "=")))
                upper.extend([place] * (one.operator in ("<", "<=", "=")))
        if not found:
            return None
        column = max(found, key=lambda c: (bool(found[c][0]) and bool(found[c][1]), sum(map(len, found[c]))))
        lower, upper = found[column]
        return RangeBounds(column, tuple(dict.fromkeys(lower)), tuple(dict.fromkeys(upper)))
