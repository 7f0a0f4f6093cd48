"""Results are written as `terms.writing` writes them."""

from __future__ import annotations

import json

import pytest
from pyoxigraph import BaseDirection, RdfFormat

from headwater.server.problems import Problem
from headwater.server.protocol.result_texts import write_graph, write_rows
from headwater.terms.model import XSD, BlankNode, Literal, NamedNode, Row, Term, Triple
from headwater.terms.rdf_documents import read_quads
from headwater.terms.writing import bindings_to_json

IRI = NamedNode("http://example.org/é\u2028")
TERMS: list[Term | None] = [
    IRI,
    BlankNode("b"),
    Literal("plain"),
    Literal('quotes " \\ / \n\r\t\0\x7f\u2028 \U0001f600'),
    Literal("x", language="en-GB"),
    Literal("x", language="ar", direction=BaseDirection.RTL),
    Literal(1),
    Literal("01", datatype=NamedNode(XSD + "integer")),
    Literal("x", datatype=IRI),
    Triple(IRI, IRI, Literal("inside")),
    None,
]


def test_json_is_that_of_bindings() -> None:
    rows: list[Row] = [*((term, TERMS[0]) for term in TERMS), (None, None)]
    written = write_rows(["x", 'a"b'], rows, "application/sparql-results+json")
    assert json.loads(written) == bindings_to_json(["x", 'a"b'], rows)
    assert json.loads(write_rows([], [(), ()], "application/json")) == bindings_to_json([], [(), ()])
    assert json.loads(write_rows(["x"], [], "application/json")) == bindings_to_json(["x"], [])


def test_a_graph_that_has_no_form_in_a_format_is_a_problem() -> None:
    triple = Triple(IRI, NamedNode("http://example.org/"), Literal("x"))
    for media_type, format in (("text/turtle", RdfFormat.TURTLE), ("application/ld+json", RdfFormat.JSON_LD)):
        written = write_graph([triple], media_type)
        assert [quad.triple for quad in read_quads(written, format=format)] == [triple]
    try:
        written = write_graph([triple], "application/rdf+xml")
    except Problem as problem:
        assert problem.status == 406
    else:
        assert [quad.triple for quad in read_quads(written, format=RdfFormat.RDF_XML)] == [triple]


def test_prefixes_of_a_query_are_used_where_they_can_be() -> None:
    triple = Triple(NamedNode("http://example.org/a"), NamedNode("http://example.org/p"), Literal("x"))
    assert b"ex:a ex:p" in write_graph([triple], "text/turtle", {"ex": "http://example.org/"})
    assert b"<http://example.org/a>" in write_graph([triple], "text/turtle", {"ex": "no iri"})


@pytest.mark.parametrize("media_type", ["text/csv", "text/tab-separated-values", "application/sparql-results+xml"])
def test_every_term_can_be_written(media_type: str) -> None:
    assert write_rows(["x"], [(term,) for term in TERMS], media_type)
