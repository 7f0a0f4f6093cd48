"""Random trees of operators, each with its slow twin, and random deltas for their leaves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from operator import eq, ge, gt, le, lt

import numpy as np
from hypothesis import strategies as st

from headwater.kernel.columns.delta import UNBOUND, Mask
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.joins.range_conditions import RangeCondition, RangeSide
from headwater.kernel.operators.compatible_join import CompatibleJoinOperator
from headwater.kernel.operators.constant import ConstantOperator
from headwater.kernel.operators.distinct import DistinctOperator
from headwater.kernel.operators.extend import ExtendOperator
from headwater.kernel.operators.filter import FilterOperator
from headwater.kernel.operators.left_join import LeftJoinOperator
from headwater.kernel.operators.multiway_join import MultiwayJoinOperator
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.projection import ProjectionOperator
from headwater.kernel.operators.recompute import RecomputeOperator
from headwater.kernel.operators.semi_join import MinusOperator, SemiJoinOperator
from headwater.kernel.operators.union import UnionOperator
from headwater.terms.ids.inline_layout import INTEGER_ZERO
from tests.kernel import naive_algebra as naive
from tests.kernel.manual_input import Bag, ManualInput, as_rows

VARIABLES = ("a", "b", "c", "d")
VALUES = (INTEGER_ZERO + 1, INTEGER_ZERO + 2, INTEGER_ZERO + 3)
"""Ids of integers, which are ordered as they are."""
COMPARISONS = {"<": lt, "<=": le, ">": gt, ">=": ge, "=": eq}
Draw = Callable[[st.SearchStrategy], object]


@dataclass
class Leaf:
    """A leaf and all rows that it has had so far."""

    operator: ManualInput
    unbound: bool
    bag: Bag = field(default_factory=Counter)
    has_lost_all: bool = False
    """Whether the last delta removed all old rows at once, and there were some."""

    def feed(self, draw) -> None:
        """Feed a random delta: it adds rows, removes some old ones, and sometimes adds and removes a row; or it removes
        all old rows at once (`Delta.is_reset`)."""
        values = (*VALUES, UNBOUND) if self.unbound else VALUES
        row = st.tuples(*(st.sampled_from(values) for _ in self.operator.variables))
        added = draw(st.lists(row, max_size=5))
        there = sorted(self.bag.elements())
        self.has_lost_all = False
        if draw(st.integers(0, 7)) == 0:
            self.replace_all(added)
            return
        removed = draw(st.lists(st.sampled_from(range(len(there))), unique=True, max_size=6)) if there else []
        gone = [there[i] for i in removed]
        gone += [new for new in added if draw(st.integers(0, 9)) == 0]
        self.operator.feed(added, gone)
        self.bag.update(added)
        self.bag.subtract(gone)
        self.bag = +self.bag

    def replace_all(self, added: Iterable[tuple[int, ...]]) -> None:
        """Remove all old rows at once, and add some."""
        there, new = sorted(self.bag.elements()), list(added)
        self.has_lost_all = bool(there)
        self.operator.replace_all(new, there)
        self.bag = Counter(new)


@dataclass
class Tree:
    """An operator, its twin, and the leaves below it. `certain` are the variables that are always bound."""

    operator: Operator
    twin: Callable[[], naive.Table]
    leaves: list[Leaf]
    certain: frozenset[str]


def leaf(draw) -> Tree:
    variables = tuple(draw(st.lists(st.sampled_from(VARIABLES), unique=True, max_size=3)))
    if draw(st.integers(0, 5)) == 0:
        rows = draw(st.lists(st.tuples(*(st.sampled_from(VALUES) for _ in variables)), max_size=4))
        bag = Counter(rows)
        return Tree(
            ConstantOperator(variables, as_rows(rows, len(variables))),
            lambda: naive.Table(variables, bag),
            [],
            frozenset(variables),
        )
    fed = Leaf(ManualInput(*variables), draw(st.booleans()))
    return Tree(
        fed.operator,
        lambda: naive.Table(variables, fed.bag),
        [fed],
        frozenset() if fed.unbound else frozenset(variables),
    )


def is_even(variables: tuple[str, ...]) -> tuple[Callable[[Ints], Mask], Callable[[naive.Mapping], bool]]:
    """A condition on whole rows, and its twin: the sum of what is bound is even."""

    def vectorised(rows: Ints) -> Mask:
        even: Mask = np.where(rows == UNBOUND, 0, rows).sum(axis=1) % 2 == 0
        return even

    return vectorised, lambda mapping: sum(mapping.get(v, 0) for v in variables) % 2 == 0


def always(mapping: naive.Mapping) -> bool:
    return True


def unary(draw, inner: Tree) -> Tree:
    operator, twin, leaves = inner.operator, inner.twin, inner.leaves
    variables = operator.variables
    match draw(st.sampled_from(["distinct", "project", "select", "extend", "smallest"])):
        case "distinct":
            return Tree(DistinctOperator(operator), lambda: naive.distinct(twin()), leaves, inner.certain)
        case "project":
            kept = tuple(draw(st.permutations(variables)))[: draw(st.integers(0, len(variables)))]
            certain = inner.certain & set(kept)
            return Tree(ProjectionOperator(operator, kept), lambda: naive.project(twin(), kept), leaves, certain)
        case "select":
            fast, slow = is_even(variables)
            return Tree(FilterOperator(operator, fast), lambda: naive.select(twin(), slow), leaves, inner.certain)
        case "extend":
            fresh = next((v for v in VARIABLES if v not in variables), None)
            if fresh is None:
                return inner
            computed, slow = is_even(variables)
            return Tree(
                ExtendOperator(operator, fresh, lambda rows: computed(rows).astype(np.int64) + 1),
                lambda: naive.extend(twin(), fresh, lambda mapping: int(slow(mapping)) + 1),
                leaves,
                inner.certain | {fresh},
            )
    n = draw(st.integers(0, 4))
    return Tree(
        RecomputeOperator(operator, lambda rows: rows[:n]), lambda: naive.smallest(twin(), n), leaves, inner.certain
    )


def binary(draw, left: Tree, right: Tree) -> Tree:
    one, other, leaves = left.operator, right.operator, left.leaves + right.leaves
    names = (*one.variables, *(v for v in other.variables if v not in one.variables))
    fast, slow = is_even(names) if draw(st.booleans()) else (None, always)
    match draw(st.sampled_from(["join", "left join", "exists", "minus", "union"])):
        case "join":
            return Tree(
                CompatibleJoinOperator(one, other),
                lambda: naive.join(left.twin(), right.twin()),
                leaves,
                left.certain | right.certain,
            )
        case "left join":
            return Tree(
                LeftJoinOperator(one, other, fast),
                lambda: naive.left_join(left.twin(), right.twin(), slow),
                leaves,
                left.certain,
            )
        case "exists":
            negated = draw(st.booleans())
            return Tree(
                SemiJoinOperator(one, other, negated=negated, condition=fast),
                lambda: naive.exists(left.twin(), right.twin(), slow, negated=negated),
                leaves,
                left.certain,
            )
        case "minus":
            return Tree(MinusOperator(one, other), lambda: naive.minus(left.twin(), right.twin()), leaves, left.certain)
    return Tree(
        UnionOperator([one, other]),
        lambda: naive.union(left.twin(), right.twin()),
        leaves,
        left.certain & right.certain,
    )


def comparisons(
    draw, parts: list[Tree], names: tuple[str, ...]
) -> tuple[list[RangeCondition], Callable[[Ints], Mask], Callable[[naive.Mapping], bool]]:
    """Some comparisons between variables of different parts, and all of them as a condition and its twin."""
    places = [(i, v) for i, part in enumerate(parts) for v in part.operator.variables]
    pairs = [(a, b) for a in places for b in places if a[0] != b[0] and a[1] != b[1]]
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=2)) if pairs else []
    listed = [(a, draw(st.sampled_from(sorted(COMPARISONS))), b) for a, b in chosen]

    def side(place: tuple[int, str]) -> RangeSide:
        column = parts[place[0]].operator.column_of(place[1])
        return RangeSide(*place, lambda rows: rows[:, column])

    def fast(rows: Ints) -> Mask:
        holds: Mask = np.ones(rows.shape[0], np.bool_)
        for (_, a), operator, (_, b) in listed:
            left, right = rows[:, names.index(a)], rows[:, names.index(b)]
            holds &= (left != UNBOUND) & (right != UNBOUND) & COMPARISONS[operator](left, right)
        return holds

    def slow(mapping: naive.Mapping) -> bool:
        return all(
            a in mapping and b in mapping and COMPARISONS[operator](mapping[a], mapping[b])
            for (_, a), operator, (_, b) in listed
        )

    return (
        [one for a, operator, b in listed for one in RangeCondition.both_ways(side(a), operator, side(b))],
        fast,
        slow,
    )


def multiway(draw, parts: list[Tree]) -> Tree | None:
    """A multiway join, if the variables that the parts share are always bound."""
    times = Counter(v for part in parts for v in part.operator.variables)
    if any(times[v] > 1 and v not in part.certain for part in parts for v in part.operator.variables):
        return None
    names = tuple(draw(st.permutations(sorted(times))))
    order = tuple(draw(st.permutations(range(len(parts))))) if draw(st.booleans()) else None
    limit = draw(st.sampled_from([None, 0.5]))
    ranges, fast, slow = comparisons(draw, parts, names)

    def twin() -> naive.Table:
        result = parts[0].twin()
        for part in parts[1:]:
            result = naive.join(result, part.twin())
        return naive.select(naive.project(result, names), slow)

    join = MultiwayJoinOperator(
        [part.operator for part in parts],
        names,
        order=order,
        inserts_per_probe=limit,
        condition=fast if ranges else None,
        ranges=ranges,
    )
    if ranges and draw(st.booleans()):
        join.switch_order()
    return Tree(
        join,
        twin,
        [one for part in parts for one in part.leaves],
        frozenset(v for part in parts for v in part.certain),
    )


@st.composite
def trees(draw, depth: int = 3) -> Tree:
    kind = draw(st.integers(0, 5)) if depth else 0
    if kind == 0:
        return leaf(draw)
    if kind <= 2:
        return unary(draw, draw(trees(depth - 1)))
    if kind <= 4:
        return binary(draw, draw(trees(depth - 1)), draw(trees(depth - 1)))
    parts = [draw(trees(depth - 2 if depth > 1 else 0)) for _ in range(draw(st.integers(1, 4)))]
    return multiway(draw, parts) or parts[0]
