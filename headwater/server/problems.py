"""Errors of HTTP as `application/problem+json` (RFC 9457): what happened and what to do, without paths or internals."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import HTTPException, RequestValidationError
from fastapi.responses import JSONResponse

MEDIA_TYPE = "application/problem+json"


class Problem(Exception):
    """An error that the client is told: a status of HTTP, a title that names the kind, and what to do."""

    def __init__(self, status: int, title: str, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(f"{status} {title}: {detail}")
        self.status = status
        self.title = title
        self.detail = detail
        self.headers = headers


def install_problem_handlers(app: FastAPI) -> None:
    """Have an application answer all errors as problems."""

    @app.exception_handler(Problem)
    async def answer_problem(_: Request, problem: Problem) -> JSONResponse:
        return _response(problem.status, problem.title, problem.detail, problem.headers)

    @app.exception_handler(HTTPException.__mro__[1])
    async def answer_http_error(_: Request, error: HTTPException) -> JSONResponse:
        title = HTTPStatus(error.status_code).phrase
        return _response(error.status_code, title, str(error.detail), error.headers)

    @app.exception_handler(RequestValidationError)
    async def answer_invalid_request(_: Request, error: RequestValidationError) -> JSONResponse:
        reasons = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        return _response(422, "The request is not valid", reasons)

    @app.exception_handler(Exception)
    async def answer_internal_error(_: Request, __: Exception) -> JSONResponse:
        return _response(500, "Internal error", "This is an error of the server. Its log has the details.")


def _response(status: int, title: str, detail: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return JSONResponse(body, status_code=status, media_type=MEDIA_TYPE, headers=dict(headers or {}))
