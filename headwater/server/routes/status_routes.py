"""How the server is doing: for those who keep it running, and for Prometheus."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from headwater.server.metrics import ServerCollector
from headwater.server.problems import Problem
from headwater.server.routes.documented import forms, problems
from headwater.server.routes.parameters import KNOWN_PARAMETERS
from headwater.server.server_services import caller_of, services_of

router = APIRouter(tags=["status"])


@router.get("/health")
async def show_health(request: Request) -> JSONResponse:
    """Whether the HTTP process answers. It needs no token."""
    return JSONResponse({"status": "ok"})


@router.get("/ready", dependencies=[KNOWN_PARAMETERS], responses=problems())
async def show_readiness(request: Request) -> JSONResponse:
    """Whether the engine takes calls; 503 where it does not."""
    caller_of(request).check("read")
    services = services_of(request)
    if (failure := services.engine.failure) is not None:
        folder = f"{services.settings.path_of('.').absolute()}/"
        reason = failure.replace(folder, "").replace(f"{services.settings.state}/", "")
        raise Problem(503, "The engine cannot begin", f"{reason}. Mend it and start the server again")
    if not services.engine.is_ready or services.is_ending.is_set():
        raise Problem(503, "The engine is not there", "It is being started: ask again", {"Retry-After": "1"})
    return JSONResponse({"status": "ready", "engine_starts": services.engine.starts})


@router.get("/status", dependencies=[KNOWN_PARAMETERS], responses=problems())
async def show_status(request: Request) -> JSONResponse:
    """The counts of the run, and, of what the token is for, how many queries, streams and subscriptions there are."""
    caller = caller_of(request)
    caller.check("read")
    services = services_of(request)
    status = services.visible_status(caller)
    found = {
        "engine": "failed" if services.engine.failure else "ready" if services.engine.is_ready else "starting",
        "engine_starts": services.engine.starts,
        "failure": status["failure"],
        "queries": len(status["queries"]),
        "streams": len(status["streams"]),
        "subscriptions": status["subscriptions"],
        "run": status["run"],
    }
    return JSONResponse(found)


@router.get(
    "/metrics",
    dependencies=[KNOWN_PARAMETERS],
    responses={200: forms("Metrics for Prometheus", "text/plain"), **problems()},
    response_class=Response,
)
async def show_metrics(request: Request) -> Response:
    """Metrics in the formats of Prometheus."""
    caller = caller_of(request)
    caller.check("read")
    registry: CollectorRegistry = request.app.state.registry
    if not caller.has_all:
        registry = CollectorRegistry()
        registry.register(ServerCollector(services_of(request), caller))
    encode, media_type = choose_encoder(request.headers.get("accept", ""))
    body = await asyncio.to_thread(encode, registry)
    return Response(body, headers={"Content-Type": media_type})
