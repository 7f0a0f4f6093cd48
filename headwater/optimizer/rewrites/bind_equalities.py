"""A filter that fixes a variable to a constant goes into the patterns.

    FILTER(?country = "CH")  over  { ?b :is_from ?country }    →    { ?b :is_from "CH" }  BIND("CH" AS ?country)

Only where `=` is the same as being the same term: for IRIs and plain strings. Numbers and times are equal by value, so
that `?v = 1` also means "01", 1.0 and 1e0, which are other terms; they need sameTerm.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from headwater.algebra.nodes import (
    Bgp,
    Distinct,
    Extend,
    Filter,
    Graph,
    Join,
    LeftJoin,
    Minus,
    Node,
    Project,
    Reduced,
    Union,
    Values,
    Window,
)
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import all_variables, certain, map_expression, visible
from headwater.algebra.triple_timestamps import uses_timestamps
from headwater.language.expressions import Constant, Expression, FunctionCall, Operation, VariableReference
from headwater.language.patterns import TriplePattern
from headwater.optimizer.constant_values import TRUE
from headwater.optimizer.dependencies import has_exists, reads
from headwater.optimizer.joins import factors
from headwater.optimizer.rule import Rule, Where, rewritten
from headwater.optimizer.statistics import Statistics
from headwater.terms.model import XSD, Literal, NamedNode, Variable
from headwater.terms.stored_forms import is_kept

Fixed: TypeAlias = NamedNode | Literal


def bind_equalities(plan: QueryPlan, statistics: Statistics | None = None) -> Node:
    # timestamp(?v) is the time of the patterns that bind ?v: with a constant in its place none would.
    if uses_timestamps(plan.root):
        return plan.root

    def change(node: Node, where: Where) -> Node:
        if not isinstance(node, Filter) or is_tied_to_outside(where.correlated):
            return node
        found = fixed_by(node.condition)
        if found is None or not is_bound_for_sure(node.inner, found[0]):
            return node
        inner = with_constant(node.inner, *found)
        return node if inner is None else Extend(inner, found[0], Constant(found[1]))

    return rewritten(plan, change)


def is_tied_to_outside(correlated: bool) -> bool:
    """Inside EXISTS the variable ties the pattern to the solution outside; a constant would cut it off."""
    return correlated


def is_bound_for_sure(node: Node, variable: Variable) -> bool:
    """Where a solution may lack the variable, the equality is an error there, but a pattern might still match."""
    return variable in certain(node)


def fixed_by(condition: Expression) -> tuple[Variable, Fixed] | None:
    """The variable that a condition fixes, and the term."""
    match condition:
        case Operation("=", (VariableReference(variable), Constant(value))):
            return (variable, value) if equal_means_same(value) else None
        case FunctionCall("SAMETERM", (VariableReference(variable), Constant(value))):
            return (variable, value) if isinstance(value, NamedNode) or _is_written_as_stored(value) else None
        case Operation("=", (Constant() as value, VariableReference() as variable)):
            return fixed_by(Operation("=", (variable, value)))
        case FunctionCall("SAMETERM", (Constant() as value, VariableReference() as variable)):
            return fixed_by(FunctionCall("SAMETERM", (variable, value)))
    return None


def equal_means_same(value: Fixed) -> bool:
    """Whether no other term is equal to this one."""
    return isinstance(value, NamedNode) or value.datatype.value == XSD + "string"


def _is_written_as_stored(value: Literal) -> bool:
    return value.language is None and is_kept(value)


def with_constant(node: Node, variable: Variable, value: Fixed) -> Node | None:
    """The solutions of the node in which the variable is this term, without the variable; None where that is not sure.

    The variable must be certain in the node.
    """

    def inside(child: Node) -> Node | None:
        """A child that takes part in the match: it must bind the variable for sure, or not at all."""
        if variable not in visible(child):
            return child
        return with_constant(child, variable, value) if is_bound_for_sure(child, variable) else None

    match node:
        case Bgp(triples):
            return _bgp(triples, variable, value)
        case Join(left, right) | Union(left, right):
            return _both(node, inside(left), inside(right))
        case LeftJoin(left, right, condition):
            if condition is not None and not _can_be_replaced(condition, variable):
                return None
            renewed = _both(node, inside(left), inside(right))
            if renewed is None or condition is None:
                return renewed
            assert isinstance(renewed, LeftJoin)
            return replace(renewed, condition=replaced(condition, variable, value))
        case Minus(left, right):
            if the_domains_must_stay(right, variable):
                return None
            return _both(node, inside(left), right)
        case Filter(inner, condition):
            kept = with_constant(inner, variable, value) if _can_be_replaced(condition, variable) else None
            return None if kept is None else Filter(kept, replaced(condition, variable, value))
        case Extend(inner, bound, expression):
            if bound == variable or not _can_be_replaced(expression, variable):
                return None
            kept = with_constant(inner, variable, value)
            return None if kept is None else Extend(kept, bound, replaced(expression, variable, value))
        case Values(variables, rows):
            place = variables.index(variable)
            chosen = tuple(row[:place] + row[place + 1 :] for row in rows if row[place] == value)
            return Values(variables[:place] + variables[place + 1 :], chosen) if len(variables) > 1 else None
        case Graph(name, inner) if name == variable:
            return _in_one_graph(inner, variable, value)
        case Window(_, name, _) if name == variable:
            return None
        case Graph(_, inner) | Window(_, _, inner) | Distinct(inner) | Reduced(inner):
            kept = with_constant(inner, variable, value)
            return None if kept is None else node.with_children(kept)
        case Project(inner, variables):
            kept = with_constant(inner, variable, value) if len(variables) > 1 else None
            return None if kept is None else Project(kept, tuple(v for v in variables if v != variable))
    return None


def the_domains_must_stay(right: Node, variable: Variable) -> bool:
    """MINUS looks at which variables both sides bind; without a shared one it would remove nothing."""
    return variable in visible(right)


def _both(node: Node, left: Node | None, right: Node | None) -> Node | None:
    return None if left is None or right is None else node.with_children(left, right)


def _bgp(triples: tuple[TriplePattern, ...], variable: Variable, value: Fixed) -> Node | None:
    renewed: list[TriplePattern] = []
    for triple in triples:
        if isinstance(value, Literal) and variable in (triple.subject, triple.predicate):
            return None
        parts = (value if part == variable else part for part in (triple.subject, triple.predicate, triple.object))
        renewed.append(TriplePattern(*parts))  # type: ignore[arg-type]
    return Bgp(tuple(renewed))


def _in_one_graph(inner: Node, variable: Variable, value: Fixed) -> Node | None:
    """GRAPH ?g as GRAPH <iri>: the same where an absent graph gives nothing and nothing inside looks at ?g."""
    if not isinstance(value, NamedNode) or variable in all_variables(inner) or not needs_a_triple(inner):
        return None
    return Graph(value, inner)


def needs_a_triple(node: Node) -> bool:
    """Whether a pattern has no solution in an empty graph."""
    match node:
        case Bgp(triples):
            return bool(triples)
        case Join():
            return any(needs_a_triple(factor) for factor in factors(node))
        case Filter(inner, _) | Extend(inner, _, _):
            return needs_a_triple(inner)
    return False


def _can_be_replaced(expression: Expression, variable: Variable) -> bool:
    return not (has_exists(expression) and variable in reads(expression))


def replaced(expression: Expression, variable: Variable, value: Fixed) -> Expression:
    """The expression for solutions in which the variable is this term."""

    def change(part: Expression) -> Expression | None:
        match part:
            case FunctionCall("BOUND", (VariableReference(read),)) if read == variable:
                return TRUE
            case VariableReference(read) if read == variable:
                return Constant(value)
        return None

    return map_expression(expression, change)


RULE = Rule(
    "equalities into constants",
    "the variable is bound for sure and no other term is equal to the constant; MINUS and EXISTS keep their variables",
    bind_equalities,
)
