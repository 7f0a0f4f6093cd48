"""L, equation 3: against its definition, counting windows one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.federation.view.lifetime import remaining_ticks, remaining_ticks_in
from headwater.windows.model import Bounds, TimeWindow


@given(
    width=st.integers(1, 60),
    slide=st.integers(1, 40),
    offset=st.integers(0, 59),
    tick=st.integers(-500, 500),
)
def test_counts_the_evaluations_that_still_see_the_mapping(width: int, slide: int, offset: int, tick: int) -> None:
    entered = tick - offset % width
    windows = [tick + k * slide for k in range(width + 2)]
    assert remaining_ticks(entered, width, slide, tick) == sum(c - width < entered <= c for c in windows)


@given(
    bounds=st.sampled_from(Bounds),
    width=st.integers(1, 60),
    slide=st.integers(1, 40),
    entered=st.integers(-200, 200),
    late=st.integers(0, 80),
)
def test_agrees_with_our_windows_whatever_their_bounds(
    bounds: Bounds, width: int, slide: int, entered: int, late: int
) -> None:
    window = TimeWindow(width, slide, bounds=bounds)
    tick = window.entry_instant(entered) + late // slide * slide

    def sees(instant: int) -> bool:
        low, high = window.interval(instant)
        return low <= entered < high

    expected = sum(sees(tick + k * slide) for k in range(width + 2))
    assert remaining_ticks_in(window, entered, tick) == expected
    if bounds is Bounds.LEFT_OPEN:
        assert remaining_ticks(entered, width, slide, tick) == expected


def test_what_never_leaves_has_no_count() -> None:
    assert remaining_ticks_in(TimeWindow(width=None), 5, 10) is None


def test_a_window_without_slide_needs_the_distance_of_ticks() -> None:
    window = TimeWindow(width=10)
    assert remaining_ticks_in(window, entered=5, now=8, period=2) == 4
    with pytest.raises(ValueError, match="distance of two ticks"):
        remaining_ticks_in(window, entered=5, now=8)
