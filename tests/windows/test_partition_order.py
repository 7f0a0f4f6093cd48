"""The order of a stream with partitions is the same however its partitions were interleaved."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.terms.model import Element, Literal, NamedNode, Triple
from headwater.terms.packing import pack, unpack
from headwater.windows.partition_order import PartitionOrder

P = NamedNode("http://ex/p")


def element(time: int, partition: int, offset: int) -> Element:
    return Element(time, (Triple(NamedNode("http://ex/s"), P, Literal(str(time))),), None, (partition, offset))


def places(elements: list[Element]) -> list[tuple[int, tuple[int, ...]]]:
    return [(one.time, one.position) for one in elements]


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
        late, ahead = order.put(some)
        refused += late + ahead
        if (found := order.release()) is not None:
            assert all(one.time < found[1] for one in found[0])
            released += found[0]
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
    first, second = PartitionOrder(numbers, delay), PartitionOrder(numbers, delay)
    before = run(first, iter(sequence[:cut]), 1)
    second.restore(unpack(pack(first.to_plain())))
    after = run(second, iter(sequence[cut:]), 1)
    assert places(before[0] + after[0]) == places(whole[0])
    assert places(before[1] + after[1]) == places(whole[1])


def test_a_partition_without_elements_holds_the_stream_back() -> None:
    order = PartitionOrder([0, 1], delay=0)
    order.put([element(10, 0, 0), element(20, 0, 1)])
    assert (order.release(), order.awaited, order.watermark) == (None, (1,), None)
    order.put([element(15, 1, 0)])
    released = order.release()
    assert released is not None
    assert (places(released[0]), released[1], order.held) == ([(10, (0, 0))], 15, 2)


def test_late_is_what_its_own_partition_has_passed() -> None:
    order = PartitionOrder([0, 1], delay=2)
    late, _ = order.put([element(10, 0, 0), element(8, 0, 1), element(7, 0, 2), element(1, 1, 0)])
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
        PartitionOrder([0, 1, 2], delay=0).restore(state)
