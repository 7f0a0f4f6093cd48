"""Answers as text, exactly."""

from __future__ import annotations

import csv
import io
import json

import pytest

from headwater.algebra.plan import QueryKind
from headwater.execution.answers import Answer
from headwater.sinks.answer_text import (
    answer_writer,
    format_answer_csv,
    format_answer_json,
    format_answer_nquads,
    format_answer_table,
)
from headwater.terms.model import XSD, BlankNode, Element, Literal, NamedNode, Triple
from headwater.terms.timed_graphs import read_timed_nquads

S, P = NamedNode("http://ex/s"), NamedNode("http://ex/p")
ROWS = Answer(
    "query",
    1_500_000,
    QueryKind.SELECT,
    variables=("s", "v"),
    rows=((S, Literal("1", datatype=NamedNode(XSD + "integer"))), (BlankNode("b"), None)),
)
GRAPH = Answer("http://ex/q", -1_000_000, QueryKind.CONSTRUCT, triples=(Triple(S, P, Literal('a "b", c')),))
EMPTY = Answer("http://ex/q", 0, QueryKind.CONSTRUCT)
YES = Answer("yes", 0, QueryKind.ASK, boolean=True)


def test_rows_as_json() -> None:
    text = format_answer_json(ROWS)
    assert text.endswith("}\n")
    assert "\n" not in text[:-1]
    assert json.loads(text) == {
        "head": {"vars": ["s", "v"]},
        "time_us": 1_500_000,
        "time": "1970-01-01T00:00:01.5Z",
        "results": {
            "bindings": [
                {
                    "s": {"type": "uri", "value": "http://ex/s"},
                    "v": {"type": "literal", "value": "1", "datatype": XSD + "integer"},
                },
                {"s": {"type": "bnode", "value": "b"}},
            ]
        },
    }
    assert list(json.loads(text)) == ["head", "time_us", "time", "results"]


def test_graphs_and_verdicts_as_json() -> None:
    assert json.loads(format_answer_json(GRAPH, with_query=True)) == {
        "query": "http://ex/q",
        "head": {},
        "time_us": -1_000_000,
        "time": "1969-12-31T23:59:59Z",
        "graph": '<http://ex/s> <http://ex/p> "a \\"b\\", c" .\n',
    }
    assert json.loads(format_answer_json(YES)) == {
        "head": {},
        "time_us": 0,
        "time": "1970-01-01T00:00:00Z",
        "boolean": True,
    }


def test_csv_has_the_time_first_and_the_header_once() -> None:
    write = answer_writer("csv")
    text = write(ROWS) + write(ROWS)
    assert list(csv.reader(io.StringIO(text))) == [
        ["time", "s", "v"],
        *[["1970-01-01T00:00:01.5Z", "http://ex/s", "1"], ["1970-01-01T00:00:01.5Z", "_:b", ""]] * 2,
    ]
    assert format_answer_csv(GRAPH, header=False, with_query=True) == (
        'http://ex/q,1969-12-31T23:59:59Z,http://ex/s,http://ex/p,"a ""b"", c"\r\n'
    )


def test_csv_of_several_queries_repeats_the_header_where_columns_change() -> None:
    write = answer_writer("csv", with_query=True)
    lines = (write(ROWS) + write(YES) + write(YES)).splitlines()
    assert lines[0] == "query,time,s,v"
    assert lines[3:] == ["query,time,boolean", *["yes,1970-01-01T00:00:00Z,true"] * 2]


@pytest.mark.parametrize("answer", [GRAPH, ROWS, YES, EMPTY])
def test_n_quads_can_be_read_back_as_a_stream(answer: Answer) -> None:
    (element,) = read_timed_nquads(format_answer_nquads(answer).encode(), "answers.nq")
    assert isinstance(element, Element)
    assert element.time == answer.time
    assert set(element.triples) == set(answer.to_rdf())


def test_graph_names_differ_by_query_time_and_part() -> None:
    answers = [ROWS, GRAPH, EMPTY, Answer("query", 1_500_000, QueryKind.ASK, boolean=True, part=1)]
    names = {format_answer_nquads(answer).split(" ", 1)[0] for answer in answers}
    assert names == {
        "<headwater:/query/1970-01-01T00:00:01.5Z>",
        "<headwater:/query/1970-01-01T00:00:01.5Z-1>",
        "<http://ex/q/1969-12-31T23:59:59Z>",
        "<http://ex/q/1970-01-01T00:00:00Z>",
    }


def test_tables_are_for_people() -> None:
    assert format_answer_table(ROWS) == ("1970-01-01T00:00:01.5Z\n  s            v\n  http://ex/s  1\n  _:b\n")
    assert format_answer_table(EMPTY, with_query=True) == "1970-01-01T00:00:00Z  http://ex/q\n  nothing\n"


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ValueError, match="table, json, csv, nquads"):
        answer_writer("xml")


def test_answers_as_pandas() -> None:
    frame = ROWS.to_pandas()
    assert frame["s"].tolist() == ["http://ex/s", "_:b"]
    assert frame["v"].tolist()[0] == 1
    assert frame["v"].isna().tolist() == [False, True]
    assert ROWS.to_pandas(terms=True)["s"].tolist() == [S, BlankNode("b")]
    assert YES.to_pandas()["boolean"].tolist() == [True]
    assert GRAPH.to_pandas().columns.tolist() == ["subject", "predicate", "object"]
    assert EMPTY.to_pandas().empty
