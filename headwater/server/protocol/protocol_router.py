"""The routes of SPARQL over HTTP, for an application: `/sparql`, `/data` and `/.well-known/void`.

app.include_router(make_protocol_router(DataSetService("city")))
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from headwater.server.problems import MEDIA_TYPE, Problem
from headwater.server.protocol.data_service import DataService
from headwater.server.protocol.dataset_descriptions import describe_dataset
from headwater.server.protocol.graph_store_routes import GraphStore
from headwater.server.protocol.http_requests import FORM, MULTIPART, address_of
from headwater.server.protocol.media_types import (
    MAIN_GRAPH_TYPES,
    MAIN_RESULT_TYPES,
    choose_graph_type,
    with_charset,
)
from headwater.server.protocol.result_texts import write_graph
from headwater.server.protocol.sparql_routes import QUERY, UPDATE, Authorize, SparqlEndpoint, allow_all

SPARQL_PATH = "/sparql"
DATA_PATH = "/data"
VOID_PATH = "/.well-known/void"

_TEXT: dict[str, Any] = {"schema": {"type": "string"}}
_PROBLEMS = {
    400: "The request is not understood",
    401: "A token is needed, and none that is known came",
    403: "The token does not allow this, or the egress policy does not allow an address in the text",
    406: "No format that the client accepts",
    408: "The body did not come in time",
    409: "A change that cannot be made",
    413: "The body is too large",
    415: "A body of another type",
    422: "A limit of queries is exceeded",
    429: "Too many requests of one caller",
    502: "Another server, which the query asks, gave no answer",
    503: "Too much is at work",
}
_GRAPH_PROBLEMS = {
    **{status: _PROBLEMS[status] for status in (400, 401, 403, 406, 408, 409, 413, 415, 422, 429, 503)},
    404: "No graph of this name",
    412: "The graph is another one by now",
}


def make_protocol_router(
    data: DataService, *, authorize: Authorize = allow_all, largest_body: int = 64 << 20
) -> APIRouter:
    """The routes over a data service; `authorize` refuses requests that may not read or change the data."""
    router = APIRouter(tags=["data"])
    sparql = SparqlEndpoint(data, authorize, largest_body)
    graphs = GraphStore(data, DATA_PATH, authorize, largest_body)

    async def get_void(request: Request) -> Response:
        await authorize(request, "read")
        media_type = choose_graph_type(request.headers.get("accept"))
        if media_type is None:
            raise Problem(406, "No such format", f"It can be had as {', '.join(MAIN_GRAPH_TYPES)}.")
        here = address_of(request)
        triples, prefixes = describe_dataset(
            await data.describe(), f"{here.removesuffix(VOID_PATH)}{SPARQL_PATH}", here
        )
        content = write_graph(triples, media_type, prefixes)
        return Response(content, headers={"Content-Type": with_charset(media_type), "Vary": "Accept"})

    for path in (SPARQL_PATH, SPARQL_PATH + "/"):
        shown = path == SPARQL_PATH
        _add(router, path, "GET", sparql.get, "query_data", _results(), _QUERY_PARAMETERS, shown=shown)
        _add(router, path, "HEAD", sparql.get, "check_query", _results(), _QUERY_PARAMETERS, shown=False)
        _add(router, path, "POST", sparql.post, "query_or_update_data", _results(), _POST_EXTRA, shown=shown)
    for path in (DATA_PATH, DATA_PATH + "/{path:path}"):
        direct = path != DATA_PATH
        parameters = {"parameters": [_PATH] if direct else [_GRAPH, _DEFAULT]}
        body = {"requestBody": {"required": True, "content": dict.fromkeys([*MAIN_GRAPH_TYPES, MULTIPART], _TEXT)}}
        kind = "direct" if direct else "named"
        read = {200: "The graph", 304: "The graph that the client has"}
        _add(router, path, "GET", graphs.get, f"get_{kind}_graph", _graph_answers(read), parameters)
        _add(router, path, "HEAD", graphs.get, f"check_{kind}_graph", _graph_answers(read), parameters, shown=False)
        made = {201: "The graph is new", 204: "The graph is changed"}
        extra = {**parameters, **body}
        _add(router, path, "PUT", graphs.put, f"replace_{kind}_graph", _graph_answers(made), extra)
        _add(router, path, "POST", graphs.post, f"add_to_{kind}_graph", _graph_answers(made), extra)
        gone = {204: "The graph is gone"}
        _add(router, path, "DELETE", graphs.delete, f"delete_{kind}_graph", _graph_answers(gone), parameters)
    _add(router, VOID_PATH, "GET", get_void, "describe_data", _graph_answers({200: "The description"}), {})
    return router


def _add(
    router: APIRouter,
    path: str,
    method: str,
    endpoint: Any,
    name: str,
    responses: dict[int | str, dict[str, Any]],
    extra: dict[str, Any],
    *,
    shown: bool = True,
) -> None:
    router.add_api_route(
        path,
        endpoint,
        methods=[method],
        operation_id=name,
        responses=responses,
        response_class=Response,
        openapi_extra=extra,
        include_in_schema=shown,
        status_code=min(int(status) for status in responses),
    )


def _parameter(name: str, what: str, *, place: str = "query", required: bool = False) -> dict[str, Any]:
    return {
        "name": name,
        "in": place,
        "required": required,
        "description": what,
        "schema": {"type": "string"},
        "allowReserved": True,
    }


_GRAPHS = [
    _parameter("default-graph-uri", "A graph of the default graph; may be repeated"),
    _parameter("named-graph-uri", "A named graph; may be repeated"),
]
_QUERY_PARAMETERS = {
    "parameters": [_parameter("query", "A SPARQL query; without it, the service is described"), *_GRAPHS]
}
_POST_EXTRA = {
    "parameters": [
        *_GRAPHS,
        _parameter("using-graph-uri", "A graph of the default graph of an update; may be repeated"),
        _parameter("using-named-graph-uri", "A named graph of an update; may be repeated"),
    ],
    "requestBody": {"required": True, "content": {QUERY: _TEXT, UPDATE: _TEXT, FORM: {"schema": {"type": "object"}}}},
}
_GRAPH = _parameter("graph", "The IRI of a graph")
_DEFAULT = {**_parameter("default", "The default graph"), "allowEmptyValue": True}
_PATH = _parameter("path", "The graph whose IRI is this address", place="path", required=True)


def _schema(media_type: str) -> dict[str, Any]:
    return {"schema": {}} if media_type.endswith("json") else _TEXT


def _results() -> dict[int | str, dict[str, Any]]:
    types = {one: _schema(one) for one in (*MAIN_RESULT_TYPES, *MAIN_GRAPH_TYPES)}
    done: dict[int | str, dict[str, Any]] = {
        200: {"description": "The result", "content": types},
        204: {"description": "The update is done"},
    }
    return {**done, **_problems(_PROBLEMS)}


def _graph_answers(good: dict[int, str]) -> dict[int | str, dict[str, Any]]:
    answers: dict[int | str, dict[str, Any]] = {}
    for status, what in good.items():
        answers[status] = {"description": what}
        if status == 200:
            answers[status]["content"] = {one: _schema(one) for one in MAIN_GRAPH_TYPES}
    return {**answers, **_problems(_GRAPH_PROBLEMS)}


def _problems(known: dict[int, str]) -> dict[int | str, dict[str, Any]]:
    content = {MEDIA_TYPE: {"schema": {"type": "object"}}}
    return {status: {"description": what, "content": content} for status, what in known.items()}
