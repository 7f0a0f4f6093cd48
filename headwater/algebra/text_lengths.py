"""How long a text can be that an expression computes: an upper bound, from the lengths of its variables.

    CONCAT(?x, ?x)                       2 · |x|
    REPLACE(?x, "a", "bcd")              4 · |x| + 3

CONCAT and REPLACE are the functions whose chains grow without bound; the others add little to what they are given.
"""

from __future__ import annotations

from collections.abc import Mapping

from headwater.algebra.scope import sub_expressions
from headwater.language.expressions import Constant, Expression, FunctionCall, Operation, VariableReference
from headwater.terms.model import Literal, NamedNode, Triple, Variable

GROWING_FUNCTIONS = frozenset({"CONCAT", "REPLACE"})
_SHORT = 128
"""No number, date, hash or identifier is longer."""
_LARGEST_FACTOR = 12
"""A character becomes at most so many: one of four bytes, percent-encoded."""


def can_grow(expression: Expression) -> bool:
    """Whether an expression calls a function whose result can be much longer than its arguments."""
    return any(
        isinstance(part, FunctionCall) and part.name in GROWING_FUNCTIONS for part in sub_expressions(expression)
    )


def longest_text(expression: Expression, lengths: Mapping[Variable, int]) -> int:
    """The most characters of a value of an expression, or of a value on the way to it."""
    match expression:
        case Constant(value):
            return text_length(value)
        case VariableReference(variable):
            return lengths.get(variable, 0)
        case FunctionCall("REPLACE", (text, pattern, replacement, *_)):
            whole, inserted = longest_text(text, lengths), longest_text(replacement, lengths)
            # Each of at most `whole + 1` matches is replaced; a `$1` stands for a part of its match.
            return max((whole + 1) * inserted + whole * (inserted // 2 + 1), longest_text(pattern, lengths))
        case FunctionCall(_, arguments):
            total = sum(longest_text(one, lengths) for one in arguments)
            return total if expression.name == "CONCAT" else _SHORT + _LARGEST_FACTOR * total
        case Operation(_, operands):
            return _SHORT + sum(longest_text(one, lengths) for one in operands)
    return _SHORT


def text_length(term: object) -> int:
    """The characters of a term."""
    match term:
        case Literal(value=value) | NamedNode(value=value):
            return len(value)
        case Triple():
            return sum(map(text_length, (term.subject, term.predicate, term.object)))
    return 0 if term is None else _SHORT
