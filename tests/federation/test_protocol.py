"""Queries as requests, and bodies as results, in JSON and XML, well formed or not."""

from __future__ import annotations

import gc
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.federation.endpoint.endpoint_settings import QueryMethod
from headwater.federation.endpoint.protocol import (
    NotResults,
    ResultTable,
    blank_node_scope,
    build_request,
    read_results,
)
from headwater.terms.model import XSD, BlankNode, Literal, NamedNode, Row, Triple
from headwater.terms.writing import bindings_to_json, boolean_to_json, write_xml, write_xml_boolean
from headwater.values.query_guard import QueryGuard

URL = "http://example.org/sparql"
QUERY = 'SELECT * WHERE { ?s ?p "ä&b=c+d %" }'
A = NamedNode("http://example.org/a")

terms = st.one_of(
    st.integers(0, 9).map(lambda n: NamedNode(f"http://example.org/{n}")),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=5).map(Literal),
    st.text("0123456789+-.e", max_size=4).map(lambda text: Literal(text, datatype=NamedNode(XSD + "integer"))),
    st.just(Literal("chat", language="fr")),
    st.none(),
)


def test_a_form_carries_query_and_dataset() -> None:
    asked = build_request(QueryMethod.POST_FORM, URL, QUERY, ["http://g/1"], ["http://g/2"])
    assert (asked.method, asked.url, asked.content_type) == ("POST", URL, "application/x-www-form-urlencoded")
    assert parse_qs(asked.body.decode()) == {
        "query": [QUERY],
        "default-graph-uri": ["http://g/1"],
        "named-graph-uri": ["http://g/2"],
    }


def test_a_direct_post_carries_the_query_as_its_body_and_the_dataset_in_the_address() -> None:
    asked = build_request(QueryMethod.POST_DIRECT, URL + "?key=1", QUERY, ["http://g/1"])
    assert (asked.content_type, asked.body.decode()) == ("application/sparql-query", QUERY)
    assert parse_qs(urlsplit(asked.url).query) == {"key": ["1"], "default-graph-uri": ["http://g/1"]}


def test_get_keeps_the_parameters_that_the_address_has() -> None:
    asked = build_request(QueryMethod.GET, URL + "?key=1", QUERY)
    assert (asked.method, asked.body, asked.content_type) == ("GET", b"", None)
    assert parse_qs(urlsplit(asked.url).query) == {"key": ["1"], "query": [QUERY]}


@given(st.lists(st.tuples(terms, terms), max_size=4))
def test_json_and_xml_give_what_was_written(rows: list[Row]) -> None:
    expected = ResultTable(("x", "y"), tuple(rows))
    assert read_results(json.dumps(bindings_to_json(["x", "y"], rows)).encode()) == expected
    assert read_results(write_xml(["x", "y"], rows).encode()) == expected


def test_verdicts() -> None:
    assert read_results(json.dumps(boolean_to_json(True)).encode()) is True
    assert read_results(write_xml_boolean(False).encode()) is False


def test_what_came_counts_not_what_it_is_called() -> None:
    body = write_xml(["x"], [(A,)]).encode()
    assert read_results(body, "application/sparql-results+json") == ResultTable(("x",), ((A,),))
    assert read_results(b'{"head":{},"boolean":true}', "text/html") is True


def test_rows_without_variables_are_counted() -> None:
    assert read_results(b'{"head":{"vars":[]},"results":{"bindings":[{},{}]}}') == ResultTable((), ((), ()))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "iso-8859-1"])
def test_other_encodings(encoding: str) -> None:
    written = write_xml(["x"], [(Literal("ä"),)]).replace("UTF-8", encoding)
    found = read_results(written.encode(encoding), f"application/sparql-results+xml; charset={encoding}")
    assert found == ResultTable(("x",), ((Literal("ä"),),))


