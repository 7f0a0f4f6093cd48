"""Limits on requests: how many a caller may make, and how large bodies may be."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from math import ceil

from fastapi import Request

from headwater.server.problems import Problem

_MOST_CALLERS = 10_000


class RateLimit:
    """How many requests a second each caller may make, after a burst of some."""

    def __init__(self, per_second: float | None, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}

    def check(self, caller: str) -> None:
        """Count a request; a `Problem` where it is one too many."""
        if self._per_second is None:
            return
        now = self._clock()
        left, before = self._left.pop(caller, (float(self._burst), now))
        left = min(float(self._burst), left + (now - before) * self._per_second)
        allowed = left >= 1
        self._left[caller] = (left - 1 if allowed else left), now
        if len(self._left) > _MOST_CALLERS:
            del self._left[next(iter(self._left))]
        if not allowed:
            seconds = str(max(1, ceil((1 - left) / self._per_second)))
            raise Problem(
                429, "Too many requests", f"Wait {seconds} s, and send fewer of them", {"Retry-After": seconds}
            )


async def read_body(request: Request, most: int, seconds: float) -> bytes:
    """The body of a request; a `Problem` where it is larger than `most` bytes, or does not come in so many seconds."""
    too_large = Problem(413, "The body is too large", f"At most {most:,} bytes are taken: send it in parts")
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > most:
        raise too_large
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise too_large
                parts.append(part)
    except TimeoutError:
        raise Problem(408, "The body did not come", f"It has to be here in {seconds:g} s: send it in parts") from None
    return b"".join(parts)


async def read_text(request: Request, most: int, seconds: float) -> str:
    """The body of a request as text; a `Problem` where it is none."""
    try:
        return (await read_body(request, most, seconds)).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Problem(400, "The body is no text", "Send it in UTF-8") from None
