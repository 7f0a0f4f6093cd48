"""Each operator on a few rows; the random trees (`test_operator_trees`) cover the rest."""

from __future__ import annotations

import numpy as np
import pytest

from headwater.kernel.columns.delta import UNBOUND
from headwater.kernel.columns.row_counts import bag_difference
from headwater.kernel.operators.compatible_join import CompatibleJoinOperator
from headwater.kernel.operators.constant import ConstantOperator
from headwater.kernel.operators.distinct import DistinctOperator
from headwater.kernel.operators.extend import ExtendOperator
from headwater.kernel.operators.filter import FilterOperator
from headwater.kernel.operators.left_join import LeftJoinOperator
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.projection import ProjectionOperator
from headwater.kernel.operators.recompute import RecomputeOperator
from headwater.kernel.operators.semi_join import MinusOperator, SemiJoinOperator
from headwater.kernel.operators.union import UnionOperator
from tests.kernel.manual_input import Bag, ManualInput, as_bag, as_rows

Rows = list[tuple[int, ...]]


def change(operator: Operator) -> tuple[Rows, Rows]:
    """The added and the removed rows of the next delta, sorted."""
    delta = operator.advance()
    return sorted(as_bag(delta.added).elements()), sorted(as_bag(delta.removed).elements())


def test_optional_shows_a_row_alone_until_it_has_a_partner_and_again_after_the_last() -> None:
    left, right = ManualInput("x", "y"), ManualInput("y", "z")
    operator = LeftJoinOperator(left, right)
    assert operator.variables == ("x", "y", "z")
    left.feed([(1, 1)])
    assert change(operator) == ([(1, 1, UNBOUND)], [])
    right.feed([(1, 5), (1, 6)])
    assert change(operator) == ([(1, 1, 5), (1, 1, 6)], [(1, 1, UNBOUND)])
    right.feed([], [(1, 5)])
    assert change(operator) == ([], [(1, 1, 5)])
    right.feed([(1, 7)], [(1, 6)])
    assert change(operator) == ([(1, 1, 7)], [(1, 1, 6)])
    right.feed([], [(1, 7)])
    assert change(operator) == ([(1, 1, UNBOUND)], [(1, 1, 7)])
    left.feed([], [(1, 1)])
    assert change(operator) == ([], [(1, 1, UNBOUND)])


def test_the_condition_of_optional_decides_who_is_a_partner() -> None:
    left, right = ManualInput("x"), ManualInput("x", "y")
    operator = LeftJoinOperator(left, right, lambda rows: rows[:, 1] > 10, ("y", "x"))
    left.feed([(1,)])
    right.feed([(1, 5)])
    assert change(operator) == ([(UNBOUND, 1)], [])
    right.feed([(1, 11)])
    assert change(operator) == ([(11, 1)], [(UNBOUND, 1)])
    left.feed([], [(1,)])
    assert change(operator) == ([], [(11, 1)])


def test_optional_binds_variables_that_are_unbound_on_the_left() -> None:
    left, right = ManualInput("x", "y"), ManualInput("y", "z")
    operator = LeftJoinOperator(left, right)
    left.feed([(1, UNBOUND)])
    right.feed([(2, 3), (UNBOUND, 4)])
    assert change(operator) == ([(1, UNBOUND, 4), (1, 2, 3)], [])


@pytest.mark.parametrize("negated", [False, True])
def test_exists_changes_with_the_first_partner_and_the_last(negated: bool) -> None:
    left, right = ManualInput("x", "y"), ManualInput("y", "z")
    operator = SemiJoinOperator(left, right, negated=negated)
    left.feed([(1, 1), (2, 2)])
    right.feed([(2, 0)])
    assert change(operator) == ([(1, 1)] if negated else [(2, 2)], [])
    came: tuple[Rows, Rows] = ([(1, 1)], [])
    right.feed([(1, 5), (1, 6)])
    assert change(operator) == (came[::-1] if negated else came)
    right.feed([], [(1, 5)])
    assert change(operator) == ([], [])
    right.feed([], [(1, 6)])
    assert change(operator) == (came if negated else came[::-1])


def test_exists_without_shared_variables_needs_any_right_row() -> None:
    left, right = ManualInput("x"), ManualInput("y")
    operator = SemiJoinOperator(left, right)
    left.feed([(1,), (1,)])
    assert change(operator) == ([], [])
    right.feed([(1,), (2,)])
    assert change(operator) == ([(1,), (1,)], [])
    right.feed([], [(1,), (2,)])
    assert change(operator) == ([], [(1,), (1,)])


def test_exists_with_a_condition_on_both_sides() -> None:
    left, right = ManualInput("x", "limit"), ManualInput("x", "y")
    operator = SemiJoinOperator(left, right, negated=True, condition=lambda rows: rows[:, 2] > rows[:, 1])
    assert operator.joined_variables == ("x", "limit", "y")
    left.feed([(1, 10)])
    right.feed([(1, 5)])
    assert change(operator) == ([(1, 10)], [])
    right.feed([(1, 11)])
    assert change(operator) == ([], [(1, 10)])


