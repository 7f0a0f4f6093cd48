"""Templates: what a row means, and what is said about templates and rows that mean nothing."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.terms.model import XSD, BadElement, BlankNode, Element, Literal, NamedNode
from headwater.terms.row_files import read_csv
from headwater.terms.template import RowTemplate, TemplateError

HEAD = "@time {t}\n@prefix ex: <http://example.org/> .\n@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n"
EX = "http://example.org/"


def rows(template: str, csv: str) -> list[Element | BadElement]:
    return list(read_csv(csv.encode(), "s.csv", RowTemplate(template)))


def element(template: str, csv: str) -> Element:
    (found,) = rows(template, csv)
    assert isinstance(found, Element), found
    return found


def reason(template: str, csv: str) -> str:
    (found,) = rows(template, csv)
    assert isinstance(found, BadElement), found
    return found.reason


def test_placeholders_in_iris_names_literals_and_datatypes() -> None:
    template = HEAD + '<http://x/{id}/v> ex:p{id} "{v} {{km/h}}"@en , "{v}"^^<{+type}> , "{v}"^^xsd:double .'
    found = element(template, f"t,id,v,type\n1000,a b/é,5,{XSD}integer\n")
    assert found.time == 1_000_000
    subject, predicate = NamedNode("http://x/a%20b%2F%C3%A9/v"), NamedNode(EX + "pa%20b%2F%C3%A9")
    assert [(t.subject, t.predicate) for t in found.triples] == [(subject, predicate)] * 3
    assert [t.object for t in found.triples] == [
        Literal("5 {km/h}", language="en"),
        Literal("5", datatype=NamedNode(XSD + "integer")),
        Literal("5", datatype=NamedNode(XSD + "double")),
    ]


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), min_size=1, max_size=20))
def test_any_cell_survives_in_a_literal_and_in_an_iri(cell: str) -> None:
    quoted = '"' + cell.replace('"', '""') + '"'
    found = element(HEAD + '<http://x/{v}> ex:p "{v}" .', f"t,v\n1,{quoted}\n")
    (triple,) = found.triples
    assert triple.object == Literal(cell)
    assert isinstance(triple.subject, NamedNode)


def test_iris_in_cells() -> None:
    template = HEAD + "<{+url}> ex:p <http://x/{+path}> ."
    (triple,) = element(template, "t,url,path\n1,http://y/a?b#c,d/é e\n").triples
    assert (triple.subject, triple.object) == (NamedNode("http://y/a?b#c"), NamedNode("http://x/d/é%20e"))
    assert "is not an IRI" in reason(template, "t,url,path\n1,no iri,d\n")


def test_an_empty_cell_leaves_out_a_literal_but_makes_an_iri_bad() -> None:
    template = HEAD + '<http://x/{id}> a ex:Row ; ex:v "{v}" .'
    assert len(element(template, "t,id,v\n1,a,\n").triples) == 1
    assert "'id' is empty" in reason(template, "t,id,v\n1,,5\n")


def test_conditional_triples() -> None:
    template = HEAD + "<http://x/row> ex:has _:n .\n@if {rain}\n_:n ex:rain <http://x/{rain}> .\n@end\n_:n a ex:N ."
    assert len(element(template, "t,rain\n1,\n").triples) == 2
    wet = element(template, "t,rain\n1,5\n").triples
    assert len(wet) == 3
    assert wet[0].object == wet[1].subject == wet[2].subject


def test_where_leaves_rows_out() -> None:
    template = HEAD + '@where {s} = OK\n@where {v} != \n<http://x/a> ex:v "{v}" .'
    found = rows(template, "t,s,v\n1,OK,5\n2,BAD,5\n3,OK,\n4,OK,7\n")
    assert [e.time for e in found if isinstance(e, Element)] == [1_000, 4_000]
    assert len(found) == 2


def test_row_numbers_and_blank_nodes_of_their_own() -> None:
    template = HEAD + '[] ex:n "{row}" .'
    first, second = rows(template, "\nt\n1\n2\n")
    assert isinstance(first, Element) and isinstance(second, Element)
    assert [e.triples[0].object for e in (first, second)] == [Literal("1"), Literal("2")]
    assert isinstance(first.triples[0].subject, BlankNode)
    assert first.triples[0].subject != second.triples[0].subject
    assert rows(template, "\nt\n1\n2\n") == [first, second]
    assert element(template, "t,row\n1,own\n").triples[0].object == Literal("own")


@pytest.mark.parametrize(
    ("rule", "cell", "micros"),
    [
        ("{t}", "2013-01-01 15:11:48", 1_357_053_108_000_000),
        ("2013-01-01T{t}:00Z", "15:11", 1_357_053_060_000_000),
        ("{t} as seconds", "1.25", 1_250_000),
        ("{t} as seconds", "-1e-7", -1),
        ("{t} as milliseconds", "12", 12_000),
        ("{t} as microseconds", "12", 12),
        ("{t} as nanoseconds", "12999", 12),
        ("{t} as %d.%m.%Y %H:%M", "01.01.1970 00:01", 60_000_000),
        ("{t} as %d.%m.%Y %H:%M %z", "01.01.1970 00:01 +0100", -3_540_000_000),
        ("1970-01-01T00:00:10Z every 5s", "", 10_000_000),
    ],
)
def test_times(rule: str, cell: str, micros: int) -> None:
    template = HEAD.replace("{t}", rule) + "<a:s> <a:p> <a:o> ."
    assert element(template, f"t,x\n{cell},1\n").time == micros


@pytest.mark.parametrize(
    ("rule", "cell"),
    [
        ("{t}", ""),
        ("{t}", "noon"),
        ("{t} as seconds", "x"),
        ("{t} as seconds", "NaN"),
        ("{t} as seconds", "Infinity"),
        ("{t} as seconds", "1e999999999"),
        ("{t} as %Y", "x"),
        ("9999-12-31T23:59:59Z every 1d", "first row,1\nsecond row"),
    ],
)
def test_no_times(rule: str, cell: str) -> None:
    *_, found = rows(HEAD.replace("{t}", rule) + "<a:s> <a:p> <a:o> .", f"t,x\n{cell},1\n")
    assert isinstance(found, BadElement)
    assert found.reason.startswith("no time")


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("<a:s> <a:p> <a:o> .", "no @time line"),
        ("@time {t}\n", "no triples"),
        ("@time now\n<a:s> <a:p> <a:o> .", r"<template>:1: @time needs a column"),
        ("@time {t} as furlongs\n<a:s> <a:p> <a:o> .", ":1: .*furlongs"),
        ("@time {t}\n@where x = 1\n<a:s> <a:p> <a:o> .", ":2: expected @where"),
        ("@time {t}\n@columns a a\n<a:s> <a:p> <a:o> .", ":2: @columns"),
        ("@time {t}\n@delimiter\n<a:s> <a:p> <a:o> .", ":2: @delimiter"),
        ("@time {t}\n@if {x}\n<a:s> <a:p> <a:o> .", ":2: @if without @end"),
        ("@time {t}\n@colums a b\n<a:s> <a:p> <a:o> .", ":2: no line begins with @colums; did you mean @columns"),
        ("@time {t}\n@time {u}\n<a:s> <a:p> <a:o> .", ":2: a second @time line"),
        ("@time 2026-03-02T08:00:00Z every 0s\n<a:s> <a:p> <a:o> .", ":1: the step of @time is longer than nothing"),
        ("@time {t}\n@end\n<a:s> <a:p> <a:o> .", ":2: @end without @if"),
        ("@time {t}\n<a:s> <a:p> <a:o> .\n@prefix x: <x:> .\n\n<a:s> <a:p> {v} .", ":5: "),
        ("@time {t}\n@if {x}\n\n<a:s> <a:p> {v} .\n@end", ":4: "),
        ("@time {t}\n<s{x}> <a:p> <a:o> .", r"<s\{…\}> is a relative IRI"),
        ("@time {t}\n_:x{v} <a:p> <a:o> .", "label of a blank node"),
        ('@time {t}\n<a:s> <a:p> "{" .', "a single '{'"),
        ('@time {t}\n<a:s> <a:p> <<( <a:s> <a:p> "{v}" )>> .', "triple term"),
    ],
)
def test_wrong_templates(template: str, message: str) -> None:
    with pytest.raises(TemplateError, match=message):
        RowTemplate(template)


def test_a_template_can_be_sent_to_another_process() -> None:
    template = RowTemplate(HEAD + '<http://x/{v}> ex:p "{v}" .', "a.template")
    copy = pickle.loads(pickle.dumps(template))
    assert copy.name == "a.template"
    text = b"t,v\n1,2\n"
    assert list(read_csv(text, "s", copy)) == list(read_csv(text, "s", template))
