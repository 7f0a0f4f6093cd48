"""Watermarks and lateness."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headwater.terms.model import Element
from headwater.windows.element_sequences import elements_of
from headwater.windows.heartbeat import Heartbeat
from headwater.windows.partitioned_clock import PartitionedClock
from headwater.windows.stream_clock import StreamClock, combine_clocks
from headwater.windows.stream_operators import multiset_difference


def elements(*times: int) -> list[Element]:
    return [Element(time, (), None, (i,)) for i, time in enumerate(times)]


def test_late_is_what_the_watermark_had_passed_when_it_came() -> None:
    clock = StreamClock(delay=2)
    admitted, late = clock.admit(elements(5, 3, 9, 7, 6))
    assert [e.time for e in elements_of(admitted)] == [5, 3, 9, 7]
    assert [e.time for e in elements_of(late)] == [6]
    assert clock.watermark == 7
    assert (clock.element_count, clock.late_count) == (5, 1)


@given(st.lists(st.integers(-20, 20), max_size=20), st.integers(0, 5), st.data())
def test_lateness_does_not_depend_on_batches(times: list[int], delay: int, data: st.DataObject) -> None:
    whole = StreamClock(delay)
    expected = whole.admit(elements(*times))
    parts = StreamClock(delay)
    cut = data.draw(st.integers(0, len(times)))
    listed = elements(*times)
    first, second = parts.admit(listed[:cut]), parts.admit(listed[cut:])
    for side in range(2):
        found = elements_of(first[side]) + elements_of(second[side])
        assert found == elements_of(expected[side])
    assert parts.watermark == whole.watermark


def test_the_slowest_running_stream_holds_the_query_back() -> None:
    fast, slow, silent = StreamClock(highest_time=10), StreamClock(highest_time=4), StreamClock()
    assert combine_clocks([fast, slow]) == (4, False)
    assert combine_clocks([fast, silent]) == (None, False)
    silent.has_ended = True
    assert combine_clocks([fast, silent]) == (10, False)
    fast.has_ended = True
    assert combine_clocks([fast, silent]) == (None, True)


def test_a_drained_stream_does_not_open_answered_time_again() -> None:
    clock = StreamClock(delay=5, highest_time=10)
    clock.close(13)
    admitted, late = clock.admit(elements(12, 13))
    assert [e.time for e in elements_of(admitted)] == [13]
    assert [e.time for e in elements_of(late)] == [12]


@given(st.lists(st.integers(0, 3)), st.lists(st.integers(0, 3)))
def test_multiset_difference_counts_copies(left: list[int], right: list[int]) -> None:
    kept = multiset_difference(left, right)
    for value in range(4):
        assert kept.count(value) == max(0, left.count(value) - right.count(value))


def test_a_silent_stream_goes_on_by_the_machines_clock() -> None:
    clock = StreamClock(delay=5, highest_time=100, idle_limit=20)
    clock.beat(Heartbeat(0, 1_000))
    clock.beat(Heartbeat(0, 1_019))
    assert combine_clocks([clock]) == (95, False), "it is waited for"
    clock.beat(Heartbeat(0, 1_050))
    assert combine_clocks([clock]) == (100 + 50 - 20 - 5, False)
    admitted, late = clock.admit(elements(124, 125))
    assert [e.time for e in elements_of(late)] == [124]
    assert [e.time for e in elements_of(admitted)] == [125]
    clock.beat(Heartbeat(0, 1_060))
    assert combine_clocks([clock]) == (125, False), "silence is counted from its last element on"


def test_time_that_nobody_watched_is_no_silence() -> None:
    clock = StreamClock(highest_time=100, idle_limit=20)
    clock.beat(Heartbeat(0, 1_000))
    clock.beat(Heartbeat(500_000, 500_010))
    assert combine_clocks([clock]) == (100, False)
    clock.beat(Heartbeat(500_000, 500_030))
    assert combine_clocks([clock]) == (110, False)


def test_a_silent_stream_holds_the_others_back_only_for_its_time() -> None:
    busy, quiet = StreamClock(highest_time=100), StreamClock(highest_time=40, idle_limit=30)
    assert combine_clocks([busy, quiet]) == (40, False)
    quiet.beat(Heartbeat(0, 0))
    quiet.beat(Heartbeat(0, 30))
    assert combine_clocks([busy, quiet]) == (70, False)
    admitted, late = quiet.admit(elements(69, 70, 71))
    assert [e.time for e in elements_of(late)] == [69]
    assert [e.time for e in elements_of(admitted)] == [70, 71]
    assert combine_clocks([busy, quiet]) == (71, False)


def test_a_stream_that_never_spoke_may_be_silent() -> None:
    quiet, other = StreamClock(idle_limit=25), StreamClock(idle_limit=25)
    for clock in (quiet, other):
        clock.beat(Heartbeat(0, 0))
        clock.beat(Heartbeat(0, 25))
    assert combine_clocks([quiet, other]) == (None, False)
    assert combine_clocks([StreamClock(highest_time=100), quiet]) == (75, False)


def test_what_has_settled_is_complete_at_once() -> None:
    clock = StreamClock(delay=50, highest_time=100)
    clock.beat(Heartbeat(0, 400, settled=130))
    assert combine_clocks([clock]) == (130, False)
    assert [e.time for e in elements_of(clock.admit(elements(129, 130))[1])] == [129]


def test_the_partitions_of_a_silent_stream_do_not_wait_for_each_other() -> None:
    clock = PartitionedClock(idle_limit=20, skew=1_000, newest_times={0: 100, 1: 40}, highest_time=100)
    clock.beat(Heartbeat(0, 0))
    clock.beat(Heartbeat(0, 21))
    assert combine_clocks([clock]) == (101, False)
