"""The multiway join: exact for any shape, adaptive for each row, small, and without indexes that no input needs."""

from __future__ import annotations

from collections import Counter
from functools import reduce
from itertools import permutations
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.kernel.columns.relation import IndexUse
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.operators.constant import ConstantOperator
from headwater.kernel.operators.multiway_join import MultiwayJoinOperator
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.triple_patterns import RenameOperator, SharedOperator, TickClock
from tests.kernel import naive_algebra as naive
from tests.kernel.manual_input import Bag, ManualInput, ResultBag, as_bag
from tests.kernel.operator_trees import Leaf

NO_PAIRS: Ints = np.zeros((0, 2), dtype=np.int64)
SHAPES: dict[str, list[tuple[str, ...]]] = {
    "chain": [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")],
    "star": [("a", "b"), ("a", "c"), ("a", "d")],
    "cycle": [("a", "b"), ("b", "c"), ("c", "a")],
    "two keys": [("a", "b", "c"), ("c", "a", "d"), ("d", "b")],
    "cross": [("a",), ("b",), ("c", "a")],
    "no variable": [("a", "b"), (), ("b",)],
    "same": [("a", "b"), ("b", "a"), ("a", "b")],
}


def keys(inputs: list[ManualInput]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(v for one in inputs for v in one.variables))


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=40)
@given(data=st.data())
def test_a_join_of_any_shape_equals_the_definition(shape: str, data: st.DataObject) -> None:
    leaves = [Leaf(ManualInput(*variables), unbound=False) for variables in SHAPES[shape]]
    inputs = [leaf.operator for leaf in leaves]
    orders: list[tuple[int, ...] | None] = [None, *permutations(range(len(inputs)))]
    order = data.draw(st.sampled_from(orders))
    limit = data.draw(st.sampled_from([None, 0.1]))
    condition = data.draw(st.sampled_from([None, lambda rows: rows[:, 0] != rows[:, -1]]))
    join = MultiwayJoinOperator(inputs, keys(inputs), order=order, inserts_per_probe=limit, condition=condition)
    results = ResultBag(join)
    looks_early = data.draw(st.booleans())
    for _ in range(6):
        for leaf in leaves:
            leaf.feed(data.draw)
        expected = naive.Table(leaves[0].operator.variables, leaves[0].bag)
        for leaf in leaves[1:]:
            expected = naive.join(expected, naive.Table(leaf.operator.variables, leaf.bag))
        bag = naive.project(expected, join.variables).bag
        if condition is not None:
            bag = Counter({row: n for row, n in bag.items() if row[0] != row[-1]})
        with patch("headwater.kernel.operators.multiway_join._WORTH_LOOKING_AHEAD", 1 if looks_early else 1000):
            assert results.advance() == bag
        assert join.result_count == bag.total()


TWINS: dict[str, list[list[tuple[str, ...]]]] = {
    "posts with a tag by one user": [[("p", "t"), ("q", "t")], [("u", "p"), ("u", "q")]],
    "a path of one pattern": [[("a", "b"), ("b", "c"), ("c", "d")]],
    "four of a kind": [[("a", "b"), ("a", "c"), ("d", "b"), ("d", "c")]],
    "that share nothing": [[("a", "b"), ("c", "d")], [("a", "c")]],
    "nothing but a product": [[("a",), ("b",)]],
    "with a static view": [[("a", "b"), ("b", "c"), ("d", "c")]],
}


@pytest.mark.parametrize("shape", TWINS)
@settings(max_examples=40)
@given(data=st.data())
def test_self_joins_equal_joins_of_separate_inputs(shape: str, data: st.DataObject) -> None:
    clock = TickClock()
    leaves = [Leaf(ManualInput(*names[0]), unbound=False) for names in TWINS[shape]]
    inputs: list[Operator] = []
    bags = []
    for leaf, names in zip(leaves, TWINS[shape], strict=True):
        shared = SharedOperator(leaf.operator, clock)
        inputs += [RenameOperator(shared, variables) for variables in names]
        bags += [leaf] * len(names)
    static: list[naive.Table] = []
    if "static" in shape:
        # A static input screens the first of the three: that one has no twin.
        inputs.append(ConstantOperator(("a",), np.array([[0], [1]])))
        static.append(naive.Table(("a",), Counter([(0,), (1,)])))
    order = data.draw(st.sampled_from([None, *permutations(range(len(inputs)))]))
    variables = tuple(dict.fromkeys(v for one in inputs for v in one.variables))
    results = ResultBag(MultiwayJoinOperator(inputs, variables, order=order))

    def feed_tick() -> Bag:
        for leaf in leaves:
            leaf.feed(data.draw)
        tables = [naive.Table(one.variables, leaf.bag) for one, leaf in zip(inputs, bags, strict=False)]
        return naive.project(reduce(naive.join, [*tables, *static]), variables).bag

    with patch("headwater.kernel.operators.multiway_join._WORTH_TABLES", data.draw(st.sampled_from([1, 8]))):
        for ticks in data.draw(st.lists(st.integers(1, 4), min_size=3, max_size=5)):
            clock.tick += 1
            if ticks == 1:
                expected = feed_tick()
                assert results.advance() == expected
                continue
            all_expected: list[Bag] = []
            for _ in range(ticks):
                all_expected.append(Counter(feed_tick()))
                for leaf in leaves:
                    leaf.operator.end_tick()
            assert results.advance_run(ticks) == all_expected


