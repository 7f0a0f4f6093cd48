"""Which version of the data the next tick sees, for the in-process runner.

A change that is quickly applied is seen by the next tick. A change that takes longer is prepared in the background
while one tick uses the version before; the tick after that one waits for it:

    update                          ready
    ──┴── tick (old) ── … ─────────────┴── tick (new)
      └───────────── one tick at most ─────┘

On Spark the driver puts the newest version into the batch, because a worker that runs a batch again must see the same
data. What workers prepare there only saves them time.
"""

from __future__ import annotations

from collections.abc import Callable

from headwater.execution.static_data import Version, is_before

PATIENCE_SECONDS = 0.05
"""How long a tick waits for a version that it need not see yet."""


class VersionChoice:
    """Chooses the version of each tick; `prepare` gives the newest version that a move can go to at once."""

    def __init__(self, prepare: Callable[[Version, float], Version]) -> None:
        self._prepare = prepare
        self._missed: Version = ()
        """The newest version that the last tick could have seen."""

    def next(self, seen: Version, newest: Version) -> Version:
        """The version of the next tick, where the last one saw `seen` and there is `newest` now."""
        if newest == seen:
            return newest
        is_due, missed = self.is_behind(seen), self._missed
        self._missed = newest
        return missed if is_due else self._prepare(newest, PATIENCE_SECONDS)

    def is_behind(self, seen: Version) -> bool:
        """Whether the last tick, which saw `seen`, could have seen a newer version."""
        return seen != self._missed and is_before(seen, self._missed)
