"""How many ticks a step takes (`execution.program_steps.TickPace`)."""

from __future__ import annotations

import pytest

from headwater.execution.program_steps import TickPace


def seconds_for(fixed: float, each: float, ticks: int) -> float:
    """How long some ticks take in steps of a pace that settles: what a step costs anyway, and each tick."""
    pace, seconds = TickPace(), 0.0
    while ticks > 0:
        taken = min(pace.ticks, ticks)
        seconds += fixed + each * taken
        pace.record(fixed + each * taken, is_other_version=False)
        ticks -= taken
    return seconds


@pytest.mark.parametrize("fixed", [0.0001, 0.01, 0.05, 1.0])
def test_what_a_step_costs_anyway_is_shared_by_many_ticks(fixed: float) -> None:
    """Shorter steps do not help where a step costs much anyway."""
    assert seconds_for(fixed, 1e-5, 1_000_000) < 2 * 10 + 30 * fixed


def test_steps_stay_short_where_ticks_take_long() -> None:
    pace = TickPace()
    for _ in range(50):
        pace.record(0.0005 + 0.004 * pace.ticks, is_other_version=False)
    assert pace.ticks <= 16


def test_a_slow_first_step_does_not_make_others_long() -> None:
    """Code is compiled in the first one."""
    pace = TickPace()
    pace.record(3.0, is_other_version=False)
    for _ in range(50):
        pace.record(0.0005 + 0.004 * pace.ticks, is_other_version=False)
    assert pace.ticks <= 16


def test_a_step_after_a_change_of_the_data_has_one_tick() -> None:
    pace = TickPace()
    pace.record(0.001, is_other_version=False)
    assert pace.ticks == 2
    pace.record(0.001, is_other_version=True)
    assert pace.ticks == 1
