"""What every request passes before its route: its origin, who makes it, how many, its body, the audit log."""

from __future__ import annotations

import logging
from collections.abc import Callable

from starlette.datastructures import Headers, QueryParams
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headwater.server.audit_log import AuditLog
from headwater.server.problems import Problem, problem_response
from headwater.server.request_limits import ClientGone, take_body
from headwater.server.server_services import CALLER, OPERATION, ServerServices

logger = logging.getLogger(__name__)

_OPEN = ("/health",)
_PARTS_OF_PAGES = "/page/_nicegui"
"""A view of the page is some hundred files, and a connection; they do not count as requests."""
_CLIENT_GONE = 499
"""Stands in the audit log where nobody was there any more to be answered."""
_TOLD = ("action", "graph", "callback")
"""Parameters that say what a request does; callbacks have answers sent elsewhere."""
_READING = ("GET", "HEAD", "OPTIONS")
OnAnswered = Callable[[str, int], None]


class Guard:
    """Middleware: identifies the caller, counts its requests, and notes what may have changed something.

    `on_answered` is called with the method and the status of each answer.
    """

    def __init__(self, app: ASGIApp, services: ServerServices, audit: AuditLog, on_answered: OnAnswered) -> None:
        self._app = app
        self._services = services
        self._audit = audit
        self._on_answered = on_answered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        address = scope["client"][0] if scope.get("client") else ""
        method = scope.get("method", "WEBSOCKET")
        name = "anybody"
        status = 500
        is_noted = False

        def note() -> None:
            """Write the line of the audit log; whoever has the answer finds it there."""
            nonlocal is_noted
            if not is_noted and method not in _READING and scope["type"] == "http":
                self._audit.note(name, address, method, scope["path"], status, **_describe(scope))
            is_noted = True

        async def note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._on_answered(method, status)
                note()
            await send(message)

        try:
            if scope["path"] not in _OPEN:
                headers = Headers(scope=scope)
                self._services.sites.check(headers)
                caller = self._services.access.identify(headers.get("authorization"))
                name = caller.name
                scope[CALLER] = caller
                if not scope["path"].startswith(_PARTS_OF_PAGES):
                    self._services.rates.check(f"{name} {address}" if self._services.access.is_open else name)
            if scope["type"] == "http":
                http = self._services.settings.http
                receive = await take_body(scope, receive, http.body_bytes, http.body_seconds)
        except Problem as problem:
            if scope["type"] == "websocket":
                # Before it is accepted, a connection is closed with the status 403.
                await receive()
                await send({"type": "websocket.close", "code": 1008, "reason": problem.title})
                return
            answer = problem_response(problem.status, problem.title, problem.detail, problem.headers)
            await answer(scope, receive, note_status)
        except ClientGone:
            status = _CLIENT_GONE
        else:
            await self._app(scope, receive, note_status)
        finally:
            note()


def _describe(scope: Scope) -> dict[str, str]:
    """What a request is about, as far as its route has said it: its name, and what is to be done to what."""
    parameters = QueryParams(scope.get("query_string", b""))
    found = {key: str(value) for key, value in scope.get("path_params", {}).items() if key == "name"}
    found |= {key: parameters[key] for key in _TOLD if parameters.get(key)}
    if "default" in parameters:
        found["graph"] = "default"
    found.update(scope.get(OPERATION, {}))
    return found
