"""Errors as answers: `application/problem+json` (RFC 9457) with what to do, without paths and what is inside."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.routing import Match

from headwater.server.process.call_errors import CallError, EngineDown
from headwater.terms.text_lines import shorten_message

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
_RETRY_SECONDS = "1"
_LONGEST_DETAIL = 4_000
"""A detail may repeat what was sent; that much of it helps a person."""
_MOST_ERRORS = 20
_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE")
_STATUS = {
    "unknown": (404, "There is nothing of that name"),
    "forbidden": (403, "This is not done over HTTP"),
    "too-many": (429, "There are too many"),
    "busy": (503, "Too much waits to be evaluated"),
    "key": (422, "The key was used with another body"),
    "query": (400, "The query is wrong"),
    "conflict": (409, "This does not go with what is registered"),
    "egress": (403, "The egress policy does not allow this address"),
    "limit": (422, "The query exceeds a limit"),
    "graphviz": (406, "Pictures need Graphviz on the server"),
    "setting": (400, "A setting is wrong"),
    "state": (409, "This is not possible now"),
    "storage": (503, "The server cannot store this now"),
}


class Problem(Exception):
    """An answer that says why something was not done, and what to do."""

    def __init__(self, status: int, title: str, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.title = title
        self.detail = detail
        self.headers = headers or {}
        self.members: dict[str, Any] = {}
        """What stands beside the usual members, such as the places of errors in a query."""


def problem_response(
    status: int, title: str, detail: str, headers: Mapping[str, str] | None = None, **members: Any
) -> Response:
    """The answer of a problem."""
    detail = "\n".join(map(shorten_message, detail[:_LONGEST_DETAIL].split("\n")))
    content = {"type": "about:blank", "title": title, "status": status, "detail": detail, **members}
    body = json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")
    return Response(body, status, dict(headers or {}), MEDIA_TYPE)


def respond_to_call_error(error: CallError | EngineDown) -> Response:
    """The answer for a call of the engine that was not done."""
    if isinstance(error, EngineDown):
        detail = f"{error}: send the request again"
        return problem_response(503, "The engine is not there", detail, {"Retry-After": _RETRY_SECONDS})
    status, title = _STATUS.get(error.kind, (500, "The server failed"))
    headers = {"Retry-After": _RETRY_SECONDS} if status in (429, 503) else {}
    members = {"errors": error.places} if error.places else {}
    return problem_response(status, title, str(error), headers, **members)


def _allowed_methods(request: Request) -> list[str]:
    """The methods that some route takes at the path of a request."""

    def is_taken(method: str) -> bool:
        scope = {**request.scope, "method": method}
        return any(route.matches(scope)[0] is Match.FULL for route in request.app.routes)

    return [method for method in _METHODS if is_taken(method)]


def install_problem_handlers(app: FastAPI) -> None:
    """Have every error of an application answered as a problem."""

    async def on_problem(request: Request, error: Exception) -> Response:
        assert isinstance(error, Problem)
        return problem_response(error.status, error.title, error.detail, error.headers, **error.members)

    async def on_call_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, CallError | EngineDown)
        return respond_to_call_error(error)

    async def on_http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        detail = {404: "There is nothing at this path: see /openapi.json", 405: "Another method is needed here"}
        title = str(error.detail)
        headers = error.headers
        if error.status_code == 405:
            headers = {"Allow": ", ".join(_allowed_methods(request))}
        return problem_response(error.status_code, title, detail.get(error.status_code, title), headers)

    async def on_wrong_arguments(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        found = [
            {"place": shorten_message(".".join(map(str, one["loc"]))), "message": shorten_message(str(one["msg"]))}
            for one in error.errors()[:_MOST_ERRORS]
        ]
        detail = "; ".join(f"{one['place']}: {one['message']}" for one in found)
        return problem_response(422, "The request is wrong", detail, errors=found)

    async def on_failure(request: Request, error: Exception) -> Response:
        logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return problem_response(500, "The server failed", "The server's log says why; try again later")

    app.add_exception_handler(Problem, on_problem)
    app.add_exception_handler(CallError, on_call_error)
    app.add_exception_handler(EngineDown, on_call_error)
    app.add_exception_handler(HTTPException, on_http_error)
    app.add_exception_handler(RequestValidationError, on_wrong_arguments)
    app.add_exception_handler(Exception, on_failure)
