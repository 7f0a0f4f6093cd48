"""How many more ticks a mapping of the window will see (the paper's L, equation 3).

    Lᵢ(t) = ⌈(tᵢ + ω − t) / β⌉       tᵢ when the mapping entered, ω the width, β the slide

counts the evaluations at t, t+β, … that find it still in the window `(o, c]`, the present one included.

    >>> remaining_ticks(entered=6, width=5, slide=1, now=8)
    3
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater.terms.model import Row
from headwater.windows.model import TimeWindow


@dataclass(frozen=True, slots=True)
class WindowKey:
    """What the window says of one key: for how many ticks it stays, this one included, and how many rows have it."""

    key: Row
    ticks: int = 1
    rows: int = 1


def remaining_ticks(entered: int, width: int, slide: int, now: int) -> int:
    """Equation 3; nothing for what has left."""
    return max(0, -((now - entered - width) // slide))


def ticks_in(window: TimeWindow, entered: int, now: int, period: int | None = None) -> int | None:
    """The same for any time window of ours, whatever its bounds; None for ever.

    `period` is the distance of two ticks where the window itself has no slide.
    """
    leaves = window.leave(entered)
    if leaves is None:
        return None
    step = window.slide or period
    if step is None:
        raise ValueError("a window without a slide needs the distance of two ticks to count them")
    return max(0, -((now - leaves) // step))
