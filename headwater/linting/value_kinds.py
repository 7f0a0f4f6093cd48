"""Kinds of values: only values of one kind can be equal, or less; functions and computations need some of them."""

from __future__ import annotations

from collections.abc import Mapping

from headwater.language.expressions import Constant, Expression, FunctionCall, Operation, VariableReference
from headwater.linting.ill_typed_literals import NUMERIC_TYPES
from headwater.terms.model import XSD, Literal, NamedNode, Term, Variable

NUMBER, TEXT, IRI = "a number", "a text", "an IRI"
TAGGED_TEXT = "a text with a language"
TIME = "a time"
COMPUTING = frozenset({"+", "-", "*", "/", "unary -", "unary +"})
COMPARING = frozenset({"=", "<", ">", "<=", ">="})
_TIMES = frozenset({"a value of dateTime", "a value of date", "a value of time"})
_TEXT_FUNCTIONS = frozenset({"STR", "LANG", "ENCODE_FOR_URI", "MD5", "SHA1", "SHA256", "SHA384", "SHA512"})
_NUMBER_FUNCTIONS = frozenset({"STRLEN", "ABS", "CEIL", "FLOOR", "ROUND", "YEAR", "MONTH", "DAY", "HOURS", "MINUTES"})

_OF_TEXTS = (
    "REGEX CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER REPLACE SUBSTR STRLEN UCASE LCASE ENCODE_FOR_URI CONCAT"
)
NEEDED_KINDS: Mapping[str, str] = {
    **dict.fromkeys(_OF_TEXTS.split(), TEXT),
    **dict.fromkeys(["ABS", "CEIL", "FLOOR", "ROUND"], NUMBER),
    **dict.fromkeys(["YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS", "TIMEZONE", "TZ"], TIME),
}
"""What functions need their first argument to be; CONCAT all of them."""


def kind_of(term: Term) -> str:
    """What a term is to those who compute and compare."""
    if not isinstance(term, Literal):
        return IRI if isinstance(term, NamedNode) else "a node without a name"
    if term.language:
        return TAGGED_TEXT
    datatype = term.datatype.value
    if datatype in NUMERIC_TYPES:
        return NUMBER
    return TEXT if datatype == XSD + "string" else f"a value of {datatype.rpartition('#')[2]}"


def can_be_argument(term: Term, needed: str) -> bool:
    """Whether a function that needs a kind of value can do with this one."""
    kind = kind_of(term)
    return kind == needed or (needed == TEXT and kind == TAGGED_TEXT) or (needed == TIME and kind in _TIMES)


def kinds_of_expression(
    expression: Expression, values: Mapping[Variable, frozenset[Term]]
) -> tuple[frozenset[str], Term | None]:
    """The kinds that an expression can have, with an example where there is one; no kind where they are unknown."""
    match expression:
        case Constant(value):
            return frozenset({kind_of(value)}), None
        case VariableReference(variable):
            found = values.get(variable, frozenset())
            return frozenset(map(kind_of, found)), min(found, key=str, default=None)
        case Operation("*" | "/" | "unary -" | "unary +"):
            return frozenset({NUMBER}), None
        case FunctionCall(str() as name) if name in _TEXT_FUNCTIONS:
            return frozenset({TEXT}), None
        case FunctionCall(str() as name) if name in _NUMBER_FUNCTIONS:
            return frozenset({NUMBER}), None
        case FunctionCall("IRI"):
            return frozenset({IRI}), None
    return frozenset(), None
