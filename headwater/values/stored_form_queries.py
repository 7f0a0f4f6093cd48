"""Queries over a store that holds some literals in a form of their own (see `headwater.terms.stored_forms`).

Where SPARQL looks at the *term*, the stored form does as well as the original: matching, joins, DISTINCT, grouping,
sameTerm, and STR, because the text is kept. Where it looks at the *value* (comparison, arithmetic, order, casts) the
original is asked for by a function of ours:

    FILTER(?v > 5)    →    FILTER(<urn:headwater:exact:value>(?v) > 5)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar, cast

from headwater.algebra.nodes import Bgp, ExistsPlan, Extend, Group, Node, PathMatch, Service, Values
from headwater.algebra.pyoxigraph_expressions import FUNCTIONS as REWRITTEN_FUNCTIONS
from headwater.algebra.scope import expressions_of, map_expressions, nodes_of, sub_expressions
from headwater.language.expressions import Aggregate, Constant, Expression, FunctionCall, Operation, VariableReference
from headwater.language.patterns import TriplePattern
from headwater.terms.model import Literal, NamedNode, Term, Triple
from headwater.terms.stored_forms import EXACT, is_kept, restore_term, to_stored_term
from headwater.values.order_texts import ORDER, write_order

_VALUE = NamedNode(EXACT + "value")
_DATATYPE = NamedNode(EXACT + "datatype")
_OF_TERMS = frozenset({"SAMETERM", "BOUND", "STR", "LANG", "ISIRI", "ISURI", "ISBLANK", "ISLITERAL"})
"""Functions for which the stored form is as good as the original."""

Anything = TypeVar("Anything")


def _datatype(term: Term) -> Term | None:
    term = restore_term(term)
    return term.datatype if isinstance(term, Literal) else None


FUNCTIONS: dict[NamedNode, Callable[..., Term | None]] = {
    **REWRITTEN_FUNCTIONS,
    _VALUE: restore_term,
    _DATATYPE: _datatype,
    ORDER: write_order,
}
"""What a store has to be given to evaluate such queries."""


def has_inexact_literals(plan: Node) -> bool:
    """Whether the query itself writes a literal that the store would change."""

    def inexact(part: object) -> bool:
        return isinstance(part, Literal) and not is_kept(part)

    for node in nodes_of(plan):
        match node:
            case Bgp(triples):
                is_inexact = any(inexact(t.object) for t in triples)
            case PathMatch(subject, _, object_):
                is_inexact = inexact(subject) or inexact(object_)
            case Values(_, rows):
                is_inexact = any(inexact(cell) for row in rows for cell in row)
            case _:
                parts = (part for e in expressions_of(node) for part in sub_expressions(e))
                is_inexact = any(isinstance(part, Constant) and inexact(part.value) for part in parts)
        if is_inexact:
            return True
    return False


def read_originals(plan: Node) -> Node:
    """The plan with its constants in their stored form and its expressions reading originals where values count."""
    match plan:
        case Service():
            # Its text goes to another engine, which knows the originals.
            return plan
        case Bgp(triples):
            return Bgp(tuple(TriplePattern(t.subject, t.predicate, _to_stored(t.object)) for t in triples))
        case PathMatch(subject, path, object_):
            return PathMatch(_to_stored(subject), path, _to_stored(object_))
        case Values(variables, rows):
            return Values(variables, tuple(tuple(_to_stored(cell) for cell in row) for row in rows))
    renewed = plan.with_children(*(read_originals(child) for child in plan.children))
    match renewed:
        case Extend(inner, variable, expression):
            return Extend(inner, variable, _as_term(expression))
        case Group(inner, keys, aggregates):
            return Group(
                inner,
                tuple((v, None if e is None else _as_term(e)) for v, e in keys),
                tuple((v, _as_aggregate(a)) for v, a in aggregates),
            )
    return map_expressions(renewed, _as_value)


def _to_stored(term: Anything) -> Anything:
    return cast(Anything, to_stored_term(term)) if isinstance(term, Literal | Triple) else term


def _as_term(expression: Expression) -> Expression:
    """An expression of which the term counts, not the value alone."""
    match expression:
        case VariableReference():
            return expression
        case Constant(value):
            return Constant(_to_stored(value))
        case FunctionCall("IF", (condition, then, otherwise)):
            return replace(expression, arguments=(_as_value(condition), _as_term(then), _as_term(otherwise)))
        case FunctionCall("COALESCE", arguments):
            return replace(expression, arguments=tuple(map(_as_term, arguments)))
    return _as_value(expression)


def _as_value(expression: Expression) -> Expression:
    """An expression of which only the value counts."""
    match expression:
        case VariableReference():
            return FunctionCall(_VALUE, (expression,))
        case FunctionCall("DATATYPE", (argument,)):
            return FunctionCall(_DATATYPE, (_as_term(argument),))
        case FunctionCall(name, arguments):
            inside = _as_term if name in _OF_TERMS else _as_value
            return replace(expression, arguments=tuple(map(inside, arguments)))
        case Operation(_, operands):
            return replace(expression, operands=tuple(map(_as_value, operands)))
        case ExistsPlan(plan, _):
            return replace(expression, plan=read_originals(plan))
    return expression


def _as_aggregate(aggregate: Aggregate) -> Aggregate:
    # The functions that evaluate aggregates (see `aggregate_calls`) find the originals themselves.
    return aggregate if aggregate.argument is None else replace(aggregate, argument=_as_term(aggregate.argument))
