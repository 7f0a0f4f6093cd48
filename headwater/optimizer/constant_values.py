"""The value of an expression without variables, by the engine that defines what expressions mean.

>>> from headwater.language import parse
>>> from headwater.algebra import plan_query
>>> extend = plan_query(parse("SELECT (1 + 2 * 3 AS ?x) {}")).root.children[0]
>>> constant_value(extend.expression).value
'7'
"""

from __future__ import annotations

from functools import lru_cache

from pyoxigraph import QuerySolutions, Store

from headwater.algebra.nodes import ExistsPlan
from headwater.algebra.pyoxigraph_expressions import in_engine_words
from headwater.algebra.scope import sub_expressions
from headwater.algebra.to_sparql import expression_text
from headwater.language.builtins import ARGUMENT_COUNTS
from headwater.language.expressions import Aggregate, Constant, Expression, FunctionCall, Operation, VariableReference
from headwater.optimizer.dependencies import is_steady
from headwater.terms.model import XSD, Literal, NamedNode
from headwater.terms.stored_forms import is_kept

TRUE = Constant(Literal("true", datatype=NamedNode(XSD + "boolean")))
FALSE = Constant(Literal("false", datatype=NamedNode(XSD + "boolean")))

_BOUND_TO_THE_QUERY = frozenset({"IRI", "URI", "BOUND"})
"""IRI() resolves against the query's base, BOUND() is about a variable."""


def is_constant(expression: Expression) -> bool:
    """Whether an expression has one value, or is one error, for all solutions of all ticks."""
    return is_steady(expression) and all(_may_be_asked(part) for part in sub_expressions(expression))


def _may_be_asked(part: Expression) -> bool:
    match part:
        case VariableReference() | ExistsPlan() | Aggregate():
            return False
        case Constant(Literal() as literal):
            # A store would change it, so that the value might be that of another term.
            return is_kept(literal)
        case FunctionCall(str() as name, _):
            return name in ARGUMENT_COUNTS and name not in _BOUND_TO_THE_QUERY
    return True


def constant_value(expression: Expression) -> NamedNode | Literal | None:
    """The term that a constant expression gives; None for an error and for what cannot be written as a constant."""
    value = _asked(expression)
    if isinstance(value, Literal):
        return value if is_kept(value) else None
    return value if isinstance(value, NamedNode) else None


def truth(expression: Expression) -> bool | None:
    """The effective boolean value of a constant expression; None for an error."""
    value = _asked(Operation("!", (expression,)))
    return value.value == "false" if isinstance(value, Literal) else None


@lru_cache(maxsize=4096)
def _asked(expression: Expression) -> object:
    found = Store().query(f"SELECT ({expression_text(in_engine_words(expression))} AS ?value) WHERE {{}}")
    assert isinstance(found, QuerySolutions)
    (solution,) = found
    return solution["value"]
