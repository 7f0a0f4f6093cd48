"""Many subscriptions over one WebSocket: each is a task, and one loop that begins and ends them.

{"subscribe": "busy", "mode": "changes", "after": "…"}      begins one
{"unsubscribe": "busy"}                                      ends it; an event `end` confirms it
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Any

from fastapi import WebSocket
from starlette.websockets import WebSocketDisconnect

from headwater.server.access import Caller
from headwater.server.answers.answer_events import Event, Mode, make_event
from headwater.server.answers.event_streams import error_event, receive_json, send_text
from headwater.server.answers.fan_out import TOO_SLOW
from headwater.server.problems import Problem
from headwater.server.server_services import ServerServices

logger = logging.getLogger(__name__)

_CLOSE_SECONDS = 10.0

Subscribe = Callable[[str, Mode, str | None], Awaitable[AsyncIterator[list[Event]]]]
"""Begins to follow a query behind an id; a `Problem` where that cannot be."""
_FORM = 'send {"subscribe": NAME, "mode": "answers" or "changes", "after": ID}, or {"unsubscribe": NAME}'


class LiveSubscriptions:
    """The subscriptions of one connection, by the names of their queries."""

    def __init__(self, socket: WebSocket, services: ServerServices, caller: Caller, subscribe: Subscribe) -> None:
        self._socket = socket
        self._services = services
        self._caller = caller
        self._subscribe = subscribe
        self._sending = asyncio.Lock()
        self._has_lapsed = asyncio.Event()
        """Set when the client took nothing for too long: what follows is not sent."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._open: dict[str, asyncio.Task[None]] = {}
        """The subscriptions that have not been told to end."""

    async def serve(self) -> None:
        """Do what the client asks until it has gone, or takes nothing for too long; then the connection is closed."""
        receiving = asyncio.create_task(self._receive())
        waiting = asyncio.create_task(self._has_lapsed.wait())
        try:
            await asyncio.wait({receiving, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if receiving.done():
                with suppress(WebSocketDisconnect):
                    receiving.result()
        finally:
            tasks = [receiving, waiting, *self._tasks]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if self._has_lapsed.is_set():
            with suppress(TimeoutError, RuntimeError, WebSocketDisconnect):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await self._socket.close(1008, TOO_SLOW)

    async def _receive(self) -> None:
        while True:
            await self._do(await receive_json(self._socket) or {})

    async def _do(self, wanted: dict[str, Any]) -> None:
        query, mode, after = wanted.get("subscribe"), wanted.get("mode", "answers"), wanted.get("after")
        leaving = wanted.get("unsubscribe")
        if isinstance(leaving, str):
            await self._end(leaving)
        elif not isinstance(query, str) or mode not in ("answers", "changes") or not isinstance(after, str | None):
            await self._tell("", error_event(_FORM, status=400))
        elif not self._caller.may("read", query=query):
            await self._tell(query, error_event("the token does not allow this query", status=403))
        elif query in self._open:
            await self._tell(query, error_event("this query is subscribed already", status=409))
        else:
            task = self._open[query] = asyncio.create_task(self._follow(query, mode, after))
            self._tasks.add(task)
            task.add_done_callback(lambda done: self._forget(query, done))

    def _forget(self, query: str, task: asyncio.Task[None]) -> None:
        """A task has ended, also one that was ended before it had begun."""
        self._tasks.discard(task)
        if self._open.get(query) is task:
            del self._open[query]

    async def _end(self, query: str) -> None:
        task = self._open.pop(query, None)
        if task is None:
            await self._tell(query, error_event("this query is not subscribed", status=404))
            return
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await self._tell(query, make_event("end", reason="you have unsubscribed", again=False))

    async def _follow(self, query: str, mode: Mode, after: str | None) -> None:
        try:
            self._services.take_subscription()
            try:
                async with aclosing(await self._subscribe(query, mode, after)) as batches:  # type: ignore[type-var]
                    async for events in batches:
                        for event in events:
                            if event.kind == "end":
                                # Whoever reads this may subscribe again at once.
                                self._open.pop(query, None)
                            await self._tell(query, event)
            finally:
                self._services.return_subscription()
        except Problem as problem:
            self._open.pop(query, None)
            await self._tell(query, error_event(problem.detail, title=problem.title, status=problem.status))
        except WebSocketDisconnect:
            return
        except Exception:
            logger.exception("a subscription of %s ended", query)
            await self._tell(query, error_event("the server failed: subscribe again", status=500))

    async def _tell(self, query: str, event: Event) -> None:
        """Send an event; a `WebSocketDisconnect` where the client has gone, or takes nothing for too long."""
        async with self._sending:
            if not self._has_lapsed.is_set():
                try:
                    await send_text(self._socket, event.of_query(query))
                except TimeoutError:
                    self._has_lapsed.set()
        if self._has_lapsed.is_set():
            raise WebSocketDisconnect(1008, TOO_SLOW)