def test_the_encoding_may_stand_in_the_document_alone() -> None:
    written = write_xml(["x"], [(Literal("ä"),)]).replace("UTF-8", "iso-8859-1")
    assert read_results(written.encode("iso-8859-1")) == ResultTable(("x",), ((Literal("ä"),),))


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "empty"),
        (b"   \n", "empty"),
        (b"<!DOCTYPE html><html><body>Welcome</body></html>", "web page"),
        (b"<html></html>", "web page"),
        (b"Virtuoso 37000 Error", "neither JSON nor XML"),
        (b'{"hello": "world"}', "not a SPARQL result"),
        (b'{"head":{"vars":["x"]},"results":{"bindings":[{"x":{"type":"uri","val', "not a SPARQL result"),
        (
            b'{"head":{"vars":["x"]},"results":{"bindings":[{"x":{"type":"uri","value":"no iri"}}]}}',
            "not a SPARQL result",
        ),
        (b"<?xml version='1.0'?><rss/>", "not a SPARQL result"),
        (b"\xff\xfe\x00", "cannot be read"),
        (b"{\xff\xfe\x00\x80}", "not a SPARQL result"),
    ],
)
def test_garbage_is_called_so(body: bytes, says: str) -> None:
    with pytest.raises(NotResults, match=says):
        read_results(body)


@given(st.data())
def test_every_part_of_a_result_is_no_result(data: st.DataObject) -> None:
    rows: list[Row] = [(A,), (Literal("b"),)]
    bodies = [json.dumps(bindings_to_json(["x"], rows)), write_xml(["x"], rows), write_xml_boolean(True)]
    body = data.draw(st.sampled_from(bodies)).rstrip().encode()
    with pytest.raises(NotResults):
        read_results(body[: data.draw(st.integers(0, len(body) - 1))])


def test_the_blank_nodes_of_two_answers_are_different_and_those_of_one_the_same() -> None:
    body = json.dumps(bindings_to_json(["x", "y"], [(BlankNode("b0"), BlankNode("b0"))])).encode()
    first = read_results(body, scope=blank_node_scope(URL, "SELECT 1"))
    again = read_results(body, scope=blank_node_scope(URL, "SELECT 1"))
    other = read_results(body, scope=blank_node_scope(URL, "SELECT 2"))
    assert isinstance(first, ResultTable) and isinstance(other, ResultTable)
    assert first == again
    assert first.rows[0][0] == first.rows[0][1] != other.rows[0][0]
    assert isinstance(other.rows[0][0], BlankNode)


def test_blank_nodes_inside_triple_terms_have_the_scope_too() -> None:
    inside = Triple(BlankNode("b0"), A, Literal("1"))
    found = read_results(json.dumps(bindings_to_json(["x"], [(inside,)])).encode(), scope="s")
    assert isinstance(found, ResultTable)
    assert found.rows == ((Triple(BlankNode("esb0"), A, Literal("1")),),)


@pytest.mark.parametrize(
    "body",
    [
        b'{"head":{"link":[],"vars":["x"]},"results":{"distinct":false,"bindings":[{"x":{"type":"literal","value":"1"}}]}}',
        b'{"head":{"vars":["x"]},"results":{"bindings":[{"x":{"type":"literal","value":"1"}}],"count":1},"meta":{"ms":[5]}}',
        b'{"results":{"bindings":[{"x":{"type":"literal","value":"1"}}]},"head":{"vars":["x"]}}',
    ],
)
def test_what_engines_add_to_their_results_does_no_harm(body: bytes) -> None:
    assert read_results(body) == ResultTable(("x",), ((Literal("1"),),))


def test_a_comment_may_stand_at_the_end() -> None:
    assert read_results(write_xml(["x"], [(A,)]).encode() + b" <!-- 3 ms --> \n") == ResultTable(("x",), ((A,),))


def test_what_was_read_in_a_thread_is_freed_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """pyoxigraph prints an error where one of its iterators is freed in another thread than its own."""
    complaints: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    body = b'{"head":{"vars":["x"]},"results":{"bindings":[{"x":{"type":"uri","value":"a b"}}]}}'
    for read in (ThreadPoolExecutor(1).submit, lambda *work: QueryGuard().call(partial(*work))):
        with pytest.raises(NotResults):
            read(read_results, body).result()
        gc.collect()
    assert not complaints


def test_columns_are_picked_by_name() -> None:
    table = ResultTable(("x", "y"), ((A, None),))
    assert list(table.project(["y", "z", "x"])) == [(None, None, A)]
