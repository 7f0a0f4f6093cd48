"""Refuses text that is nested too deeply, before a parser sees it.

The parsers of pyoxigraph, and those of queries, descend once for each bracket or triple term. So a text of some hundred
kilobytes can use up the stack, which ends the process and cannot be caught. Here brackets are counted without
recursion. Most texts have too few brackets to be deep at all, and one search shows it; the others are read once, by
compiled code, which knows strings, comments and IRIs and counts what is open outside of them.

Brackets `( [ {` count together, and `<<` counts by itself, so 64 triple terms `<<( … )>>` are 64 levels.

>>> check_nesting(b"<a:s> <a:p> ((((1)))) .", Syntax.TURTLE, limit=4)
>>> check_nesting(b"<a:s> <a:p> (((((1))))) .", Syntax.TURTLE, limit=4)
Traceback (most recent call last):
...
headwater.terms.checking.nesting.TooDeep: nested deeper than 4 levels (the limit of HEADWATER_DEEPEST_NESTING)
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from headwater.terms.checking.input_limits import NESTING_VARIABLE, deepest_nesting
from headwater.terms.compiled_code import compiled


class Syntax(IntEnum):
    """Where strings, comments and brackets of a text are."""

    LINES = 0
    """N-Triples and N-Quads: nothing goes on behind the end of a line."""
    TURTLE = 1
    """Turtle, TriG and N3."""
    JSON = 2
    RDF_XML = 3
    """Elements count, in a document with many `rdf:parseType`: no other has triple terms within triple terms."""
    XML_RESULTS = 4
    """Elements count, in a result with many elements `triple`."""


class TooDeep(SyntaxError):
    """A text that is nested too deeply; for its readers one more mistake of syntax."""


_OPENERS: dict[Syntax, tuple[bytes, ...]] = {
    Syntax.LINES: (b"<<",),
    Syntax.TURTLE: (b"(", b"[", b"{", b"<<"),
    Syntax.JSON: (b"[", b"{"),
    Syntax.RDF_XML: (b"parseType",),
    Syntax.XML_RESULTS: (b"triple",),
}


_LONGEST_OPENER = max(len(opener) for openers in _OPENERS.values() for opener in openers)


def check_nesting(text: bytes, syntax: Syntax, limit: int | None = None) -> None:
    """Raise `TooDeep` if a whole text is nested deeper than the limit."""
    if any(opener in text for opener in _OPENERS[syntax]):
        NestingCheck(syntax, limit).add(text)


def too_deep(limit: int) -> TooDeep:
    """The error for a text that is nested deeper than a limit."""
    return TooDeep(f"nested deeper than {limit:,} levels (the limit of {NESTING_VARIABLE})")


class NestingCheck:
    """Checks a text that comes in pieces. `add` raises before the piece that is too deep goes to a parser."""

    def __init__(self, syntax: Syntax, limit: int | None = None) -> None:
        self.limit = deepest_nesting() if limit is None else limit
        self._syntax = syntax
        self._openers = 0
        self._unread: list[bytes] = []
        self._unread_bytes = 0
        self._tail = b""
        self._state: npt.NDArray[np.int64] | None = None

    def add(self, piece: bytes) -> None:
        """Check the next piece of the text."""
        self._count_openers(piece)
        if self._state is None:
            self._unread.append(piece)
            self._unread_bytes += len(piece)
            # The first piece may be the whole text, and is not read before it is known that there is another one.
            if self._openers <= self.limit and (self._unread_bytes <= _MOST_UNREAD or len(self._unread) == 1):
                return
            self._state = np.zeros(_STATE_SIZE, dtype=np.int64)
        pieces, self._unread = self._unread or [piece], []
        for one in pieces:
            self._scan(np.frombuffer(one, dtype=np.uint8))

    def _count_openers(self, piece: bytes) -> None:
        """Count what looks like an opener, in strings, too; one may stand across two pieces."""
        for opener in _OPENERS[self._syntax]:
            self._openers += piece.count(opener)
            if len(opener) > 1 and self._tail:
                self._openers += (self._tail[1 - len(opener) :] + piece[: len(opener) - 1]).count(opener)
        self._tail = (self._tail + piece[-_LONGEST_OPENER:])[-_LONGEST_OPENER:]

    def _scan(self, content: npt.NDArray[np.uint8]) -> None:
        if self._syntax in (Syntax.RDF_XML, Syntax.XML_RESULTS):
            # A triple term takes two elements, and the document around it a few.
            deepest = _scan_xml(content, self._state)
            is_deep = self._openers > self.limit and deepest > 2 * self.limit + 6
        else:
            is_deep = _scan_brackets(content, int(self._syntax), self.limit, self._state)
        if is_deep:
            raise too_deep(self.limit)


_MOST_UNREAD = 1 << 20
"""How many bytes of pieces with few openers are kept; longer texts are read as they come."""
_STATE_SIZE = 5
_MODE, _BRACKETS, _TERMS, _QUOTE, _IN_IRI = range(_STATE_SIZE)
"""What a state holds: the mode, how many brackets and `<<` are open, the quote of a string, brackets in an IRI."""

_PLAIN, _IRI, _STRING, _LONG_STRING, _COMMENT = 0, 1, 2, 3, 4
_ONE_QUOTE, _TWO_QUOTES, _END_QUOTE, _END_QUOTES = 5, 6, 7, 8
_ESCAPE, _STRING_ESCAPE, _LONG_ESCAPE = 9, 10, 11
_LESS, _GREATER = 12, 13

_LINES, _JSON = int(Syntax.LINES), int(Syntax.JSON)
_DOUBLE, _SINGLE, _BACKSLASH, _LESS_SIGN, _GREATER_SIGN, _HASH = (ord(c) for c in "\"'\\<>#")
_LINE_FEED, _RETURN, _EQUALS, _MINUS = ord("\n"), ord("\r"), ord("="), ord("-")


def _table(characters: str, *ranges: range) -> npt.NDArray[np.bool_]:
    """For each byte whether it is one of some characters, or in one of some ranges."""
    table = np.zeros(256, dtype=np.bool_)
    table[[*map(ord, characters), *(byte for one in ranges for byte in one)]] = True
    return table


_IS_OPEN = _table("([{")
_IS_CLOSE = _table(")]}")
_PLAIN_STOPS = _table("([{)]}\"'<>#\\\n")
_JSON_STOPS = _table('[{]}"')
_STRING_STOPS = _table("\"'\\\r\n")
_IRI_STOPS = _table('([{<>"|}^`\\', range(0x21))
"""Bytes that need a look: where brackets, strings and comments can begin or end, and what cannot stand in an IRI."""


@compiled(nogil=True)
def _scan_brackets(text, syntax, limit, state):  # type: ignore[no-untyped-def]
    """Whether a piece of text opens more than `limit` brackets or triple terms at a time; goes on from a state.

    Where a parser reports an error, it does not matter what is counted behind it. So an unfinished short string ends
    with its line, and an IRI with the first byte that cannot stand in one.
    """
    mode, brackets, terms, quote, in_iri = state[_MODE], state[_BRACKETS], state[_TERMS], state[_QUOTE], state[_IN_IRI]
    plain_stops = _JSON_STOPS if syntax == _JSON else _PLAIN_STOPS
    i = 0
    end = text.shape[0]
    while i < end:
        byte = text[i]
        if mode == _PLAIN:
            while not plain_stops[byte]:
                i += 1
                if i == end:
                    break
                byte = text[i]
            if i == end:
                break
            i += 1
            if byte == _DOUBLE or (byte == _SINGLE and syntax != _LINES and syntax != _JSON):
                quote = byte
                mode = _STRING if syntax in (_LINES, _JSON) else _ONE_QUOTE
            elif _IS_OPEN[byte]:
                # In lines no bracket has a meaning but that of a triple term, which `<<` counts.
                brackets += syntax != _LINES
                if brackets > limit:
                    return True
            elif _IS_CLOSE[byte]:
                brackets -= brackets > 0
            elif syntax == _JSON:
                continue
            elif byte == _LESS_SIGN:
                mode = _LESS
            elif byte == _GREATER_SIGN:
                mode = _GREATER
            elif byte == _HASH:
                mode = _COMMENT
            elif byte == _BACKSLASH:
                mode = _ESCAPE
            elif byte == _LINE_FEED and syntax == _LINES:
                brackets, terms = 0, 0
        elif mode == _LESS:
            if byte == _LESS_SIGN:
                terms += 1
                if terms > limit:
                    return True
                mode = _PLAIN
                i += 1
            else:
                # `<=` and `<-` are words of N3.
                mode = _PLAIN if byte in (_EQUALS, _MINUS) else _IRI
                in_iri = 0
        elif mode == _GREATER:
            mode = _PLAIN
            if byte == _GREATER_SIGN:
                terms -= terms > 0
                i += 1
        elif mode == _IRI:
            if byte == _GREATER_SIGN:
                mode = _PLAIN
                i += 1
            elif byte == _BACKSLASH:
                i += 1
            elif _IRI_STOPS[byte] and not _IS_OPEN[byte]:
                # No IRI: what seemed to stand in it counts.
                brackets += in_iri
                if brackets > limit:
                    return True
                mode = _PLAIN
            else:
                in_iri += _IS_OPEN[byte]
                i += 1
                while i < end and not _IRI_STOPS[text[i]]:
                    i += 1
        elif mode == _STRING:
            while not _STRING_STOPS[byte]:
                i += 1
                if i == end:
                    break
                byte = text[i]
            if i == end:
                break
            i += 1
            if byte == quote:
                mode = _PLAIN
            elif byte == _BACKSLASH:
                mode = _STRING_ESCAPE
            elif byte in (_LINE_FEED, _RETURN):
                mode = _PLAIN
                if byte == _LINE_FEED and syntax == _LINES:
                    brackets, terms = 0, 0
        elif mode == _LONG_STRING:
            i += 1
            if byte == quote:
                mode = _END_QUOTE
            elif byte == _BACKSLASH:
                mode = _LONG_ESCAPE
        elif mode == _COMMENT:
            if byte in (_LINE_FEED, _RETURN):
                mode = _PLAIN
            else:
                i += 1
        elif mode == _ONE_QUOTE:
            mode = _STRING
            if byte == quote:
                mode = _TWO_QUOTES
                i += 1
        elif mode == _TWO_QUOTES:
            mode = _PLAIN
            if byte == quote:
                mode = _LONG_STRING
                i += 1
        elif mode == _END_QUOTE:
            mode = _LONG_STRING
            if byte == quote:
                mode = _END_QUOTES
                i += 1
        elif mode == _END_QUOTES:
            mode = _LONG_STRING
            if byte == quote:
                mode = _PLAIN
                i += 1
        elif mode == _ESCAPE:
            mode = _PLAIN
            i += 1
        elif mode == _STRING_ESCAPE:
            mode = _STRING
            i += byte != _LINE_FEED
        else:
            mode = _LONG_STRING
            i += 1
    state[_MODE], state[_BRACKETS], state[_TERMS], state[_QUOTE], state[_IN_IRI] = mode, brackets, terms, quote, in_iri
    return False


_TEXT, _OPENED, _TAG, _VALUE, _END_TAG, _EMPTY, _BANG, _DASH, _SKIPPED, _SKIPPED_END, _SKIPPED_ENDS = range(11)
_SLASH, _BANG_SIGN, _QUESTION, _SQUARE, _SQUARE_END = (ord(c) for c in "/!?[]")


@compiled(nogil=True)
def _scan_xml(text, state):  # type: ignore[no-untyped-def]
    """How many elements within elements a piece of XML has at most; goes on from a state.

    What stands in comments (which end with `-->`), CDATA sections (`]]>`) and instructions (`?>`) is skipped; `quote`
    is then the byte before the `>` that ends them.
    """
    mode, depth, quote = state[_MODE], state[_BRACKETS], state[_QUOTE]
    deepest = depth
    for i in range(text.shape[0]):
        byte = text[i]
        if mode == _TEXT:
            if byte == _LESS_SIGN:
                mode = _OPENED
        elif mode == _OPENED:
            if byte == _SLASH:
                depth -= depth > 0
                mode = _END_TAG
            elif byte == _BANG_SIGN:
                mode = _BANG
            elif byte == _QUESTION:
                mode, quote = _SKIPPED, _QUESTION
            else:
                depth += 1
                deepest = max(deepest, depth)
                mode = _TAG
        elif mode in (_TAG, _EMPTY):
            if byte == _GREATER_SIGN:
                depth -= mode == _EMPTY and depth > 0
                mode = _TEXT
            elif byte == _SLASH:
                mode = _EMPTY
            elif byte in (_DOUBLE, _SINGLE):
                mode, quote = _VALUE, int(byte)
            else:
                mode = _TAG
        elif mode == _VALUE:
            if byte == quote:
                mode = _TAG
        elif mode == _END_TAG:
            if byte == _GREATER_SIGN:
                mode = _TEXT
        elif mode == _BANG:
            if byte == _MINUS:
                mode = _DASH
            elif byte == _SQUARE:
                mode, quote = _SKIPPED, _SQUARE_END
            else:
                mode = _END_TAG
        elif mode == _DASH:
            mode, quote = _SKIPPED, _MINUS
        elif mode == _SKIPPED:
            if byte == quote:
                mode = _SKIPPED_ENDS if quote == _QUESTION else _SKIPPED_END
        elif mode == _SKIPPED_END:
            mode = _SKIPPED_ENDS if byte == quote else _SKIPPED
        elif byte == _GREATER_SIGN:
            mode = _TEXT
        elif byte != quote:
            mode = _SKIPPED
    state[_MODE], state[_BRACKETS], state[_QUOTE] = mode, depth, quote
    return deepest
