"""The ring index, the relation and the row counts against dictionaries."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.kernel.columns import row_counts
from headwater.kernel.columns.delta import UNBOUND
from headwater.kernel.columns.relation import Relation, subtract_rows
from headwater.kernel.columns.ring_index import MOST_ROWS, Ints
from headwater.kernel.columns.row_counts import RowCounts
from headwater.kernel.columns.row_ids import RowIdAllocator
from tests.kernel.manual_input import as_bag, as_rows

VALUES = st.sampled_from([0, 1, -1, 2, UNBOUND, (1 << 63) - 1])
ROWS = st.lists(st.tuples(VALUES, VALUES), max_size=30)
KEYS = ((0,), (1,), (1, 0), ())


def partners(relation: Relation, key: tuple[int, ...], probe: tuple[int, ...]) -> Counter[tuple[int, ...]]:
    index = relation.index(key)
    probes = as_rows([probe], len(key))
    heads, counts, total = index.probe(relation.rows, probes, np.arange(len(key), dtype=np.int32))
    which, found = index.expand(heads, counts, total)
    assert which.tolist() == [0] * total
    assert len(set(found.tolist())) == total
    return as_bag(relation.rows[found])


@given(st.lists(st.tuples(ROWS, st.integers(0, 30), st.booleans()), max_size=8), st.booleans())
def test_every_index_finds_exactly_the_rows_of_a_key(
    steps: list[tuple[list[tuple[int, int]], int, bool]], early: bool
) -> None:
    relation = Relation(2)
    if early:
        for key in KEYS:
            relation.index(key)
    expected: list[tuple[int, int]] = []
    for rows, gone, by_value in steps:
        numbers = relation.add(as_rows(rows, 2))
        assert relation.rows[numbers].tolist() == [list(row) for row in rows]
        expected += rows
        leaving, expected = expected[:gone], expected[gone:]
        if by_value:
            assert relation.rows[relation.take(as_rows(leaving, 2))].tolist() == [list(row) for row in leaving]
        else:
            left = Counter(leaving)
            chosen = []
            for number in relation.live().tolist():
                row = tuple(relation.rows[number].tolist())
                if left[row]:
                    left[row] -= 1
                    chosen.append(number)
            relation.remove(np.array(chosen, dtype=np.int64))
        assert relation.size == len(expected)
        assert as_bag(relation.rows[relation.live()]) == Counter(expected)
        for key in KEYS:
            for probe in {tuple(row[c] for c in key) for row in [*expected, *leaving, (5, 5)]}:
                found = partners(relation, key, probe)
                assert found == Counter(row for row in expected if tuple(row[c] for c in key) == probe)


@pytest.mark.parametrize("keys", [10, 3000, 20_000])
def test_many_rows_and_keys(keys: int) -> None:
    random = np.random.default_rng(keys)
    relation = Relation(2)
    index = relation.index((0,))
    rows = np.zeros((0, 2), dtype=np.int64)
    for _ in range(8):
        added = np.stack([random.integers(0, keys, 4000), random.integers(0, 1 << 62, 4000)], axis=1)
        relation.add(added)
        relation.take(rows[:3000])
        rows = np.concatenate([rows[3000:], added])
        probes: Ints = np.arange(keys).reshape(-1, 1)
        _, counts, total = index.probe(relation.rows, probes, np.zeros(1, dtype=np.int32))
        assert counts.tolist() == np.bincount(rows[:, 0], minlength=keys).tolist()
        assert total == rows.shape[0]
    assert index.nbytes < 40 * relation.size


def test_a_table_has_the_size_of_its_keys_not_of_its_rows() -> None:
    relation = Relation(1)
    index = relation.index((0,))
    relation.add(np.arange(100_000).reshape(-1, 1) % 100)
    assert index.table.shape[0] < 1000


def test_rows_that_leave_in_arrival_order_need_no_index_and_others_do() -> None:
    relation = Relation(2)
    rows = as_rows([(n % 3, n) for n in range(20)], 2)
    relation.add(rows[:10])
    without_index = relation.nbytes
    assert relation.rows[relation.take(rows[:4])].tolist() == rows[:4].tolist()
    relation.add(rows[10:])
    assert relation.locate_oldest(rows[5:6]) is None, "it is not the oldest"
    assert relation.size == 16
    assert relation.rows[relation.take(rows[4:9])].tolist() == rows[4:9].tolist()
    assert relation.nbytes < 4 * without_index
    assert relation.rows[relation.take(rows[[12, 10]])].tolist() == rows[[12, 10]].tolist()
    assert relation.locate_oldest(rows[9:10]) is None, "the order is not kept any more"
    assert relation.take(rows[9:10]).shape == (1,)
    assert as_bag(relation.ids()) == as_bag(rows[[11, *range(13, 20)]])


def test_a_cleared_relation_can_be_filled_again() -> None:
    relation = Relation(1)
    for start in (0, 5):
        relation.add(as_rows([(start + n,) for n in range(3)], 1))
        assert partners(relation, (0,), (start + 1,)) == Counter({(start + 1,): 1})
        assert not partners(relation, (0,), (start + 4,))
        relation.clear()
        assert relation.size == 0 and not partners(relation, (0,), (start + 1,))
    relation, alike = Relation(1), as_rows([(9,), (9,)], 1)
    for _ in range(2):
        relation.add(alike)
        relation.clear()
    relation.add(alike)
    assert relation.take(alike).tolist() == [0, 1]
    assert relation.take(alike).tolist() == [-1, -1], "what was there before it was emptied is not there"


def test_taking_what_is_not_there_finds_nothing() -> None:
    relation = Relation(1)
    relation.add(as_rows([(1,), (1,)], 1))
    numbers = relation.take(as_rows([(1,), (2,), (1,), (1,)], 1))
    assert sorted(numbers.tolist()) == [-1, -1, 0, 1]
    assert relation.size == 0


def test_a_row_added_and_removed_in_one_delta_cancels_out() -> None:
    relation = Relation(1)
    relation.add(as_rows([(1,)], 1))
    numbers, added = relation.cancel_and_take(as_rows([(2,), (2,), (3,)], 1), as_rows([(2,), (1,)], 1))
    assert numbers.tolist() == [0]
    assert added.tolist() == [[2], [3]]


def test_a_delta_that_removes_too_much_is_an_error() -> None:
    with pytest.raises(AssertionError, match="never there"):
        subtract_rows(as_rows([(1,)], 1), as_rows([(1,), (1,)], 1))


def test_row_ids_are_used_again() -> None:
    allocator = RowIdAllocator()
    assert allocator.allocate(3).tolist() == [0, 1, 2]
    allocator.release(np.array([1]))
    assert allocator.live().tolist() == [0, 2]
    assert sorted(allocator.allocate(2).tolist()) == [1, 3]
    assert (allocator.top, allocator.size) == (4, 4)


def test_too_many_rows_are_refused_with_advice() -> None:
    allocator = RowIdAllocator()
    allocator.top = MOST_ROWS - 1
    with pytest.raises(MemoryError, match="make the window smaller"):
        allocator.allocate(1)


MANY_ROWS = st.lists(st.tuples(VALUES, st.integers(0, 60)), max_size=30)


@given(st.lists(st.tuples(MANY_ROWS, st.integers(0, 30), st.integers(0, 9)), max_size=8))
def test_row_counts_are_those_of_a_counter(steps: list[tuple[list[tuple[int, int]], int, int]]) -> None:
    counts = RowCounts(2)
    expected: list[tuple[int, int]] = []
    for rows, gone, order in steps:
        if not order:
            # Seldom, so that others than the first go after those have gone in turn for a while, or never.
            expected.reverse()
        counts.compact()
        before = set(expected)
        come = counts.change(as_rows(rows, 2), 1)
        expected += rows
        assert {tuple(row) for row in counts.rows[come].tolist()} == set(rows) - before
        leaving, expected = expected[:gone], expected[gone:]
        ceased = counts.change(as_rows(leaving, 2), -1)
        assert {tuple(row) for row in counts.rows[ceased].tolist()} == set(leaving) - set(expected)
        assert counts.bag().tolist() == sorted(list(row) for row in expected)


@given(st.lists(st.tuples(MANY_ROWS, st.integers(0, 30), st.integers(0, 9), st.booleans()), max_size=8), st.randoms())
def test_rows_counted_in_turn_are_those_of_a_counter(
    steps: list[tuple[list[tuple[int, int]], int, int, bool]], random: Random
) -> None:
    """Rows come and go in any order of changes; the oldest go first, but where the order of the rows was changed."""
    counts = RowCounts(2)
    expected: list[tuple[int, int]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_counts, "_STRETCH", 7)
        for coming, gone, order, is_in_turn in steps:
            if not order:
                expected.reverse()
            changes: list[tuple[tuple[int, int], int]] = []
            crossed: list[int] = []
            for row in [*coming, *[None] * gone]:
                if row is not None and (not expected or random.random() < 0.5):
                    changes.append((row, 1))
                    expected.append(row)
                    is_crossing = expected.count(row) == 1
                elif expected:
                    changes.append((expected.pop(0), -1))
                    is_crossing = changes[-1][0] not in expected
                else:
                    continue
                if is_crossing:
                    crossed.append(len(changes) - 1)
            if is_in_turn:
                signs = np.array([sign for _, sign in changes], dtype=np.int8)
                assert counts.change_in_turn(as_rows([row for row, _ in changes], 2), signs).tolist() == crossed
            else:
                counts.compact()
                for sign in (1, -1):
                    counts.change(as_rows([row for row, one in changes if one == sign], 2), sign)
            assert counts.bag().tolist() == sorted(list(row) for row in expected)


def test_rows_that_leave_in_arrival_order_are_not_looked_up_in_turn() -> None:
    counts = RowCounts(1)
    rows = np.arange(20_000).reshape(-1, 1)
    counts.change_in_turn(rows[:100], np.ones(100, dtype=np.int8))
    pairs = np.stack((rows[100:], rows[:-100]), axis=1).reshape(-1, 1)
    signs = np.tile(np.array([1, -1], dtype=np.int8), pairs.shape[0] // 2)
    assert counts.change_in_turn(pairs, signs).shape[0] == pairs.shape[0]
    has_queue = [counts._queue is not None]
    assert counts.bag().tolist() == rows[-100:].tolist()
    counts.change_in_turn(rows[-50:], np.full(50, -1, dtype=np.int8))
    has_queue.append(counts._queue is not None)
    assert has_queue == [True, False]
    assert counts.bag().tolist() == rows[-100:-50].tolist()


def test_rows_that_are_gone_give_their_memory_back() -> None:
    counts = RowCounts(1)
    for i in range(500):
        counts.compact()
        counts.change(np.arange(i * 10, i * 10 + 10).reshape(-1, 1), 1)
        counts.change(np.arange(i * 10, i * 10 + 10).reshape(-1, 1), -1)
    assert counts.nbytes < 5000


def test_rows_that_leave_in_arrival_order_are_never_looked_up() -> None:
    counts = RowCounts(1)
    rows = np.arange(5000).reshape(-1, 1)
    counts.change(rows[:100], 1)
    for i in range(100, 5000, 50):
        counts.compact()
        assert counts.rows[counts.change(rows[i - 100 : i - 50], -1)].tolist() == rows[i - 100 : i - 50].tolist()
        counts.change(rows[i : i + 50], 1)
    assert counts.bag().tolist() == rows[-100:].tolist()
    has_queue = [counts._queue is not None]
    counts.change(rows[-50:], -1)
    has_queue.append(counts._queue is not None)
    assert has_queue == [True, False]
    assert counts.bag().tolist() == rows[-100:-50].tolist()
