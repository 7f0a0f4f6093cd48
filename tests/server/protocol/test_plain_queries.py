"""The meaning of queries over a data set: the graphs that they see, and literals as they were written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.datasets.dataset import DataSet
from headwater.datasets.loading.new_dataset import create_dataset
from headwater.server.problems import Problem
from headwater.server.protocol.data_service import (
    GraphChoice,
    Precondition,
    QueryRequest,
    RdfDocument,
    UpdateRequest,
)
from headwater.server.protocol.dataset_service import DataSetService
from headwater.server.protocol.media_types import accepted_types
from headwater.server.protocol.store_mirror import ExtraGraphs
from headwater.terms.model import BlankNode, Literal, NamedNode, Quad, Triple

BASE = "http://example.org/"
P, Q = NamedNode(BASE + "p"), NamedNode(BASE + "q")
A, B, G, H = (NamedNode(BASE + name) for name in "abgh")
WINDOW = NamedNode(BASE + "window")


class Windows:
    """The graphs of windows, as a test sets them."""

    def __init__(self) -> None:
        self.graphs: dict[NamedNode, list[Triple]] = {}

    def __call__(self) -> ExtraGraphs:
        return self.graphs


class Asked:
    """A service over a new data set, asked without HTTP."""

    def __init__(self, folder: Path) -> None:
        create_dataset(folder)
        self.data = DataSet.open(folder)
        self.windows = Windows()
        self.service = DataSetService(folder, find_extra_graphs=self.windows)

    def rows(self, query: str, default: tuple[str, ...] = (), named: tuple[str, ...] = ()) -> list[list[str]]:
        """The values of the rows, sorted."""
        request = QueryRequest(query, BASE, GraphChoice(default, named), accepted_types(None))
        found = json.loads(asyncio.run(self.service.query(request)).content)
        names = found["head"]["vars"]
        rows = found["results"]["bindings"]
        return sorted([row[name]["value"] if name in row else "" for name in names] for row in rows)

    def ask(self, query: str) -> bool:
        request = QueryRequest(query, BASE, GraphChoice(), accepted_types(None))
        return bool(json.loads(asyncio.run(self.service.query(request)).content)["boolean"])

    def graph(self, query: str) -> list[str]:
        """The lines of a graph in N-Triples, sorted."""
        request = QueryRequest(query, BASE, GraphChoice(), accepted_types("application/n-triples"))
        return sorted(asyncio.run(self.service.query(request)).content.decode().splitlines())

    def update(self, text: str) -> None:
        asyncio.run(self.service.update(UpdateRequest(text, BASE, GraphChoice())))


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Asked]:
    one = Asked(tmp_path / "data")
    yield one
    one.service.close()


def shared(asked: Asked) -> None:
    """One triple in the default graph, one in two named graphs, and one in one of these."""
    asked.data.insert([Quad(A, P, Literal("default")), Quad(A, P, Literal("both"), G), Quad(A, P, Literal("both"), H)])
    asked.data.insert([Quad(A, P, Literal("one"), H)])


ALL = "SELECT ?o { ?s ?p ?o }"
NAMED = "SELECT ?g ?o { GRAPH ?g { ?s ?p ?o } }"


def test_without_from_the_default_graph_is_that_of_the_data_set(asked: Asked) -> None:
    shared(asked)
    assert asked.rows(ALL) == [["default"]]
    assert asked.rows(NAMED) == [[G.value, "both"], [H.value, "both"], [H.value, "one"]]


def test_from_merges_graphs_as_sets(asked: Asked) -> None:
    shared(asked)
    merged = "SELECT ?o FROM <g> FROM <h> { ?s ?p ?o }"
    assert asked.rows(merged) == [["both"], ["one"]], "a triple of two graphs is one triple"
    assert asked.rows("SELECT (COUNT(*) AS ?n) FROM <g> FROM <h> { ?s ?p ?o }") == [["2"]]
    assert asked.rows("SELECT ?o FROM <g> FROM <g> { ?s ?p ?o }") == [["both"]]
    assert asked.rows("SELECT ?o FROM <g> FROM <h> { ?s ?p ?o . ?s <p> ?o2 FILTER(?o2 = 'one') }") == [
        ["both"],
        ["one"],
    ]


def test_from_hides_named_graphs_and_from_named_the_default_graph(asked: Asked) -> None:
    shared(asked)
    assert asked.rows("SELECT ?o FROM <g> { GRAPH ?g { ?s ?p ?o } }") == []
    assert asked.rows("SELECT ?o FROM NAMED <g> { ?s ?p ?o }") == []
    assert asked.rows("SELECT ?o FROM NAMED <g> { GRAPH ?g { ?s ?p ?o } }") == [["both"]]
    assert asked.rows("SELECT ?o FROM <h> FROM NAMED <g> { { ?s ?p ?o } UNION { GRAPH <h> { ?s ?p ?o } } }") == [
        ["both"],
        ["one"],
    ]


def test_graphs_of_the_request_take_the_place_of_those_in_the_text(asked: Asked) -> None:
    shared(asked)
    assert asked.rows("SELECT ?o FROM <g> { ?s ?p ?o }", default=(H.value,)) == [["both"], ["one"]]
    assert asked.rows("SELECT ?o FROM <g> { ?s ?p ?o }", named=(H.value,)) == []
    assert asked.rows(ALL, default=(G.value, H.value)) == [["both"], ["one"]]
    assert asked.rows(NAMED, default=(G.value,)) == []


def test_an_unknown_graph_is_empty(asked: Asked) -> None:
    shared(asked)
    assert asked.rows("SELECT ?o FROM <none> { ?s ?p ?o }") == []
    assert not asked.ask("ASK { GRAPH <none> { ?s ?p ?o } }")


def test_literals_are_shown_as_written_and_compared_by_value(asked: Asked) -> None:
    asked.data.insert([Quad(A, P, Literal("01", datatype=NamedNode("http://www.w3.org/2001/XMLSchema#integer")))])
    asked.data.insert([Quad(B, P, Literal(2))])
    assert asked.rows("SELECT ?o { ?s ?p ?o FILTER(?o >= 1) }") == [["01"], ["2"]]
    assert asked.rows("SELECT (SUM(?o) AS ?n) { ?s ?p ?o }") == [["3"]]
    assert asked.rows("SELECT ?s { ?s ?p 01 }") == [[A.value]]
    assert asked.graph("CONSTRUCT WHERE { <a> ?p ?o }") == [
        f'{A} {P} "01"^^<http://www.w3.org/2001/XMLSchema#integer> .'
    ]


def test_an_update_compares_literals_by_value_too(asked: Asked) -> None:
    asked.data.insert([Quad(A, P, Literal("01", datatype=NamedNode("http://www.w3.org/2001/XMLSchema#integer")))])
    asked.update("DELETE { ?s ?p ?o } INSERT { ?s <q> ?o } WHERE { ?s ?p ?o FILTER(?o = 1) }")
    assert asked.rows("SELECT ?p ?o { ?s ?p ?o }") == [[Q.value, "01"]]


def test_a_literal_that_the_store_would_change_may_come_while_queries_are_asked(asked: Asked) -> None:
    asked.data.insert([Quad(A, P, Literal(5))])
    assert asked.rows("SELECT ?o { ?s ?p ?o FILTER(?o > 1) }") == [["5"]]
    asked.data.insert([Quad(B, P, Literal("05", datatype=NamedNode("http://www.w3.org/2001/XMLSchema#integer")))])
    assert asked.rows("SELECT ?o { ?s ?p ?o FILTER(?o > 1) }") == [["05"], ["5"]]


def test_blank_nodes_are_the_same_in_all_graphs(asked: Asked) -> None:
    node = BlankNode("n")
    asked.data.insert([Quad(node, P, Literal("x")), Quad(node, P, Literal("y"), G)])
    assert asked.rows("SELECT ?x ?y { ?n <p> ?x GRAPH <g> { ?n <p> ?y } }") == [["x", "y"]]
    asked.update("DELETE { ?n <p> 'x' } WHERE { GRAPH <g> { ?n <p> 'y' } }")
    assert asked.rows(ALL) == []


def test_describe_follows_blank_nodes(asked: Asked) -> None:
    node = BlankNode("n")
    asked.data.insert([Quad(A, P, node), Quad(node, Q, Literal("x")), Quad(B, P, Literal("y"))])
    assert len(asked.graph("DESCRIBE <a>")) == 2
    assert asked.graph("DESCRIBE ?s { ?s <p> 'y' }") == [f'{B} {P} "y" .']


def test_blank_nodes_of_templates_are_new_each_time(asked: Asked) -> None:
    asked.update("INSERT { _:n <p> 1 . GRAPH <g> { _:n <q> [] , [] } } WHERE { VALUES ?x { 1 2 } }")
    assert asked.rows("SELECT (COUNT(DISTINCT ?n) AS ?c) { ?n <p> 1 GRAPH <g> { ?n <q> ?m } }") == [["2"]]
    assert asked.rows("SELECT (COUNT(DISTINCT ?m) AS ?c) { GRAPH <g> { ?n <q> ?m } }") == [["4"]]
    asked.update("INSERT { _:n <p> 1 } WHERE { VALUES ?x { 1 2 } }")
    assert asked.rows("SELECT (COUNT(DISTINCT ?n) AS ?c) { ?n <p> 1 }") == [["4"]]


def test_windows_are_named_graphs_that_no_update_reaches(asked: Asked) -> None:
    asked.data.insert([Quad(A, P, Literal("stored"), G)])
    asked.windows.graphs[WINDOW] = [Triple(A, P, Literal(1)), Triple(A, P, Literal(2))]
    query = "SELECT ?o { GRAPH <window> { ?s ?p ?o } }"
    assert asked.rows(query) == [["1"], ["2"]]
    asked.windows.graphs[WINDOW] = [Triple(A, P, Literal(2)), Triple(A, P, Literal(3))]
    assert asked.rows(query) == [["2"], ["3"]]
    assert asked.rows("SELECT ?g { GRAPH ?g {} }") == [[G.value], [WINDOW.value]]
    asked.windows.graphs[WINDOW] = []
    assert asked.rows("SELECT ?g { GRAPH ?g {} }") == [[G.value], [WINDOW.value]]
    del asked.windows.graphs[WINDOW]
    assert asked.rows("SELECT ?g { GRAPH ?g {} }") == [[G.value]]
    asked.data.advance()
    assert [quad.graph_name for quad in asked.data.quads()] == [G]


def test_a_graph_of_the_data_set_comes_before_a_window_of_its_name(asked: Asked) -> None:
    asked.windows.graphs[WINDOW] = [Triple(A, P, Literal("both")), Triple(A, P, Literal("window"))]
    query = "SELECT ?o { GRAPH <window> { ?s ?p ?o } }"
    assert asked.rows(query) == [["both"], ["window"]]
    asked.data.insert([Quad(A, P, Literal("both"), WINDOW)])
    assert asked.rows(query) == [["both"]]
    asked.data.insert([Quad(A, P, Literal("more"), WINDOW)])
    assert asked.rows(query) == [["both"], ["more"]]


def test_nothing_is_put_into_the_graph_of_a_window(asked: Asked) -> None:
    asked.windows.graphs[WINDOW] = []
    for text in (
        "INSERT DATA { GRAPH <window> { <a> <p> 1 } }",
        "INSERT { GRAPH <window> { <a> <p> 1 } } WHERE {}",
        "CLEAR SILENT GRAPH <x> ; INSERT DATA { GRAPH <window> { <a> <p> 1 } }",
    ):
        with pytest.raises(Problem, match="Choose another name"):
            asked.update(text)
    document = RdfDocument("text/turtle", b"<a> <p> 1 .", BASE)
    with pytest.raises(Problem, match="Choose another name"):
        asyncio.run(asked.service.merge_graph(WINDOW.value, [document], Precondition()))
    asked.update("INSERT { GRAPH <copy> { ?s ?p ?o } } WHERE { GRAPH <window> { ?s ?p ?o } }")
    asked.data.advance()
    assert asked.data.statements == 0


def test_many_graphs_are_merged_too(asked: Asked) -> None:
    graphs = [NamedNode(f"{BASE}g{n}") for n in range(20)]
    asked.data.insert([Quad(A, P, Literal(n % 3), graph) for n, graph in enumerate(graphs)])
    assert asked.rows(ALL, default=tuple(graph.value for graph in graphs)) == [["0"], ["1"], ["2"]]
    assert asked.rows(ALL, default=(graphs[0].value, graphs[3].value), named=(graphs[1].value,)) == [["0"]]


def test_a_graph_without_statements_is_not_there(asked: Asked) -> None:
    asked.data.insert([Quad(A, P, Literal("x"), G), Quad(A, P, Literal("x"), H)])
    assert asked.rows("SELECT ?g { GRAPH ?g {} }") == [[G.value], [H.value]]
    asked.update("DELETE DATA { GRAPH <g> { <a> <p> 'x' } }")
    assert asked.rows("SELECT ?g { GRAPH ?g {} }") == [[H.value]]
