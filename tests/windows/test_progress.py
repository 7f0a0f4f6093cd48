"""Watermarks and lateness."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headwater.terms.model import Element
from headwater.windows import StreamClock, combined, multiset_difference


def elements(*times: int) -> list[Element]:
    return [Element(time, (), None, (i,)) for i, time in enumerate(times)]


def test_late_is_what_the_watermark_had_passed_when_it_came() -> None:
    clock = StreamClock(delay=2)
    admitted, late = clock.admit(elements(5, 3, 9, 7, 6))
    assert [e.time for e in admitted] == [5, 3, 9, 7]
    assert [e.time for e in late] == [6]
    assert clock.watermark == 7
    assert (clock.seen, clock.late) == (5, 1)


@given(st.lists(st.integers(-20, 20), max_size=20), st.integers(0, 5), st.data())
def test_lateness_does_not_depend_on_batches(times: list[int], delay: int, data: st.DataObject) -> None:
    whole = StreamClock(delay)
    expected = whole.admit(elements(*times))
    parts = StreamClock(delay)
    cut = data.draw(st.integers(0, len(times)))
    listed = elements(*times)
    first, second = parts.admit(listed[:cut]), parts.admit(listed[cut:])
    assert (first[0] + second[0], first[1] + second[1]) == expected
    assert parts.watermark == whole.watermark


def test_the_slowest_running_stream_holds_the_query_back() -> None:
    fast, slow, silent = StreamClock(highest=10), StreamClock(highest=4), StreamClock()
    assert combined([fast, slow]) == (4, False)
    assert combined([fast, silent]) == (None, False)
    silent.ended = True
    assert combined([fast, silent]) == (10, False)
    fast.ended = True
    assert combined([fast, silent]) == (None, True)


def test_a_drained_stream_does_not_open_answered_time_again() -> None:
    clock = StreamClock(delay=5, highest=10)
    clock.close(13)
    admitted, late = clock.admit(elements(12, 13))
    assert [e.time for e in admitted] == [13]
    assert [e.time for e in late] == [12]


@given(st.lists(st.integers(0, 3)), st.lists(st.integers(0, 3)))
def test_multiset_difference_counts_copies(left: list[int], right: list[int]) -> None:
    kept = multiset_difference(left, right)
    for value in range(4):
        assert kept.count(value) == max(0, left.count(value) - right.count(value))
