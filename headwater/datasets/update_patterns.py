"""Which statements a SPARQL Update can look at or take away: the patterns of its WHERE and DELETE parts.

    DELETE { ?s :old ?o } INSERT { ?s :new ?o } WHERE { ?s :old ?o . ?s a :Gate }

    ?s :old ?o,  ?s rdf:type :Gate

So an update of a large data set is done on a copy of the few statements that matter to it.
"""

from __future__ import annotations

from collections.abc import Iterator

from headwater.algebra.build import plan_query
from headwater.algebra.wanted_patterns import WantedPattern, wanted_by
from headwater.language.errors import QueryError
from headwater.language.lexer import tokenize
from headwater.language.parser import parse

_PATTERNS = frozenset({"WHERE", "DELETE"})
_SIMPLE = frozenset({"WITH", "DELETE", "INSERT", "WHERE", "DATA", "USING", "NAMED"})


def patterns_of(text: str) -> frozenset[WantedPattern] | None:
    """Patterns that cover every statement that matters to an update; None where any may."""
    found: set[WantedPattern] = set()
    try:
        for block in _blocks(text):
            patterns = wanted_by(plan_query(parse(block)))
            if patterns is None:
                return None
            found |= patterns
    except (QueryError, _AnyStatement):
        return None
    return frozenset(found)


class _AnyStatement(Exception):
    """An operation on whole graphs, or one that is not known."""


def _blocks(text: str) -> Iterator[str]:
    """The WHERE and DELETE parts of all operations, as queries with the prologue before them."""
    source = tokenize(text)
    prologue, word, depth, start = 0, "", 0, 0
    tokens = source.tokens
    for number, token in enumerate(tokens):
        if depth == 0 and token.key in ("PREFIX", "BASE"):
            # `PREFIX p: <iri>` or `BASE <iri>`: the token behind it ends it.
            prologue = tokens[number + (2 if token.key == "PREFIX" else 1)].end
        elif depth == 0 and token.is_word:
            if token.key not in _SIMPLE:
                raise _AnyStatement
            # DATA changes nothing about what its block is: statements that come, or that go.
            word = word if token.key == "DATA" else token.key
        elif token.key == "{":
            start = token.start if depth == 0 else start
            depth += 1
        elif token.key == "}":
            depth -= 1
            if depth == 0 and word in _PATTERNS:
                yield f"{source.text[:prologue]} SELECT * WHERE {source.text[start : token.end]}"
