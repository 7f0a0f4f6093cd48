"""What OpenAPI says of the answers that every route may give."""

from __future__ import annotations

from typing import Any

from headwater.server.problems import MEDIA_TYPE

_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "errors": {"type": "array", "items": {"type": "object"}},
    },
}
_MEANINGS = {
    400: "What was sent is wrong",
    401: "A token is needed",
    403: "The token, the settings or the egress policy do not allow it",
    404: "There is nothing of that name",
    405: "Another method is needed",
    406: "There is no such form",
    408: "The body did not come in time",
    409: "It does not go with what is there",
    410: "What follows this id is not kept any more",
    413: "The body is too large",
    415: "Bodies of this kind are not taken",
    422: "The request is wrong",
    429: "Too many of them; Retry-After says when to come back",
    503: "The engine is being started, or too much waits; Retry-After says when to come back",
}
_ALWAYS = (400, 401, 403, 404, 405, 422, 429, 503)


def schema_of(media_type: str) -> dict[str, Any]:
    """What comes in a form: an object where it is JSON, several values or a text otherwise."""
    if media_type == "application/json" or (media_type.endswith("+json") and "ld+" not in media_type):
        return {"type": "object"}
    return {} if media_type.endswith("ld+json") else {"type": "string"}


def problems(*others: int) -> dict[int | str, dict[str, Any]]:
    """The problems of a route, for OpenAPI: those that any may have, and others."""
    return {
        status: {"description": _MEANINGS[status], "content": {MEDIA_TYPE: {"schema": _PROBLEM}}}
        for status in sorted({*_ALWAYS, *others})
    }


def bodies(*media_types: str) -> dict[str, Any]:
    """What a route takes, for OpenAPI."""
    content = {one: {"schema": {} if "json" in one else {"type": "string"}} for one in media_types}
    return {"requestBody": {"required": True, "content": content}}


def forms(description: str, *media_types: str) -> dict[str, Any]:
    """An answer in several forms, for OpenAPI."""
    return {"description": description, "content": {one: {"schema": schema_of(one)} for one in media_types}}
