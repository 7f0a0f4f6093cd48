"""Answers read back from JSON, as `answer_text` writes it and the server sends it."""

from __future__ import annotations

import json
from typing import Any

from pyoxigraph import QueryResultsFormat, QuerySolutions, RdfFormat

from headwater.algebra.plan import QueryKind
from headwater.execution.answers import Answer
from headwater.terms.checking.checked_parsing import parse_quads, parse_results


def answer_of(event: dict[str, Any], query: str) -> Answer:
    """The answer that an object of JSON has."""
    head: dict[str, Any] = {
        "query": query,
        "time": event["time_us"],
        "watermark": event.get("watermark_us"),
        "complete": event.get("complete", True),
    }
    if "graph" in event:
        triples = tuple(quad.triple for quad in parse_quads(event["graph"].encode(), RdfFormat.N_TRIPLES))
        return Answer(kind=QueryKind.CONSTRUCT, triples=triples, **head)
    if "boolean" in event:
        return Answer(kind=QueryKind.ASK, boolean=event["boolean"], **head)
    text = json.dumps({"head": event["head"], "results": event["results"]})
    found = parse_results(text, QueryResultsFormat.JSON)
    assert isinstance(found, QuerySolutions)
    names = tuple(variable.value for variable in found.variables)
    rows = tuple(tuple(solution[name] for name in names) for solution in found)
    return Answer(kind=QueryKind.SELECT, variables=names, rows=rows, **head)
