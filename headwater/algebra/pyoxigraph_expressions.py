"""Expressions in words to which pyoxigraph gives the value that SPARQL defines, where by itself it would not.

- It sorts the operands of `+` as it likes, but knows a time plus a duration in this order only: `a - (-b)` means the
  same and keeps the order.
- Zero divided by a decimal with digits after the point is an error to it. Here an error of a division of zero by
  another number is zero; between floats and doubles there is no such error.

>>> from headwater.algebra import plan_query
>>> from headwater.algebra.to_sparql import expression_text
>>> from headwater.language import parse
>>> sum_of = plan_query(parse("SELECT (?a + ?b AS ?c) {}")).root.children[0].expression
>>> expression_text(in_engine_words(sum_of))
'(?a - (- ?b))'
"""

from __future__ import annotations

from headwater.algebra.scope import map_expression
from headwater.language.expressions import Constant, Expression, FunctionCall, Operation
from headwater.terms.model import XSD, Literal, NamedNode

_ZERO = Constant(Literal("0", datatype=NamedNode(XSD + "decimal")))
_ERROR = Operation("/", (_ZERO, _ZERO))


def in_engine_words(expression: Expression) -> Expression:
    """The same expression, for the engine."""

    def change(part: Expression) -> Expression | None:
        match part:
            case Operation("+", (left, right)):
                return Operation("-", (in_engine_words(left), Operation("unary -", (in_engine_words(right),))))
            case Operation("/", (left, right)):
                left, right = in_engine_words(left), in_engine_words(right)
                quotient = Operation("/", (left, right))
                is_zero = Operation("&&", (Operation("=", (left, _ZERO)), Operation("!=", (right, _ZERO))))
                return FunctionCall("COALESCE", (quotient, FunctionCall("IF", (is_zero, _ZERO, _ERROR))))
        return None

    return map_expression(expression, change)
