"""Answers as text: JSON lines, CSV, N-Quads, tables. Each function gives whole lines, with their ends.

JSON is one SPARQL 1.1 results object per line, with `"time_us"` and `"time"` beside `"head"`; an answer that is a
graph has its N-Triples in `"graph"`, one that rests on SERVICE says in `"quality"` how good it is, and one whose
query came so late that its windows did not hold everything has `"complete": false`. `"inputs"` says what each window
held. A line with `"suspended"` is no answer: it says why the query has no more of them. N-Quads can be read back as a
stream: each answer is a named graph that carries `prov:generatedAtTime`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from headwater.algebra.plan import QueryKind
from headwater.errors import SettingError
from headwater.execution.answers import Answer, WindowView
from headwater.execution.typed_cells import plain_text
from headwater.terms.model import XSD, Literal, NamedNode, Quad
from headwater.terms.names import iri_to_name, name_to_iri
from headwater.terms.timed_graphs import GENERATED_AT_TIME
from headwater.terms.timestamps import format_time
from headwater.terms.writing import bindings_to_json, write_csv, write_nquads, write_ntriples

AnswerWriter = Callable[[Answer], str]

_SUSPENDED = NamedNode("urn:headwater:suspended")
"""Says of the graph of an answer that it is none, and why its query has no more."""


def format_answer_json(answer: Answer, *, with_query: bool = False) -> str:
    """One line of JSON. `with_query` adds the name of the query, for runs that have several."""
    body: dict[str, Any]
    if answer.kind is QueryKind.SELECT:
        body = bindings_to_json(answer.variables, answer.rows)
    elif answer.kind is QueryKind.ASK:
        body = {"head": {}, "boolean": answer.boolean}
    else:
        body = {"head": {}, "graph": write_ntriples(answer.triples)}
    head = {"head": body.pop("head"), "time_us": answer.time, "time": format_time(answer.time)}
    name = {"query": answer.query} if with_query else {}
    quality = {} if answer.quality is None else {"quality": answer.quality.as_json()}
    whole = {} if answer.complete else {"complete": False}
    skipped = {"skipped": answer.skipped} if answer.skipped else {}
    notice = {} if answer.suspended is None else {"suspended": answer.suspended}
    inputs = {"inputs": [_window_json(view) for view in answer.inputs]} if answer.inputs else {}
    found = {**name, **head, **notice, **whole, **skipped, **quality, **inputs, **body}
    return json.dumps(found, ensure_ascii=False) + "\n"


def _window_json(view: WindowView) -> dict[str, Any]:
    """What a window held: the instants from which and before which, and how many elements, or triples of some."""
    return {"window": iri_to_name(view.label), "from_us": view.low, "before_us": view.high, "items": view.items}


def format_answer_csv(answer: Answer, *, header: bool = True, with_query: bool = False) -> str:
    """Rows of CSV (lines end in CR LF, as RFC 4180 says) behind the time, and the query where asked for."""
    columns, rows = answer.table()
    before = [Literal(answer.query)] if with_query else []
    before.append(Literal(format_time(answer.time)))
    names = [*(["query"] if with_query else []), "time", *columns]
    text = write_csv(names, [(*before, *row) for row in rows])
    return text if header else text.partition("\r\n")[2]


def format_answer_nquads(answer: Answer) -> str:
    """The triples of an answer in a graph of its own, behind the time of that graph.

    Rows and verdicts are written in the W3C vocabulary for result sets.
    """
    graph = answer_graph(answer)
    moment = Literal(format_time(answer.time), datatype=NamedNode(XSD + "dateTime"))
    if answer.suspended is not None:
        return write_nquads(
            [Quad(graph, GENERATED_AT_TIME, moment), Quad(graph, _SUSPENDED, Literal(answer.suspended))]
        )
    quads = [Quad(t.subject, t.predicate, t.object, graph) for t in answer.to_rdf()]
    return write_nquads([Quad(graph, GENERATED_AT_TIME, moment), *quads])


def answer_graph(answer: Answer) -> NamedNode:
    """The name of an answer as a graph: made from its query, its time and, where one instant has several, its part."""
    part = f"-{answer.part}" if answer.part else ""
    return NamedNode(f"{name_to_iri(answer.query).value}/{quote(format_time(answer.time), safe=':')}{part}")


def format_answer_table(answer: Answer, *, with_query: bool = False) -> str:
    """A table for people, in plain text."""
    columns, rows = answer.table()
    cells = [[plain_text(term) or "" for term in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [columns, *cells]]
    title = format_time(answer.time) + (f"  {answer.query}" if with_query else "")
    nothing = "  nothing\n" if answer.suspended is None else f"  suspended: {answer.suspended}\n"
    body = "".join(f"  {line.rstrip()}\n" for line in lines) if cells else nothing
    return f"{title}\n{body}"


def csv_writer(*, with_query: bool = False) -> AnswerWriter:
    """Writes the header once, and again only where another query has other columns."""
    last: list[tuple[str, ...]] = []

    def write(answer: Answer) -> str:
        columns = answer.table()[0]
        header = last[-1:] != [columns]
        last[:] = [columns]
        return format_answer_csv(answer, header=header, with_query=with_query)

    return write


def answer_writer(format: str, *, with_query: bool = False) -> AnswerWriter:
    """The writer for `table`, `json`, `csv` or `write_nquads`."""
    writers: dict[str, AnswerWriter] = {
        "table": lambda answer: format_answer_table(answer, with_query=with_query),
        "json": lambda answer: format_answer_json(answer, with_query=with_query),
        "csv": csv_writer(with_query=with_query),
        "nquads": format_answer_nquads,
    }
    if format not in writers:
        raise SettingError(f"no format {format!r}: use one of {', '.join(writers)}")
    return writers[format]
