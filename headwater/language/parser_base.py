"""What every layer of the parser stands on: the tokens, the place in them, and errors that point well.

The parser is recursive descent, one class per layer (terms, paths, expressions, triples, windows, patterns, query),
each built on the one before. A layer that needs a later one (an expression may contain `EXISTS {…}`) calls an
abstract method declared here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import NoReturn

from headwater.language.errors import QueryError
from headwater.language.expressions import Expression
from headwater.language.lexer import RDF_12, SourceText, Token
from headwater.language.patterns import GroupPattern
from headwater.language.stream_clauses import Dialect
from headwater.terms.checking.input_limits import NESTING_VARIABLE, deepest_nesting

_LONGEST_INTEGER = 18
_KIND_NAMES = {
    "var": "a variable",
    "iri": "an IRI",
    "pname": "a prefixed name",
    "bnode": "a blank node",
    "string": "a string",
    "integer": "a number",
    "end": "the end of the query",
    "GROUP": "GROUP BY",
    "ORDER": "ORDER BY",
}


class ParserBase(ABC):
    """The tokens of one query and the place the parser has reached (`token`, the next one to read)."""

    def __init__(self, source: SourceText, dialect: Dialect, is_streaming: bool) -> None:
        self.source = source
        self.text = source.text
        self.tokens = source.tokens
        self.dialect = dialect
        self.is_streaming = is_streaming
        self.index = 0
        self.token = source.tokens[0]
        self.depth = 0
        self.deepest = deepest_nesting()

    @abstractmethod
    def group_pattern(self) -> GroupPattern:
        """`{ … }`."""

    @abstractmethod
    def expression(self) -> Expression:
        """Any expression."""

    def advance(self) -> Token:
        """Steps over the current token and returns it."""
        token = self.token
        self.index += 1
        self.token = self.tokens[self.index]
        return token

    def peek(self, distance: int = 1) -> Token:
        """The token some places after the current one; past the end, the last."""
        return self.tokens[min(self.index + distance, len(self.tokens) - 1)]

    def accept(self, key: str) -> Token | None:
        """Steps over the current token if it is this one."""
        return self.advance() if self.token.key == key else None

    def expect(self, *keys: str) -> Token:
        """Steps over the current token, which must be one of these."""
        if self.token.key in keys:
            return self.advance()
        self.raise_unexpected(*keys)

    def close(self, key: str, *alternatives: str) -> Token:
        """Steps over a closing bracket; the alternatives are what could also have continued the inside."""
        if self.token.key == key:
            return self.advance()
        self.raise_unexpected(*alternatives, key)

    def integer(self) -> int:
        """A number of rows, triples or elements, small enough for 64 bits."""
        token = self.expect("integer")
        if len(token.text) > _LONGEST_INTEGER:
            self.fail("this number is too large", token)
        return int(token.text)

    def skip_to(self, offset: int) -> None:
        """Continues after a piece of text that was read as text, not as tokens."""
        while self.token.start < offset and self.token.key not in ("end", "error"):
            self.advance()

    def is_touching_next(self) -> bool:
        """Whether nothing stands between the current token and the one after it."""
        return self.token.end == self.peek().start

    def fail(self, message: str, at: Token | int | None = None, expected: tuple[str, ...] = ()) -> NoReturn:
        """Reports an error at a token or position, by default at the current token."""
        place = self.token if at is None else at
        if isinstance(place, Token):
            if place.key == "error":
                raise QueryError(place.text, self.text, place.start, expected)
            place = place.start
        raise QueryError(message, self.text, place, expected)

    def raise_unexpected(self, *keys: str, hint: str = "") -> NoReturn:
        """Reports that the current token cannot continue what was read so far."""
        expected = tuple(dict.fromkeys(describe_key(key) for key in keys))
        token = self.token
        if token.key == "|" and token.start and self.text[token.start - 1] == "{":
            self.fail(f"{{| … |}} {RDF_12}: write the triples about a triple as plain triples")
        if token.key == "end":
            self.fail("the query ends too early" + hint, token, expected)
        self.fail(f"{token.text} cannot stand here{hint or suggest_keyword(token, keys)}", token, expected)

    @contextmanager
    def enter_brackets(self) -> Iterator[None]:
        """Holds while the parser is inside a pair of brackets."""
        self.depth += 1
        if self.depth > self.deepest:
            self.fail(f"more than {self.deepest} brackets within brackets (the limit of {NESTING_VARIABLE})")
        yield
        self.depth -= 1


def describe_key(key: str) -> str:
    """A token's key in words."""
    return _KIND_NAMES.get(key, key)


def suggest_keyword(token: Token, candidates: tuple[str, ...]) -> str:
    """A hint for a word that resembles one of the keywords that could stand there, else nothing."""
    if not token.is_word:
        return ""
    words = [describe_key(candidate) for candidate in candidates if candidate[:1].isupper()]
    close = get_close_matches(token.key, words, n=1, cutoff=0.7)
    return f"; did you mean {close[0]}?" if close and close[0] != token.key else ""
