"""Rewrites expressions such that pyoxigraph computes the value that SPARQL defines, where it would not otherwise.

- pyoxigraph reorders the operands of `+`, but adds a duration only to the right of a time: `a - (-b)` means the same
  and keeps the order.
- pyoxigraph fails to divide zero by a decimal with digits after the point: if the division of zero by another number
  fails, the rewritten expression is zero. Floats and doubles do not fail.

>>> from headwater.algebra.build import plan_query
>>> from headwater.algebra.to_sparql import expression_to_sparql
>>> from headwater.language.parser import parse
>>> sum_of = plan_query(parse("SELECT (?a + ?b AS ?c) {}")).root.children[0].expression
>>> expression_to_sparql(rewrite_for_pyoxigraph(sum_of))
'(?a - (- ?b))'
"""

from __future__ import annotations

from headwater.algebra.scope import map_expression
from headwater.language.expressions import Constant, Expression, FunctionCall, Operation
from headwater.terms.model import XSD, Literal, NamedNode

_ZERO = Constant(Literal("0", datatype=NamedNode(XSD + "decimal")))
_ERROR = Operation("/", (_ZERO, _ZERO))


def rewrite_for_pyoxigraph(expression: Expression) -> Expression:
    """An equivalent expression that pyoxigraph computes correctly."""

    def change(part: Expression) -> Expression | None:
        match part:
            case Operation("+", (left, right)):
                return Operation(
                    "-", (rewrite_for_pyoxigraph(left), Operation("unary -", (rewrite_for_pyoxigraph(right),)))
                )
            case Operation("/", (left, right)):
                left, right = rewrite_for_pyoxigraph(left), rewrite_for_pyoxigraph(right)
                quotient = Operation("/", (left, right))
                is_zero = Operation("&&", (Operation("=", (left, _ZERO)), Operation("!=", (right, _ZERO))))
                return FunctionCall("COALESCE", (quotient, FunctionCall("IF", (is_zero, _ZERO, _ERROR))))
        return None

    return map_expression(expression, change)
