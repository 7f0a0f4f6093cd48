"""The order of a stream with partitions is the same however its partitions were interleaved."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.terms.element_columns import ElementColumns
from headwater.terms.model import Element, Literal, NamedNode, Triple
from headwater.terms.packing import Plain, pack, unpack
from headwater.windows.partition_order import PartitionOrder
from headwater.windows.partitioned_clock import PartitionedClock

P = NamedNode("http://ex/p")


def element(time: int, partition: int, offset: int) -> Element:
    return Element(time, (Triple(NamedNode("http://ex/s"), P, Literal(str(time))),), None, (partition, offset))


def places(elements: list[Element]) -> list[tuple[int, tuple[int, ...]]]:
    return [(one.time, one.position) for one in elements]


def put(order: PartitionOrder, elements: list[Element]) -> tuple[list[Element], list[Element]]:
    """Put elements into an order; gives those that it takes for late, and those ahead."""
    late, ahead = order.put(ElementColumns.of(elements))
    return late.elements(), ahead.elements()


def interleaved(partitions: list[list[Element]], choices: list[int]) -> Iterator[Element]:
    """The elements of partitions, each in its order; the choices say whose turn it is."""
    rest = [list(one) for one in partitions]
    turns = iter(choices)
    while any(rest):
        place = next(turns, 0) % len(rest)
        while not rest[place]:
            place = (place + 1) % len(rest)
        yield rest[place].pop(0)


def run(order: PartitionOrder, elements: Iterator[Element], step: int) -> tuple[list[Element], list[Element]]:
    """What an order releases, and what it takes for late or ahead, when it gets so many elements at a time."""
    released: list[Element] = []
    refused: list[Element] = []
    while some := list(islice(elements, step)):
        for one in some:
            order.note_read(one.position[0], one.position[1])
        for refusal in put(order, some):
            refused += refusal
        if (found := order.release()) is not None:
            assert (found[0].times < found[1]).all()
            released += found[0].elements()
    return released, refused


times = st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=25), min_size=1, max_size=3)


@given(
    times, st.lists(st.integers(0, 2), max_size=75), st.integers(1, 7), st.integers(0, 9), st.sampled_from([None, 20])
)
def test_neither_interleaving_nor_steps_change_it(
    given_times: list[list[int]], choices: list[int], step: int, delay: int, max_ahead: int | None
) -> None:
    partitions = [
        [element(time, number, offset) for offset, time in enumerate(one)] for number, one in enumerate(given_times)
    ]
    numbers = range(len(partitions))
    one_by_one = run(PartitionOrder(numbers, delay, max_ahead), interleaved(partitions, []), 1)
    other = run(PartitionOrder(numbers, delay, max_ahead), interleaved(partitions, choices), step)
    assert places(other[0]) == places(one_by_one[0])
    assert sorted(places(other[1])) == sorted(places(one_by_one[1]))
    assert places(other[0]) == sorted(places(other[0]))


@given(times, st.lists(st.integers(0, 2), max_size=75), st.integers(0, 75), st.integers(0, 9))
def test_it_goes_on_from_its_state(given_times: list[list[int]], choices: list[int], cut: int, delay: int) -> None:
    partitions = [
        [element(time, number, offset) for offset, time in enumerate(one)] for number, one in enumerate(given_times)
    ]
    numbers = range(len(partitions))
    whole = run(PartitionOrder(numbers, delay), interleaved(partitions, choices), 1)
    sequence = list(interleaved(partitions, choices))
    stored: dict[int, Plain] = {}
    found: tuple[list[Element], list[Element]] = ([], [])
    order = PartitionOrder(numbers, delay)
    for some in (sequence[:cut], sequence[cut : 2 * cut], sequence[2 * cut :]):
        for all_found, more in zip(found, run(order, iter(some), 1), strict=True):
            all_found += more
        store(order, stored)
        state = unpack(pack(order.to_plain()))
        order = PartitionOrder(numbers, delay)
        order.restore(state, [(number, ElementColumns.from_plain(one)) for number, one in stored.items()])
    assert places(found[0]) == places(whole[0])
    assert places(found[1]) == places(whole[1])


def store(order: PartitionOrder, stored: dict[int, Plain]) -> int:
    """Write the changes of an order where `stored` has its segments; gives how many elements were written."""
    added, removed = order.changes()
    for number in removed:
        del stored[number]
    if added is None:
        return 0
    stored[added[0]] = added[1].to_plain()
    return len(added[1])


def test_what_waits_is_written_once_and_removed_when_nothing_of_it_waits() -> None:
    order, stored = PartitionOrder([0, 1], delay=0), dict[int, Plain]()
    put(order, [element(0, 1, 0)])
    written = []
    for batch in range(5):
        put(order, [element(100 * batch + place, 0, 100 * batch + place) for place in range(100)])
        order.release()
        written.append(store(order, stored))
    # All wait for the other partition; no batch writes what one before it has written.
    assert (written, order.held) == ([101, 100, 100, 100, 100], 501)
    put(order, [element(250, 1, 1)])
    assert order.release() is not None
    assert (store(order, stored), order.held, sorted(stored)) == (1, 251, [2, 3, 4, 5])
    assert (store(order, stored), len(pack(order.to_plain())) < 100) == (0, True)


def test_a_partition_without_elements_holds_the_stream_back() -> None:
    order = PartitionOrder([0, 1], delay=0)
    put(order, [element(10, 0, 0), element(20, 0, 1)])
    assert (order.release(), order.awaited, order.watermark) == (None, (1,), None)
    put(order, [element(15, 1, 0)])
    released = order.release()
    assert released is not None
    assert (places(released[0].elements()), released[1], order.held) == ([(10, (0, 0))], 15, 2)


def test_late_is_what_its_own_partition_has_passed() -> None:
    order = PartitionOrder([0, 1], delay=2)
    late, _ = put(order, [element(10, 0, 0), element(8, 0, 1), element(7, 0, 2), element(1, 1, 0)])
    assert places(late) == [(7, (0, 2))]


def test_records_must_follow_each_other() -> None:
    order = PartitionOrder([0], delay=0)
    order.note_read(0, 5)
    with pytest.raises(ValueError, match="offset 5 of partition 0"):
        order.note_read(0, 5)
    with pytest.raises(ValueError, match="partition 1 is new"):
        order.note_read(1, 0)


def test_other_partitions_are_another_stream() -> None:
    state = PartitionOrder([0, 1], delay=0).to_plain()
    with pytest.raises(ValueError, match="had 2 partitions"):
        PartitionOrder([0, 1, 2], delay=0).restore(state, [])


def test_it_goes_on_behind_a_clock_that_was_ahead_of_a_partition() -> None:
    clock = PartitionedClock(
        2, jumps={0: (1, 90)}, skew=3, newest_times={0: 30, 1: 10}, highest_time=30, highest_watermark=25
    )
    order = PartitionOrder([0, 1, 2], delay=2, max_ahead=50)
    order.follow(clock, {0: 7, 1: 4, 2: 0})
    assert (order.awaited, order.release()) == ((2,), None)
    back = order.to_clock()
    assert (back.newest_times, back.jumps, back.watermark) == (clock.newest_times, clock.jumps, 25)
    put(order, [element(40, 2, 0)])
    # The slowest partition is at 10, but ticks before 25 were answered.
    assert (order.watermark, order.release()) == (8, None)
    late, _ = put(order, [element(24, 1, 4), element(25, 1, 5), element(29, 1, 6)])
    assert places(late) == [(24, (1, 4))]
    released = order.release()
    assert released is not None
    assert (places(released[0].elements()), released[1]) == ([(25, (1, 5))], 27)
    with pytest.raises(ValueError, match="offset 6 of partition 0 comes behind offset 6"):
        order.note_read(0, 6)
