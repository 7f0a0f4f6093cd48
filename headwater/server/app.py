"""The application: routes, what every request passes before them, and what begins and ends with the server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from starlette.middleware.cors import CORSMiddleware

from headwater.server.access import Caller
from headwater.server.audit_log import AuditLog
from headwater.server.guard import Guard
from headwater.server.metrics import make_registry
from headwater.server.openapi_security import describe_security
from headwater.server.problems import install_problem_handlers
from headwater.server.protocol.data_calls import RemoteData
from headwater.server.protocol.data_service import GraphReader
from headwater.server.protocol.protocol_router import make_protocol_router
from headwater.server.protocol.sparql_routes import Right
from headwater.server.routes import answer_routes, query_routes, status_routes, stream_routes
from headwater.server.server_services import CALLER, OPERATION, ServerServices
from headwater.server.server_settings import ServerSettings
from headwater.terms.durable_files import create_folder

DESCRIPTION = """Continuous queries over streams of RDF: register a query, feed streams, follow answers.

Errors are `application/problem+json`. Where the server has tokens, every path but `/health` needs one."""

ROUTERS = (status_routes.router, answer_routes.router, query_routes.router, stream_routes.router)
"""The routes of answers come before those of queries, whose names may have slashes."""


async def authorize_data(request: Request, right: Right) -> GraphReader:
    """Refuse a caller who may not read or change the linked data; gives whose windows the caller may see."""
    caller: Caller = request.scope[CALLER]
    request.scope[OPERATION] = {"operation": "query" if right == "read" else "update"}
    caller.check(right)
    return GraphReader(caller.queries, caller.streams) if caller.may("read") else GraphReader((), ())


def make_app(settings: ServerSettings) -> FastAPI:
    """The application of a server with these settings; the engine begins and ends with it."""
    create_folder(settings.state, mode=0o700)
    services = ServerServices.of(settings)
    registry, answers = make_registry(services)
    audit = AuditLog(settings.state / "audit.jsonl")

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        services.engine.start()
        try:
            yield
        finally:
            services.end_streams()
            await services.engine.close()
            audit.close()

    app = FastAPI(
        title="Headwater",
        version="1",
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    describe_security(app, has_tokens=not services.access.is_open)
    app.state.services = services
    app.state.registry = registry
    app.state.audit = audit
    install_problem_handlers(app)
    for router in ROUTERS:
        app.include_router(router)
    data, largest = RemoteData(services.engine.call), settings.http.body_bytes
    app.include_router(make_protocol_router(data, authorize=authorize_data, largest_body=largest))

    def count(method: str, status: int) -> None:
        answers.labels(method, str(status)).inc()

    app.add_middleware(Guard, services=services, audit=audit, on_answered=count)
    if settings.server.cors:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.server.cors),
            allow_methods=["*"],
            allow_headers=["Authorization", "Content-Type", "Last-Event-ID", "Idempotency-Key"],
            expose_headers=["Retry-After", "Idempotency-Replayed"],
        )
    return app
