"""Which version of the data the next batch sees, where one process reads, evaluates and decides.

A change of the data that is quickly taken over is in the next batch. One that takes its time is prepared in the
background while a tick goes on with the version before; the tick after that one waits for it, if it has to:

    update                          ready
    ──┴── tick (old) ── … ─────────────┴── tick (new)
      └───────────── one tick at most ─────┘

On Spark the driver decides without asking anybody: a batch carries the newest version there is, because a worker that
runs a batch again has to see what the first one saw. What workers prepare there only saves them time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from headwater.reference import Answer
from headwater.reference.static_data import Version, is_before

PATIENCE_SECONDS = 0.05
"""For so long a tick waits for a version that it could do without."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A version that answers do not show yet, and how many ticks there were since that did not see it."""

    version: Version
    late: int


class VersionChoice:
    """Chooses; `prepared` says how far one comes at once, and has the rest done in the background."""

    def __init__(self, prepared: Callable[[Version, float], Version]) -> None:
        self._prepared = prepared
        self._waiting: list[_Waiting] = []
        self._last_ticks: int | None = None

    def next(self, seen: Version, newest: Version) -> Version:
        """The version of the next batch, where the last one saw `seen` and there is `newest` now."""
        if newest == seen or self._last_ticks is None:
            return newest
        patience = 0.0
        if not self._waiting or self._waiting[-1].version != newest:
            # It may have come at the first tick of the last batch: the others did not see it.
            self._waiting.append(_Waiting(newest, max(0, self._last_ticks - 1)))
            patience = PATIENCE_SECONDS
        due = [one.version for one in self._waiting if one.late]
        return due[-1] if due else self._prepared(newest, patience)

    def told(self, seen: Version, ticks: int) -> None:
        """What the batch saw, and how many ticks it had."""
        self._last_ticks = ticks
        self._waiting = [
            replace(one, late=one.late + ticks) for one in self._waiting if not is_before(one.version, seen)
        ]


def most_ticks(answers: Collection[Answer]) -> int:
    """At how many ticks some query said something."""
    ticks: dict[str, set[int]] = {}
    for answer in answers:
        ticks.setdefault(answer.query, set()).add(answer.time)
    return max(map(len, ticks.values()), default=0)
