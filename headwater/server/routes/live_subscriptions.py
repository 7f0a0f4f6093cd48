"""Many subscriptions over one WebSocket: each is a task, and one loop that begins and ends them.

{"subscribe": "busy", "mode": "changes", "after": "…"}      begins one
{"unsubscribe": "busy"}                                      ends it; an event `end` confirms it
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

from fastapi import WebSocket
from starlette.websockets import WebSocketDisconnect

from headwater.server.access import Caller
from headwater.server.answers.answer_events import Event, Mode, make_event
from headwater.server.answers.event_streams import error_event, receive_json
from headwater.server.problems import Problem
from headwater.server.server_services import ServerServices

logger = logging.getLogger(__name__)

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
        self._tasks: set[asyncio.Task[None]] = set()
        self._open: dict[str, asyncio.Task[None]] = {}
        """The subscriptions that have not been told to end."""

    async def serve(self) -> None:
        """Do what the client asks until it has gone."""
        try:
            while True:
                await self._do(await receive_json(self._socket) or {})
        except WebSocketDisconnect:
            return
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

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
        async with self._sending:
            await self._socket.send_text(event.of_query(query).decode("utf-8", "replace"))
