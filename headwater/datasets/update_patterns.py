"""The statements that a SPARQL Update can read or remove: the patterns of its WHERE and DELETE clauses.

    DELETE { ?s :old ?o } INSERT { ?s :new ?o } WHERE { ?s :old ?o . ?s a :Gate }

    ?s :old ?o,  ?s rdf:type :Gate

So an update of a large data set is evaluated on a copy of the few statements that match these patterns.
"""

from __future__ import annotations

from collections.abc import Iterator

from headwater.algebra.build import plan_query
from headwater.algebra.wanted_patterns import WantedPattern, wanted_patterns_of
from headwater.language.errors import QueryError
from headwater.language.lexer import tokenize
from headwater.language.parser import parse

_PATTERN_KEYWORDS = frozenset({"WHERE", "DELETE"})
_KEYWORDS = frozenset({"WITH", "DELETE", "INSERT", "WHERE", "DATA", "USING", "NAMED"})


def patterns_of(text: str) -> frozenset[WantedPattern] | None:
    """Patterns that match every statement that an update can read or remove; None if it can be any."""
    all_patterns: set[WantedPattern] = set()
    try:
        for query in _clauses_as_queries(text):
            patterns = wanted_patterns_of(plan_query(parse(query)))
            if patterns is None:
                return None
            all_patterns |= patterns
    except (QueryError, _AnyStatement):
        return None
    return frozenset(all_patterns)


class _AnyStatement(Exception):
    """An operation on whole graphs, or an unknown one: it can touch any statement."""


def _clauses_as_queries(text: str) -> Iterator[str]:
    """The WHERE and DELETE clauses of all operations, each as a query with the prologue before it."""
    source = tokenize(text)
    prologue_end, keyword, depth, start = 0, "", 0, 0
    tokens = source.tokens
    for index, token in enumerate(tokens):
        if depth == 0 and token.key in ("PREFIX", "BASE"):
            # `PREFIX p: <iri>` or `BASE <iri>`: the IRI is its last token.
            prologue_end = tokens[index + (2 if token.key == "PREFIX" else 1)].end
        elif depth == 0 and token.is_word:
            if token.key not in _KEYWORDS:
                raise _AnyStatement
            # In INSERT DATA and DELETE DATA the block belongs to the keyword before DATA.
            keyword = keyword if token.key == "DATA" else token.key
        elif token.key == "{":
            start = token.start if depth == 0 else start
            depth += 1
        elif token.key == "}":
            depth -= 1
            if depth == 0 and keyword in _PATTERN_KEYWORDS:
                yield f"{source.text[:prologue_end]} SELECT * WHERE {source.text[start : token.end]}"
