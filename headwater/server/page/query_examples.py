"""Queries to start from, one for each way of asking. Streams and prefixes are to be replaced by one's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QueryExample:
    """A query to start from."""

    title: str
    text: str


_COUNT = """\
# RSP-QL: how many triples each predicate had in the last minute, every ten seconds
REGISTER RSTREAM PredicatesPerMinute AS
SELECT ?predicate (COUNT(*) AS ?triples)
FROM NAMED WINDOW <lastMinute> ON <{stream}> [RANGE PT1M STEP PT10S]
WHERE {{ WINDOW <lastMinute> {{ ?subject ?predicate ?object }} }}
GROUP BY ?predicate
ORDER BY DESC(?triples)
"""
_NEW = """\
# RSP-QL: only what is new, as soon as a window closes
REGISTER ISTREAM NewTriples AS
SELECT ?subject ?predicate ?object
FROM NAMED WINDOW <last> ON <{stream}> [RANGE PT1M STEP PT10S]
WHERE {{ WINDOW <last> {{ ?subject ?predicate ?object }} }}
"""
_CSPARQL = """\
# C-SPARQL: the busiest subjects of the last five minutes
REGISTER QUERY BusySubjects COMPUTED EVERY 1m AS
SELECT ?subject (COUNT(?object) AS ?times)
FROM STREAM <{stream}> [RANGE 5m STEP 1m]
WHERE {{ ?subject ?predicate ?object }}
GROUP BY ?subject
ORDER BY DESC(?times)
LIMIT 20
"""
_CQELS = """\
# CQELS-QL: answered at once, when an element comes
SELECT ?subject ?object
WHERE {{
  STREAM <{stream}> [NOW] {{ ?subject ?predicate ?object }}
}}
"""
_CONSTRUCT = """\
# C-SPARQL: a stream made of a stream, which other queries may read
REGISTER STREAM Counted COMPUTED EVERY 1m AS
CONSTRUCT {{ ?subject <http://example.org/times> ?times }}
FROM STREAM <{stream}> [RANGE 5m STEP 1m]
WHERE {{
  {{ SELECT ?subject (COUNT(?object) AS ?times) WHERE {{ ?subject ?predicate ?object }} GROUP BY ?subject }}
}}
"""


def list_examples(streams: Sequence[str]) -> tuple[QueryExample, ...]:
    """The examples, over the first stream that there is."""
    stream = streams[0] if streams else "http://example.org/stream"
    titles = {
        "Count over a window (RSP-QL)": _COUNT,
        "Only what is new (RSP-QL)": _NEW,
        "Busiest subjects (C-SPARQL)": _CSPARQL,
        "At once (CQELS-QL)": _CQELS,
        "A stream from a stream (C-SPARQL)": _CONSTRUCT,
    }
    return tuple(QueryExample(title, text.format(stream=stream)) for title, text in titles.items())
