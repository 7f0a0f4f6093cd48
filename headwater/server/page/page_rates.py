"""How fast counts grow, over the last few seconds."""

from __future__ import annotations

from collections import deque

_SECONDS = 5.0


class RateMeter:
    """Measures counts by name; a rate is the growth over about the last five seconds."""

    def __init__(self, seconds: float = _SECONDS) -> None:
        self._seconds = seconds
        self._seen: dict[str, deque[tuple[float, int]]] = {}

    def measure(self, name: str, count: int, now: float) -> float:
        """Note a count, and give its growth in a second; 0 before it was seen twice, or where it began anew."""
        seen = self._seen.setdefault(name, deque())
        if seen and count < seen[-1][1]:
            seen.clear()
        seen.append((now, count))
        while len(seen) > 2 and now - seen[1][0] >= self._seconds:
            seen.popleft()
        first, before = seen[0]
        return (count - before) / (now - first) if now > first else 0.0
