"""Window intervals and instants of entry and exit agree with each other and with the definition."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headwater.windows.model import ALL, NOW, Bounds, TimeWindow

windows = st.builds(
    TimeWindow,
    width=st.integers(1, 30),
    slide=st.none() | st.integers(1, 30),
    offset=st.integers(0, 10),
    t0=st.none() | st.integers(-20, 20),
    bounds=st.sampled_from(Bounds),
)


@given(windows, st.integers(-60, 60))
def test_an_element_is_in_the_window_from_its_entry_until_its_exit(window: TimeWindow, time: int) -> None:
    entered, left = window.entry_instant(time), window.exit_instant(time)
    assert left is not None
    for instant in range(entered - 40, left + 40):
        low, high = window.interval(instant)
        if not entered <= instant < left:
            assert not low <= time < high
        elif window.t0 is None:
            assert low <= time < high


@given(windows, st.integers(-60, 60))
def test_the_view_never_moves_back(window: TimeWindow, instant: int) -> None:
    low, high = window.interval(instant)
    next_low, next_high = window.interval(instant + 1)
    assert low <= next_low
    assert high <= next_high


def test_bounds_say_which_end_belongs_to_the_window() -> None:
    assert TimeWindow(10, 10).interval(20) == (11, 21)
    assert TimeWindow(10, 10, bounds=Bounds.RIGHT_OPEN).interval(20) == (10, 20)


def test_windows_open_at_t0_and_at_every_slide_after() -> None:
    window = TimeWindow(width=10, slide=4, t0=1)
    assert window.first_advance == 11
    assert window.interval(10) == (2, 2)
    assert window.interval(11) == (2, 12)
    assert window.interval(16) == (6, 16)


def test_now_and_all() -> None:
    assert NOW.interval(7) == (7, 8)
    assert NOW.exit_instant(7) == 8
    low, high = ALL.interval(7)
    assert low < -(10**15)
    assert high == 8
    assert ALL.exit_instant(7) is None
