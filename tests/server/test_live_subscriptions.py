"""One WebSocket with many subscriptions: a client that takes nothing is let go."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from headwater.server.answers import event_streams
from headwater.server.answers.answer_events import Event, make_event
from headwater.server.routes.live_subscriptions import LiveSubscriptions


class DeafSocket:
    """A connection of a client that asks once and then reads nothing."""

    def __init__(self) -> None:
        self.asked = [json.dumps({"subscribe": "busy"})]
        self.sent = 0
        self.closed: tuple[int, str] | None = None

    async def receive(self) -> dict[str, Any]:
        if not self.asked:
            await asyncio.Event().wait()
        return {"type": "websocket.receive", "text": self.asked.pop()}

    async def send_text(self, _: str) -> None:
        self.sent += 1
        await asyncio.Event().wait()

    async def close(self, code: int, reason: str) -> None:
        self.closed = code, reason


class Services:
    """Counts subscriptions."""

    open = 0

    def take_subscription(self) -> None:
        self.open += 1

    def return_subscription(self) -> None:
        self.open -= 1


class Everybody:
    """A caller who may do everything."""

    def may(self, *_: object, **__: object) -> bool:
        return True


async def subscribe(*_: object) -> AsyncIterator[list[Event]]:
    async def events() -> AsyncIterator[list[Event]]:
        while True:
            yield [make_event("progress", watermark=1)] * 2

    return events()


def test_a_client_that_reads_nothing_is_let_go_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_streams, "_SEND_SECONDS", 0.05)
    socket, services = DeafSocket(), Services()
    live: Any = LiveSubscriptions
    asyncio.run(asyncio.wait_for(live(socket, services, Everybody(), subscribe).serve(), 20))
    assert socket.sent == 1
    assert services.open == 0
    assert socket.closed is not None
    assert "too slowly" in socket.closed[1]
