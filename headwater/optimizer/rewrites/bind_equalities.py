"""A filter that equates a variable with a constant becomes the constant in the patterns.

    FILTER(?country = "CH")  over  { ?b :is_from ?country }    →    { ?b :is_from "CH" }  BIND("CH" AS ?country)

Only where `=` means the same term: for IRIs and plain strings. Numbers and times are equal by value: `?v = 1` is also
true for "01", 1.0 and 1e0, which are other terms; they need sameTerm.
"""

from __future__ import annotations

from dataclasses import replace

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
from headwater.algebra.query_families import ConstantTerm
from headwater.algebra.scope import (
    all_variables,
    certain_variables,
    expression_variables,
    map_expression,
    visible_variables,
)
from headwater.algebra.triple_timestamps import has_timestamps
from headwater.language.expressions import Constant, Expression, FunctionCall, Operation, VariableReference
from headwater.language.patterns import TriplePattern
from headwater.optimizer.constant_values import TRUE
from headwater.optimizer.dependencies import has_exists
from headwater.optimizer.joins import join_operands
from headwater.optimizer.rule import NodeContext, Rule, rewrite_plan
from headwater.optimizer.statistics import Statistics
from headwater.terms.model import XSD, Literal, NamedNode, Variable
from headwater.terms.stored_forms import is_kept


def bind_equalities(plan: QueryPlan, statistics: Statistics | None = None) -> Node:
    """Put constants into patterns in place of variables that a filter equates with them."""
    # timestamp(?v) is the time of the patterns that bind ?v: with a constant in its place none would.
    if has_timestamps(plan.root):
        return plan.root

    def change(node: Node, context: NodeContext) -> Node:
        if not isinstance(node, Filter) or is_tied_to_outside(context):
            return node
        equality = equality_of(node.condition)
        if equality is None or not is_always_bound(node.inner, equality[0]):
            return node
        inner = substitute_constant(node.inner, *equality)
        return node if inner is None else Extend(inner, equality[0], Constant(equality[1]))

    return rewrite_plan(plan, change)


def is_tied_to_outside(context: NodeContext) -> bool:
    """Whether the variable joins a pattern inside EXISTS with the solution outside, which a constant would undo."""
    return context.is_correlated


def is_always_bound(node: Node, variable: Variable) -> bool:
    """Whether every solution binds the variable: unbound, the equality is an error, but a pattern could still match."""
    return variable in certain_variables(node)


def equality_of(condition: Expression) -> tuple[Variable, ConstantTerm] | None:
    """The variable and the term of a condition that equates them."""
    match condition:
        case Operation("=", (VariableReference(variable), Constant(value))):
            return (variable, value) if is_equal_only_to_itself(value) else None
        case FunctionCall("SAMETERM", (VariableReference(variable), Constant(value))):
            return (variable, value) if isinstance(value, NamedNode) or _is_written_as_stored(value) else None
        case Operation("=", (Constant() as value, VariableReference() as variable)):
            return equality_of(Operation("=", (variable, value)))
        case FunctionCall("SAMETERM", (Constant() as value, VariableReference() as variable)):
            return equality_of(FunctionCall("SAMETERM", (variable, value)))
    return None


def is_equal_only_to_itself(value: ConstantTerm) -> bool:
    """Whether no other term is equal (by `=`) to this one."""
    return isinstance(value, NamedNode) or value.datatype.value == XSD + "string"


def _is_written_as_stored(value: Literal) -> bool:
    return value.language is None and is_kept(value)


def substitute_constant(node: Node, variable: Variable, value: ConstantTerm) -> Node | None:
    """The solutions of the node with this term as the variable, projected to the others; None where it cannot be done.

    The node must always bind the variable.
    """

    def inside(child: Node) -> Node | None:
        """A child that takes part in the match: it must bind the variable always or never."""
        if variable not in visible_variables(child):
            return child
        return substitute_constant(child, variable, value) if is_always_bound(child, variable) else None

    match node:
        case Bgp(triples):
            return _substitute_in_bgp(triples, variable, value)
        case Join(left, right) | Union(left, right):
            return _with_both(node, inside(left), inside(right))
        case LeftJoin(left, right, condition):
            if condition is not None and not _can_substitute(condition, variable):
                return None
            renewed = _with_both(node, inside(left), inside(right))
            if renewed is None or condition is None:
                return renewed
            assert isinstance(renewed, LeftJoin)
            return replace(renewed, condition=substitute_in_expression(condition, variable, value))
        case Minus(left, right):
            if is_shared_with_minus(right, variable):
                return None
            return _with_both(node, inside(left), right)
        case Filter(inner, condition):
            kept = substitute_constant(inner, variable, value) if _can_substitute(condition, variable) else None
            return None if kept is None else Filter(kept, substitute_in_expression(condition, variable, value))
        case Extend(inner, bound, expression):
            if bound == variable or not _can_substitute(expression, variable):
                return None
            kept = substitute_constant(inner, variable, value)
            return None if kept is None else Extend(kept, bound, substitute_in_expression(expression, variable, value))
        case Values(variables, rows):
            place = variables.index(variable)
            chosen = tuple(row[:place] + row[place + 1 :] for row in rows if row[place] == value)
            return Values(variables[:place] + variables[place + 1 :], chosen) if len(variables) > 1 else None
        case Graph(name, inner) if name == variable:
            return _substitute_graph_name(inner, variable, value)
        case Window(_, name, _) if name == variable:
            return None
        case Graph(_, inner) | Window(_, _, inner) | Distinct(inner) | Reduced(inner):
            kept = substitute_constant(inner, variable, value)
            return None if kept is None else node.with_children(kept)
        case Project(inner, variables):
            kept = substitute_constant(inner, variable, value) if len(variables) > 1 else None
            return None if kept is None else Project(kept, tuple(v for v in variables if v != variable))
    return None


def is_shared_with_minus(right: Node, variable: Variable) -> bool:
    """Whether both sides of MINUS bind the variable: without a shared variable MINUS would remove nothing."""
    return variable in visible_variables(right)


def _with_both(node: Node, left: Node | None, right: Node | None) -> Node | None:
    return None if left is None or right is None else node.with_children(left, right)


def _substitute_in_bgp(triples: tuple[TriplePattern, ...], variable: Variable, value: ConstantTerm) -> Node | None:
    renewed: list[TriplePattern] = []
    for triple in triples:
        if isinstance(value, Literal) and variable in (triple.subject, triple.predicate):
            return None
        parts = (value if part == variable else part for part in (triple.subject, triple.predicate, triple.object))
        renewed.append(TriplePattern(*parts))  # type: ignore[arg-type]
    return Bgp(tuple(renewed))


def _substitute_graph_name(inner: Node, variable: Variable, value: ConstantTerm) -> Node | None:
    """GRAPH ?g as GRAPH <iri>: the same if an absent graph gives no solution and nothing inside reads ?g."""
    if not isinstance(value, NamedNode) or variable in all_variables(inner) or not needs_triple(inner):
        return None
    return Graph(value, inner)


def needs_triple(node: Node) -> bool:
    """Whether a pattern has no solution in an empty graph."""
    match node:
        case Bgp(triples):
            return bool(triples)
        case Join():
            return any(needs_triple(factor) for factor in join_operands(node))
        case Filter(inner, _) | Extend(inner, _, _):
            return needs_triple(inner)
    return False


def _can_substitute(expression: Expression, variable: Variable) -> bool:
    return not (has_exists(expression) and variable in expression_variables(expression))


def substitute_in_expression(expression: Expression, variable: Variable, value: ConstantTerm) -> Expression:
    """The expression with the term in place of the variable."""

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
