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
from headwater.algebra.scope import expressions_of, map_expressions, nodes, sub_expressions
from headwater.language.expressions import Aggregate, Constant, Expression, FunctionCall, Operation, VariableReference
from headwater.language.patterns import TriplePattern
from headwater.terms.model import Literal, NamedNode, Term, Triple
from headwater.terms.stored_forms import EXACT, is_kept, restore_term, to_stored_term

_VALUE = NamedNode(EXACT + "value")
_DATATYPE = NamedNode(EXACT + "datatype")
_OF_TERMS = frozenset({"SAMETERM", "BOUND", "STR", "LANG", "ISIRI", "ISURI", "ISBLANK", "ISLITERAL"})
"""Functions for which the stored form is as good as the original."""

Anything = TypeVar("Anything")


def _datatype(term: Term) -> Term | None:
    found = restore_term(term)
    return found.datatype if isinstance(found, Literal) else None


FUNCTIONS: dict[NamedNode, Callable[..., Term | None]] = {_VALUE: restore_term, _DATATYPE: _datatype}
"""What a store has to be given to evaluate such queries."""


def writes_inexact(plan: Node) -> bool:
    """Whether the query itself writes a literal that the store would change."""

    def inexact(part: object) -> bool:
        return isinstance(part, Literal) and not is_kept(part)

    for node in nodes(plan):
        match node:
            case Bgp(triples):
                found = any(inexact(t.object) for t in triples)
            case PathMatch(subject, _, object_):
                found = inexact(subject) or inexact(object_)
            case Values(_, rows):
                found = any(inexact(cell) for row in rows for cell in row)
            case _:
                parts = (part for e in expressions_of(node) for part in sub_expressions(e))
                found = any(isinstance(part, Constant) and inexact(part.value) for part in parts)
        if found:
            return True
    return False


def over_stored_terms(plan: Node) -> Node:
    """The plan with its constants in their stored form and its expressions reading originals where values count."""
    match plan:
        case Service():
            # Its text goes to another engine, which knows the originals.
            return plan
        case Bgp(triples):
            return Bgp(tuple(TriplePattern(t.subject, t.predicate, _kept(t.object)) for t in triples))
        case PathMatch(subject, path, object_):
            return PathMatch(_kept(subject), path, _kept(object_))
        case Values(variables, rows):
            return Values(variables, tuple(tuple(_kept(cell) for cell in row) for row in rows))
    renewed = plan.with_children(*(over_stored_terms(child) for child in plan.children))
    match renewed:
        case Extend(inner, variable, expression):
            return Extend(inner, variable, _term(expression))
        case Group(inner, keys, aggregates):
            return Group(
                inner,
                tuple((v, None if e is None else _term(e)) for v, e in keys),
                tuple((v, _aggregate(a)) for v, a in aggregates),
            )
    return map_expressions(renewed, _value)


def _kept(term: Anything) -> Anything:
    return cast(Anything, to_stored_term(term)) if isinstance(term, Literal | Triple) else term


def _term(expression: Expression) -> Expression:
    """An expression of which the term counts, not the value alone."""
    match expression:
        case VariableReference():
            return expression
        case Constant(value):
            return Constant(_kept(value))
        case FunctionCall("IF", (condition, then, otherwise)):
            return replace(expression, arguments=(_value(condition), _term(then), _term(otherwise)))
        case FunctionCall("COALESCE", arguments):
            return replace(expression, arguments=tuple(map(_term, arguments)))
    return _value(expression)


def _value(expression: Expression) -> Expression:
    """An expression of which only the value counts."""
    match expression:
        case VariableReference():
            return FunctionCall(_VALUE, (expression,))
        case FunctionCall("DATATYPE", (argument,)):
            return FunctionCall(_DATATYPE, (_term(argument),))
        case FunctionCall(name, arguments):
            inside = _term if name in _OF_TERMS else _value
            return replace(expression, arguments=tuple(map(inside, arguments)))
        case Operation(_, operands):
            return replace(expression, operands=tuple(map(_value, operands)))
        case ExistsPlan(plan, _):
            return replace(expression, plan=over_stored_terms(plan))
    return expression


def _aggregate(aggregate: Aggregate) -> Aggregate:
    # The functions that evaluate aggregates (see `aggregate_calls`) find the originals themselves.
    return aggregate if aggregate.argument is None else replace(aggregate, argument=_term(aggregate.argument))
