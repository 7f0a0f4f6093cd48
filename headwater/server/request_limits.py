"""Limits on requests: how many a caller may make, and how large bodies may be."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from math import ceil

from fastapi import Request
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope

from headwater.server.problems import Problem

LONGEST_TEXT = 1 << 20
"""So many bytes the text of a query may have."""
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


def _too_long() -> Problem:
    detail = f"At most {LONGEST_TEXT:,} bytes are taken: put long lists into the linked data"
    return Problem(413, "The query is too long", detail)


def check_length(text: str) -> None:
    """Raise a `Problem` where the text of a query is too long."""
    if len(text) > LONGEST_TEXT:
        raise _too_long()


class ClientGone(Exception):
    """The client hung up before its body was here."""


async def take_body(scope: Scope, receive: Receive, most: int, seconds: float) -> Receive:
    """Read the body of a request, whatever its path is; gives a `receive` that has it.

    A `Problem` where it is larger than `most` bytes, does not come in so many seconds, or is encoded.
    """
    headers = Headers(scope=scope)
    if headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers:
        return receive
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise Problem(415, "Encoded bodies are not taken", "Send the body as it is, without Content-Encoding")
    too_large = Problem(413, "The body is too large", f"At most {most:,} bytes are taken: send it in parts")
    length = headers.get("content-length", "")
    if length.isdigit() and int(length) > most:
        raise too_large
    parts: list[bytes] = []
    size, has_more = 0, True
    try:
        async with asyncio.timeout(seconds):
            while has_more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGone
                part = message.get("body", b"")
                size += len(part)
                if size > most:
                    raise too_large
                parts.append(part)
                has_more = message.get("more_body", False)
    except TimeoutError:
        detail = f"It has to be here in {seconds:g} s: send it in parts"
        raise Problem(408, "The body did not come", detail, {"Connection": "close"}) from None
    whole: list[Message] = [{"type": "http.request", "body": b"".join(parts), "more_body": False}]

    async def receive_whole() -> Message:
        return whole.pop() if whole else await receive()

    return receive_whole


async def read_text(request: Request) -> str:
    """The text of a query, the body of a request; a `Problem` where it is none, or too long."""
    body = await request.body()
    if len(body) > LONGEST_TEXT:
        raise _too_long()
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Problem(400, "The body is no text", "Send it in UTF-8") from None
