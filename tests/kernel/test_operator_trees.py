"""Every operator's delta is exact: random trees over random deltas equal their slow twin after each tick."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.kernel.joins import join_runs
from headwater.kernel.operators import join_state, multiway_join
from headwater.kernel.operators.distinct import DistinctOperator
from headwater.kernel.operators.multiway_join import MultiwayJoinOperator
from headwater.kernel.operators.operator import Operator
from tests.kernel import naive_algebra as naive
from tests.kernel.manual_input import ManualInput, ResultBag
from tests.kernel.operator_trees import VALUES, Leaf, Tree, trees


def all_operators(root: Operator) -> list[Operator]:
    return [root, *(below for one in root.inputs for below in all_operators(one))]


def check_tick(tree: Tree, fed: Sequence[Leaf], results: ResultBag) -> None:
    """The result is right; and all of it is news if a leaf was empty without which there is none."""
    expected = tree.twin()
    assert tree.operator.variables == expected.variables
    assert results.advance() == expected.bag
    if any(leaf.has_lost_all and tree.operator.needs_rows_of(leaf.operator) for leaf in fed):
        assert results.added == expected.bag


def check_each_tick(tree: Tree, data: st.DataObject) -> None:
    results = ResultBag(tree.operator)
    for _ in range(data.draw(st.integers(1, 5))):
        fed = [leaf for leaf in tree.leaves if data.draw(st.integers(0, 3))]
        for leaf in fed:
            leaf.feed(data.draw)
        check_tick(tree, fed, results)
    assert all(one.nbytes >= 0 for one in all_operators(tree.operator))


def check_runs(tree: Tree, data: st.DataObject) -> None:
    """The first tick alone, as an evaluator does; then single ticks and runs in any order."""
    results = ResultBag(tree.operator)
    sizes = [0, *data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=4))]
    for size in sizes:
        expected = []
        for _ in range(max(1, size)):
            for leaf in tree.leaves:
                if data.draw(st.integers(0, 3)):
                    leaf.feed(data.draw)
                if size:
                    leaf.operator.end_tick()
            expected.append(Counter(tree.twin().bag))
        assert (results.advance_run(size) if size else [results.advance()]) == expected


@settings(max_examples=250)
@given(trees(depth=4), st.data())
def test_a_run_of_ticks_equals_the_ticks_one_by_one(tree: Tree, data: st.DataObject) -> None:
    check_runs(tree, data)


@contextmanager
def open_tables_at_once() -> Iterator[None]:
    """Joins have tables for small ticks from the first tick on, with little room."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(multiway_join, "_WORTH_TABLES", 1)
        patch.setattr(join_state, "_LEAST_ROOM", 12)
        yield


@settings(max_examples=250)
@given(st.data())
def test_small_ticks_equal_the_slow_twin(data: st.DataObject) -> None:
    with open_tables_at_once():
        check_each_tick(data.draw(trees(depth=4)), data)
        check_runs(data.draw(trees(depth=3)), data)


def narrow_join(*, inside: bool, above: bool) -> Tree:
    """A join of two inputs; DISTINCT stands over each of them, over the join, or both."""
    leaves = [Leaf(ManualInput(*variables), unbound=False) for variables in (("a", "b"), ("b",))]

    def twin() -> naive.Table:
        one, other = (naive.Table(leaf.operator.variables, leaf.bag) for leaf in leaves)
        joined = naive.join(*map(naive.distinct, (one, other))) if inside else naive.join(one, other)
        return naive.distinct(joined) if above else joined

    inputs = [DistinctOperator(leaf.operator) if inside else leaf.operator for leaf in leaves]
    join = MultiwayJoinOperator(inputs, ("a", "b"))
    return Tree(DistinctOperator(join) if above else join, twin, leaves, frozenset("ab"))


@pytest.mark.parametrize(("inside", "above"), [(False, False), (False, True), (True, False), (True, True)])
def test_rows_that_come_back_after_all_went_are_news(inside: bool, above: bool) -> None:
    random = Random(7)

    for _ in range(30):
        with open_tables_at_once():
            tree = narrow_join(inside=inside, above=above)
            results = ResultBag(tree.operator)
            for _ in range(12):
                fed = [leaf for leaf in tree.leaves if random.randrange(3)]
                for leaf in fed:
                    width = len(leaf.operator.variables)
                    leaf.replace_all([tuple(random.choices(VALUES[:2], k=width)) for _ in range(random.randrange(3))])
                check_tick(tree, fed, results)


@settings(max_examples=200)
@given(st.data())
def test_joins_that_pause_in_the_middle_of_a_change_equal_the_slow_twin(data: st.DataObject) -> None:
    with open_tables_at_once(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(join_runs, "_MANY_RESULTS", data.draw(st.sampled_from([1, 2, 5])))
        patch.setattr(join_runs, "_MUCH_WORK", data.draw(st.sampled_from([1, 3, 1000])))
        check_each_tick(data.draw(trees(depth=4)), data)
        check_runs(data.draw(trees(depth=3)), data)


@settings(max_examples=400)
@given(trees(), st.data())
def test_a_tree_equals_its_slow_twin_after_each_tick(tree: Tree, data: st.DataObject) -> None:
    check_each_tick(tree, data)


@pytest.mark.soak
@pytest.mark.parametrize("check", [check_each_tick, check_runs])
@pytest.mark.parametrize("block", range(8))
@settings(max_examples=2_500)
@given(tree=trees(depth=4), data=st.data())
def test_many_deeper_trees(
    block: int, check: Callable[[Tree, st.DataObject], None], tree: Tree, data: st.DataObject
) -> None:
    """In blocks, because hypothesis keeps some 30 kB of each example until the test ends."""
    check(tree, data)
