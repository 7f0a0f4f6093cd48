"""A data service in another process: requests and results as plain values (`terms.packing`).

    HTTP process      data = RemoteData(engine.call)            # a DataService
    engine process    answer_data_call(service, **arguments)    # what the call `data` does, in any thread

A `Problem` of the service is raised where the request was made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Protocol, TypeVar

from headwater.server.problems import Problem
from headwater.server.protocol.data_service import (
    ANY_READER,
    AcceptedTypes,
    DataDescription,
    DataService,
    GraphChange,
    GraphChoice,
    GraphReader,
    GraphSize,
    Precondition,
    PropertySize,
    QueryRequest,
    QueryResult,
    RdfDocument,
    UpdateRequest,
    WrittenGraph,
)
from headwater.terms.packing import Plain

Result = TypeVar("Result")

CALL = "data"
"""The name of the call."""
_METHODS = frozenset({"query", "update", "read_graph", "replace_graph", "merge_graph", "delete_graph", "describe"})
_CLASSES: dict[str, type[Any]] = {
    one.__name__: one
    for one in (
        AcceptedTypes,
        DataDescription,
        GraphChange,
        GraphChoice,
        GraphReader,
        GraphSize,
        Precondition,
        PropertySize,
        QueryRequest,
        QueryResult,
        RdfDocument,
        UpdateRequest,
        WrittenGraph,
    )
}


class Call(Protocol):
    """Calls something in the other process by its name."""

    async def __call__(self, name: str, /, **arguments: Plain) -> Plain: ...


class RemoteData:
    """A `DataService` that is asked through calls."""

    def __init__(self, call: Call) -> None:
        self._call = call

    async def query(self, request: QueryRequest) -> QueryResult:
        return await self._ask("query", QueryResult, request)

    async def update(self, request: UpdateRequest) -> int:
        return await self._ask("update", int, request)

    async def read_graph(
        self, graph: str | None, media_type: str, reader: GraphReader = ANY_READER
    ) -> WrittenGraph | None:
        (found,) = await self._ask("read_graph", tuple, graph, media_type, reader)
        assert isinstance(found, WrittenGraph | None)
        return found

    async def replace_graph(
        self, graph: str | None, documents: Sequence[RdfDocument], condition: Precondition
    ) -> GraphChange:
        return await self._ask("replace_graph", GraphChange, graph, tuple(documents), condition)

    async def merge_graph(
        self, graph: str | None, documents: Sequence[RdfDocument], condition: Precondition
    ) -> GraphChange:
        return await self._ask("merge_graph", GraphChange, graph, tuple(documents), condition)

    async def delete_graph(self, graph: str | None, condition: Precondition) -> GraphChange:
        return await self._ask("delete_graph", GraphChange, graph, condition)

    async def describe(self) -> DataDescription:
        return await self._ask("describe", DataDescription)

    async def _ask(self, method: str, kind: type[Result], *values: Any) -> Result:
        reply = await self._call(CALL, method=method, values=to_plain(values))
        if "problem" in reply:
            raise Problem(*reply["problem"])
        found = from_plain(reply["result"])
        if not isinstance(found, kind):
            raise TypeError(f"the call {method} gave a {type(found).__name__}")
        return found


def answer_data_call(service: DataService, method: str, values: Plain) -> Plain:
    """Do what a call asks of a service; the reply has its result or its problem."""
    if method not in _METHODS:
        raise LookupError(f"a data service has no {method}")
    try:
        found = asyncio.run(getattr(service, method)(*from_plain(values)))
        # There may be no graph.
        return {"result": to_plain((found,) if method == "read_graph" else found)}
    except Problem as problem:
        return {"problem": [problem.status, problem.title, problem.detail, problem.headers]}


def to_plain(value: Any) -> Plain:
    """Requests and results as plain values: an object is the name of its class with its fields."""
    if is_dataclass(value):
        return {type(value).__name__: [to_plain(getattr(value, one.name)) for one in fields(value)]}
    return [to_plain(one) for one in value] if isinstance(value, tuple | list) else value


def from_plain(value: Plain) -> Any:
    """The inverse of `to_plain`; sequences are tuples."""
    if isinstance(value, dict):
        ((name, parts),) = value.items()
        return _CLASSES[name](*map(from_plain, parts))
    return tuple(map(from_plain, value)) if isinstance(value, list) else value
