"""Rewrites expressions such that pyoxigraph computes the value that SPARQL defines, where it would not otherwise.

- pyoxigraph reorders the operands of `+`, but adds a duration only to the right of a time: `a - (-b)` means the same
  and keeps the order.
- pyoxigraph fails to divide zero by a decimal with digits after the point: if the division of zero by another number
  fails, the rewritten expression is zero. Floats and doubles do not fail.
- pyoxigraph calls a time without a zone and one with a zone different, also where they are so near that they cannot be
  compared. There `<` is an error, and the rewritten `=`, `!=`, IN and NOT IN are errors, too.

A rewritten expression has its operands more than once. Operands that would grow again by this, or that have another
value each time, are arguments of a function instead (`FUNCTIONS`).

>>> from headwater.algebra.build import plan_query
>>> from headwater.algebra.to_sparql import expression_to_sparql
>>> from headwater.language.parser import parse
>>> sum_of = plan_query(parse("SELECT (?a + ?b AS ?c) {}")).root.children[0].expression
>>> expression_to_sparql(rewrite_for_pyoxigraph(sum_of))
'(?a - (- ?b))'
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from pyoxigraph import QuerySolutions, Store

from headwater.algebra.nodes import ExistsPlan
from headwater.algebra.scope import map_expression, sub_expressions
from headwater.algebra.to_sparql import expression_to_sparql
from headwater.language.builtins import CAST_FUNCTIONS, is_volatile
from headwater.language.expressions import (
    Constant,
    Exists,
    Expression,
    FunctionCall,
    Operation,
    Timestamp,
    VariableReference,
    combine_chain,
)
from headwater.terms.checking.query_texts import check_generated_query
from headwater.terms.model import XSD, Literal, NamedNode, Term, Variable

_ZERO = Constant(Literal("0", datatype=NamedNode(XSD + "decimal")))
_ERROR = Operation("/", (_ZERO, _ZERO))
_FALSE = Constant(Literal("false", datatype=NamedNode(XSD + "boolean")))
_INSTANTS = tuple(NamedNode(XSD + name) for name in ("dateTime", "dateTimeStamp"))
_TIME_TYPES = (
    *_INSTANTS,
    *(NamedNode(XSD + name) for name in ("date", "time", "gYear", "gYearMonth", "gMonth", "gMonthDay", "gDay")),
)
"""The types whose values may have a time zone."""

_REPEATING_OPERATORS = frozenset({"/", "=", "!=", "IN", "NOT IN"})
_QUOTIENT = NamedNode("urn:headwater:quotient")
_MEMBER = NamedNode("urn:headwater:member")
_NOTHING = NamedNode("urn:headwater:error")
_ARGUMENT = NamedNode("urn:headwater:argument")
_EMPTY_STORE = Store()
_LEFT, _RIGHT = Variable("left"), Variable("right")
_OPERANDS = VariableReference(_LEFT), VariableReference(_RIGHT)


def rewrite_for_pyoxigraph(expression: Expression) -> Expression:
    """An equivalent expression that pyoxigraph computes correctly, given `FUNCTIONS`."""

    def change(part: Expression) -> Expression | None:
        match part:
            case Operation("+", (left, right)):
                return Operation(
                    "-", (rewrite_for_pyoxigraph(left), Operation("unary -", (rewrite_for_pyoxigraph(right),)))
                )
            case Operation("/", operands):
                left, right = map(rewrite_for_pyoxigraph, operands)
                return _divide(left, right) if all(map(_can_repeat, operands)) else _call(_QUOTIENT, left, right)
            case Operation("!=", operands) if _has_times(operands):
                return Operation("!", (rewrite_for_pyoxigraph(Operation("=", operands)),))
            case Operation("NOT IN", operands) if _has_times(operands):
                return Operation("!", (rewrite_for_pyoxigraph(Operation("IN", operands)),))
            case Operation("=" | "IN" as operator, operands) if _has_times(operands):
                value, *members = map(rewrite_for_pyoxigraph, operands)
                if not all(map(_can_repeat, operands)):
                    return _call(_MEMBER, value, *map(_error_as_value, members))
                equals = Operation(operator, (value, *members))
                return combine_chain(_or, [equals, *(_test_zones(value, one) for one in members if _may_be_time(one))])
        return None

    return map_expression(expression, change)


def _divide(left: Expression, right: Expression) -> Expression:
    is_zero = Operation("&&", (Operation("=", (left, _ZERO)), Operation("!=", (right, _ZERO))))
    return FunctionCall("COALESCE", (Operation("/", (left, right)), FunctionCall("IF", (is_zero, _ZERO, _ERROR))))


def _test_zones(left: Expression, right: Expression) -> Expression:
    """False; an error if both are times of one type that cannot be compared because one has no zone."""
    if isinstance(left, Constant):
        left, right = right, left
    type_of_left = FunctionCall("DATATYPE", (left,))
    is_one_type: Expression
    if isinstance(right, Constant) and isinstance(right.value, Literal):
        is_instant = right.value.datatype in _INSTANTS
        is_one_type = _is_one_of(type_of_left, _INSTANTS if is_instant else (right.value.datatype,))
    else:
        type_of_right = FunctionCall("DATATYPE", (right,))
        both_instants = Operation("&&", (_is_one_of(type_of_left, _INSTANTS), _is_one_of(type_of_right, _INSTANTS)))
        is_same = Operation("=", (type_of_left, type_of_right))
        is_one_type = Operation("&&", (_is_one_of(type_of_left, _TIME_TYPES), _or(is_same, both_instants)))
    test = FunctionCall("IF", (Operation("<", (left, right)), _FALSE, _FALSE))
    return FunctionCall("IF", (FunctionCall("COALESCE", (is_one_type, _FALSE)), test, _FALSE))


def _or(left: Expression, right: Expression) -> Expression:
    return Operation("||", (left, right))


def _is_one_of(value: Expression, choice: tuple[NamedNode, ...]) -> Expression:
    return Operation("IN", (value, *map(Constant, choice)))


def _has_times(operands: tuple[Expression, ...]) -> bool:
    """Whether the first operand and another one may be times."""
    return _may_be_time(operands[0]) and any(map(_may_be_time, operands[1:]))


def _may_be_time(expression: Expression) -> bool:
    match expression:
        case Constant(value):
            return isinstance(value, Literal) and value.datatype in _TIME_TYPES
        case Operation(operator, operands):
            return operator in ("+", "-") and _may_be_time(operands[0])
        case FunctionCall("IF" | "COALESCE", arguments):
            return any(map(_may_be_time, arguments))
        case FunctionCall(str() as name, _):
            return name in ("STRDT", "NOW")
        case FunctionCall(NamedNode() as name, _):
            return name in _TIME_TYPES or name.value not in CAST_FUNCTIONS
        case Exists() | ExistsPlan() | Timestamp():
            return False
    return True


def _can_repeat(expression: Expression) -> bool:
    """Whether an operand may stand in the rewritten expression several times."""
    for part in sub_expressions(expression):
        match part:
            case Exists() | ExistsPlan():
                return False
            case Operation(operator, _) if operator in _REPEATING_OPERATORS:
                return False
            case FunctionCall(name, _) if is_volatile(name):
                return False
    return True


def _call(function: NamedNode, *arguments: Expression) -> Expression:
    return FunctionCall(function, arguments)


def _error_as_value(member: Expression) -> Expression:
    """An error in a list is an error only if nothing else in it is equal; as an argument it would be one at once."""
    return member if isinstance(member, Constant) else FunctionCall("COALESCE", (member, Constant(_NOTHING)))


def _quotient(left: Term, right: Term) -> Term | None:
    return _compute("/", left, right)


def _is_member(value: Term, *members: Term) -> Term | None:
    outcomes = [None if one == _NOTHING else _compute("=", value, one) for one in members]
    true = next((one for one in outcomes if isinstance(one, Literal) and one.value == "true"), None)
    return true if true is not None or None in outcomes else _FALSE.value


@lru_cache(maxsize=4096)
def _compute(operator: str, left: Term, right: Term) -> Term | None:
    text = expression_to_sparql(rewrite_for_pyoxigraph(Operation(operator, _OPERANDS)))
    one, other = argument_texts(2)
    return compute_over_terms(f"BIND({one} AS ?left) BIND({other} AS ?right) BIND({text} AS ?value)", (left, right))


def argument_texts(count: int) -> list[str]:
    """How some arguments of `compute_over_terms` are written."""
    return [f"{_ARGUMENT}(?place{place})" for place in range(count)]


def compute_over_terms(pattern: str, arguments: Sequence[Term]) -> Term | None:
    """The value that a pattern binds to `?value`; None for an error.

    The arguments are values of a function, and no part of the text: whatever terms come from outside, pyoxigraph parses
    nothing of them. It is no constant to the planner either, which takes `=` of terms that it knows for sameTerm.
    """
    variables = " ".join(f"?place{place}" for place in range(len(arguments)))
    places = " ".join(map(str, range(len(arguments))))
    text = f"SELECT ?value {{ VALUES ({variables}) {{ ({places}) }} {pattern} }}"
    check_generated_query(text)
    solutions = _EMPTY_STORE.query(text, custom_functions={_ARGUMENT: lambda place: arguments[int(place.value)]})
    assert isinstance(solutions, QuerySolutions)
    (solution,) = solutions
    value: Term | None = solution["value"]
    return value


FUNCTIONS: dict[NamedNode, Callable[..., Term | None]] = {_QUOTIENT: _quotient, _MEMBER: _is_member}
"""The functions that rewritten expressions call."""
