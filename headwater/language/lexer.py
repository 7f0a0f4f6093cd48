"""From query text to tokens.

The terminals are those of SPARQL 1.1 (section 19.8) with three additions met in the papers: the quotes
``` ``text`` ``` and `''text''`, variables with a hyphen where an AGGREGATE clause introduces them, and bare words,
which stand for keywords, units and names; which of these a word is, only the parser can tell. A sign is always a token
of its own; the parser joins it to a number that it touches.

A `Token` has a `key` to compare with: the upper-case text of a word, the symbol of an operator, or the lower-case
name of its kind (`iri`, `pname`, `var`, `string` …), so that `token.key == "SELECT"` and `token.key == "var"`
both read well and can never be confused.

>>> [token.key for token in tokenize("select ?x { ?x a 5 }").tokens]
['SELECT', 'var', '{', 'var', 'A', 'integer', '}', 'end']
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

RDF_12 = "is syntax of RDF 1.2, which queries do not support yet"
"""What is said about it."""

_BASE = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_START = _BASE + "_"
_MORE = "0-9\u00b7\u0300-\u036f\u203f-\u2040"
_CHARS = _START + _MORE + r"\-"
_PREFIX = rf"[{_BASE}](?:[{_CHARS}.]*[{_CHARS}])?"
_ESCAPED = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%]"
_LOCAL = rf"(?:[{_START}:0-9]|{_ESCAPED})(?:(?:[{_CHARS}.:]|{_ESCAPED})*(?:[{_CHARS}:]|{_ESCAPED}))?"

_TOKEN = re.compile(
    rf"""(?:[\x20\t\r\n\ufeff]++|\#[^\r\n]*)*+
    (?:
      (?P<var>[?$][{_START}0-9][{_START}{_MORE}]*)
    | (?P<iri><[^\x00-\x20<>"{{}}|^`\\]*>)
    | (?P<bnode>_:[{_START}0-9](?:[{_CHARS}.]*[{_CHARS}])?)
    | (?P<pname>(?:{_PREFIX})?:(?:{_LOCAL})?)
    | (?P<word>[{_START}][{_START}{_MORE}]*)
    | (?P<double>[0-9]+(?:\.[0-9]*)?[eE][+-]?[0-9]+|\.[0-9]+[eE][+-]?[0-9]+)
    | (?P<decimal>[0-9]*\.[0-9]+)
    | (?P<integer>[0-9]+)
    | (?P<string>\"\"\"(?:[^"\\]++|\\.|"(?!""))*+\"\"\"|\'\'\'(?:[^'\\]++|\\.|'(?!''))*+\'\'\'
        |(?!\"\"\"|\'\'\')(?:''[\w$][^'"\n(){{}}<>]*''|"(?:[^"\\\n\r]++|\\.)*+"|'(?:[^'\\\n\r]++|\\.)*+')
        |``[^`'\n]*(?:``|''))
    | (?P<langtag>@[A-Za-z]+(?:-[A-Za-z0-9]+)*)
    | (?P<op>\^\^|&&|\|\||!=|<=|>=|[{{}}()\[\],;.=<>+\-*/|^!?@])
    | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)
_KINDS = frozenset({*_TOKEN.groupindex, "error"})
_SYMBOLS = frozenset("{}()[],;.=<>+-*/|^!?@&")
_BLANKS = re.compile(r"(?:[\x20\t\r\n\ufeff]++|#[^\r\n]*)*+")
_HYPHENATED = re.compile(rf"\(\s*[?$]([{_START}0-9][{_START}{_MORE}]*(?:-[{_START}{_MORE}]+)+)\s*,")
_AGGREGATE = re.compile(r"\baggregate\b", re.IGNORECASE)
_CODEPOINT = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)


class Token:
    """A piece of the text: what it is, how it was written and where it stands (`start` to `end`)."""

    __slots__ = ("end", "key", "start", "text")

    def __init__(self, key: str, text: str, start: int, end: int) -> None:
        self.key = key
        self.text = text
        self.start = start
        self.end = end

    def __repr__(self) -> str:
        return f"Token({self.key!r}, {self.text!r}, {self.start})"

    @property
    def is_word(self) -> bool:
        """Whether it is a bare word: a keyword, a unit, a name, or a mistake."""
        return self.key not in _KINDS and self.key[0] not in _SYMBOLS


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text and its tokens, whose positions are positions in the text as it was written."""

    text: str
    tokens: list[Token]


def tokenize(written: str) -> SourceText:
    r"""All tokens, the last one with the key `end`; codepoint escapes (`\u00e9`) are characters in them already.

    Text that is no token yields one with the key `error`, whose text is the message, and ends the list. It is the
    parser's to report, because something before it may be wrong already.
    """
    if "\\" not in written:
        return SourceText(written, _split_tokens(written))
    text, starts, shifts = _without_codepoint_escapes(written)
    tokens = _split_tokens(text)
    if starts:
        for token in tokens:
            token.start += shifts[bisect_right(starts, token.start)]
            token.end += shifts[bisect_right(starts, token.end)]
    return SourceText(written, tokens)


def _split_tokens(text: str) -> list[Token]:
    """The tokens of a text without codepoint escapes; the last is `end` or `error`."""
    tokens: list[Token] = []
    append = tokens.append
    hyphenated = _hyphenated_variables(text)
    position = 0
    match_at = _TOKEN.match
    while True:
        match = match_at(text, position)
        if match is None:
            append(_make_error_token(text, position))
            return tokens
        kind = match.lastgroup
        assert kind is not None
        start, end = match.span(kind)
        if kind == "op":
            written = match[kind]
            append(Token(written, written, start, end))
        elif kind == "word":
            written = match[kind]
            append(Token(written.upper(), written, start, end))
        elif kind == "end":
            append(Token(kind, "", start, start))
            return tokens
        else:
            if kind == "var" and hyphenated is not None and (longer := hyphenated.match(text, start)):
                end = longer.end()
            append(Token(kind, text[start:end], start, end))
        position = end


def _hyphenated_variables(text: str) -> re.Pattern[str] | None:
    """Matches exactly the variables with a hyphen that AGGREGATE clauses of this text introduce (CS2)."""
    clause = _AGGREGATE.search(text)
    if clause is None:
        return None
    names = sorted({match[1] for match in _HYPHENATED.finditer(text, clause.end())}, key=len, reverse=True)
    if not names:
        return None
    return re.compile(rf"[?$](?:{'|'.join(re.escape(name) for name in names)})(?![{_START}{_MORE}])")


def _without_codepoint_escapes(written: str) -> tuple[str, list[int], list[int]]:
    r"""Replaces `\uXXXX` and `\UXXXXXXXX` everywhere (SPARQL 1.1, section 19.2), `\\` standing for itself.

    A position of the new text that has n of the returned positions before or at it lies `shifts[n]` characters further
    on in the text as written.
    """
    pieces: list[str] = []
    starts: list[int] = []
    shifts = [0]
    done = length = 0
    for match in _CODEPOINT.finditer(written):
        digits = match[1] or match[2]
        if digits is None:
            continue
        code = int(digits, 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            continue
        pieces += [written[done : match.start()], chr(code)]
        length += match.start() - done + 1
        done = match.end()
        starts.append(length)
        shifts.append(shifts[-1] + match.end() - match.start() - 1)
    return "".join(pieces) + written[done:], starts, shifts


def _make_error_token(text: str, position: int) -> Token:
    blanks = _BLANKS.match(text, position)
    start = blanks.end() if blanks else position
    return Token("error", _explain_error(text, start), start, len(text))


def _explain_error(text: str, start: int) -> str:
    """Why no token begins here."""
    character = text[start]
    if character in "\"'`":
        long = text.startswith(character * 3, start) and character != "`"
        return f"this string is never closed: {character * 3 if long else character} is missing"
    if character == "$" and text.startswith("${", start):
        return "this looks like a placeholder that was never filled in"
    if character in "?$":
        return "a variable needs a name"
    if character == "\\":
        return "a backslash cannot stand here"
    if character == "&":
        return "a single & means nothing; did you mean && ?"
    if character == "~":
        return f"~ {RDF_12}"
    if character.isprintable() and not character.isspace():
        return f"the character {character} cannot stand here"
    return f"the character U+{ord(character):04X} cannot stand here"
