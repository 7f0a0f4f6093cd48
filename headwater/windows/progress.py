"""How far a stream has come: its watermark, and which elements came too late.

The watermark of a stream is the highest timestamp seen minus the allowed delay; nothing older is still expected.
Whether an element is late depends on the elements that stood before it in its stream and on nothing else, so
neither batches nor the progress of other streams change the answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headwater.terms.model import Element


@dataclass
class StreamClock:
    """The progress of one stream; `ended` when its source says that nothing more will come."""

    delay: int = 0
    highest: int | None = None
    ended: bool = False
    late: int = 0
    seen: int = 0
    closed: int | None = None
    """Everything before this was answered for good, when the stream was drained before its end."""

    @property
    def watermark(self) -> int | None:
        """No element below this is still expected; None before the first one."""
        return None if self.highest is None else self.highest - self.delay

    def admit(self, elements: Iterable[Element]) -> tuple[list[Element], list[Element]]:
        """Elements in arrival order, parted into those in time and those too late."""
        admitted: list[Element] = []
        late: list[Element] = []
        for element in elements:
            self.seen += 1
            if self._is_late(element.time):
                late.append(element)
                continue
            admitted.append(element)
            if self.highest is None or element.time > self.highest:
                self.highest = element.time
        self.late += len(late)
        return admitted, late

    def _is_late(self, time: int) -> bool:
        return (self.highest is not None and time < self.highest - self.delay) or (
            self.closed is not None and time < self.closed
        )

    def close(self, before: int) -> None:
        """Nothing older than this instant may come any more."""
        self.closed = before if self.closed is None else max(self.closed, before)


def combined(clocks: Iterable[StreamClock]) -> tuple[int | None, bool]:
    """The watermark of a query over several streams, and whether all of them have ended.

    Streams that ended do not hold the others back. The watermark is None while a stream that has not ended has
    shown nothing yet.
    """
    running = [clock for clock in clocks if not clock.ended]
    if not running:
        return None, True
    marks = [clock.watermark for clock in running]
    return (None if None in marks else min(mark for mark in marks if mark is not None)), False
