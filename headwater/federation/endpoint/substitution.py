"""A pattern with some of its variables fixed, for endpoints that do not take VALUES.

The law: for a solution k of some variables, `restricted(P, k)` has the solutions of {k} ⋈ P, except that variables of k
may be missing from them (they are known anyway). Joins and unions let k through to both sides, because {k} ⋈ {k} = {k}.
Everything else lets it through only where that provably changes nothing:

- FILTER, BIND and the condition of OPTIONAL read a variable as *unbound* where their own group does not bind it,
  whatever surrounds them. So a variable that they mention goes in only if the group binds it in every solution.
- OPTIONAL lets in what its left side always binds; a variable of the right side alone decides whether there is a match.
- MINUS lets in what its right side does not know: taking a variable away would change which solutions share one.
- A sub-query lets in what it projects; LIMIT, OFFSET, grouping, zero-length paths, EXISTS about the variable: nothing.

What does not get in becomes a filter around: `FILTER(sameTerm(?x, "01"^^xsd:integer))`, or with `!bound(?x) ||` before
it where ?x may be unbound. `=` would compare values, and find `"1"` too; for IRIs both are the same and `=` is the one
that more engines answer from an index.

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
from headwater.algebra.scope import all_variables, certain, map_expression, mentioned, sub_expressions, visible
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

Anything = TypeVar("Anything")

_TRUE = Constant(Literal("true", datatype=NamedNode(XSD + "boolean")))
_FALSE = Constant(Literal("false", datatype=NamedNode(XSD + "boolean")))


def restricted(pattern: Node, fixed: Fixed) -> Node:
    """The part of the pattern's solutions that agrees with `fixed`."""
    known = set(visible(pattern))
    here = {variable: term for variable, term in fixed.items() if variable in known}
    return _pushed(pattern, here) if here else pattern


def _pushed(node: Node, fixed: Fixed) -> Node:
    match node:
        case Bgp(triples):
            return _triples(node, triples, fixed)
        case PathMatch(subject, path, object_):
            # A path may begin at a literal when it first goes backwards, but no text can say so.
            inside = {v: t for v, t in fixed.items() if not (v == subject and isinstance(t, Literal))}
            inside = {} if _may_be_empty(path) else inside
            return _around(PathMatch(_put(subject, inside), path, _put(object_, inside)), _without(fixed, inside))
        case Join(left, right):
            return Join(restricted(left, fixed), restricted(right, fixed))
        case Union(left, right):
            return Union(restricted(left, fixed), restricted(right, fixed))
        case Filter(inner, condition):
            inside = _readable(fixed, inner, condition)
            return _around(Filter(restricted(inner, inside), _expression(condition, inside)), _without(fixed, inside))
        case Extend(inner, variable, expression):
            inside = {v: t for v, t in _readable(fixed, inner, expression).items() if v != variable}
            extended = Extend(restricted(inner, inside), variable, _expression(expression, inside))
            return _around(extended, _without(fixed, inside))
        case LeftJoin(left, right, condition):
            inside = {v: t for v, t in fixed.items() if v in certain(left) and v not in _in_exists(condition)}
            test = None if condition is None else _expression(condition, inside)
            return _around(LeftJoin(restricted(left, inside), restricted(right, inside), test), _without(fixed, inside))
        case Minus(left, right):
            inside = {v: t for v, t in fixed.items() if v not in all_variables(right)}
            return _around(Minus(restricted(left, inside), right), _without(fixed, inside))
        case Graph(name, inner):
            return _graph(name, inner, fixed)
        case Values(variables, rows):
            return _values(variables, rows, fixed)
        case Project(inner, variables):
            # Names that the sub-query keeps to itself are other variables; being not visible, they are not in `fixed`.
            return Project(restricted(inner, fixed), variables)
        case Distinct(inner) | Reduced(inner):
            return _distinct(node, inner, fixed)
    return _around(node, fixed)