def test_a_self_join_is_reset_with_thousands_of_rows() -> None:
    random = np.random.default_rng(11)
    clock, source = TickClock(), ManualInput("v0", "v1")
    shared = SharedOperator(source, clock)
    join = MultiwayJoinOperator(
        [RenameOperator(shared, ("a", "b")), RenameOperator(shared, ("b", "c"))], ("a", "b", "c")
    )
    results = ResultBag(join)
    before: list[tuple[int, ...]] = []
    for size in (1000, 800, 3, 0, 1200):
        rows = [tuple(row) for row in random.integers(0, 1000, (size, 2)).tolist()]
        source.replace_all(rows, before)
        clock.tick += 1
        ends: dict[int, list[int]] = {}
        for begin, end in rows:
            ends.setdefault(begin, []).append(end)
        assert results.advance() == Counter((a, b, c) for a, b in rows for c in ends.get(b, ()))
        before = rows


def test_a_self_join_keeps_its_rows_once() -> None:
    clock = TickClock()
    rows = np.random.default_rng(5).integers(0, 1 << 60, (10_000, 2))

    def memory(one: ManualInput, other: ManualInput) -> int:
        sources = {source: SharedOperator(source, clock) for source in (one, other)}
        join = MultiwayJoinOperator(
            [RenameOperator(sources[one], ("a", "b")), RenameOperator(sources[other], ("b", "c"))], ("a", "b", "c")
        )
        for source in sources:
            source.feed_rows(rows, rows[:0])
        clock.tick += 1
        assert not join.advance().added.shape[0]
        return join.nbytes

    twice = ManualInput("v0", "v1")
    assert memory(twice, twice) < 0.7 * memory(ManualInput("v0", "v1"), ManualInput("v0", "v1"))


def joined_by_sorting(tables: list[Ints]) -> list[tuple[int, ...]]:
    """A chain join of pairs, by dictionaries."""
    found = [tuple(row) for row in tables[0].tolist()]
    for table in tables[1:]:
        by_key: dict[int, list[int]] = {}
        for key, value in table.tolist():
            by_key.setdefault(key, []).append(value)
        found = [(*row, value) for row in found for value in by_key.get(row[-1], [])]
    return sorted(found)


def test_large_batches_that_grow_and_shrink_equal_a_join_from_scratch() -> None:
    random = np.random.default_rng(7)
    inputs = [ManualInput("x", "y"), ManualInput("y", "z"), ManualInput("z", "w")]
    results = ResultBag(MultiwayJoinOperator(inputs, ("x", "y", "z", "w")))
    tables = [NO_PAIRS] * 3
    for size in (500, 3000, 50, 2000, 0, 1000):
        for i, one in enumerate(inputs):
            stays = random.random(len(tables[i])) < 0.5
            stays[size:] = False
            added = random.integers(0, 1000, (max(0, size - int(stays.sum())), 2))
            one.feed_rows(added, tables[i][~stays])
            tables[i] = np.concatenate([tables[i][stays], added])
        assert sorted(results.advance().elements()) == joined_by_sorting(tables)


