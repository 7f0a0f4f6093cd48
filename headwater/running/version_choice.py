"""Which version of the data the next tick sees, where one process reads, evaluates and decides.

A change of the data that is quickly taken over is in the next tick. One that takes its time is prepared in the
background while a tick goes on with the version before; the tick after that one waits for it, if it has to:

    update                          ready
    ──┴── tick (old) ── … ─────────────┴── tick (new)
      └───────────── one tick at most ─────┘

On Spark the driver decides without asking anybody: a batch carries the newest version there is, because a worker that
runs a batch again has to see what the first one saw. What workers prepare there only saves them time.
"""

from __future__ import annotations

from collections.abc import Callable

from headwater.execution.static_data import Version, is_before

PATIENCE_SECONDS = 0.05
"""For so long a tick waits for a version that it could do without."""


class VersionChoice:
    """Chooses; `prepared` says how far one comes at once, and has the rest done in the background."""

    def __init__(self, prepared: Callable[[Version, float], Version]) -> None:
        self._prepared = prepared
        self._missed: Version = ()
        """The newest version that the last tick could have seen."""

    def next(self, seen: Version, newest: Version) -> Version:
        """The version of the next tick, where the last one saw `seen` and there is `newest` now."""
        if newest == seen:
            return newest
        is_due, missed = self.is_behind(seen), self._missed
        self._missed = newest
        return missed if is_due else self._prepared(newest, PATIENCE_SECONDS)

    def is_behind(self, seen: Version) -> bool:
        """Whether the last tick, which saw `seen`, could have seen a newer version."""
        return seen != self._missed and is_before(seen, self._missed)
