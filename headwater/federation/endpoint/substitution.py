"""Replaces variables of a pattern by terms, for endpoints that do not take VALUES.

The law: for a solution k of some variables, `restrict_pattern(P, k)` has the solutions of {k} ⋈ P, except that
variables of k may be missing from them (they are known anyway). k is pushed into both sides of a join or a union,
because {k} ⋈ {k} = {k}. Into all other nodes it is pushed only where that provably changes nothing:

- FILTER, BIND and the condition of OPTIONAL read a variable as *unbound* where their own group does not bind it,
  whatever surrounds them. So a variable that they mention is pushed only if the group binds it in every solution.
- OPTIONAL takes variables that its left side always binds; one of the right side alone decides about a match.
- MINUS takes variables that its right side does not have: without them other solutions would share a variable.
- A sub-query takes what it projects; LIMIT, OFFSET, grouping, zero-length paths, EXISTS about the variable: nothing.

What is not pushed becomes a filter around the node: `FILTER(sameTerm(?x, "01"^^xsd:integer))`, or with `!bound(?x) ||`
before it if ?x may be unbound. `=` would compare values, and find `"1"` too; for IRIs both are the same, and more
engines answer `=` from an index.

    { ?who :followers ?n }   with ?who = :anna    →    { :anna :followers ?n }
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from typing import TypeAlias, TypeVar

from headwater.algebra.nodes import (
    Bgp,
    Distinct,
    ExistsPlan,
    Extend,
    Filter,
    Graph,
    Join,
    LeftJoin,
    Minus,
    Node,
    PathMatch,
    Project,
    Reduced,
    Union,
    Values,
)
from headwater.algebra.scope import (
    all_variables,
    certain_variables,
    expression_variables,
    map_expression,
    sub_expressions,
    visible_variables,
)
from headwater.language.expressions import Constant, Expression, FunctionCall, Operation, VariableReference
from headwater.language.patterns import (
    Alternative,
    Inverse,
    OneOrMore,
    Path,
    Sequence,
    TriplePattern,
    ZeroOrMore,
    ZeroOrOne,
)
from headwater.terms.model import XSD, Literal, NamedNode, Variable

Fixed: TypeAlias = Mapping[Variable, NamedNode | Literal]
"""The solution k."""

AnyTerm = TypeVar("AnyTerm")

_TRUE = Constant(Literal("true", datatype=NamedNode(XSD + "boolean")))
_FALSE = Constant(Literal("false", datatype=NamedNode(XSD + "boolean")))


def restrict_pattern(pattern: Node, fixed: Fixed) -> Node:
    """The pattern reduced to the solutions that are compatible with `fixed`."""
    columns = set(visible_variables(pattern))
    relevant = {variable: term for variable, term in fixed.items() if variable in columns}
    return _push_terms(pattern, relevant) if relevant else pattern


def _push_terms(node: Node, fixed: Fixed) -> Node:
    """Put the fixed terms into the patterns; those that would change the meaning there become a filter outside."""
    match node:
        case Bgp(triples):
            return _restrict_triples(node, triples, fixed)
        case PathMatch(subject, path, object_):
            # A path may begin at a literal when it first goes backwards, but no text can say so.
            inside = {v: t for v, t in fixed.items() if not (v == subject and isinstance(t, Literal))}
            inside = {} if _can_be_empty(path) else inside
            return _filter_outside(
                PathMatch(_substitute(subject, inside), path, _substitute(object_, inside)), _difference(fixed, inside)
            )
        case Join(left, right):
            return Join(restrict_pattern(left, fixed), restrict_pattern(right, fixed))
        case Union(left, right):
            return Union(restrict_pattern(left, fixed), restrict_pattern(right, fixed))
        case Filter(inner, condition):
            inside = _pushable_terms(fixed, inner, condition)
            return _filter_outside(
                Filter(restrict_pattern(inner, inside), _substitute_all(condition, inside)), _difference(fixed, inside)
            )
        case Extend(inner, variable, expression):
            inside = {v: t for v, t in _pushable_terms(fixed, inner, expression).items() if v != variable}
            extended = Extend(restrict_pattern(inner, inside), variable, _substitute_all(expression, inside))
            return _filter_outside(extended, _difference(fixed, inside))
        case LeftJoin(left, right, condition):
            inside = {
                v: t
                for v, t in fixed.items()
                if v in certain_variables(left) and v not in _variables_in_exists(condition)
            }
            test = None if condition is None else _substitute_all(condition, inside)
            return _filter_outside(
                LeftJoin(restrict_pattern(left, inside), restrict_pattern(right, inside), test),
                _difference(fixed, inside),
            )
        case Minus(left, right):
            inside = {v: t for v, t in fixed.items() if v not in all_variables(right)}
            return _filter_outside(Minus(restrict_pattern(left, inside), right), _difference(fixed, inside))
        case Graph(name, inner):
            return _restrict_graph(name, inner, fixed)
        case Values(variables, rows):
            return _restrict_values(variables, rows, fixed)
        case Project(inner, variables):
            # Names that the sub-query keeps to itself are other variables; being not visible, they are not in `fixed`.
            return Project(restrict_pattern(inner, fixed), variables)
        case Distinct(inner) | Reduced(inner):
            return _restrict_distinct(node, inner, fixed)
    return _filter_outside(node, fixed)


def _restrict_triples(node: Bgp, triples: tuple[TriplePattern, ...], fixed: Fixed) -> Node:
    """The triple patterns with the terms in place of their variables; no solutions where no triple can match."""
    changed = []
    for triple in triples:
        subject, predicate = _substitute(triple.subject, fixed), _substitute(triple.predicate, fixed)
        if isinstance(subject, Literal) or isinstance(predicate, Literal):
            # No triple has a literal there, and no endpoint would read the text.
            return Filter(node, _FALSE)
        changed.append(TriplePattern(subject, predicate, _substitute(triple.object, fixed)))
    return Bgp(tuple(changed))


def _restrict_graph(name: NamedNode | Variable, inner: Node, fixed: Fixed) -> Node:
    term = fixed.get(name) if isinstance(name, Variable) else None
    rest = {v: t for v, t in fixed.items() if v != name}
    if term is None:
        return Graph(name, restrict_pattern(inner, rest))
    if isinstance(term, Literal):
        return Filter(Graph(name, inner), _FALSE)
    if isinstance(inner, Bgp) and name not in visible_variables(inner):
        return Graph(term, restrict_pattern(inner, rest))
    # GRAPH ?g ranges over the graphs that exist; GRAPH <g> {} has a solution even where <g> does not.
    return _filter_outside(Graph(name, restrict_pattern(inner, rest)), {v: t for v, t in fixed.items() if v == name})


def _restrict_distinct(node: Node, inner: Node, fixed: Fixed) -> Node:
    inside = {v: t for v, t in fixed.items() if v in certain_variables(inner)}
    others = tuple(v for v in visible_variables(inner) if v not in inside)
    if not others:
        return _filter_outside(node, fixed)
    # Some solutions may have lost a fixed variable and some not: that must not make them different.
    return _filter_outside(
        node.with_children(Project(restrict_pattern(inner, inside), others)), _difference(fixed, inside)
    )


def _restrict_values(
    variables: tuple[Variable, ...], rows: tuple[tuple[NamedNode | Literal | None, ...], ...], fixed: Fixed
) -> Node:
    places = [(i, fixed[variable]) for i, variable in enumerate(variables) if variable in fixed]
    kept = tuple(row for row in rows if all(row[i] is None or row[i] == term for i, term in places))
    return Values(variables, kept)


def _filter_outside(node: Node, fixed: Fixed) -> Node:
    """The node with a filter for the terms that could not be pushed."""
    if not fixed:
        return node
    always = certain_variables(node)
    tests = [_equality(variable, term, variable in always) for variable, term in fixed.items()]
    return Filter(node, reduce(lambda a, b: Operation("&&", (a, b)), tests))


def _equality(variable: Variable, term: NamedNode | Literal, is_bound: bool) -> Expression:
    read, value = VariableReference(variable), Constant(term)
    same: Expression = (
        Operation("=", (read, value)) if isinstance(term, NamedNode) else FunctionCall("SAMETERM", (read, value))
    )
    if is_bound:
        return same
    return Operation("||", (Operation("!", (FunctionCall("BOUND", (read,)),)), same))


def _pushable_terms(fixed: Fixed, inner: Node, expression: Expression) -> dict[Variable, NamedNode | Literal]:
    """The terms that may be pushed below an expression: it does not read their variable, or finds it always bound."""
    read, asked, always = expression_variables(expression), _variables_in_exists(expression), certain_variables(inner)
    return {v: t for v, t in fixed.items() if v not in read or (v in always and v not in asked)}


def _variables_in_exists(expression: Expression | None) -> frozenset[Variable]:
    if expression is None:
        return frozenset()
    plans = [part.plan for part in sub_expressions(expression) if isinstance(part, ExistsPlan)]
    return frozenset(variable for plan in plans for variable in all_variables(plan))


def _substitute_all(expression: Expression, fixed: Fixed) -> Expression:
    def change(part: Expression) -> Expression | None:
        match part:
            case FunctionCall("BOUND", (VariableReference(variable),)) if variable in fixed:
                return _TRUE
            case VariableReference(variable) if variable in fixed:
                return Constant(fixed[variable])
            case ExistsPlan():
                return replace(part)
        return None

    return map_expression(expression, change) if fixed else expression


def _can_be_empty(path: Path) -> bool:
    """Whether a path may have no step: then it relates a term to itself, but a variable only to nodes of the graph."""
    match path:
        case ZeroOrMore() | ZeroOrOne():
            return True
        case Inverse(inner) | OneOrMore(inner):
            return _can_be_empty(inner)
        case Sequence(left, right) | Alternative(left, right):
            # A sequence with a fixed start needs only one empty part to differ.
            return _can_be_empty(left) or _can_be_empty(right)
    return False


def _substitute(term: AnyTerm, fixed: Fixed) -> AnyTerm | NamedNode | Literal:
    return fixed.get(term, term) if isinstance(term, Variable) else term


def _difference(fixed: Fixed, inside: Fixed) -> dict[Variable, NamedNode | Literal]:
    return {v: t for v, t in fixed.items() if v not in inside}
