"""A clock for each partition: how partitions are interleaved does not matter."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from headwater.terms.element_columns import ElementColumns
from headwater.terms.model import Element, Literal, NamedNode, Triple
from headwater.windows.element_sequences import Elements, elements_of, sort_by_position
from headwater.windows.partitioned_clock import PartitionedClock
from headwater.windows.stream_clock import StreamClock

TRIPLE = Triple(NamedNode("http://ex/s"), NamedNode("http://ex/p"), Literal("1"))
FAR = 1 << 40

Partitions = st.lists(st.lists(st.integers(0, 40), max_size=12), min_size=1, max_size=4)


def records(partitions: list[list[int]]) -> list[list[Element]]:
    return [
        [Element(time, (TRIPLE,), position=(number, offset)) for offset, time in enumerate(times)]
        for number, times in enumerate(partitions)
    ]


def batches(partitions: list[list[int]], seed: int) -> list[list[Element]]:
    """The partitions read in batches that are cut at random; the first one has something of each."""
    generator = random.Random(seed)
    left = [list(part) for part in records(partitions)]
    found = [[part.pop(0) for part in left if part]]
    while any(left):
        batch: list[Element] = []
        for part in left:
            count = generator.randint(0, len(part))
            batch += part[:count]
            del part[:count]
        found.append(batch)
    return found


def admitted(
    clock: StreamClock, cut: list[list[Element]], *, columns: bool = False
) -> tuple[set[tuple[int, ...]], ...]:
    """The positions of the elements in time, and of those that were late."""
    good: set[tuple[int, ...]] = set()
    late: set[tuple[int, ...]] = set()
    for batch in cut:
        elements: Elements = ElementColumns.of(batch) if columns and batch else batch
        some, others = clock.admit(sort_by_position(elements))
        good |= {one.position for one in elements_of(some)}
        late |= {one.position for one in elements_of(others)}
    return good, late


@given(Partitions, st.integers(0, 10), st.integers(), st.integers(), st.booleans())
def test_any_interleaving_gives_the_same_elements(
    partitions: list[list[int]], delay: int, one: int, other: int, columns: bool
) -> None:
    first, second = PartitionedClock(delay, skew=FAR), PartitionedClock(delay, skew=FAR)
    assert admitted(first, batches(partitions, one)) == admitted(second, batches(partitions, other), columns=columns)
    assert (first.watermark, first.late_count, first.element_count) == (
        second.watermark,
        second.late_count,
        second.element_count,
    )
    assert first.element_count == sum(map(len, partitions))


@given(st.lists(st.integers(0, 40), max_size=20), st.integers(0, 10), st.integers())
def test_one_partition_is_like_a_stream(times: list[int], delay: int, seed: int) -> None:
    cut = batches([times], seed)
    parted, plain = PartitionedClock(delay, skew=FAR), StreamClock(delay)
    assert admitted(parted, cut) == admitted(plain, cut)
    assert (parted.watermark, parted.highest_time) == (plain.watermark, plain.highest_time)


@given(Partitions, st.integers(0, 10), st.integers(0, 20), st.integers())
def test_the_watermark_never_goes_back_and_nothing_older_is_admitted(
    partitions: list[list[int]], delay: int, skew: int, seed: int
) -> None:
    clock = PartitionedClock(delay, skew=skew)
    for batch in batches(partitions, seed):
        before = clock.watermark
        good, _ = clock.admit(sort_by_position(batch))
        if before is not None:
            assert clock.watermark is not None and clock.watermark >= before
            assert all(element.time >= before for element in elements_of(good))


def test_the_slowest_partition_holds_the_stream_back_within_the_skew() -> None:
    clock = PartitionedClock(1, skew=10)
    clock.admit(records([[12], [4]])[0] + records([[12], [4]])[1])
    assert clock.watermark == 3
    clock.admit([Element(100, (TRIPLE,), position=(0, 1))])
    assert (clock.watermark, clock.highest_time) == (89, 100)
    good, late = clock.admit([Element(88, (TRIPLE,), position=(1, 1)), Element(95, (TRIPLE,), position=(1, 2))])
    assert [one.time for one in elements_of(good)] == [95]
    assert [one.time for one in elements_of(late)] == [88]
    assert clock.watermark == 94


def test_it_says_how_far_late_elements_were_behind_and_how_many_were_not_waited_for() -> None:
    for clock in (PartitionedClock(delay=5, skew=FAR), StreamClock(delay=5)):
        clock.admit([Element(time, (TRIPLE,), position=(0, time)) for time in (100, 96, 90, 88)])
        assert (clock.late_by, clock.unawaited) == (12, 0)
        clock.close(200)
        clock.admit([Element(time, (TRIPLE,), position=(0, 1000 + time)) for time in (150, 160, 210)])
        assert (clock.late_by, clock.unawaited) == (0, 2)
        clock.admit([Element(time, (TRIPLE,), position=(0, 2000 + time)) for time in (180, 220)])
        assert (clock.late_by, clock.unawaited) == (30, 0)
        clock.admit([Element(230, (TRIPLE,), position=(0, 3000))])
        assert (clock.late_by, clock.unawaited) == (0, 0)
