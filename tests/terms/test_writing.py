"""Results and graphs as text; what pyoxigraph reads from them must be what was written."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import QueryResultsFormat, QuerySolutions, RdfFormat, parse, parse_query_results

from headwater.terms.ids.term_ids import term_text
from headwater.terms.model import XSD, BlankNode, Literal, NamedNode, Quad, Row, Term, Triple
from headwater.terms.writing import (
    bindings_to_json,
    boolean_to_json,
    term_to_json,
    write_csv,
    write_nquads,
    write_ntriples,
    write_tsv,
    write_turtle,
    write_xml,
    write_xml_boolean,
)
from tests.terms.strategies import terms, triples

VARIABLES = ["x", "long_name"]
rows_of_terms = st.lists(st.tuples(st.none() | terms, st.none() | terms), max_size=6)
EX = "http://example.org/"


def read_back(text: str, format: QueryResultsFormat) -> list[Row]:
    solutions = parse_query_results(text.encode(), format=format)
    assert isinstance(solutions, QuerySolutions)
    assert [variable.value for variable in solutions.variables] == VARIABLES
    return [tuple(solution[name] for name in VARIABLES) for solution in solutions]


@given(rows_of_terms)
def test_json_round_trip(rows: list[Row]) -> None:
    assert read_back(json.dumps(bindings_to_json(VARIABLES, rows)), QueryResultsFormat.JSON) == rows


@given(rows_of_terms)
def test_tsv_round_trip(rows: list[Row]) -> None:
    assert read_back(write_tsv(VARIABLES, rows), QueryResultsFormat.TSV) == rows


def without_control_characters(term: Term | None) -> bool:
    text = "" if term is None else str(term)
    return not any(mark in text for mark in ("\\u00", "\\b", "\\f", "\ufffe", "\uffff"))


@given(rows_of_terms)
def test_xml_round_trip(rows: list[Row]) -> None:
    rows = [row for row in rows if all(map(without_control_characters, row))]
    assert read_back(write_xml(VARIABLES, rows), QueryResultsFormat.XML) == rows


def test_control_characters_do_not_break_xml() -> None:
    rows: list[Row] = [(Literal("a\x01b"), None)]
    assert read_back(write_xml(VARIABLES, rows), QueryResultsFormat.XML) == [(Literal("a\ufffdb"), None)]


@given(st.lists(st.tuples(terms, terms), max_size=5))
def test_csv_holds_the_values(rows: list[tuple[Term, Term]]) -> None:
    text = write_csv(VARIABLES, rows)
    found = list(csv.reader(io.StringIO(text, newline="")))
    expected = [[t.value if isinstance(t, NamedNode | Literal) else term_text(t) for t in row] for row in rows]
    assert found == [VARIABLES, *expected]


def test_csv_is_as_in_the_recommendation() -> None:
    rows: list[Row] = [(BlankNode("b0"), Literal('say "hi", you')), (None, Literal("7"))]
    assert write_csv(["x", "y"], rows) == 'x,y\r\n_:b0,"say ""hi"", you"\r\n,7\r\n'


def test_json_is_as_in_the_recommendation() -> None:
    assert boolean_to_json(True) == {"head": {}, "boolean": True}
    assert term_to_json(Literal("1", datatype=NamedNode(XSD + "integer"))) == {
        "type": "literal",
        "value": "1",
        "datatype": XSD + "integer",
    }
    assert term_to_json(Literal("a", language="en")) == {"type": "literal", "value": "a", "xml:lang": "en"}
    assert term_to_json(BlankNode("b0")) == {"type": "bnode", "value": "b0"}
    assert bindings_to_json(["x", "y"], [(NamedNode(EX), None)]) == {
        "head": {"vars": ["x", "y"]},
        "results": {"bindings": [{"x": {"type": "uri", "value": EX}}]},
    }


@pytest.mark.parametrize("value", [True, False])
def test_booleans(value: bool) -> None:
    for text, format in (
        (json.dumps(boolean_to_json(value)), QueryResultsFormat.JSON),
        (write_xml_boolean(value), QueryResultsFormat.XML),
    ):
        assert bool(parse_query_results(text.encode(), format=format)) is value


def test_a_row_of_the_wrong_length_is_an_error() -> None:
    with pytest.raises(ValueError):
        bindings_to_json(["x", "y"], [(None,)])


@given(st.lists(triples, max_size=6))
def test_graphs_round_trip(graph: list[Triple]) -> None:
    lines = list(parse(write_ntriples(graph).encode(), format=RdfFormat.N_TRIPLES))
    assert [quad.triple for quad in lines] == graph
    quads = [Quad(t.subject, t.predicate, t.object, NamedNode(EX + "g")) for t in graph]
    assert list(parse(write_nquads(quads).encode(), format=RdfFormat.N_QUADS)) == quads
    text = write_turtle(graph, {"ex": EX})
    assert {quad.triple for quad in parse(text.encode(), format=RdfFormat.TURTLE)} == set(graph)


def test_turtle_uses_prefixes() -> None:
    text = write_turtle([Triple(NamedNode(EX + "a"), NamedNode(EX + "b"), NamedNode(EX + "c"))], {"ex": EX})
    assert "ex:a ex:b ex:c" in text
