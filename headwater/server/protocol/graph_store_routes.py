"""The SPARQL 1.1 Graph Store HTTP Protocol: graphs of the data set as resources.

A graph is named by `?graph=…`, by `?default`, or is the resource itself: `/data/city` is the graph whose IRI is that
address. A POST without a graph makes a new one. An ETag names the state of a graph in a format; If-Match and
If-None-Match take it in any format. Graphs without statements are not kept: they are not there.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from fastapi import Request, Response

from headwater.server.problems import Problem
from headwater.server.protocol.data_service import ANY_READER, DataService, GraphChange, Precondition, RdfDocument
from headwater.server.protocol.http_requests import (
    MULTIPART,
    address_of,
    check_iri,
    media_type_of,
    read_body,
    read_parameters,
    read_parts,
    read_tags,
)
from headwater.server.protocol.media_types import (
    GRAPH_FORMATS,
    MAIN_GRAPH_TYPES,
    choose_graph_type,
    with_charset,
)
from headwater.server.protocol.sparql_routes import Authorize, allow_all

_OFFERED = ", ".join(MAIN_GRAPH_TYPES)


@dataclass(frozen=True)
class GraphStore:
    """Answers the requests to the graphs below one address."""

    data: DataService
    path: str
    authorize: Authorize = allow_all
    largest_body: int = 64 << 20

    async def get(self, request: Request) -> Response:
        """A graph."""
        reader = await self.authorize(request, "read") or ANY_READER
        graph = self._graph_of(request)
        media_type = choose_graph_type(request.headers.get("accept"))
        if media_type is None:
            raise Problem(406, "No such format", f"Graphs can be had as {_OFFERED}.")
        found = await self.data.read_graph(graph, media_type, reader)
        if found is None:
            raise _no_graph()
        format = GRAPH_FORMATS[media_type].file_extension
        headers = {"ETag": f'"{found.tag}.{format}"', "Vary": "Accept", "X-Content-Type-Options": "nosniff"}
        known = request.headers.get("if-none-match")
        if known is not None and (known.strip() == "*" or f'"{found.tag}.{format}"' in known):
            return Response(status_code=304, headers=headers)
        return Response(found.content, headers={**headers, "Content-Type": with_charset(media_type)})

    async def put(self, request: Request) -> Response:
        """Put statements in place of those of a graph."""
        await self.authorize(request, "update")
        graph = self._graph_of(request)
        documents = await self._read_documents(request, graph)
        change = await self.data.replace_graph(graph, documents, _condition(request))
        return _changed(change)

    async def post(self, request: Request) -> Response:
        """Add statements to a graph; without the name of one, to a new one."""
        await self.authorize(request, "update")
        if self._names_no_graph(request):
            address = address_of(request).rstrip("/")
            graph = f"{address}/{uuid.uuid4()}"
            documents = await self._read_documents(request, graph)
            change = await self.data.merge_graph(graph, documents, Precondition(if_none_match=("*",)))
            return Response(status_code=201, headers={"Location": graph, "ETag": f'"{change.tag}"'})
        named = self._graph_of(request)
        documents = await self._read_documents(request, named)
        change = await self.data.merge_graph(named, documents, _condition(request))
        return _changed(change)

    async def delete(self, request: Request) -> Response:
        """Remove a graph."""
        await self.authorize(request, "update")
        change = await self.data.delete_graph(self._graph_of(request), _condition(request))
        if not change.existed:
            raise _no_graph()
        return Response(status_code=204)

    def _names_no_graph(self, request: Request) -> bool:
        is_store = request.scope["path"].rstrip("/") == self.path.rstrip("/")
        return is_store and not read_parameters(request.url.query)

    def _graph_of(self, request: Request) -> str | None:
        """The IRI of the graph that a request names; None for the default graph."""
        parameters = read_parameters(request.url.query)
        graphs = [value for key, value in parameters if key == "graph"]
        has_default = any(key == "default" for key, _ in parameters)
        is_direct = request.scope["path"].rstrip("/") != self.path.rstrip("/")
        if len(graphs) + has_default + is_direct != 1:
            raise Problem(
                400, "Which graph?", f"Name one graph: by ?graph=IRI, by ?default, or by a path below {self.path}."
            )
        if is_direct:
            return check_iri(address_of(request), "The address of the graph")
        return check_iri(graphs[0], "The name of the graph") if graphs else None

    async def _read_documents(self, request: Request, graph: str | None) -> list[RdfDocument]:
        """The documents in the body of a request."""
        media_type = media_type_of(request, _OFFERED)
        base = address_of(request) if graph is None else graph
        if media_type not in GRAPH_FORMATS and media_type != MULTIPART:
            raise Problem(415, "RDF of another type", f"Send a graph as one of {_OFFERED}.")
        body = await read_body(request, self.largest_body)
        if media_type == MULTIPART:
            return [RdfDocument(kind, content, base) for kind, content in read_parts(request, body)]
        return [RdfDocument(media_type, body, base)]


def _condition(request: Request) -> Precondition:
    return Precondition(read_tags(request.headers.get("if-match")), read_tags(request.headers.get("if-none-match")))


def _changed(change: GraphChange) -> Response:
    status = 201 if change.exists and not change.existed else 204
    return Response(status_code=status)


def _no_graph() -> Problem:
    return Problem(404, "No such graph", "The data set has no statement in a graph of this name.")
