"""The newest answers of a query, for readers that come, go, and come back.

One thread adds answers; readers in any event loop take those behind the id that they have seen.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import replace

from headwater.server.page.page_access import PageAnswer

KEPT_ANSWERS = 300
"""How many answers of a query are kept."""


class AnswerHistory:
    """Keeps the newest answers of one query, and wakes up those who wait for the next one."""

    def __init__(self, kept: int = KEPT_ANSWERS) -> None:
        self._answers: deque[tuple[int, PageAnswer]] = deque(maxlen=kept)
        self._count = 0
        self._lock = threading.Lock()
        self._waiting: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self._is_closed = False

    @property
    def last(self) -> PageAnswer | None:
        """The newest answer; None before the first."""
        with self._lock:
            return self._answers[-1][1] if self._answers else None

    def add(self, answer: PageAnswer) -> None:
        """Keep an answer, under the next id."""
        with self._lock:
            self._count += 1
            self._answers.append((self._count, replace(answer, id=str(self._count))))
            self._wake()

    def close(self) -> None:
        """Say that nothing follows: readers come to an end."""
        with self._lock:
            self._is_closed = True
            self._wake()

    def _wake(self) -> None:
        for event, loop in self._waiting.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)

    def after(self, number: int) -> list[tuple[int, PageAnswer]]:
        """The kept answers behind a number, each with its own."""
        return self._look(number)[0]

    def _look(self, number: int) -> tuple[list[tuple[int, PageAnswer]], bool]:
        """The kept answers behind a number, and whether these are all that will ever be."""
        with self._lock:
            return [one for one in self._answers if one[0] > number], self._is_closed

    async def follow(self, after: str | None = None) -> AsyncIterator[PageAnswer]:
        """The answers behind an id, and each that follows, until `close`."""
        seen = int(after) if after is not None and after.isdecimal() else 0
        event, loop = asyncio.Event(), asyncio.get_running_loop()
        with self._lock:
            self._waiting[event] = loop
        try:
            while True:
                event.clear()
                found, is_closed = self._look(seen)
                for number, answer in found:
                    seen = number
                    yield answer
                if is_closed:
                    return
                if not found:
                    await event.wait()
        finally:
            with self._lock:
                del self._waiting[event]
