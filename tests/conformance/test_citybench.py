"""All 24 CityBench query files over their CSV streams, against pyoxigraph asked by itself.

The twin below shares nothing with the engine: it turns the text of a query into plain SPARQL with regular expressions,
loads the files with pyoxigraph's own parser, and picks the rows of a window by comparing times.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import BlankNode, DefaultGraph, NamedNode, Quad, RdfFormat, Store

from headwater.conformance.expected_results import comparable
from headwater.execution.answers import Answer
from headwater.language.stream_clauses import Dialect, StreamOperator
from headwater.terms.model import SECOND, Element
from headwater.windows.settings import Options
from tests.conformance.citybench import CityQuery, citybench_programs
from tests.shared_data import shared_data

NAMES = [f"{dialect}/Q{number}" for dialect in ("cqels", "csparql") for number in range(1, 13)]
SILENT = {
    "cqels/Q10": "it joins a stream for which there are no data",
    "csparql/Q11": "it asks for what matched and is not bound",
    "cqels/Q12": "it wants more than three observations in three seconds",
    "csparql/Q12": "it wants more than three observations in three seconds",
}
FROM_STREAM = re.compile(r"from\s+stream\s+<[^>]*>\s*\[[^\]]*\]", re.IGNORECASE)
RANGE = re.compile(r"stream\s+<([^>]*)>\s*\[range\s+(\d+)(ms|s)[^\]]*\]", re.IGNORECASE)


@pytest.fixture(scope="module")
def queries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, CityQuery]:
    found = citybench_programs(shared_data("citybench"), tmp_path_factory.mktemp("citybench"))
    return {query.name: query for query in found}


@cache
def plain_store(datasets: tuple[tuple[Path, str | None], ...], merged: bool) -> Store:
    store = Store()
    for path, graph in datasets:
        place = DefaultGraph() if graph is None or merged else NamedNode(graph)
        store.bulk_load(path=str(path), format=RdfFormat.N3, base_iri="http://example/", to_graph=place)
    return store


def twin(query: CityQuery, elements: dict[str, list[Element]], tick: int) -> Counter[Any]:
    """The solutions at a tick; a verdict counts as one solution without bindings."""
    cqels = query.dialect is Dialect.CQELS
    store = plain_store(query.datasets, merged=not cqels)
    added: list[Quad] = []
    for iri, width, unit in RANGE.findall(query.text):
        length = int(width) * (SECOND if unit.lower() == "s" else SECOND // 1000)
        graph = NamedNode(iri) if cqels else DefaultGraph()
        shown = [triple for e in elements[iri] if tick - length < e.time <= tick for triple in e.triples]
        added += [Quad(t.subject, t.predicate, t.object, graph) for t in shown]
    text = RANGE.sub(r"GRAPH <\1>", query.text) if cqels else FROM_STREAM.sub("", query.text)
    text = re.sub(r"from\s+(named\s+)?<[^>]*>", "", text, flags=re.IGNORECASE)
    store.extend(added)
    found: Any = store.query(text, base_iri="headwater:/")
    if query.name == "csparql/Q11":
        solutions: Counter[Any] = Counter([frozenset()] if found else [])
    else:
        names = [variable.value for variable in found.variables]
        solutions = Counter(shown_row(names, [solution[name] for name in names]) for solution in found)
    for quad in added:
        store.remove(quad)
    return solutions


def shown_row(names: Any, row: Any) -> frozenset[tuple[str, Any]]:
    """A row without unbound variables, numbers by value, blank nodes without their labels."""
    pairs = zip(names, row, strict=True)
    return frozenset(
        (name, "_:" if isinstance(term, BlankNode) else comparable(term)) for name, term in pairs if term is not None
    )


def said(answer: Answer) -> Counter[Any]:
    if answer.boolean is not None:
        return Counter([frozenset()] if answer.boolean else [])
    return Counter(shown_row(answer.variables, row) for row in answer.rows)


@pytest.mark.parametrize("name", NAMES)
def test_a_query_answers_what_pyoxigraph_finds(name: str, queries: dict[str, CityQuery]) -> None:
    query = queries[name]
    elements = query.elements()
    step = query.program(Options(emit=StreamOperator.RSTREAM)).advance(elements, ended=query.stream_iris)
    assert not step.late
    assert not step.bad
    answers = {answer.time: said(answer) for answer in step.answers}
    # C-SPARQL answers on whole seconds, CQELS when something comes or goes.
    whole = [-(-e.time // SECOND) * SECOND for es in elements.values() for e in es]
    ticks = {tick for time in whole for tick in (time, time + SECOND, time + 4 * SECOND) if tick in answers}
    ticks |= {e.time for es in elements.values() for e in es if e.time in answers}
    assert ticks
    chosen = sorted(ticks)[:: max(1, len(ticks) // 12)] + [t for t, rows in answers.items() if rows][:6]
    for tick in chosen:
        assert answers[tick] == twin(query, elements, tick), tick
    assert any(answers.values()) == (name not in SILENT), SILENT.get(name)


def test_rows_that_the_benchmark_lacks_leave_a_stream_empty(queries: dict[str, CityQuery]) -> None:
    streams = {stream.iri.rpartition("#")[2]: stream for stream in queries["cqels/Q10"].streams}
    assert streams["AarhusPollutionData197626"].file is None
    assert streams["AarhusPollutionData197626"].elements() == []
    assert len(streams["AarhusPollutionData201399"].elements()) == 12


def test_every_template_names_properties_that_the_repository_knows(queries: dict[str, CityQuery]) -> None:
    observed = "http://purl.oclc.org/NET/ssnx/ssn#observedProperty"
    known = plain_store(queries["cqels/Q1"].datasets, merged=False)
    seen = {
        triple.object
        for query in queries.values()
        for es in query.elements().values()
        for e in es
        for triple in e.triples
        if triple.predicate.value == observed
    }
    assert len(seen) == 3 * 5 + 3 + 2 + 2 + 1
    observes = NamedNode("http://purl.oclc.org/NET/ssnx/ssn#observes")
    assert [term for term in seen if not list(known.quads_for_pattern(None, observes, term))] == []
