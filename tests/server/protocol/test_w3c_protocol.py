"""The W3C tests of the SPARQL Protocol, the Graph Store Protocol and service description, against a live server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from pyoxigraph import RdfFormat

from headwater.conformance.expected_results import Solutions, parse_result, read_expected, same_graph, same_solutions
from headwater.conformance.manifests import Case, CaseKind, read_cases
from headwater.server.protocol.dataset_descriptions import SD
from headwater.terms.model import RDF, NamedNode, Triple
from headwater.terms.rdf_documents import read_quads
from tests.server.protocol.live_server import LiveServer, serve
from tests.server.protocol.w3c_requests import ProtocolCase, SentRequest, read_protocol_cases
from tests.shared_data import shared_data

FORMATS = {
    "boolean": {"application/sparql-results+json", "application/sparql-results+xml"},
    "tabular": {
        "application/sparql-results+json",
        "application/sparql-results+xml",
        "text/csv",
        "text/tab-separated-values",
    },
    "RDF": {"application/rdf+xml", "text/turtle", "application/n-triples"},
}
LEFT_OUT = {"http-rdf-update": "each of its 18 tests is marked as deprecated in favour of graph-store-protocol"}
"""The folders that are not run, and why."""
RUN = {"protocol": 34, "graph-store-protocol": 14, "csv-tsv-res": 6, "service-description": 3}
"""How many tests the other folders have."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LiveServer]:
    with serve(tmp_path / "data") as live:
        yield live


def protocol_cases(*manifests: str) -> list[ProtocolCase]:
    try:
        root = shared_data("w3c-protocol")
    except pytest.skip.Exception:
        return []
    return [case for name in manifests for case in read_protocol_cases(root / name)]


def send(server: LiveServer, request: SentRequest, path: str) -> httpx.Response:
    """The answer to a request of a test at another path; the header Host stays that of the test."""
    headers = dict(request.headers)
    with httpx.Client(trust_env=False, timeout=60) as client:
        built = client.build_request(request.method, server.address + path, headers=headers, content=request.body)
        if "content-type" not in headers:
            built.headers.pop("content-type", None)
        return client.send(built)


def check_answer(request: SentRequest, answer: httpx.Response) -> None:
    """Assert that an answer is what the test expects."""
    expected = request.expected
    status = str(answer.status_code)
    fits = any(re.fullmatch(one.replace("xx", r"\d\d"), status) for one in expected.statuses)
    assert fits, f"{request.method} {request.path}: {status}, expected {expected.statuses}: {answer.text}"
    kind = answer.headers.get("content-type", "").partition(";")[0]
    if expected.format:
        assert kind in FORMATS[expected.format]
    if expected.boolean is not None:
        assert answer.json()["boolean"] is expected.boolean
    if "content-type" in expected.headers:
        assert answer.headers["content-type"] == expected.headers["content-type"]
    if expected.body:
        format = RdfFormat.from_media_type(kind)
        assert format is not None
        base = str(answer.url)
        found = [quad.triple for quad in read_quads(answer.content, format=format, base_iri=base)]
        wanted = [quad.triple for quad in read_quads(expected.body.encode(), format=format, base_iri=base)]
        assert same_graph(found, wanted), answer.text


def test_every_test_is_run_or_left_out_with_a_reason() -> None:
    root = shared_data("w3c-protocol")
    assert {path.name for path in root.iterdir() if path.is_dir()} == {*RUN, *LEFT_OUT}
    assert len(protocol_cases("protocol/manifest.ttl")) == RUN["protocol"]
    stores = protocol_cases("graph-store-protocol/manifest-direct.ttl", "graph-store-protocol/manifest-indirect.ttl")
    assert len(stores) == RUN["graph-store-protocol"]
    assert len(format_cases()) == RUN["csv-tsv-res"]


@pytest.mark.parametrize("case", protocol_cases("protocol/manifest.ttl"), ids=lambda case: case.name)
def test_protocol(server: LiveServer, case: ProtocolCase) -> None:
    for graph, path in case.graphs.items():
        server.data.insert([quad.triple for quad in read_quads(path)], graph)
    for request in case.requests:
        assert request.path.startswith("/sparql/")
        check_answer(request, send(server, request, request.path))


