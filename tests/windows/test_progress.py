"""Watermarks and lateness."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headwater.terms.model import Element
from headwater.windows.element_sequences import elements_of
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


def test_an_idle_stream_holds_the_others_back_only_for_its_time() -> None:
    busy, quiet = StreamClock(highest_time=100), StreamClock(highest_time=40, idle_limit=30)
    assert combine_clocks([busy, quiet]) == (70, False)
    admitted, late = quiet.admit(elements(69, 70, 71))
    assert [e.time for e in elements_of(late)] == [69]
    assert [e.time for e in elements_of(admitted)] == [70, 71]
    assert combine_clocks([busy, quiet]) == (71, False)


def test_a_stream_that_never_spoke_may_be_idle() -> None:
    assert combine_clocks([StreamClock(highest_time=100), StreamClock(idle_limit=25)]) == (75, False)
    assert combine_clocks([StreamClock(idle_limit=25), StreamClock(idle_limit=25)]) == (None, False)
