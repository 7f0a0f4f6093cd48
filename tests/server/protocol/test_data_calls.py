"""A data service that is asked through plain values answers like the service itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request

from headwater.datasets.loading.new_dataset import create_dataset
from headwater.server.problems import Problem, install_problem_handlers
from headwater.server.protocol.data_calls import RemoteData, answer_data_call, from_plain, to_plain
from headwater.server.protocol.data_service import GraphChoice, Precondition, RdfDocument, UpdateRequest
from headwater.server.protocol.dataset_service import DataSetService
from headwater.server.protocol.protocol_router import make_protocol_router
from headwater.server.protocol.sparql_routes import Right
from headwater.terms.packing import Plain, pack, unpack
from tests.server.protocol.live_server import serve_app

TURTLE = {"Content-Type": "text/turtle"}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[httpx.Client]:
    """An application whose data service is reached through bytes; a token may read, and another one change."""
    create_dataset(tmp_path / "data")
    service = DataSetService(tmp_path / "data")

    async def call(name: str, /, **arguments: Plain) -> Plain:
        assert name == "data"
        received = unpack(pack(arguments))
        return unpack(pack(await asyncio.to_thread(answer_data_call, service, **received)))

    async def authorize(request: Request, right: Right) -> None:
        if right == "update" and request.headers.get("authorization") != "Bearer change":
            raise Problem(403, "The token does not allow this", "It needs the scope update.")

    app = FastAPI()
    install_problem_handlers(app)
    app.include_router(make_protocol_router(RemoteData(call), authorize=authorize))
    headers = {"Authorization": "Bearer change"}
    with serve_app(app) as address, httpx.Client(base_url=address, headers=headers, trust_env=False, timeout=60) as one:
        yield one
    service.close()


def test_each_method_works_through_calls(client: httpx.Client) -> None:
    assert client.post("/sparql", data={"update": "INSERT DATA { <a> <p> 1 }"}).status_code == 204
    assert client.get("/sparql", params={"query": "ASK { <a> <p> 1 }"}).json()["boolean"] is True
    assert client.put("/data/g", content="<a> <p> 2 .", headers=TURTLE).status_code == 201
    assert client.post("/data/g", content="<a> <p> 3 .", headers=TURTLE).status_code == 204
    found = client.get("/data/g", headers={"Accept": "application/n-triples"})
    assert len(found.text.splitlines()) == 2
    tag = found.headers["etag"]
    assert client.put("/data/g", content="", headers={**TURTLE, "If-Match": '"0"'}).status_code == 412
    assert client.delete("/data/g", headers={"If-Match": tag}).status_code == 204
    assert client.get("/data/g").status_code == 404
    assert "void:triples 1" in client.get("/.well-known/void").text
    problem = client.get("/sparql", params={"query": "ASK"})
    assert (problem.status_code, problem.json()["title"]) == (400, "The text is not valid")


def test_who_may_not_change_may_read(client: httpx.Client) -> None:
    client.headers["Authorization"] = "Bearer read"
    assert client.get("/sparql", params={"query": "ASK {}"}).status_code == 200
    assert client.get("/data", params={"default": ""}).status_code == 200
    refused = [
        client.post("/sparql", data={"update": "CLEAR ALL"}),
        client.put("/data/g", content="", headers=TURTLE),
        client.post("/data", content="", headers=TURTLE),
        client.delete("/data/g"),
    ]
    assert [answer.status_code for answer in refused] == [403] * 4


def test_values_come_back_as_they_were() -> None:
    values: tuple[Any, ...] = (
        None,
        "text",
        GraphChoice(("a", "b"), ()),
        Precondition(None, ("*",)),
        (RdfDocument("text/turtle", b"\x00\xff", "base"),),
    )
    assert from_plain(unpack(pack(to_plain(values)))) == values


def test_a_folder_is_made_once(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "data"
    for version in (1, 2):
        service = DataSetService.open_or_create(folder)
        request = UpdateRequest(f"INSERT DATA {{ <urn:a> <urn:p> {version} }}", "urn:base", GraphChoice())
        assert answer_data_call(service, "update", to_plain((request,))) == {"result": version + 1}
        service.close()


def test_only_methods_of_the_service_are_called(tmp_path: Path) -> None:
    create_dataset(tmp_path / "data")
    service = DataSetService(tmp_path / "data")
    with pytest.raises(LookupError, match="has no close"):
        answer_data_call(service, "close", [])
    service.close()