@pytest.mark.parametrize(
    "case",
    protocol_cases("graph-store-protocol/manifest-direct.ttl", "graph-store-protocol/manifest-indirect.ttl"),
    ids=lambda case: case.name,
)
def test_graph_store(server: LiveServer, case: ProtocolCase) -> None:
    found: dict[str, str] = {}
    for request in case.requests:
        path = "/data" + request.path.removeprefix("/gsp")
        for name, value in found.items():
            path = path.replace(name, quote(value, safe=""))
        answer = send(server, request, path)
        check_answer(request, answer)
        if request.expected.location:
            found[request.expected.location] = answer.headers["location"]


def format_cases() -> list[Case]:
    try:
        manifest = shared_data("w3c-protocol") / "csv-tsv-res" / "manifest.ttl"
    except pytest.skip.Exception:
        return []
    return [case for case in read_cases(manifest, "csv-tsv-res") if case.kind in (CaseKind.EVALUATION, CaseKind.CSV)]


@pytest.mark.parametrize("case", format_cases(), ids=lambda case: case.name)
def test_csv_and_tsv(server: LiveServer, case: Case) -> None:
    assert case.result is not None
    for path in case.data:
        server.data.insert([quad.triple for quad in read_quads(path)])
    media_type = {".csv": "text/csv", ".tsv": "text/tab-separated-values"}[case.result.suffix]
    query = {"query": case.query.read_text("utf-8")}
    answer = server.request("POST", "/sparql", data=query, headers={"Accept": media_type})
    assert answer.headers["content-type"] == f"{media_type}; charset=utf-8"
    expected, found = read_expected(case.result), parse_result(answer.text, case.result.suffix)
    assert isinstance(expected, Solutions) and isinstance(found, Solutions)
    assert same_solutions(expected, found)


def service_description(server: LiveServer, path: str = "/sparql") -> list[Triple]:
    answer = server.request("GET", path, headers={"Accept": "text/turtle"})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/turtle; charset=utf-8"
    return [quad.triple for quad in read_quads(answer.content, format=RdfFormat.TURTLE)]


def test_service_description_is_rdf_and_names_its_endpoint(server: LiveServer) -> None:
    for path in ("/sparql", "/sparql/"):
        triples = service_description(server, path)
        assert [str(t.object) for t in triples if t.predicate.value == SD + "endpoint"] == [f"<{server.address}{path}>"]


CLASSES_OF_RANGES = {
    "defaultDataset": "Dataset",
    "defaultGraph": "Graph",
    "namedGraph": "NamedGraph",
    "graph": "Graph",
}
"""Properties of the vocabulary whose values are described in the same document, and their classes."""
IRI_PROPERTIES = {"endpoint", "supportedLanguage", "feature", "resultFormat", "inputFormat", "name"}
DOMAINS = {
    "endpoint": "Service",
    "supportedLanguage": "Service",
    "feature": "Service",
    "resultFormat": "Service",
    "inputFormat": "Service",
    "defaultDataset": "Service",
    "defaultGraph": "Graph",
    "namedGraph": "Dataset",
    "name": "NamedGraph",
    "graph": "NamedGraph",
} | {"defaultGraph": "Dataset"}


def test_service_description_conforms_to_the_vocabulary(server: LiveServer) -> None:
    server.data.insert([Triple(NamedNode("urn:a"), NamedNode("urn:p"), NamedNode("urn:b"))], "urn:city")
    triples = service_description(server)
    classes: dict[Any, str] = {
        t.subject: str(t.object)[1:-1].removeprefix(SD) for t in triples if t.predicate.value == RDF + "type"
    }
    assert set(classes.values()) == {"Service", "Dataset", "Graph", "NamedGraph"}
    for triple in triples:
        name = triple.predicate.value.removeprefix(SD)
        if not triple.predicate.value.startswith(SD):
            continue
        assert name in {*CLASSES_OF_RANGES, *IRI_PROPERTIES}, name
        assert classes[triple.subject] == DOMAINS[name]
        if name in IRI_PROPERTIES:
            assert isinstance(triple.object, NamedNode)
        else:
            assert classes[triple.object] == CLASSES_OF_RANGES[name]
