"""Queries over HTTP: register, change, look at and drop them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response

from headwater.server.access import Caller
from headwater.server.problems import Problem
from headwater.server.process.call_errors import CallError
from headwater.server.request_limits import read_text
from headwater.server.routes.documented import bodies, forms, problems
from headwater.server.routes.negotiation import choose_form
from headwater.server.routes.parameters import KNOWN_PARAMETERS
from headwater.server.routes.path_names import check_name
from headwater.server.server_services import ServerServices, caller_of, services_of
from headwater.server.stream_rights import check_stream_rights
from headwater.terms.timestamps import parse_time
from headwater.values.query_limits import QueryLimits

router = APIRouter(tags=["queries"], dependencies=[KNOWN_PARAMETERS])

SPARQL = "application/sparql-query"
_PLANS = {
    "text/plain": "text",
    "application/json": "json",
    "text/vnd.mermaid": "mermaid",
    "image/svg+xml": "svg",
}

Dialect = Annotated[Literal["csparql", "cqels", "rspql"] | None, Query(description="Without it, seen in the text")]
Bounds = Annotated[Literal["(]", "[)"] | None, Query(description="Which end of a window belongs to it")]
Report = Annotated[
    Literal["close", "change", "nonempty", "periodic", "eager"] | None, Query(description="When it is evaluated")
]
Emit = Annotated[
    Literal["rstream", "istream", "dstream"] | None,
    Query(description="All of a result, what is new, or what is gone"),
]
Content = Annotated[Literal["set", "bag"] | None, Query(description="Whether equal triples of a window collapse")]
Start = Annotated[str | None, Query(description="When the first window opens, as an xsd:dateTime", max_length=60)]
Gauges = Annotated[bool, Query(description="Show its numbers as metrics")]
Callback = Annotated[
    str | None, Query(description="An http or https address to which each answer is sent", max_length=2000)
]
Seconds = Annotated[float | None, Query(gt=0, le=1e6, description="How long one tick may take")]
Rows = Annotated[int | None, Query(ge=1, le=1_000_000_000, description="How many rows an answer may have")]


def _options(**given: Any) -> dict[str, Any]:
    """The arguments of `Engine.register` that were given."""
    found = {name: value for name, value in given.items() if value is not None}
    limits = {name: found.pop(name) for name in ("seconds", "rows") if name in found}
    return found | ({"limits": limits} if limits else {})


def _check_limits(services: ServerServices, caller: Caller, name: str, limits: Mapping[str, float]) -> None:
    """Refuse limits above those of the server, unless the caller runs it."""
    if caller.may("admin", query=name):
        return
    highest = QueryLimits.of(services.settings.limits)
    for limit, value in limits.items():
        if value > (most := getattr(highest, limit)):
            detail = f"The limit {limit} is {most:,} on this server: ask for less, or for a token with the scope admin"
            raise Problem(403, "A request may only lower a limit", detail)


def _describe(services: ServerServices, name: str) -> dict[str, Any]:
    last = services.fan_out.reader(name).last_record()
    return {
        "name": name,
        **services.query_status(name),
        "last_event": None if last is None else str(last[0].last),
        "subscribers": services.fan_out.counts.get(name, 0),
    }


@router.get("/queries", responses=problems())
async def list_queries(request: Request) -> JSONResponse:
    """All queries with their status, counts, limits, and why one is suspended."""
    services, caller = services_of(request), caller_of(request)
    names = [name for name in services.status["queries"] if caller.may("read", query=name)]
    if not names:
        caller.check("read")
    return JSONResponse({"queries": [_describe(services, name) for name in names]})


@router.post("/queries/validate", responses=problems(408, 413), openapi_extra=bodies(SPARQL))
async def validate_query(request: Request, dialect: Dialect = None) -> JSONResponse:
    """Say what is wrong with a query, with line, column and what was expected, or what it would read."""
    caller_of(request).check("read")
    text = await read_text(request)
    services = services_of(request)
    try:
        await check_stream_rights(caller_of(request), "read", text, dialect, services.status["streams"])
    except CallError as error:
        return JSONResponse({"valid": False, "errors": error.places, "warnings": []})
    return JSONResponse(await services.engine.call("validate", text=text, dialect=dialect))


@router.post("/queries/preview", responses=problems(408, 409, 413), openapi_extra=bodies(SPARQL))
async def preview_query(
    request: Request,
    dialect: Dialect = None,
    bounds: Bounds = None,
    report: Report = None,
    emit: Emit = None,
    content: Content = None,
) -> JSONResponse:
    """Answer a query over what the windows hold now; nothing is registered."""
    caller = caller_of(request)
    services = services_of(request)
    caller.check("read")
    options = _options(
        dialect=dialect, bounds=bounds, report=report, emit=emit, content=content, seconds=None, rows=None
    )
    text = await read_text(request)
    await check_stream_rights(caller, "read", text, dialect, services.status["streams"])
    return JSONResponse(await services.engine.call("preview", text=text, options=options))


@router.get(
    "/queries/{name:path}/plan",
    responses={200: forms("The plan", *_PLANS), **problems(406, 409)},
    response_class=Response,
)
async def show_plan(
    request: Request,
    name: str,
    format: Annotated[Literal["text", "json", "mermaid", "svg"] | None, Query(description="Before Accept")] = None,
    graph: Annotated[Literal["operators", "denotational"] | None, Query(description="Which drawing")] = None,
    stage: Annotated[Literal["written", "paper", "evaluated"], Query(description="Which plan")] = "evaluated",
) -> Response:
    """How a query is understood and evaluated: text, JSON, Mermaid or SVG."""
    services = services_of(request)
    caller_of(request).check("read", query=name)
    services.query_status(name)
    form = choose_form(request.headers.get("accept"), list(_PLANS))
    if format is None and form is None:
        raise Problem(406, "There is no such form", f"A plan is given as {', '.join(_PLANS)}")
    chosen = format or _PLANS[form or ""]
    found = await services.engine.call("plan", name=name, format=chosen, graph=graph, stage=stage)
    if chosen == "json":
        return JSONResponse(found)
    media_type = next(media for media, one in _PLANS.items() if one == chosen)
    return Response(found, media_type=media_type)


@router.get("/queries/{name:path}/why", responses=problems(409))
async def show_why(
    request: Request, name: str, time: Annotated[str, Query(description="The instant of an answer", max_length=60)]
) -> JSONResponse:
    """How many solutions each step of the plan has at the instant of an answer; the streams are read again for it."""
    services = services_of(request)
    caller_of(request).check("read", query=name)
    services.query_status(name)
    try:
        instant = parse_time(time)
    except ValueError as error:
        raise Problem(400, "This is no time", str(error)) from None
    return JSONResponse({"steps": await services.engine.call("page_why", name=name, time=instant)})


@router.get("/queries/{name:path}", responses=problems())
async def show_query(request: Request, name: str) -> JSONResponse:
    """A query with its text, status, counts and limits."""
    caller_of(request).check("read", query=name)
    return JSONResponse(_describe(services_of(request), name))


@router.put(
    "/queries/{name:path}",
    status_code=201,
    responses={200: {"description": "It was there, and is this one now"}, **problems(408, 409, 413)},
    openapi_extra=bodies(SPARQL),
)
async def put_query(
    request: Request,
    name: str,
    dialect: Dialect = None,
    bounds: Bounds = None,
    report: Report = None,
    emit: Emit = None,
    content: Content = None,
    t0: Start = None,
    seconds: Seconds = None,
    rows: Rows = None,
    gauges: Gauges = False,
    callback: Callback = None,
) -> JSONResponse:
    """Register a query, the body, or replace the one of that name. The same one again changes nothing."""
    services, caller = services_of(request), caller_of(request)
    caller.check("register", query=name)
    check_name("query", name)
    options = _options(
        dialect=dialect, bounds=bounds, report=report, emit=emit, content=content, t0=t0, seconds=seconds, rows=rows
    )
    _check_limits(services, caller, name, options.get("limits", {}))
    if callback and not callback.startswith(("http://", "https://")):
        raise Problem(400, "This is no address for answers", "A callback begins with http:// or https://")
    if callback and services.settings.server.callback_secret is None:
        raise Problem(400, "Callbacks are not set up", "The server needs the setting callback_secret")
    text = await read_text(request)
    await check_stream_rights(caller, "register", text, dialect, services.status["streams"])
    found = await services.engine.call(
        "put_query",
        name=name,
        text=text,
        options=options,
        gauges=gauges,
        callback=callback or "",
        owner=caller.name,
    )
    if found["changed"] and not found["created"]:
        services.fan_out.renew(name)
    body = {"name": name, **found}
    return JSONResponse(body, 201 if found["created"] else 200)


@router.post("/queries/{name:path}", responses=problems(409))
async def change_query(
    request: Request, name: str, action: Annotated[Literal["pause", "resume"], Query(description="What to do")]
) -> JSONResponse:
    """Pause a query, which keeps its answers, or resume one that is paused or suspended."""
    services = services_of(request)
    caller_of(request).check("register", query=name)
    services.query_status(name)
    await services.engine.call(f"{action}_query", name=name)
    return JSONResponse({"name": name, "status": services.query_status(name)["status"]})


@router.delete("/queries/{name:path}", status_code=204, responses=problems(409))
async def drop_query(request: Request, name: str) -> Response:
    """Drop a query; the subscriptions of its answers end."""
    services = services_of(request)
    caller_of(request).check("register", query=name)
    services.query_status(name)
    await services.engine.call("drop_query", name=name)
    return Response(status_code=204)
