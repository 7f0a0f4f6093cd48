"""The W3C tests of SPARQL 1.0 and 1.1 Query, asked of the service over a data set."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyoxigraph import RdfFormat

from headwater.conformance.expected_results import Solutions, parse_result, read_expected, same_graph, same_solutions
from headwater.conformance.manifests import Case, file_of
from headwater.conformance.w3c import cases
from headwater.datasets.dataset import DataSet
from headwater.datasets.loading.new_dataset import create_dataset
from headwater.language.parser import parse
from headwater.language.query import ParsedQuery
from headwater.language.stream_clauses import FromGraph
from headwater.server.protocol.data_service import GraphChoice, QueryRequest, QueryResult
from headwater.server.protocol.dataset_service import DataSetService
from headwater.server.protocol.media_types import accepted_types
from headwater.terms.model import NamedNode, Quad
from headwater.terms.rdf_documents import read_quads
from tests.shared_data import shared_data

SUFFIXES = {
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".srx": "application/sparql-results+xml",
    ".srj": "application/sparql-results+json",
}
LEFT_OUT = {"sparql11/service": "asks endpoints on the web that do not exist; SERVICE is tested against our own"}
"""The folders that are not run, and why."""


def evaluations() -> list[Case]:
    try:
        folder = shared_data("w3c")
    except pytest.skip.Exception:
        return []
    return [case for case in cases(folder) if case.kind.evaluates and case.folder not in LEFT_OUT]


FOLDERS = sorted({case.folder for case in evaluations()})


class AskedData:
    """A service over a data set whose statements are replaced for each test."""

    def __init__(self, folder: Path) -> None:
        create_dataset(folder)
        self.data = DataSet.open(folder)
        self.service = DataSetService(folder)

    def answer(self, case: Case) -> QueryResult:
        """The result of the query of a test over its data."""
        text = case.query.read_bytes().decode("utf-8")
        base = case.query.resolve().as_uri()
        quads = set(self._quads(case, parse(text, base=base)))
        self.data.change(added=quads, removed=set(self.data.quads()) - quads)
        suffix = "" if case.result is None else case.result.suffix
        accepted = accepted_types(f"{SUFFIXES.get(suffix, 'application/sparql-results+json')}, application/n-triples")
        return asyncio.run(self.service.query(QueryRequest(text, base, GraphChoice(), accepted)))

    def _quads(self, case: Case, query: ParsedQuery) -> Iterator[Quad]:
        for path in case.data:
            yield from read_quads(path)
        named = {path.resolve().as_uri(): path for path in case.graphs}
        for clause in query.dataset:
            if isinstance(clause, FromGraph):
                named[clause.graph.value] = file_of(clause.graph.value)
        for iri, path in named.items():
            for quad in read_quads(path, base_iri=iri):
                yield Quad(quad.subject, quad.predicate, quad.object, NamedNode(iri))


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AskedData]:
    one = AskedData(tmp_path_factory.mktemp("queries") / "data")
    yield one
    one.service.close()


def difference(case: Case, found: QueryResult) -> str | None:
    """What is wrong with a result, in a line."""
    assert case.result is not None
    expected = read_expected(case.result)
    if isinstance(expected, tuple):
        triples = [quad.triple for quad in read_quads(found.content, format=RdfFormat.N_TRIPLES)]
        return None if same_graph(expected, triples) else f"another graph: {triples}"
    suffix = next(suffix for suffix, one in SUFFIXES.items() if one == found.media_type)
    result = parse_result(found.content.decode(), suffix)
    if isinstance(expected, bool) or isinstance(result, bool):
        return None if expected is result else f"expected {expected}, got {result}"
    assert isinstance(expected, Solutions)
    is_ordered = expected.in_order or b"ORDER BY" in case.query.read_bytes().upper()
    # Sub-queries may be ordered, too; only the order of the whole counts.
    is_ordered = is_ordered and b"SELECT" not in case.query.read_bytes().upper().partition(b"WHERE")[2]
    return None if same_solutions(expected, result, ordered=is_ordered, lax=case.lax) else f"{expected}\n{result}"


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_query_has_its_result(asked: AskedData, folder: str) -> None:
    failed = []
    for case in evaluations():
        if case.folder == folder:
            try:
                problem = difference(case, asked.answer(case))
            except Exception as error:
                problem = f"{type(error).__name__}: {error}"
            failed += [] if problem is None else [f"{case.key}: {problem}"]
    assert not failed, "\n".join(failed)


def test_the_suite_is_whole() -> None:
    shared_data("w3c")
    assert len(evaluations()) == 518