def _triples(node: Bgp, triples: tuple[TriplePattern, ...], fixed: Fixed) -> Node:
    changed = []
    for triple in triples:
        subject, predicate = _put(triple.subject, fixed), _put(triple.predicate, fixed)
        if isinstance(subject, Literal) or isinstance(predicate, Literal):
            # No triple has a literal there, and no endpoint would read the text.
            return Filter(node, _FALSE)
        changed.append(TriplePattern(subject, predicate, _put(triple.object, fixed)))
    return Bgp(tuple(changed))


def _graph(name: NamedNode | Variable, inner: Node, fixed: Fixed) -> Node:
    term = fixed.get(name) if isinstance(name, Variable) else None
    rest = {v: t for v, t in fixed.items() if v != name}
    if term is None:
        return Graph(name, restricted(inner, rest))
    if isinstance(term, Literal):
        return Filter(Graph(name, inner), _FALSE)
    if isinstance(inner, Bgp) and name not in visible(inner):
        return Graph(term, restricted(inner, rest))
    # GRAPH ?g ranges over the graphs that exist; GRAPH <g> {} has a solution even where <g> does not.
    return _around(Graph(name, restricted(inner, rest)), {v: t for v, t in fixed.items() if v == name})


def _distinct(node: Node, inner: Node, fixed: Fixed) -> Node:
    inside = {v: t for v, t in fixed.items() if v in certain(inner)}
    others = tuple(v for v in visible(inner) if v not in inside)
    if not others:
        return _around(node, fixed)
    # Some solutions may have lost a fixed variable and some not: that must not make them different.
    return _around(node.with_children(Project(restricted(inner, inside), others)), _without(fixed, inside))


def _values(
    variables: tuple[Variable, ...], rows: tuple[tuple[NamedNode | Literal | None, ...], ...], fixed: Fixed
) -> Node:
    places = [(i, fixed[variable]) for i, variable in enumerate(variables) if variable in fixed]
    kept = tuple(row for row in rows if all(row[i] is None or row[i] == term for i, term in places))
    return Values(variables, kept)


def _around(node: Node, fixed: Fixed) -> Node:
    """The node with a filter for what could not get in."""
    if not fixed:
        return node
    always = certain(node)
    tests = [_is(variable, term, variable in always) for variable, term in fixed.items()]
    return Filter(node, reduce(lambda a, b: Operation("&&", (a, b)), tests))


def _is(variable: Variable, term: NamedNode | Literal, is_bound: bool) -> Expression:
    read, value = VariableReference(variable), Constant(term)
    same: Expression = (
        Operation("=", (read, value)) if isinstance(term, NamedNode) else FunctionCall("SAMETERM", (read, value))
    )
    if is_bound:
        return same
    return Operation("||", (Operation("!", (FunctionCall("BOUND", (read,)),)), same))


def _readable(fixed: Fixed, inner: Node, expression: Expression) -> dict[Variable, NamedNode | Literal]:
    """What may be put under an expression: it does not read it, or reads it bound in every solution."""
    read, asked, always = mentioned(expression), _in_exists(expression), certain(inner)
    return {v: t for v, t in fixed.items() if v not in read or (v in always and v not in asked)}


def _in_exists(expression: Expression | None) -> frozenset[Variable]:
    if expression is None:
        return frozenset()
    plans = [part.plan for part in sub_expressions(expression) if isinstance(part, ExistsPlan)]
    return frozenset(variable for plan in plans for variable in all_variables(plan))


def _expression(expression: Expression, fixed: Fixed) -> Expression:
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


def _may_be_empty(path: Path) -> bool:
    """Whether a path may have no step: it joins a term with itself then, a variable only with nodes of the graph."""
    match path:
        case ZeroOrMore() | ZeroOrOne():
            return True
        case Inverse(inner) | OneOrMore(inner):
            return _may_be_empty(inner)
        case Sequence(left, right) | Alternative(left, right):
            # A sequence with a fixed start needs only one empty part to differ.
            return _may_be_empty(left) or _may_be_empty(right)
    return False


def _put(term: Anything, fixed: Fixed) -> Anything | NamedNode | Literal:
    return fixed.get(term, term) if isinstance(term, Variable) else term


def _without(fixed: Fixed, inside: Fixed) -> dict[Variable, NamedNode | Literal]:
    return {v: t for v, t in fixed.items() if v not in inside}
