"""An answer of the log in other forms: SPARQL results in JSON, XML, CSV and TSV, and RDF."""

from __future__ import annotations

import json
from typing import Any

from pyoxigraph import QueryResultsFormat, RdfFormat, serialize

from headwater.terms.checking.checked_parsing import parse_quads, parse_results

SOLUTION_FORMS: dict[str, QueryResultsFormat] = {
    "application/sparql-results+json": QueryResultsFormat.JSON,
    "application/sparql-results+xml": QueryResultsFormat.XML,
    "text/csv": QueryResultsFormat.CSV,
    "text/tab-separated-values": QueryResultsFormat.TSV,
}
GRAPH_FORMS: dict[str, RdfFormat] = {
    "text/turtle": RdfFormat.TURTLE,
    "application/n-triples": RdfFormat.N_TRIPLES,
    "application/ld+json": RdfFormat.JSON_LD,
    "application/rdf+xml": RdfFormat.RDF_XML,
}
JSON = "application/json"
"""The answer as it stands in the log, with its time and what its windows held."""


def forms_of(answer: dict[str, Any]) -> list[str]:
    """The forms in which an answer can be given, the usual one first."""
    if "graph" in answer:
        return [*GRAPH_FORMS, JSON]
    if "boolean" in answer:
        return [*list(SOLUTION_FORMS)[:2], JSON]
    return [*SOLUTION_FORMS, JSON]


def write_answer(answer: dict[str, Any], form: str) -> bytes:
    """An answer in one of its forms."""
    if form == JSON:
        return json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace")
    if "graph" in answer:
        triples = [quad.triple for quad in parse_quads(answer["graph"].encode(), RdfFormat.N_TRIPLES)]
        return serialize(triples, format=GRAPH_FORMS[form]) or b""
    results = {name: answer[name] for name in ("head", "results", "boolean") if name in answer}
    text = json.dumps(results, ensure_ascii=False)
    if SOLUTION_FORMS[form] is QueryResultsFormat.JSON:
        return text.encode("utf-8", "replace")
    found = parse_results(text.encode("utf-8", "replace"), QueryResultsFormat.JSON)
    return found.serialize(format=SOLUTION_FORMS[form]) or b""
