"""The SPARQL 1.1 Protocol: queries and updates, and the description of the service where nothing is asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from fastapi import Request, Response

from headwater.server.problems import Problem
from headwater.server.protocol.data_service import (
    ANY_READER,
    DataService,
    GraphChoice,
    GraphReader,
    QueryRequest,
    UpdateRequest,
)
from headwater.server.protocol.dataset_descriptions import describe_service
from headwater.server.protocol.http_requests import (
    FORM,
    address_of,
    check_iri,
    media_type_of,
    read_body,
    read_parameters,
    read_text,
)
from headwater.server.protocol.media_types import MAIN_GRAPH_TYPES, accepted_types, choose_graph_type, with_charset
from headwater.server.protocol.result_texts import write_graph
from headwater.server.request_limits import check_length

QUERY = "application/sparql-query"
UPDATE = "application/sparql-update"
_OFFERED = f"{QUERY}, {UPDATE} or {FORM}"
Right: TypeAlias = Literal["read", "update"]
Authorize: TypeAlias = Callable[[Request, Right], Awaitable[GraphReader | None]]
"""Raises a `Problem` where the sender of a request may not read or change the data.

It gives whose graphs of windows the sender sees; None: all."""

_Parameters = list[tuple[str, str]]


async def allow_all(_: Request, __: Right) -> None:
    """An `Authorize` for servers without tokens."""


@dataclass(frozen=True)
class SparqlEndpoint:
    """Answers the requests to the address of the SPARQL Protocol."""

    data: DataService
    authorize: Authorize = allow_all
    largest_body: int = 64 << 20

    async def get(self, request: Request) -> Response:
        """A query in the address; without one, the description of the service."""
        parameters = read_parameters(request.url.query)
        if _values(parameters, "update"):
            raise Problem(400, "An update by GET", "Send updates by POST.")
        if not _values(parameters, "query"):
            return await self._describe(request)
        return await self._query(request, _one(parameters, "query"), parameters)

    async def post(self, request: Request) -> Response:
        """A query or an update: as a form, or as the body itself."""
        media_type = media_type_of(request, _OFFERED)
        if media_type not in (QUERY, UPDATE, FORM):
            raise Problem(415, "Not a query and not an update", f"Send {_OFFERED}.")
        body = read_text(await read_body(request, self.largest_body))
        parameters = read_parameters(request.url.query)
        if media_type == QUERY:
            return await self._query(request, body, parameters)
        if media_type == UPDATE:
            return await self._update(request, body, parameters)
        form = read_parameters(body)
        both = [*parameters, *form]
        if _values(form, "query") and not _values(form, "update"):
            return await self._query(request, _one(form, "query"), both)
        if _values(form, "update") and not _values(form, "query"):
            return await self._update(request, _one(form, "update"), both)
        raise Problem(400, "No query, or too much", "The form must have one field: query or update.")

    async def _query(self, request: Request, text: str, parameters: _Parameters) -> Response:
        reader = await self.authorize(request, "read") or ANY_READER
        check_length(text)
        graphs = _graph_choice(parameters, "default-graph-uri", "named-graph-uri")
        accepted = accepted_types(request.headers.get("accept"))
        result = await self.data.query(QueryRequest(text, address_of(request), graphs, accepted, reader))
        return Response(result.content, headers=_headers(result.media_type))

    async def _update(self, request: Request, text: str, parameters: _Parameters) -> Response:
        reader = await self.authorize(request, "update") or ANY_READER
        graphs = _graph_choice(parameters, "using-graph-uri", "using-named-graph-uri")
        await self.data.update(UpdateRequest(text, address_of(request), graphs, reader))
        return Response(status_code=204)

    async def _describe(self, request: Request) -> Response:
        await self.authorize(request, "read")
        media_type = choose_graph_type(request.headers.get("accept"))
        if media_type is None:
            offered = ", ".join(MAIN_GRAPH_TYPES)
            raise Problem(406, "No such format", f"The description of the service can be had as {offered}.")
        triples, prefixes = describe_service(await self.data.describe(), address_of(request))
        return Response(write_graph(triples, media_type, prefixes), headers=_headers(media_type))


def _headers(media_type: str) -> dict[str, str]:
    return {"Content-Type": with_charset(media_type), "Vary": "Accept", "X-Content-Type-Options": "nosniff"}


def _values(parameters: _Parameters, name: str) -> list[str]:
    return [value for key, value in parameters if key == name]


def _one(parameters: _Parameters, name: str) -> str:
    values = _values(parameters, name)
    if len(values) != 1:
        raise Problem(400, f"More than one {name}", f"Send one {name} in each request.")
    return values[0]


def _graph_choice(parameters: _Parameters, default: str, named: str) -> GraphChoice:
    chosen = (
        tuple(check_iri(value, f"Each {name}") for value in _values(parameters, name)) for name in (default, named)
    )
    return GraphChoice(*chosen)
