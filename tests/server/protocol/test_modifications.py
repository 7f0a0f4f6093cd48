"""One DELETE or INSERT, evaluated like a query, does what pyoxigraph does with the whole update."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import CanonicalizationAlgorithm, Dataset, DefaultGraph, Store

from headwater.datasets.dataset import DataSet
from headwater.datasets.loading.new_dataset import create_dataset
from headwater.execution.remote_solutions import refuse_services
from headwater.server.protocol.data_service import GraphChoice
from headwater.server.protocol.modifications import read_modification
from headwater.server.protocol.plain_queries import PlainQueries
from headwater.server.protocol.store_mirror import StoreMirror
from headwater.server.protocol.update_texts import with_graph_choice
from headwater.terms.model import BlankNode, Literal, NamedNode, Quad
from headwater.values.query_guard import QueryGuard

EX = "http://example.org/"
UPDATES = [
    "DELETE WHERE { ?s <p> ?o }",
    "DELETE WHERE { GRAPH ?g { ?s <p> ?o } }",
    "DELETE WHERE { ?s <p> ?o GRAPH <g> { ?o ?q ?x } }",
    "DELETE { ?s <p> ?o } WHERE { ?s <p> ?o FILTER(isLiteral(?o)) }",
    "INSERT { ?s <r> ?o } WHERE { ?s <p> ?o }",
    "INSERT { GRAPH <new> { ?s ?p ?o } } WHERE { ?s ?p ?o }",
    "INSERT { GRAPH ?g { ?s <in> ?g } } WHERE { GRAPH ?g { ?s ?p ?o } }",
    "DELETE { ?s <p> ?o } INSERT { ?s <q> ?o . GRAPH <h> { ?o <was> ?s . } ?o <x> 1 . } WHERE { ?s <p> ?o }",
    "WITH <g> DELETE { ?s ?p ?o } INSERT { ?o ?p ?s } WHERE { ?s ?p ?o }",
    "WITH <g> DELETE { ?s ?p ?o } INSERT { GRAPH <h> { ?s ?p ?o } } WHERE { ?s ?p ?o GRAPH <h> { ?s ?q ?x } }",
    "WITH <g> INSERT { ?s <seen> true } USING <h> WHERE { ?s ?p ?o }",
    "INSERT { ?s <seen> ?g } USING NAMED <h> WHERE { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }",
    "INSERT { ?s <seen> true } USING <g> USING <h> WHERE { ?s <p> ?o }",
    "INSERT { _:x <of> ?s . GRAPH <g> { _:x <has> [ <q> ?o ] } } WHERE { ?s <p> ?o FILTER(isIRI(?o)) }",
    "INSERT { ?s <list> (1 ?o) } WHERE { ?s <p> ?o FILTER(isIRI(?o)) }",
    "DELETE { ?o <p> ?s } INSERT { ?o <q> ?s ; <r> 'a . } #' # WHERE {\n } WHERE { ?s <p> ?o OPTIONAL { ?o <q> ?x } }",
    "PREFIX : <http://example.org/> DELETE { GRAPH :g { ?s :p ?o } } WHERE { GRAPH :g { ?s :p ?o } } ;",
    "BASE <http://example.org/x/> PREFIX e: <../> INSERT { <a> e:p e:b } WHERE {}",
    "INSERT { ?s <n> ?n } WHERE { SELECT ?s (COUNT(*) AS ?n) WHERE { ?s ?p ?o } GROUP BY ?s }",
    "DELETE { ?s <p> ?o } INSERT { ?s <p> ?o } WHERE { ?s <p> ?o }",
]
OTHERS = [
    "INSERT DATA { <a> <p> 1 }",
    "DELETE DATA { <a> <p> 1 }",
    "DELETE WHERE { ?s <p> ?o } ; DELETE WHERE { ?s <q> ?o }",
    "CLEAR ALL",
    "",
    "LOAD <x>",
]


def quads() -> list[Quad]:
    chance = random.Random(1)
    nodes: list[Any] = [NamedNode(EX + name) for name in "abc"] + [BlankNode("n")]
    objects: list[Any] = [*nodes, Literal(1), Literal("x")]
    graphs: list[Any] = [DefaultGraph(), NamedNode(EX + "g"), NamedNode(EX + "h")]
    predicates = [NamedNode(EX + "p"), NamedNode(EX + "q")]
    pick = chance.choice
    return [Quad(pick(nodes), pick(predicates), pick(objects), pick(graphs)) for _ in range(40)]


def canonical(statements: Iterable[Quad]) -> Dataset:
    dataset = Dataset(statements)
    dataset.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return dataset


def modify(data: DataSet, text: str) -> None:
    """Execute an update that is a single modification."""
    modification = read_modification(text, EX)
    assert modification is not None, text
    guard = QueryGuard()
    with guard:
        rows = PlainQueries(refuse_services).solve(modification.plan, StoreMirror(data.folder).latest(), guard)
    added, removed = modification.changes(data, rows)
    data.change(added, removed)


@pytest.mark.parametrize("text", UPDATES)
def test_it_does_what_the_whole_update_does(tmp_path: Path, text: str) -> None:
    create_dataset(tmp_path / "data")
    data = DataSet.open(tmp_path / "data")
    data.insert(quads())
    store = Store()
    store.extend(quads())
    store.update(text, base_iri=EX)
    modify(data, text)
    assert canonical(data.quads()) == canonical(store)


@pytest.mark.parametrize("text", OTHERS)
def test_other_updates_are_left_to_the_data_set(text: str) -> None:
    assert read_modification(text, EX) is None


def test_the_graphs_of_a_request_are_written_into_each_where_clause() -> None:
    choice = GraphChoice((EX + "g",), (EX + "h",))
    using = f"USING <{EX}g> USING NAMED <{EX}h>"
    assert with_graph_choice("DELETE { ?s ?p 1 } WHERE { ?s ?p 1 }", choice) == (
        f"DELETE {{ ?s ?p 1 }} {using} WHERE {{ ?s ?p 1 }}"
    )
    assert with_graph_choice("DELETE WHERE { ?s ?p 1 } ; CLEAR ALL", choice) == (
        f"DELETE {{ ?s ?p 1 }} {using} WHERE {{ ?s ?p 1 }} ; CLEAR ALL"
    )
    for unchanged in ("INSERT DATA { <a> <p> 'WHERE {' }", "INSERT DATA { <a> <WHERE> 1 } # WHERE {"):
        assert with_graph_choice(unchanged, choice) == unchanged
    assert with_graph_choice("WITH <g> DELETE { } WHERE { }", GraphChoice()) == "WITH <g> DELETE { } WHERE { }"
