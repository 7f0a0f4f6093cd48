"""Streams over HTTP: make and delete them, feed them, and see what of them could not be used."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from headwater.server.problems import Problem
from headwater.server.process.call_errors import CallError
from headwater.server.process.registry import PUSH
from headwater.server.routes.documented import bodies, forms, problems
from headwater.server.routes.negotiation import choose_form
from headwater.server.routes.parameters import KNOWN_PARAMETERS
from headwater.server.routes.path_names import check_name
from headwater.server.routes.vocals import describe_stream
from headwater.server.server_services import ServerServices, caller_of, services_of
from headwater.terms.timestamps import parse_time

router = APIRouter(tags=["streams"], dependencies=[KNOWN_PARAMETERS])

FORMATS = {
    "text/x-timed-nquads": "tnq",
    "application/n-quads": "nquads",
    "application/n-triples": "ntriples",
    "text/turtle": "turtle",
    "application/trig": "trig",
    "application/ld+json": "jsonld",
    "application/json": "json",
    "application/x-ndjson": "json",
    "text/csv": "csv",
}
"""The media types of bodies, and what they are called elsewhere."""
_DESCRIPTIONS = ("application/json", "text/turtle", "application/ld+json", "application/n-triples")
_TAIL_FILES = 200


class StreamDescription(BaseModel):
    """Where a stream comes from: `push`, or the address of a source, and what its messages are."""

    model_config = ConfigDict(extra="forbid")

    source: str = Field(default=PUSH, description="`push`, or an address: mqtt://host:1883/topic", max_length=2000)
    template: str | None = Field(default=None, description="What a row of JSON or CSV means", max_length=100_000)
    format: str | None = Field(default=None, description="What a message is", max_length=40)
    time: str | None = Field(default=None, description="Where the time of a message is", max_length=500)
    idle: str | None = Field(default=None, description="After how much silence it is not waited for", max_length=40)


def _describe(services: ServerServices, name: str) -> dict[str, Any]:
    return {"name": name, **services.stream_status(name)}


@router.get("/streams", responses=problems())
async def list_streams(request: Request) -> JSONResponse:
    """All streams with where they come from, how far they are, and how much waits."""
    services, caller = services_of(request), caller_of(request)
    names = [name for name in services.status["streams"] if caller.may("read", stream=name)]
    if not names:
        caller.check("read")
    return JSONResponse({"streams": [_describe(services, name) for name in names]})


@router.get("/streams/{name:path}/dead-letters", responses=problems())
async def show_dead_letters(
    request: Request, name: str, limit: Annotated[int, Query(ge=1, le=1000, description="At most so many")] = 100
) -> JSONResponse:
    """The newest elements of a stream that were late, ahead or bad, with the reason."""
    services = services_of(request)
    caller_of(request).check("read", stream=name)
    iri = services.stream_status(name).get("iri", name)
    found = await asyncio.to_thread(_read_dead_letters, services.settings.state / "dead-letters", {name, iri}, limit)
    return JSONResponse({"stream": name, "dead_letters": found})


def _read_dead_letters(folder: Path, names: set[str], limit: int) -> list[dict[str, Any]]:
    """The newest dead letters, without where the server keeps what it received."""
    found: list[dict[str, Any]] = []
    paths = sorted(folder.glob("*.jsonl"), reverse=True) if folder.is_dir() else []
    for path in paths[:_TAIL_FILES]:
        for line in reversed(path.read_text("utf-8", "replace").splitlines()):
            letter = json.loads(line)
            if letter["stream"] in names or letter["stream"].removeprefix("headwater:/") in names:
                found.append({key: letter[key] for key in ("kind", "reason", "time", "text")})
                if len(found) == limit:
                    return found
    return found


@router.get(
    "/streams/{name:path}",
    responses={200: forms("The stream", *_DESCRIPTIONS), **problems(406)},
    response_class=Response,
)
async def show_stream(request: Request, name: str) -> Response:
    """A stream; as RDF, its description in the vocabulary VoCaLS."""
    services = services_of(request)
    caller_of(request).check("read", stream=name)
    found = _describe(services, name)
    form = choose_form(request.headers.get("accept"), _DESCRIPTIONS)
    if form is None:
        raise Problem(406, "There is no such form", f"A stream is described as {', '.join(_DESCRIPTIONS)}")
    if form == "application/json":
        return JSONResponse(found, headers={"Vary": "Accept"})
    body = describe_stream(str(request.url.replace(query="")), found, form)
    return Response(body, headers={"Vary": "Accept"}, media_type=form)


@router.put(
    "/streams/{name:path}",
    status_code=201,
    responses={200: {"description": "It was there already"}, **problems(409)},
)
async def put_stream(request: Request, name: str, description: StreamDescription | None = None) -> JSONResponse:
    """Make a stream that is fed over HTTP, or, with the scope admin, one from elsewhere."""
    services, caller = services_of(request), caller_of(request)
    wanted = description or StreamDescription()
    caller.check("register" if wanted.source == PUSH else "admin", stream=name)
    check_name("stream", name)
    found = await services.engine.call("put_stream", name=name, entry=wanted.model_dump(), owner=caller.name)
    return JSONResponse({"name": name, **found}, 201 if found["created"] else 200)


@router.delete("/streams/{name:path}", status_code=204, responses=problems(409))
async def drop_stream(request: Request, name: str) -> Response:
    """Delete a stream that no query reads, and what is kept of it."""
    services, caller = services_of(request), caller_of(request)
    caller.check("register", stream=name)
    services.stream_status(name)
    try:
        await services.engine.call("drop_stream", name=name)
    except CallError as error:
        if error.kind != "conflict" or caller.has_all:
            raise
        # The message has the names of queries, which may not be for this caller.
        raise Problem(409, "A query reads this stream", "Drop the queries that read it, or ask for that") from None
    return Response(status_code=204)


@router.post("/streams/{name:path}", responses=problems(408, 413, 415), openapi_extra=bodies(*FORMATS))
async def feed_stream(
    request: Request,
    name: str,
    time: Annotated[str | None, Query(description="The time of elements that do not say theirs", max_length=60)] = None,
    idempotency_key: Annotated[
        str | None, Header(description="A body is taken once under each key, however often it is sent", max_length=255)
    ] = None,
) -> JSONResponse:
    """Feed a stream. The answer comes when the elements are on disk, with how many are good, late, ahead and bad."""
    services = services_of(request)
    caller_of(request).check("feed", stream=name)
    services.stream_status(name)
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in FORMATS:
        raise Problem(
            415, "Bodies of this kind are not taken", f"Content-Type says what the body is: {', '.join(FORMATS)}"
        )
    try:
        at = None if time is None else parse_time(time)
    except ValueError as error:
        raise Problem(400, "This is no time", str(error)) from None
    body = await request.body()
    found = await services.engine.call(
        "post", stream=name, body=body, format=FORMATS[media_type], key=idempotency_key, at=at
    )
    headers = {"Idempotency-Replayed": "true"} if found.pop("is_repeated") else {}
    return JSONResponse(found, headers=headers)
