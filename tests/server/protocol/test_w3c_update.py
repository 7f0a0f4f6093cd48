"""The W3C tests of SPARQL 1.1 Update, against a live server: all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from pyoxigraph import CanonicalizationAlgorithm, Dataset, DefaultGraph, QueryResultsFormat, QuerySolutions

from headwater.terms.checking.checked_parsing import parse_results
from headwater.terms.model import NamedNode, Quad
from headwater.terms.rdf_documents import read_quads
from tests.server.protocol.live_server import LiveServer, serve
from tests.server.protocol.w3c_requests import UpdateCase, UpdateSyntaxCase, read_update_cases
from tests.shared_data import shared_data

UPDATE = {"Content-Type": "application/sparql-update"}
EVERYTHING = "SELECT ?s ?p ?o ?g { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with serve(tmp_path_factory.mktemp("updates") / "data") as live:
        yield live


def cases() -> list[UpdateCase | UpdateSyntaxCase]:
    try:
        root = shared_data("w3c-update")
    except pytest.skip.Exception:
        return []
    return [case for path in sorted(root.glob("*/manifest.ttl")) for case in read_update_cases(path)]


def evaluations() -> list[UpdateCase]:
    return [case for case in cases() if isinstance(case, UpdateCase)]


def syntax_cases() -> list[UpdateSyntaxCase]:
    return [case for case in cases() if isinstance(case, UpdateSyntaxCase)]


def quads_of(graphs: dict[str, Path], server: LiveServer) -> list[Quad]:
    """The statements of files, each in its graph; blank nodes of one label are one, as in the tests."""
    quads = []
    for name, path in graphs.items():
        graph = NamedNode(name) if name else DefaultGraph()
        for quad in read_quads(path, base_iri=server.sparql, scope="test"):
            quads.append(Quad(quad.subject, quad.predicate, quad.object, graph))
    return quads


def canonical(quads: Iterable[Quad]) -> Dataset:
    dataset = Dataset(quads)
    dataset.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return dataset


def stored(server: LiveServer) -> list[Quad]:
    """All statements, as a query gives them."""
    answer = server.request("POST", "/sparql", data={"query": EVERYTHING})
    rows = parse_results(answer.content, QueryResultsFormat.JSON)
    assert isinstance(rows, QuerySolutions)
    return [Quad(row["s"], row["p"], row["o"], row["g"] or DefaultGraph()) for row in rows]


def test_there_are_as_many_tests_as_the_suite_has() -> None:
    shared_data("w3c-update")
    assert (len(evaluations()), len(syntax_cases())) == (94, 63)


@pytest.mark.parametrize("case", evaluations(), ids=lambda case: case.name)
def test_evaluation(server: LiveServer, case: UpdateCase) -> None:
    before, after = quads_of(case.before, server), quads_of(case.after, server)
    server.data.advance()
    server.data.change(added=before, removed=list(server.data.quads()))
    answer = server.request("POST", "/sparql", content=case.request.read_bytes(), headers=UPDATE)
    assert answer.status_code == 204, answer.text
    found = stored(server)
    assert canonical(found) == canonical(after), f"{found}\n{after}"
    server.data.advance()
    assert canonical(server.data.quads()) == canonical(after), "the data set and what queries see differ"


@pytest.mark.parametrize("case", syntax_cases(), ids=lambda case: case.name)
def test_syntax(server: LiveServer, case: UpdateSyntaxCase) -> None:
    answer = server.request("POST", "/sparql", content=case.request.read_bytes(), headers=UPDATE)
    assert (answer.status_code != 400) is case.is_good, f"{answer.status_code}: {answer.text}"
