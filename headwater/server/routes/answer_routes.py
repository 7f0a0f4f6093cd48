"""Answers over HTTP: followed as Server-Sent Events, NDJSON or over WebSocket, and the latest one in SPARQL's forms."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Request, WebSocket
from fastapi.responses import Response
from starlette.websockets import WebSocketDisconnect

from headwater.server.answers.answer_events import Event, Mode
from headwater.server.answers.event_ids import BEGINNING, EventId
from headwater.server.answers.event_streams import (
    NDJSON,
    QUIET_SECONDS,
    SSE,
    EventStream,
    error_event,
    receive_json,
    send_over_websocket,
)
from headwater.server.answers.fan_out import NotKept, Subscriber
from headwater.server.answers.log_files import LogRecord
from headwater.server.answers.result_forms import GRAPH_FORMS, JSON, SOLUTION_FORMS, forms_of, write_answer
from headwater.server.problems import Problem
from headwater.server.routes.documented import forms, problems
from headwater.server.routes.live_subscriptions import LiveSubscriptions
from headwater.server.routes.negotiation import choose_form
from headwater.server.routes.parameters import KNOWN_PARAMETERS
from headwater.server.server_services import ServerServices, caller_of, services_of

router = APIRouter(tags=["answers"], dependencies=[KNOWN_PARAMETERS])
logger = logging.getLogger(__name__)

FIRST = "first"
"""Stands for the place before the oldest answer that is kept."""
_POLICY = 1008
_FAILED = 1011


def _not_kept_problem() -> Problem:
    """The reply 410 to an id whose answers the retention has removed."""
    return Problem(
        410,
        "What follows this id is not kept any more",
        "Begin without an id, or with after=first for all that is kept; the retention is a setting of the server",
    )


def read_after(given: str | None) -> EventId | None:
    """The id behind which somebody goes on; a `Problem` where it is none."""
    if given is None or not given.strip():
        return None
    if given == FIRST:
        return BEGINNING
    try:
        return EventId.parse(given)
    except ValueError as error:
        raise Problem(400, "This is no id of an event", str(error)) from None


async def subscribe(services: ServerServices, query: str, mode: Mode, given: str | None) -> AsyncIterator[list[Event]]:
    """The events of a query behind an id; a `Problem` where that cannot be."""
    status = services.query_status(query)
    hub = services.fan_out.hub(query, status.get("emit") or "rstream")
    after = read_after(given)
    is_first = given == FIRST
    if is_first and mode == "changes":
        raise Problem(400, "Changes begin with a snapshot", "Leave out after=first, or take mode=answers")
    try:
        if not is_first:
            await hub.check_kept(mode, after)
    except NotKept:
        raise _not_kept_problem() from None
    http = services.settings.http
    subscriber = Subscriber(mode, http.waiting_events, http.waiting_bytes, http.slow_seconds)
    return hub.follow(subscriber, after, QUIET_SECONDS)


@router.get(
    "/queries/{name:path}/answers/latest",
    responses={200: forms("The newest answer", *SOLUTION_FORMS, *GRAPH_FORMS, JSON), **problems(406)},
    response_class=Response,
)
async def show_latest(request: Request, name: str) -> Response:
    """The newest answer, as SPARQL results in JSON, XML, CSV or TSV, as RDF, or as the JSON of the log."""
    services = services_of(request)
    caller_of(request).check("read", query=name)
    services.query_status(name)
    found = await asyncio.to_thread(lambda: _latest(services, name))
    if found is None:
        raise Problem(404, "There is no answer yet", "Ask again when a window of the query has closed")
    id, answer = found
    form = choose_form(request.headers.get("accept"), forms_of(answer))
    if form is None:
        raise Problem(406, "There is no such form", f"This answer is given as {', '.join(forms_of(answer))}")
    body = await asyncio.to_thread(write_answer, answer, form)
    headers = {"ETag": f'"{id}"', "Vary": "Accept", "Cache-Control": "no-cache"}
    return Response(body, headers=headers, media_type=form)


def _latest(services: ServerServices, name: str) -> tuple[EventId, dict[str, Any]] | None:
    """The newest answer that is one, and no notice of a suspension."""
    reader = services.fan_out.reader(name)
    last = reader.last_record()
    if last is None:
        return None

    def newest_first() -> Iterator[LogRecord]:
        yield last[0]
        yield from reversed([one for one, _ in reader.read_after(None)])

    for record in newest_first():
        for place in range(len(record.lines) - 1, -1, -1):
            answer = json.loads(record.lines[place])
            if "suspended" not in answer:
                return EventId(record.era, record.batch, place), answer
    return None


@router.get(
    "/queries/{name:path}/answers",
    responses={200: forms("Events, until one of both sides ends", SSE, NDJSON), **problems(406, 410)},
    response_class=Response,
)
async def follow_answers(
    request: Request,
    name: str,
    mode: Annotated[Mode, Query(description="Each answer, or what changed since the one before")] = "answers",
    after: Annotated[str | None, Query(description="The id of the last event, or `first`", max_length=80)] = None,
    format: Annotated[Literal["sse", "ndjson"] | None, Query(description="Before Accept")] = None,
    last_event_id: Annotated[str | None, Header(description="The same as `after`", max_length=80)] = None,
) -> Response:
    """Follow the answers of a query as Server-Sent Events or NDJSON."""
    services = services_of(request)
    caller_of(request).check("read", query=name)
    form = (
        {"sse": SSE, "ndjson": NDJSON}[format] if format else choose_form(request.headers.get("accept"), [SSE, NDJSON])
    )
    if form is None:
        raise Problem(406, "There is no such form", f"Answers are given as {SSE} or {NDJSON}")
    services.take_subscription()
    try:
        events = await subscribe(services, name, mode, after or last_event_id)
    except BaseException:
        services.return_subscription()
        raise
    return EventStream(events, form, services.return_subscription)


@router.websocket("/queries/{name:path}/answers")
async def follow_over_websocket(socket: WebSocket, name: str, mode: Mode = "answers", after: str | None = None) -> None:
    """Follow the answers of one query over WebSocket: an object of JSON for each event."""
    services = services_of(socket)
    caller = caller_of(socket)
    await socket.accept()
    try:
        caller.check("read", query=name)
        services.take_subscription()
    except Problem as problem:
        await _refuse(socket, problem)
        return
    try:
        events = await subscribe(services, name, mode, after)
        sending = asyncio.create_task(send_over_websocket(socket, events, lambda event: event.data))
        await _until_gone(socket, sending)
    except Problem as problem:
        await _refuse(socket, problem)
    finally:
        services.return_subscription()


async def _refuse(socket: WebSocket, problem: Problem) -> None:
    event = error_event(problem.detail, title=problem.title, status=problem.status)
    await socket.send_text(event.data.decode())
    await socket.close(_POLICY, problem.title)


async def _until_gone(socket: WebSocket, sending: asyncio.Task[None]) -> None:
    """Send until there is no more, or the client has gone."""

    async def watch() -> None:
        while True:
            await receive_json(socket)

    watching = asyncio.create_task(watch())
    try:
        await asyncio.wait({sending, watching}, return_when=asyncio.FIRST_COMPLETED)
        if not sending.done():
            return
        failure = sending.exception()
        if isinstance(failure, NotKept):
            await _refuse(socket, _not_kept_problem())
        elif failure is None:
            await socket.close()
        elif not isinstance(failure, WebSocketDisconnect | TimeoutError):
            logger.error("answers over a WebSocket ended", exc_info=failure)
            await socket.close(_FAILED)
    finally:
        for task in (sending, watching):
            task.cancel()
        await asyncio.gather(sending, watching, return_exceptions=True)


@router.websocket("/live")
async def follow_many(socket: WebSocket) -> None:
    """Any number of subscriptions over one WebSocket.

    `{"subscribe": "busy", "mode": "changes", "after": "…"}` begins one, `{"unsubscribe": "busy"}` ends it, which an
    event `end` confirms; each event has the name of its query in `query`.
    """
    services = services_of(socket)

    async def begin(query: str, mode: Mode, after: str | None) -> AsyncIterator[list[Event]]:
        return _without_lost(await subscribe(services, query, mode, after))

    await socket.accept()
    await LiveSubscriptions(socket, services, caller_of(socket), begin).serve()


async def _without_lost(events: AsyncIterator[list[Event]]) -> AsyncIterator[list[Event]]:
    """The events, with a `Problem` where they are not kept any more."""
    try:
        async with aclosing(events) as batches:  # type: ignore[type-var]
            async for batch in batches:
                yield batch
    except NotKept:
        raise _not_kept_problem() from None
