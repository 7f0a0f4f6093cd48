"""The remaining life L of a mapping in the window: how many more ticks will see it (VM5, equation 3).

    Lᵢ(t) = ⌈(tᵢ + ω − t) / β⌉       tᵢ when the mapping entered, ω the width, β the slide

counts the evaluations at t, t+β, … at which the mapping is still in the window `(o, c]`, the present one included.

    >>> remaining_ticks(entered=6, width=5, slide=1, now=8)
    3
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater.terms.model import Row
from headwater.windows.model import TimeWindow


@dataclass(frozen=True, slots=True)
class WindowKey:
    """A key of the present window: how many ticks it stays, this one included (L), and how many rows have it."""

    key: Row
    ticks: int = 1
    rows: int = 1


def remaining_ticks(entered: int, width: int, slide: int, now: int) -> int:
    """How many more ticks see a mapping that entered at `entered` (equation 3); 0 if it has left the window."""
    return max(0, -((now - entered - width) // slide))


def remaining_ticks_in(window: TimeWindow, entered: int, now: int, period: int | None = None) -> int | None:
    """L for any time window, whatever its bounds; None: the window never drops the mapping.

    `period` is the distance of two ticks if the window itself has no slide.
    """
    leaves = window.exit_instant(entered)
    if leaves is None:
        return None
    step = window.slide or period
    if step is None:
        raise ValueError("a window without a slide needs the distance of two ticks to count them")
    return max(0, -((now - leaves) // step))
