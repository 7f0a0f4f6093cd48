"""Rewrites plans so that pyoxigraph evaluates them by the definition, where it would not by itself.

- Some expressions are written in other words (`headwater.algebra.pyoxigraph_expressions`).
- REDUCED keeps some duplicates, and which depends on the order in which the store gives them. Here it keeps none.
- GROUP BY variables that nothing binds is one group even of no solutions, as if there were no keys. Here such a
  group counts its solutions and has to have one.
- Inside EXISTS it takes the values of the outer solution as bound on both sides of a MINUS, so that sides without a
  common variable have one. Here such a MINUS, which removes nothing, is not there; and where all common variables may
  be unbound on some side, it is a filter NOT EXISTS of its left side.
- Variables that a sub-query inside EXISTS keeps to itself have the values of the outer solution in its filters, too,
  where they have the same names. Here they have names of their own.
- Where an OPTIONAL within another one mentions variables that its own left side may leave unbound, values that come
  from outside of both reach it, though it should be evaluated without them. Here both are a sub-query, which is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import reduce

from headwater.algebra.nodes import Distinct, ExistsPlan, Extend, Filter, Group, LeftJoin, Minus, Node, Project, Reduced
from headwater.algebra.pyoxigraph_expressions import rewrite_for_pyoxigraph
from headwater.algebra.scope import (
    all_variables,
    certain_variables,
    expression_variables,
    expressions_of,
    map_expression,
    map_expressions,
    map_plan,
    nodes_of,
    rename_variables,
    visible_variables,
)
from headwater.language.expressions import Aggregate, Constant, Expression, FunctionCall, Operation, VariableReference
from headwater.terms.model import XSD, Literal, NamedNode, Variable

_NONE = Constant(Literal("0", datatype=NamedNode(XSD + "integer")))


def work_around_pyoxigraph(plan: Node, new_variable: Callable[[], Variable]) -> Node:
    """The plan in a form that pyoxigraph evaluates by the definition."""

    def inside_exists(part: Expression) -> Expression | None:
        if isinstance(part, ExistsPlan):
            return replace(part, plan=map_plan(part.plan, lambda node: _isolate_in_exists(node, new_variable)))
        return None

    def change(node: Node, outer: Collection[Variable]) -> Node:
        match node:
            case Reduced(inner):
                return Distinct(inner)
            case Minus(left, right) if not set(visible_variables(left)) & set(visible_variables(right)):
                return left
            case LeftJoin(_, right, _) if _has_open_optional(right):
                shown = (*visible_variables(node), *(one for one in _outer_variables(node) if one in outer))
                return Project(map_expressions(node, rewrite_for_pyoxigraph), shown)
            case Group(inner, keys, aggregates) if keys and not {v for v, _ in keys} & set(visible_variables(inner)):
                if all(expression is None for _, expression in keys):
                    count = new_variable()
                    counted = Group(inner, keys, (*aggregates, (count, Aggregate("COUNT", None))))
                    return Filter(counted, Operation(">", (VariableReference(count), _NONE)))
        return map_expressions(node, rewrite_for_pyoxigraph)

    closed = map_plan(plan, lambda node: map_expressions(node, lambda one: map_expression(one, inside_exists)))
    return _map_with_outer(closed, change, frozenset())


def _map_with_outer(
    node: Node, change: Callable[[Node, Collection[Variable]], Node], outer: frozenset[Variable]
) -> Node:
    """The plan rebuilt from the leaves up; `change` gets each node and the variables that have values from outside.

    Those are variables inside EXISTS that no BIND there binds: a BIND may not bind what a sub-query before it shows.
    """

    def inside(part: Expression) -> Expression | None:
        if not isinstance(part, ExistsPlan):
            return None
        bound = {one.variable for one in nodes_of(part.plan) if isinstance(one, Extend)}
        return replace(part, plan=_map_with_outer(part.plan, change, frozenset(all_variables(part.plan)) - bound))

    renewed = node.with_children(*(_map_with_outer(child, change, outer) for child in node.children))
    return change(map_expressions(renewed, lambda one: map_expression(one, inside)), outer)


def _isolate_in_exists(node: Node, new_variable: Callable[[], Variable]) -> Node:
    """A node inside EXISTS so that it reads of the outer solution what the definition says, and nothing else."""
    if isinstance(node, Project):
        hidden = sorted(all_variables(node.inner) - set(node.variables), key=str)
        return rename_variables(node, {variable: new_variable() for variable in hidden}) if hidden else node
    return _without_open_minus(node, new_variable)


def _without_open_minus(node: Node, new_variable: Callable[[], Variable]) -> Node:
    """A MINUS none of whose common variables is bound in all solutions of both sides, as a filter of its left side."""
    if not isinstance(node, Minus):
        return node
    common = [variable for variable in visible_variables(node.left) if variable in visible_variables(node.right)]
    if not common or set(common) & certain_variables(node.left) & certain_variables(node.right):
        return node
    removed = node.right
    agree: list[Expression] = []
    meet: list[Expression] = []
    others = [variable for variable in visible_variables(removed) if variable not in common]
    for variable in common:
        there = new_variable()
        removed = Extend(removed, there, VariableReference(variable))
        pair = VariableReference(variable), VariableReference(there)
        both = Operation("&&", tuple(FunctionCall("BOUND", (one,)) for one in pair))
        agree.append(Operation("||", (Operation("!", (both,)), FunctionCall("SAMETERM", pair))))
        meet.append(both)
        others.append(there)
    # What is not shown of a sub-query has no value from outside.
    shown = Project(removed, (*others, *_outer_variables(removed)))
    condition = reduce(_and, agree, reduce(_or, meet))
    return Filter(node.left, ExistsPlan(Filter(shown, condition), negated=True))


def _and(left: Expression, right: Expression) -> Expression:
    return Operation("&&", (left, right))


def _or(left: Expression, right: Expression) -> Expression:
    return Operation("||", (left, right))


def _has_open_optional(node: Node) -> bool:
    """Whether an OPTIONAL in a pattern mentions variables that what it is optional to may leave unbound."""
    if isinstance(node, LeftJoin) and set(visible_variables(node.right)) - set(certain_variables(node.left)):
        return True
    # A sub-query is evaluated by itself.
    return not isinstance(node, Project) and any(map(_has_open_optional, node.children))


def _outer_variables(node: Node) -> list[Variable]:
    """The variables that expressions mention and nothing in the pattern binds: inside EXISTS they have outer values."""
    mentioned_variables = {
        variable for part in nodes_of(node) for one in expressions_of(part) for variable in expression_variables(one)
    }
    return sorted(mentioned_variables - set(visible_variables(node)), key=str)
