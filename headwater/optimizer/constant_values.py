"""The value of a constant expression, computed by pyoxigraph, which defines what expressions mean.

>>> from headwater.language.parser import parse
>>> from headwater.algebra.build import plan_query
>>> extend = plan_query(parse("SELECT (1 + 2 * 3 AS ?x) {}")).root.children[0]
>>> constant_value(extend.expression).value
'7'
"""

from __future__ import annotations

from functools import lru_cache

from pyoxigraph import QuerySolutions, Store

from headwater.algebra.nodes import ExistsPlan
from headwater.algebra.plan_depth import check_text_of_plan
from headwater.algebra.pyoxigraph_expressions import FUNCTIONS, rewrite_for_pyoxigraph
from headwater.algebra.scope import sub_expressions
from headwater.algebra.text_lengths import can_grow, longest_text
from headwater.algebra.to_sparql import expression_to_sparql
from headwater.language.builtins import ARGUMENT_COUNTS, CAST_FUNCTIONS
from headwater.language.expressions import Aggregate, Constant, Expression, FunctionCall, Operation, VariableReference
from headwater.optimizer.dependencies import is_deterministic
from headwater.terms.model import XSD, Literal, NamedNode
from headwater.terms.stored_forms import is_kept

TRUE = Constant(Literal("true", datatype=NamedNode(XSD + "boolean")))
FALSE = Constant(Literal("false", datatype=NamedNode(XSD + "boolean")))

_CONTEXT_FUNCTIONS = frozenset({"IRI", "URI", "BOUND"})
"""IRI() resolves against the query's base, BOUND() is about a variable."""


_LONGEST_CONSTANT = 1 << 20
"""What may have a longer value is not evaluated here: the query that evaluates it has a limit."""


def is_constant(expression: Expression) -> bool:
    """Whether an expression has one value, or is one error, for all solutions of all ticks, and no very long one."""
    if not is_deterministic(expression) or not all(_can_evaluate(part) for part in sub_expressions(expression)):
        return False
    return not can_grow(expression) or longest_text(expression, {}) <= _LONGEST_CONSTANT


def _can_evaluate(part: Expression) -> bool:
    match part:
        case VariableReference() | ExistsPlan() | Aggregate():
            return False
        case Constant(Literal() as literal):
            # pyoxigraph would normalise it and compute with another term.
            return is_kept(literal)
        case FunctionCall(str() as name, _):
            return name in ARGUMENT_COUNTS and name not in _CONTEXT_FUNCTIONS
        case FunctionCall(NamedNode() as name, _):
            return name.value in CAST_FUNCTIONS
    return True


def constant_value(expression: Expression) -> NamedNode | Literal | None:
    """The term that a constant expression gives; None for an error and for what cannot be written as a constant."""
    value = _evaluate(expression)
    if isinstance(value, Literal):
        return value if is_kept(value) else None
    return value if isinstance(value, NamedNode) else None


def effective_boolean_value(expression: Expression) -> bool | None:
    """The effective boolean value of a constant expression; None for an error."""
    value = _evaluate(Operation("!", (expression,)))
    return value.value == "false" if isinstance(value, Literal) else None


@lru_cache(maxsize=4096)
def _evaluate(expression: Expression) -> object:
    text = check_text_of_plan(expression_to_sparql(rewrite_for_pyoxigraph(expression)))
    solutions = Store().query(f"SELECT ({text} AS ?value) WHERE {{}}", custom_functions=FUNCTIONS)
    assert isinstance(solutions, QuerySolutions)
    (solution,) = solutions
    return solution["value"]
