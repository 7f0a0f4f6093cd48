"""The watch over live streams: their heartbeats, by the machine's clock, while a run follows them.

A run takes the time of day once, when it begins to watch a stream, and then counts on with a clock that nobody sets. So
a clock that is put forward or back does not look like silence, and neither does the time between two runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from headwater.windows.heartbeat import Heartbeat


@dataclass
class StreamWatch:
    """Gives the heartbeats of the streams of a run; `day` and `steady` are clocks in seconds."""

    day: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic
    _begun: dict[str, tuple[int, float]] = field(default_factory=dict)
    """For each stream the time of day and the steady time at which this run began to watch it."""

    def begin(self, stream: str, before: Heartbeat | None) -> None:
        """Begin to watch a stream, unless that was done; never before its last heartbeat."""
        if stream not in self._begun:
            now = int(self.day() * 1_000_000)
            self._begun[stream] = (now if before is None else max(now, before.until)), self.steady()

    def beat(self, stream: str, settled: int | None) -> Heartbeat:
        """The heartbeat of a stream that was read to its present end."""
        since, steady = self._begun[stream]
        return Heartbeat(since, since + int((self.steady() - steady) * 1_000_000), settled)
