"""Events on a connection: Server-Sent Events, NDJSON, and WebSocket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, suppress
from typing import Any

from fastapi import WebSocket
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect

from headwater.server.answers.answer_events import Event, make_event

SSE, NDJSON = "text/event-stream", "application/x-ndjson"
QUIET_SECONDS = 15.0
"""After so much silence something that means nothing is sent, so that nobody takes the connection for dead."""
_SEND_SECONDS = 60.0
_QUIET = {SSE: b": quiet\n\n", NDJSON: b"\n"}


class EventStream(Response):
    """A response that goes on as long as there are events, and ends when the client has gone."""

    def __init__(self, events: AsyncIterator[list[Event]], media_type: str, on_end: Callable[[], None]) -> None:
        super().__init__(None, 200, media_type=media_type)
        self._events = events
        self._kind = media_type
        self._on_end = on_end
        with suppress(KeyError):
            del self.headers["content-length"]
        self.headers["Cache-Control"] = "no-store"
        self.headers["X-Accel-Buffering"] = "no"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.create_task(self._send_events(send))
        watching = asyncio.create_task(_wait_for_disconnect(receive))
        try:
            await asyncio.wait({sending, watching}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            for task in (sending, watching):
                task.cancel()
            await asyncio.gather(sending, watching, return_exceptions=True)
            self._on_end()

    async def _send_events(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        is_sse = self._kind == SSE
        # Whoever waits for answers knows at once that the connection stands.
        await self._send(send, _QUIET[self._kind])
        async with aclosing(self._events) as batches:  # type: ignore[type-var]
            async for events in batches:
                body = b"".join(one.sse if is_sse else one.line for one in events) if events else _QUIET[self._kind]
                await self._send(send, body)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send(self, send: Send, body: bytes) -> None:
        async with asyncio.timeout(_SEND_SECONDS):
            await send({"type": "http.response.body", "body": body, "more_body": True})


async def _wait_for_disconnect(receive: Receive) -> None:
    while True:
        message: Message = await receive()
        if message["type"] == "http.disconnect":
            return


async def send_over_websocket(
    socket: WebSocket, events: AsyncIterator[list[Event]], form: Callable[[Event], bytes]
) -> None:
    """Send events as texts until there are no more, or the client has gone."""
    async with aclosing(events) as batches:  # type: ignore[type-var]
        async for batch in batches:
            for event in batch:
                await send_text(socket, form(event))


async def send_text(socket: WebSocket, text: bytes) -> None:
    """Send one text; a `TimeoutError` where the client takes nothing for too long."""
    async with asyncio.timeout(_SEND_SECONDS):
        await socket.send_text(text.decode("utf-8", "replace"))


async def receive_json(socket: WebSocket) -> dict[str, Any] | None:
    """The next object that a client sends; None for something else. A `WebSocketDisconnect` where it has gone."""
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1000))
    try:
        found = json.loads(message.get("text") or "")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def error_event(reason: str, **members: Any) -> Event:
    """What is told over a WebSocket where a request cannot be met."""
    return make_event("error", reason=reason, **members)