def test_a_removed_left_row_removes_only_its_own_output() -> None:
    """Equation 8 as corrected: a left row with a partner is removed without any output."""
    left, right = ManualInput("x"), ManualInput("x")
    operator = MinusOperator(left, right)
    left.feed([(1,), (2,)])
    right.feed([(1,)])
    assert change(operator) == ([(2,)], [])
    left.feed([], [(1,), (2,)])
    assert change(operator) == ([], [(2,)])


def test_a_left_row_appears_when_its_last_partner_is_removed() -> None:
    """Equation 9 as corrected."""
    left, right = ManualInput("x"), ManualInput("x", "y")
    operator = MinusOperator(left, right)
    left.feed([(1,)])
    right.feed([(1, 1), (1, 2)])
    assert change(operator) == ([], [])
    right.feed([], [(1, 1)])
    assert change(operator) == ([], [])
    right.feed([], [(1, 2)])
    assert change(operator) == ([(1,)], [])


def test_minus_needs_a_variable_that_both_bind() -> None:
    left, right = ManualInput("x", "y"), ManualInput("x", "y")
    operator = MinusOperator(left, right)
    left.feed([(1, UNBOUND), (1, 2)])
    right.feed([(UNBOUND, 2)])
    assert change(operator) == ([(1, UNBOUND)], [])


def test_minus_without_shared_variables_takes_nothing_away() -> None:
    left, right = ManualInput("x"), ManualInput("y")
    operator = MinusOperator(left, right)
    left.feed([(1,)])
    right.feed([(1,)])
    assert change(operator) == ([(1,)], [])
    assert operator.inputs == (left,)


def test_a_join_on_variables_that_may_be_unbound() -> None:
    left, right = ManualInput("x", "y"), ManualInput("y", "z")
    operator = CompatibleJoinOperator(left, right)
    left.feed([(1, 1), (2, UNBOUND)])
    right.feed([(1, 5), (UNBOUND, 6)])
    assert change(operator) == (sorted([(1, 1, 5), (1, 1, 6), (2, 1, 5), (2, UNBOUND, 6)]), [])
    right.feed([], [(UNBOUND, 6)])
    assert change(operator) == ([], sorted([(1, 1, 6), (2, UNBOUND, 6)]))


def test_distinct_counts() -> None:
    source = ManualInput("x")
    operator = DistinctOperator(source)
    source.feed([(1,), (1,)])
    assert change(operator) == ([(1,)], [])
    source.feed([(2,)], [(1,)])
    assert change(operator) == ([(2,)], [])
    source.feed([(1,), (3,)], [(1,), (3,)])
    assert change(operator) == ([], [])
    source.feed([], [(1,), (2,)])
    assert change(operator) == ([], [(1,), (2,)])


def test_union_aligns_columns() -> None:
    one, other = ManualInput("x", "y"), ManualInput("z", "x")
    operator = UnionOperator([one, other])
    one.feed([(1, 2)])
    other.feed([(3, 4)])
    assert operator.variables == ("x", "y", "z")
    assert sorted(operator.advance().added.tolist()) == [[1, 2, UNBOUND], [4, UNBOUND, 3]]


def test_rows_pass_through_projection_selection_and_extension() -> None:
    source = ManualInput("x", "y")
    extended = ExtendOperator(source, "sum", lambda rows: rows[:, 0] + rows[:, 1])
    operator = ProjectionOperator(FilterOperator(extended, lambda rows: rows[:, 2] > 3), ("sum", "missing", "x"))
    source.feed([(1, 2), (2, 3)], [(5, 5)])
    assert change(operator) == ([(5, UNBOUND, 2)], [(10, UNBOUND, 5)])


def test_constant_rows_come_once() -> None:
    operator = ConstantOperator(("x",), as_rows([(1,), (1,)], 1))
    assert change(operator) == ([(1,), (1,)], [])
    assert change(operator) == ([], [])


def test_a_recomputed_operator_gives_the_difference_to_its_last_output() -> None:
    calls: list[int] = []

    def first_two(rows: np.ndarray) -> np.ndarray:
        calls.append(rows.shape[0])
        return rows[:2]

    source = ManualInput("x")
    operator = RecomputeOperator(source, first_two)
    source.feed([(3,), (5,), (4,)])
    assert change(operator) == ([(3,), (4,)], [])
    source.feed([(1,)])
    assert change(operator) == ([(1,)], [(4,)])
    assert change(operator) == ([], [])
    source.feed([], [(1,)])
    assert change(operator) == ([(4,)], [(1,)])
    assert calls == [3, 4, 3]


def test_the_difference_of_bags_is_minimal() -> None:
    delta = bag_difference(as_rows([(1,), (1,), (2,)], 1), as_rows([(1,), (3,)], 1))
    expected: tuple[Bag, Bag] = (as_bag(as_rows([(1,), (2,)], 1)), as_bag(as_rows([(3,)], 1)))
    assert (as_bag(delta.added), as_bag(delta.removed)) == expected
