"""How much the runner in process reads at a time.

A batch sees one version of the data. So that a change of the data is in the answers two ticks later, a batch over data
that can change has about one tick: it is made smaller while there are more, and larger while there is none.
"""

from __future__ import annotations

LARGEST = 1 << 20
SMALLEST = 8 << 10
_MOST_TICKS = 1


class Pace:
    """`bytes` is about how much the next batch has; `given` is what somebody asked for."""

    def __init__(self, given: int | None, *, data_changes: bool) -> None:
        self._is_fixed = given is not None or not data_changes
        self.bytes = given or (SMALLEST if data_changes else LARGEST)

    def told(self, ticks: int) -> None:
        """How many ticks the last batch had."""
        if self._is_fixed:
            return
        if ticks > _MOST_TICKS:
            self.bytes = max(SMALLEST, self.bytes * _MOST_TICKS // ticks)
        elif not ticks:
            self.bytes = min(LARGEST, 2 * self.bytes)
