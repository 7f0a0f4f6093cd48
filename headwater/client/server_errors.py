"""What a server refuses, as an error of Python."""

from __future__ import annotations

from typing import Any

import httpx

from headwater.errors import HeadwaterError
from headwater.language.errors import QueryError


class ServerError(HeadwaterError, RuntimeError):
    """A request that a server refused, or that did not reach it; `status` is 0 where there is no answer."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


def raise_for_problem(response: httpx.Response, query: str = "") -> None:
    """Raise what an answer says is wrong: a `QueryError` for a query, a `ServerError` for anything else."""
    if response.is_success:
        return
    problem: dict[str, Any] = {}
    if "json" in response.headers.get("content-type", ""):
        problem = response.json()
    places = problem.get("errors") or []
    if query and response.status_code == 400 and places and "line" in places[0]:
        place = places[0]
        lines = query.split("\n")
        offset = sum(len(line) + 1 for line in lines[: place["line"] - 1]) + place["column"] - 1
        raise QueryError(place["message"], query, offset, tuple(place["expected"]))
    title = problem.get("title", response.reason_phrase)
    raise ServerError(f"{title}: {problem.get('detail', response.status_code)}", response.status_code)
