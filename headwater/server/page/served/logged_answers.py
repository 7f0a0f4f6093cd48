"""Answers of the log, which are JSON, for the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyoxigraph import RdfFormat

from headwater.server.page.embedded.page_values import MOST_ROWS, describe_answer
from headwater.server.page.embedded.recent_elements import shorten_iri
from headwater.server.page.page_access import PageAnswer, PageCell, PageTable
from headwater.terms.checking.checked_parsing import parse_quads
from headwater.terms.model import XSD, BlankNode, Literal, NamedNode

_LONGEST_TEXT = 300
_WHOLE = frozenset(XSD + name for name in ("integer", "int", "long", "short", "byte", "nonNegativeInteger"))
_NUMBERS = frozenset(XSD + name for name in ("decimal", "double", "float"))


def logged_answer_to_page(
    id: str, answer: Mapping[str, Any], prefixes: Iterable[tuple[str, str]], operator: str = "rstream"
) -> PageAnswer:
    """An answer of the log with the rows that the page shows."""
    known = tuple(prefixes)
    if "results" in answer:
        columns = tuple(answer["head"]["vars"])
        bindings = answer["results"]["bindings"]
        rows = tuple(tuple(_cell(row.get(name), known) for name in columns) for row in bindings[:MOST_ROWS])
        table = PageTable(columns, rows, max(0, len(bindings) - MOST_ROWS))
    elif "graph" in answer:
        table = _graph_table(answer["graph"], known)
    else:
        verdict = answer.get("boolean")
        table = PageTable(("boolean",), () if verdict is None else ((bool(verdict),),))
    return PageAnswer(
        id,
        answer["time_us"],
        table,
        operator,
        answer.get("complete", True),
        answer.get("suspended") or "",
        describe_answer(None, answer.get("quality"), answer.get("skipped", 0)),
    )


def _graph_table(graph: str, prefixes: tuple[tuple[str, str], ...]) -> PageTable:
    lines = graph.splitlines(keepends=True)
    rows: list[tuple[PageCell, ...]] = []
    for quad in parse_quads("".join(lines[:MOST_ROWS]).encode("utf-8", "replace"), RdfFormat.N_TRIPLES):
        rows.append(tuple(_cell(_term_json(term), prefixes) for term in (quad.subject, quad.predicate, quad.object)))
    return PageTable(("subject", "predicate", "object"), tuple(rows), max(0, len(lines) - MOST_ROWS))


def _term_json(term: object) -> dict[str, Any]:
    if isinstance(term, NamedNode):
        return {"type": "uri", "value": term.value}
    if isinstance(term, Literal):
        return {"type": "literal", "value": term.value, "datatype": term.datatype.value}
    return {"type": "bnode", "value": term.value if isinstance(term, BlankNode) else str(term)}


def _cell(term: Mapping[str, Any] | None, prefixes: tuple[tuple[str, str], ...]) -> PageCell:
    """A term of SPARQL results in JSON for a table: numbers and truth values as they are, IRIs shortened."""
    if term is None:
        return None
    value = str(term["value"])
    if term["type"] == "uri":
        return shorten_iri(value, prefixes)
    if term["type"] == "bnode":
        return f"_:{value}"
    datatype = term.get("datatype", "")
    try:
        if datatype in _WHOLE:
            return int(value)
        if datatype in _NUMBERS:
            return float(value)
    except ValueError:
        return value
    if datatype == XSD + "boolean":
        return value in ("true", "1")
    return value if len(value) <= _LONGEST_TEXT else f"{value[:_LONGEST_TEXT]} …"
