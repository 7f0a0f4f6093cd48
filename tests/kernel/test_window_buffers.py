"""A step over many ticks costs what enters and leaves a window, not what the window holds."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from headwater.kernel.columns.window_buffers import TripleBuffer
from headwater.windows.model import TimeWindow


def memory_of_a_step(items: int, *, has_times: bool) -> int:
    """The bytes that a step over ten ticks takes at the most, in a full window of so many items."""
    buffer = TripleBuffer(TimeWindow(items, 10, 0), "w", 1 << 40, has_times)
    count = items + 200
    buffer.add(np.arange(count), np.arange(count + 1), np.arange(3 * count).reshape(-1, 3))
    buffer.move(items, 0)
    tracemalloc.start()
    try:
        run = buffer.move_run(items + 10 * np.arange(1, 11))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert run.rows.shape[0] == 200
    assert run.rows[:, 0].tolist() != sorted(run.rows[:, 0].tolist())
    return peak


@pytest.mark.parametrize("has_times", [False, True])
def test_the_memory_of_a_step_does_not_follow_the_window(has_times: bool) -> None:
    assert memory_of_a_step(200_000, has_times=has_times) < 2 * memory_of_a_step(2_000, has_times=has_times) + 20_000