def test_triangles_among_thousands_of_edges() -> None:
    random = np.random.default_rng(9)
    inputs = [ManualInput("a", "b"), ManualInput("b", "c"), ManualInput("c", "a")]
    join = MultiwayJoinOperator(inputs, ("a", "b", "c"))
    results = ResultBag(join)
    edges: list[list[tuple[int, ...]]] = [[], [], []]
    for _ in range(3):
        for one, there in zip(inputs, edges, strict=True):
            more = [tuple(row) for row in random.integers(0, 60, (900, 2)).tolist()]
            gone = there[: len(there) // 2]
            one.feed(more, gone)
            there[:] = there[len(gone) :] + more
        closing = Counter(edges[2])
        after: dict[int, list[int]] = {}
        for b, c in edges[1]:
            after.setdefault(b, []).append(c)
        expected = Counter({(a, b, c): 0 for a, b in edges[0] for c in after.get(b, ())})
        for a, b in edges[0]:
            for c in after.get(b, ()):
                expected[a, b, c] += closing[c, a]
        assert results.advance() == +expected


def test_each_row_is_joined_first_where_it_has_the_fewest_partners() -> None:
    left, middle, right = inputs = [ManualInput("x", "y"), ManualInput("y", "z"), ManualInput("z", "w")]
    join = MultiwayJoinOperator(inputs, ("x", "y", "z", "w"))
    left.feed([(i, 1) for i in range(1000)] + [(0, 2)])
    right.feed([(1, 0)] + [(2, i) for i in range(1000)])
    join.advance()
    middle.feed([(1, 1), (2, 2)])
    assert join.advance().added.shape[0] == 2000
    assert join.steps == {(1, 0): 1, (1, 2): 1, (2, 0): 1, (2, 2): 1}


def test_a_fixed_order_is_kept() -> None:
    left, middle, right = inputs = [ManualInput("x", "y"), ManualInput("y", "z"), ManualInput("z", "w")]
    join = MultiwayJoinOperator(inputs, ("x", "y", "z", "w"), order=(0, 1, 2))
    left.feed([(i, 1) for i in range(100)])
    right.feed([(1, 0)])
    join.advance()
    middle.feed([(1, 1)])
    assert join.advance().added.shape[0] == 100
    assert join.steps == {(1, 0): 1, (2, 2): 100}


def test_an_input_that_never_loses_a_row_costs_no_removal_index() -> None:
    random = np.random.default_rng(3)
    static, window = ManualInput("x", "y"), ManualInput("y", "z")
    join = MultiwayJoinOperator([static, window], ("x", "y", "z"))
    static.feed_rows(random.integers(0, 5000, (5000, 2)), NO_PAIRS)
    window.feed_rows(random.integers(0, 5000, (100, 2)), NO_PAIRS)
    before = as_bag(join.advance().added)
    static_bytes = 5000 * (2 * 8 + 2 * 8 + 2 * 4)
    assert join.nbytes < 1.3 * static_bytes
    static.feed([], [next(iter(before))[:2]])
    join.advance()
    assert join.nbytes > 1.3 * static_bytes


def test_rows_without_results_leave_the_results_of_others_alone() -> None:
    """Also when an input has grown since it last took part in a result."""
    left, right = ManualInput("x", "y"), ManualInput("y", "z")
    join = MultiwayJoinOperator([left, right], ("x", "y", "z"))
    results = ResultBag(join)
    pairs = [(i, i) for i in range(16)]
    left.feed(pairs)
    right.feed(pairs)
    results.advance()
    left.feed([], pairs[:1])
    right.feed([], pairs[1:2])
    assert results.advance().total() == 14
    left.feed([(i, 100) for i in range(60)])
    results.advance()
    left.feed([], [(i, 100) for i in range(60)])
    assert results.advance().total() == 14


def test_an_index_that_is_hardly_probed_is_dropped_and_built_again() -> None:
    busy, calm = ManualInput("x", "y"), ManualInput("y", "z")
    join = MultiwayJoinOperator([busy, calm], ("x", "y", "z"), inserts_per_probe=10)
    busy.feed([(0, 0)])
    calm.feed([(0, 5)])
    assert as_bag(join.advance().added) == {(0, 0, 5): 1}
    for i in range(1, 200):
        busy.feed([(i, i)], [(i - 1, i - 1)])
        join.advance()
    (use,) = join.index_uses()[0]
    assert (use.is_built, use.drops, use.key) == (False, 1, (1,))
    calm.feed([(199, 7)])
    assert as_bag(join.advance().added) == {(199, 199, 7): 1}
    (use,) = join.index_uses()[0]
    assert (use.is_built, use.probes, use.scans) == (False, 1, 1)


def test_section_4_3_many_inserts_and_few_probes_keep_no_index_and_the_reverse_keeps_it() -> None:
    """CQ7: a stream first has many inserts for each probe, then few; each time the results are right."""
    busy, calm = ManualInput("x", "y"), ManualInput("y", "z")
    join = MultiwayJoinOperator([busy, calm], ("x", "y", "z"))
    window: list[tuple[int, int]] = []
    calm.feed([(0, 0)])
    join.advance()

    def advance(tick: int, new: int, is_probed: bool) -> IndexUse | None:
        rows = [(1_000_000 + tick * 1000 + n, n % 50) for n in range(new)]
        old = window[: max(0, len(window) + new - 400)]
        del window[: len(old)]
        window.extend(rows)
        busy.feed(rows, old)
        probe = tick % 50
        calm.feed([(probe, tick)] if is_probed else [])
        found = [row for row in map(tuple, join.advance().added.tolist()) if row[2] == tick and is_probed]
        assert len(found) == (sum(y == probe for _, y in window) if is_probed else 0)
        return next(iter(join.index_uses()[0]), None)

    for tick in range(1, 400):
        use = advance(tick, 200, tick % 40 == 0)
    assert use is not None and (use.is_built, use.drops) == (False, 1)
    assert use.scans > 0
    for tick in range(400, 1000):
        use = advance(tick, 1, True)
    assert use is not None and (use.is_built, use.drops) == (True, 1)
    for tick in range(1000, 1200):
        use = advance(tick, 200, False)
    assert use is not None and (use.is_built, use.drops) == (False, 2)


def test_section_4_3_runs_without_probes_keep_no_index() -> None:
    busy, calm = ManualInput("x", "y"), ManualInput("y", "z")
    join = MultiwayJoinOperator([busy, calm], ("x", "y", "z"))
    results = ResultBag(join)
    calm.feed([(0, 0)])
    results.advance()

    def advance_run(first: int, probes: int) -> IndexUse:
        for tick in range(first, first + 200):
            busy.feed([(tick, tick % 7)], [(tick - 50, (tick - 50) % 7)] if tick >= 50 else [])
            calm.feed([(3, tick)] if tick - first < probes else [])
            busy.end_tick()
            calm.end_tick()
        results.advance_run(200)
        (use,) = join.index_uses()[0]
        assert results.bag.total() == sum((y == 0) + (y == 3) * probed for y in last_keys(first + 200))
        return use

    def last_keys(end: int) -> list[int]:
        return [tick % 7 for tick in range(end - 50, end)]

    probed = 100
    assert advance_run(0, 100).is_built
    for first in (200, 400, 600):
        use = advance_run(first, 0)
    assert (use.is_built, use.drops) == (False, 1)
    probed = 200
    use = advance_run(800, 100)
    assert (use.is_built, use.drops) == (True, 1)


def test_indexes_stay_where_no_limit_is_set() -> None:
    busy, calm = ManualInput("x", "y"), ManualInput("y", "z")
    join = MultiwayJoinOperator([busy, calm], ("x", "y", "z"), inserts_per_probe=None)
    calm.feed([(0, 5)])
    busy.feed([(0, 0)])
    join.advance()
    for i in range(1, 500):
        busy.feed([(i, i)], [(i - 1, i - 1)])
        join.advance()
    assert [use.drops for use in join.index_uses()[0]] == [0]


def test_an_eight_way_join_of_ten_thousand_rows_each_takes_less_than_ten_megabytes() -> None:
    random = np.random.default_rng(5)
    n = 10_000
    inputs = [ManualInput(f"x{i}", f"x{i + 1}") for i in range(8)]
    join = MultiwayJoinOperator(inputs, tuple(f"x{i}" for i in range(9)))
    tables = [np.stack([random.permutation(n), random.permutation(n)], axis=1) for _ in inputs]
    for one, table in zip(inputs, tables, strict=True):
        one.feed_rows(table, NO_PAIRS)
    assert join.advance().added.shape[0] == n
    for _ in range(20):
        for i, one in enumerate(inputs):
            old, kept = tables[i][: n // 10], tables[i][n // 10 :]
            new = np.stack([random.permutation(old[:, 0]), old[:, 1]], axis=1)
            one.feed_rows(new, old)
            tables[i] = np.concatenate([kept, new])
        join.advance()
    assert join.nbytes <= 10_000_000


def test_memory_stays_as_it_is_while_rows_come_and_go() -> None:
    inputs = [ManualInput("x", "y"), ManualInput("y", "z")]
    join = MultiwayJoinOperator(inputs, ("x", "y", "z"))
    sizes = set()
    for tick in range(400):
        rows = np.arange(tick * 50, tick * 50 + 50)
        for one in inputs:
            one.feed_rows(
                np.stack([rows, rows], axis=1), np.stack([rows - 50, rows - 50], axis=1) if tick else NO_PAIRS
            )
        assert join.advance().added.shape[0] == 50
        if tick > 50:
            sizes.add(join.nbytes)
    assert max(sizes) < 50 * 1000
    assert max(sizes) <= 1.5 * min(sizes)
