"""Solution mappings as sets of bindings, and the patterns of EXISTS under one of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from headwater.algebra.nodes import ExistsPlan, Extend, Group, Node, Project
from headwater.algebra.scope import expression_variables, map_expression, map_expressions, sub_expressions
from headwater.language.expressions import Constant, Expression, FunctionCall, VariableReference
from headwater.language.patterns import PatternTerm, TriplePattern
from headwater.reference.tick_solutions import Solution
from headwater.terms.model import Literal, NamedNode, Term, Triple, Variable


def merge(one: Solution, other: Solution) -> Solution | None:
    """The union of two mappings; None where they disagree."""
    known = dict(one)
    if any(known.get(variable, term) != term for variable, term in other):
        return None
    return one | other


def restrict(solution: Solution, variables: Collection[Variable]) -> Solution:
    """A mapping cut down to some variables."""
    return frozenset((variable, term) for variable, term in solution if variable in variables)


def without(solution: Solution, variable: Variable) -> Solution:
    """A mapping without one variable."""
    return frozenset(one for one in solution if one[0] != variable)


def instantiate(pattern: TriplePattern, solution: Solution) -> Triple:
    """The triple that a pattern matched in a solution."""
    values = dict(solution)

    def value(term: object) -> Term:
        return values[term] if isinstance(term, Variable) else term  # type: ignore[return-value]

    return Triple(value(pattern.subject), value(pattern.predicate), value(pattern.object))  # type: ignore[arg-type]


def value_of(term: PatternTerm, solution: Solution) -> Term:
    """What stands at a place of a pattern in a solution."""
    return dict(solution)[term] if isinstance(term, Variable) else term


def with_key_columns(node: Group) -> Node:
    """What a GROUP BY reads, with the keys that are expressions as variables."""
    inner = node.inner
    for variable, expression in node.keys:
        if expression is not None:
            inner = Extend(inner, variable, expression)
    return inner


def correlated_patterns(expression: Expression, solution: Solution) -> Iterator[Node]:
    """The patterns of EXISTS in an expression, the values of a solution in their expressions.

    Their solutions that agree with it are what EXISTS found. Blank nodes cannot be written into an expression.
    """
    values = {variable: term for variable, term in solution if isinstance(term, NamedNode | Literal)}

    def substitute(part: Expression) -> Expression | None:
        if isinstance(part, FunctionCall) and part.name == "BOUND" and expression_variables(part) <= values.keys():
            return Constant(Literal(True))
        if isinstance(part, VariableReference) and part.variable in values:
            return Constant(values[part.variable])
        return None

    def correlate(node: Node) -> Node:
        if isinstance(node, Project | Group):
            # The variables of a sub-query are its own.
            return node
        renewed = node.with_children(*map(correlate, node.children))
        return map_expressions(renewed, lambda one: map_expression(one, substitute))

    for part in sub_expressions(expression):
        if isinstance(part, ExistsPlan):
            yield correlate(part.plan)
