"""What the editor offers while somebody writes a query."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.server.page.embedded.recent_elements import shorten_iri
from headwater.server.page.page_access import CompletionWord

KEYWORDS = (
    *("REGISTER", "QUERY", "STREAM", "COMPUTED EVERY", "FROM STREAM", "FROM NAMED WINDOW", "FROM NAMED STREAM"),
    *("RSTREAM", "ISTREAM", "DSTREAM", "RANGE", "STEP", "SLIDE", "TRIPLES", "TUMBLING", "NOW", "WINDOW", "AGGREGATE"),
    *("SELECT", "CONSTRUCT", "DESCRIBE", "ASK", "WHERE", "FILTER", "OPTIONAL", "UNION", "MINUS", "GRAPH", "BIND"),
    *("VALUES", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "DISTINCT", "PREFIX", "NOT EXISTS", "COUNT", "SUM"),
    *("AVG", "MIN", "MAX", "SAMPLE", "SERVICE"),
)
COMMON_PREFIXES = (
    ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
    ("rdfs", "http://www.w3.org/2000/01/rdf-schema#"),
    ("xsd", "http://www.w3.org/2001/XMLSchema#"),
    ("sosa", "http://www.w3.org/ns/sosa/"),
    ("geo", "http://www.w3.org/2003/01/geo/wgs84_pos#"),
    ("prov", "http://www.w3.org/ns/prov#"),
)
_MOST_PREDICATES = 300


def list_completions(
    prefixes: Sequence[tuple[str, str]], streams: Sequence[str], predicates: Sequence[str]
) -> tuple[CompletionWord, ...]:
    """The words of an editor: keywords, prefix declarations, streams, and predicates with the prefixes known here."""
    known = dict([*COMMON_PREFIXES, *prefixes])
    found = [CompletionWord(word, "keyword") for word in KEYWORDS]
    found += [CompletionWord(f"PREFIX {name}: <{iri}>", "namespace", "prefix") for name, iri in known.items()]
    found += [CompletionWord(f"<{name}>", "class", "stream") for name in dict.fromkeys(streams)]
    for iri in predicates[:_MOST_PREDICATES]:
        found.append(CompletionWord(shorten_iri(iri, known.items()), "property", "predicate"))
    return tuple(found)
