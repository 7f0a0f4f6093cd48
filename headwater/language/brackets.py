"""Where to point when brackets do not match.

A missing bracket shows late: the parser reads on as long as the text makes sense. A person looks at the bracket that
was opened and never closed, or, for a closing bracket too many, at the beginning of what it should have closed. This
module is called only after an error.
"""

from __future__ import annotations

from headwater.language.errors import QueryError
from headwater.language.lexer import SourceText, Token

_CLOSING = {"{": "}", "(": ")", "[": "]"}
_OPENING = {closing: opening for opening, closing in _CLOSING.items()}
_CLAUSE_WORDS = frozenset({"FILTER", "BIND", "HAVING", "SELECT", "DISTINCT", "BY", "VALUES", "WHERE", "ORDER", "GROUP"})
_SELECT_WORDS = frozenset({"SELECT", "DISTINCT"})
_OPERAND_ENDS = frozenset({"var", "iri", "pname", "string", "integer", "decimal", "double", "bnode", ")", "]", "}"})
_OPERAND_STARTS = frozenset({"var", "iri", "pname", "string", "integer", "decimal", "double", "bnode", "(", "[", "{"})
_FORMS = frozenset({"SELECT", "CONSTRUCT", "DESCRIBE", "ASK"})
_JOINING_WORDS = frozenset({"AS", "IN", "NOT", "UNION"})


def bracket_error(source: SourceText, before: int) -> QueryError | None:
    """The first bracket of the text that has no partner, if a person would look for it before this position."""
    tokens = source.tokens
    open_brackets: list[int] = []
    for index, token in enumerate(tokens):
        if token.key in _CLOSING:
            open_brackets.append(index)
        elif token.key in _OPENING:
            opening = _OPENING[token.key]
            if open_brackets and tokens[open_brackets[-1]].key == opening:
                open_brackets.pop()
            else:
                return _at(source, *_mismatch(source, open_brackets, index, before), before)
    if open_brackets and tokens[-1].key == "end":
        token = tokens[open_brackets[-1]]
        return _at(source, token, f"this {token.key} is never closed", before)
    return None


def _at(source: SourceText, token: Token, message: str, before: int) -> QueryError | None:
    return QueryError(message, source.text, token.start) if token.start < before else None


def _mismatch(source: SourceText, open_brackets: list[int], index: int, before: int) -> tuple[Token, str]:
    tokens = source.tokens
    closing = tokens[index]
    place = _place(source, closing)
    if open_brackets and (
        any(tokens[opened].key == _OPENING[closing.key] for opened in open_brackets)
        or (closing.key == "}" or tokens[open_brackets[-1]].key != "{")
    ):
        token = tokens[open_brackets[-1]]
        return token, f"this {token.key} is never closed: {closing.key} at {place} closes something else"
    begin = _beginning(tokens, open_brackets[-1] + 1 if open_brackets else 0, index, before)
    return tokens[begin], f"brackets do not match here: {closing.key} at {place} closes nothing"


def _place(source: SourceText, token: Token) -> str:
    error = QueryError("", source.text, token.start)
    return f"line {error.line}, column {error.column}"


def _beginning(tokens: list[Token], first: int, last: int, before: int) -> int:
    """Where the clause begins whose closing bracket at `last` has no partner."""
    if tokens[last].key == "}":
        return _group_closed_early(tokens, first, last, before)
    begin = first
    depth = 0
    projecting = False
    for index in range(first, last):
        token = tokens[index]
        if token.key in _OPENING:
            depth -= 1
        elif depth == 0:
            if token.key in _CLAUSE_WORDS:
                projecting = token.key in _SELECT_WORDS
            if index > first and _is_clause_start(tokens[index - 1], token, projecting):
                begin = index
        if token.key in _CLOSING:
            depth += 1
    return begin


def _is_clause_start(previous: Token, token: Token, projecting: bool) -> bool:
    if previous.key in (".", ";") or token.key in _CLAUSE_WORDS:
        return True
    if not projecting:
        return False
    if token.is_word:
        return token.key not in _JOINING_WORDS and previous.key in _OPERAND_ENDS
    call = token.key == "(" and previous.key in ("iri", "pname")
    return token.key in _OPERAND_STARTS and previous.key in _OPERAND_ENDS and not call


def _group_closed_early(tokens: list[Token], first: int, last: int, before: int) -> int:
    """The brace of the group after which the text made no sense, given that there is a closing brace too many.

    Either it was closed too early or a brace inside it was never opened. Where no group precedes, the brace that is
    missing is the one after the keyword of the query's form.
    """
    begin = opened = next((index for index in range(first, last) if tokens[index].key in _FORMS), last)
    depth = 0
    for index in range(first, last):
        if tokens[index].key == "{":
            if depth == 0:
                opened = index
            depth += 1
        elif tokens[index].key == "}":
            depth -= 1
            if depth == 0 and tokens[index].start < before:
                begin = opened
    return begin
