"""Programs that people use against SPARQL servers work with this one: SPARQLWrapper and rdflib's stores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from rdflib import RDF, Dataset, Graph, Literal, Namespace, URIRef
from rdflib.plugins.stores.sparqlstore import SPARQLStore, SPARQLUpdateStore
from SPARQLWrapper import CSV, JSON, POST, POSTDIRECTLY, RDFXML, TURTLE, URLENCODED, XML, SPARQLWrapper

from tests.server.protocol.live_server import LiveServer, serve

EX = Namespace("http://example.org/")
UPDATE = f"""PREFIX : <{EX}>
INSERT DATA {{ :a :name "A" ; :knows :b . :b :name "B"@en ; :age 30 . GRAPH :g {{ :c :name "C" }} }}"""

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with serve(tmp_path_factory.mktemp("clients") / "data") as live:
        answer = live.request("POST", "/sparql", data={"update": UPDATE})
        assert answer.status_code == 204
        yield live


def wrapper(server: LiveServer, text: str, format: str = JSON) -> SPARQLWrapper:
    client = SPARQLWrapper(server.sparql)
    client.setQuery(text)
    client.setReturnFormat(format)
    return client


NAMES = f"SELECT ?s ?n {{ ?s <{EX}name> ?n }} ORDER BY ?s"


def test_sparqlwrapper_asks(server: LiveServer) -> None:
    found: Any = wrapper(server, NAMES).queryAndConvert()
    assert [row["n"]["value"] for row in found["results"]["bindings"]] == ["A", "B"]
    document: Any = wrapper(server, NAMES, XML).queryAndConvert()
    assert len(document.getElementsByTagName("result")) == 2
    table: Any = wrapper(server, NAMES, CSV).queryAndConvert()
    assert table.split() == [b"s,n", f"{EX}a,A".encode(), f"{EX}b,B".encode()]
    verdict: Any = wrapper(server, f"ASK {{ <{EX}a> <{EX}knows> ?x }}").queryAndConvert()
    assert verdict["boolean"] is True


def test_sparqlwrapper_asks_for_graphs(server: LiveServer) -> None:
    construct = f"CONSTRUCT WHERE {{ <{EX}a> ?p ?o }}"
    graph: Any = wrapper(server, construct, RDFXML).queryAndConvert()
    assert (URIRef(EX.a), URIRef(EX.knows), URIRef(EX.b)) in graph
    text: Any = wrapper(server, construct, TURTLE).queryAndConvert()
    assert b"example.org/knows" in text


@pytest.mark.parametrize("method", [URLENCODED, POSTDIRECTLY])
def test_sparqlwrapper_posts_queries_and_updates(server: LiveServer, method: str) -> None:
    change = wrapper(server, "DELETE { ?s ?p 30 } INSERT { ?s ?p 31 } WHERE { ?s ?p 30 }")
    change.setMethod(POST)
    change.setRequestMethod(method)
    assert change.query().response.status == 204
    ask = wrapper(server, f"SELECT ?x {{ ?s <{EX}age> ?x }}")
    ask.setMethod(POST)
    ask.setRequestMethod(method)
    found: Any = ask.queryAndConvert()
    assert [row["x"]["value"] for row in found["results"]["bindings"]] == ["31"]


def test_sparqlwrapper_names_graphs(server: LiveServer) -> None:
    client = wrapper(server, "SELECT ?n { ?s ?p ?n }")
    client.addDefaultGraph(str(EX.g))
    found: Any = client.queryAndConvert()
    assert [row["n"]["value"] for row in found["results"]["bindings"]] == ["C"]


@pytest.mark.parametrize("format", ["json", "xml", "csv", "tsv"])
def test_rdflib_reads(server: LiveServer, format: str) -> None:
    graph = Graph(SPARQLStore(server.sparql, returnFormat=format))
    assert len(graph) == 4
    assert (EX.a, EX.knows, EX.b) in graph
    assert sorted(str(name) for name in graph.objects(None, EX.name)) == ["A", "B"]
    rows: Any = graph.query(f"SELECT ?age WHERE {{ ?s <{EX}age> ?age }}")
    assert [str(row[0]) for row in rows] == ["30"]


@pytest.mark.parametrize("method", ["GET", "POST", "POST_FORM"])
def test_rdflib_reads_by_each_method(server: LiveServer, method: str) -> None:
    graph = Graph(SPARQLStore(server.sparql, method=method))
    assert bool(graph.query(f"ASK {{ <{EX}a> <{EX}knows> <{EX}b> }}"))
    found = graph.query(f"CONSTRUCT WHERE {{ <{EX}b> ?p ?o }}").graph
    assert found is not None and len(found) == 2


def test_rdflib_writes(server: LiveServer) -> None:
    store = SPARQLUpdateStore(server.sparql, server.sparql)
    graph = Graph(store, identifier=URIRef(EX.new))
    graph.add((EX.d, RDF.type, EX.Person))
    graph.add((EX.d, EX.age, Literal(7)))
    assert len(graph) == 2
    graph.set((EX.d, EX.age, Literal(8)))
    assert graph.value(EX.d, EX.age) == Literal(8)
    graph.update(f"DELETE WHERE {{ <{EX}d> <{EX}age> ?x }}")
    assert list(graph) == [(EX.d, RDF.type, EX.Person)]
    graph.remove((None, None, None))
    assert len(graph) == 0


def test_rdflib_sees_named_graphs(server: LiveServer) -> None:
    store = SPARQLUpdateStore(server.sparql, server.sparql)
    assert URIRef(EX.g) in {graph.identifier for graph in Dataset(store).graphs()}
    assert [str(name) for name in Graph(store, identifier=EX.g).objects(EX.c, EX.name)] == ["C"]


def test_rdflib_reads_graphs_and_the_description_of_the_service(server: LiveServer) -> None:
    graph = Graph().parse(f"{server.graphs}?default", format="turtle")
    assert (EX.a, EX.knows, EX.b) in graph
    service = Graph().parse(server.sparql, format="turtle")
    endpoint = URIRef("http://www.w3.org/ns/sparql-service-description#endpoint")
    assert list(service.objects(None, endpoint)) == [URIRef(server.sparql)]
