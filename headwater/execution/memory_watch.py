"""Suspends the largest queries of a process before its memory is all taken.

The limit `state_bytes` is of one query; this is of all together. It is looked at after a batch, once queries hold a
notable amount, and at most a few times in a second. The memory of a program that runs an engine is no fault of its
queries: they count only where they hold a tenth of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from headwater.execution.evaluator import Evaluator
from headwater.execution.window_log import Size
from headwater.values.process_memory import MemoryReading, memory_error, read_memory
from headwater.values.query_limits import LimitError

_NOTABLE_BYTES = 256 << 20
_NOTABLE_SHARE = 0.1
_SECONDS_APART = 0.2


class MemoryWatch:
    """Looks after the memory of the evaluators of one program."""

    def __init__(
        self, read: Callable[[], MemoryReading | None] = read_memory, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read = read
        self._clock = clock
        self._next = -1.0

    def find_excess(self, sizes: Mapping[Evaluator, Size]) -> dict[Evaluator, LimitError]:
        """The evaluators that must give their memory back, the largest first, each with the reason."""
        held = sum(size.bytes or 0 for size in sizes.values())
        now = self._clock()
        if held < _NOTABLE_BYTES or now < self._next:
            return {}
        self._next = now + _SECONDS_APART
        reading = self._read()
        if reading is None or reading.room >= 0 or held < _NOTABLE_SHARE * reading.own:
            return {}
        excess, found = -reading.room, dict[Evaluator, LimitError]()
        for evaluator, size in sorted(sizes.items(), key=lambda one: -(one[1].bytes or 0)):
            if excess <= 0:
                break
            found[evaluator] = memory_error(f"the query holds {size.bytes or 0:,} bytes", reading)
            excess -= size.bytes or 0
        return found
