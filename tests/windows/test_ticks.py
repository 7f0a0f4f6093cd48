"""Ticks: progressions, events, periods, and how much it costs to enumerate very many."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.language.stream_clauses import StreamOperator
from headwater.windows import ticks
from headwater.windows.model import Bounds, CountWindow, TimeWindow, Window
from headwater.windows.settings import Content, QuerySettings, Report
from headwater.windows.ticks import Ticker


def ticker(*windows: Window, report: Report = Report.CLOSE, period: int | None = None, t0: int | None = None) -> Ticker:
    return Ticker(
        QuerySettings(windows, report, StreamOperator.RSTREAM, Content.SET, Bounds.LEFT_OPEN, period=period, t0=t0)
    )


def test_nothing_is_due_before_the_first_element() -> None:
    assert list(ticker(TimeWindow(10, 5)).due_ticks(100)) == []


def test_ticks_wait_for_the_watermark_and_come_once() -> None:
    clock = ticker(TimeWindow(10, 5))
    clock.observe(0, [3])
    assert list(clock.due_ticks(5)) == []
    assert list(clock.due_ticks(11)) == [5, 10]
    assert list(clock.due_ticks(11)) == []
    clock.observe(0, [21])
    assert list(clock.due_ticks(22)) == [15, 20]
    assert list(clock.due_ticks(None)) == [25, 30]


def test_windows_of_different_slides_are_merged() -> None:
    clock = ticker(TimeWindow(4, 4), TimeWindow(6, 6))
    clock.observe(0, [1])
    clock.observe(1, [1])
    assert list(clock.due_ticks(13)) == [4, 6, 8, 12]


def test_sliding_windows_tick_where_something_enters_or_leaves() -> None:
    clock = ticker(TimeWindow(10))
    clock.observe(0, [1, 1, 4])
    assert list(clock.due_ticks(None)) == [1, 4, 11, 14]


def test_count_windows_tick_at_each_full_step() -> None:
    clock = ticker(CountWindow(4, 2))
    clock.observe(0, [1, 2, 3, 5, 8])
    assert list(clock.due_ticks(None)) == [2, 5]


def test_periods_begin_with_content_and_end_with_it() -> None:
    clock = ticker(TimeWindow(10, 5), report=Report.PERIODIC, period=4)
    clock.observe(0, [3])
    assert list(clock.due_ticks(None)) == [8, 12]


def test_a_million_ticks_cost_well_under_a_second() -> None:
    clock = ticker(TimeWindow(1_000_000, 1_000))
    clock.observe(0, [0])
    begun = time.perf_counter()
    count = sum(1 for _ in clock.due_ticks(1_000 * 1_000_000))
    assert count == 1_000_000
    assert time.perf_counter() - begun < 1.0


event_windows = st.one_of(
    st.builds(TimeWindow, st.one_of(st.none(), st.integers(1, 9)), st.one_of(st.none(), st.integers(1, 4))),
    st.builds(CountWindow, st.integers(1, 4), st.one_of(st.none(), st.integers(1, 3))),
)


@given(
    st.lists(event_windows, min_size=1, max_size=2),
    st.lists(st.tuples(st.lists(st.integers(0, 5), max_size=6), st.integers(0, 4)), max_size=5),
)
def test_many_instants_at_once_give_the_same_ticks(windows: list[Window], steps: list[tuple[list[int], int]]) -> None:
    found: list[list[int]] = []
    for many in (1, 1 << 30):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ticks, "_MANY", many)
            clock = ticker(*windows, report=Report.EAGER)
            due, now = [], 0
            for distances, ahead in steps:
                times = np.cumsum([now, *distances])[1:]
                now += sum(distances)
                for index in range(len(windows)):
                    clock.observe(index, times)
                due += list(clock.due_ticks(now + ahead))
                now += ahead
            found.append([*due, *clock.due_ticks(None)])
    assert found[0] == found[1]
