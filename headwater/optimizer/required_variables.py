"""Which variables of a node the operators above it read."""

from __future__ import annotations

from collections.abc import Iterable

from headwater.algebra.nodes import (
    Aggregation,
    Distinct,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Minus,
    Node,
    OrderBy,
    Project,
    Reduced,
    Slice,
    Union,
    Window,
)
from headwater.algebra.scope import expression_variables, visible_variables
from headwater.language.expressions import Aggregate, Expression
from headwater.terms.model import Variable

RequiredVariables = frozenset[Variable]


def required_of_children(node: Node, need: RequiredVariables) -> tuple[RequiredVariables, ...]:
    """The variables required of each child of a node, given those required of the node itself."""
    match node:
        case Project(_, variables):
            return (frozenset(variables),)
        case Filter(_, condition):
            return (need | expression_variables(condition),)
        case Extend(_, variable, expression):
            return ((need - {variable}) | expression_variables(expression),)
        case OrderBy(_, keys):
            return (need | variables_of_expressions(expression for expression, _ in keys),)
        case Join(left, right):
            both = join_variables(left, right)
            return need | both, need | both
        case LeftJoin(left, right, condition):
            kept = (
                need
                | join_variables(left, right)
                | (expression_variables(condition) if condition is not None else frozenset())
            )
            return kept, kept
        case Union():
            return need, need
        case Minus(left, right):
            both = join_variables(left, right)
            return need | both, both
        case Graph(name, _) | Window(_, name, _):
            return (need | ({name} if isinstance(name, Variable) else frozenset()),)
        case Group(inner, keys, aggregates):
            by = frozenset(variable for variable, expression in keys if expression is None)
            expressions = (expression for _, expression in keys if expression is not None)
            return (
                by | variables_of_expressions(expressions) | variables_of_aggregates(inner, (a for _, a in aggregates)),
            )
        case Aggregation(inner, clauses, conditions):
            by = frozenset(variable for _, _, group in clauses for variable in group)
            inside = (
                by | variables_of_expressions(conditions) | variables_of_aggregates(inner, (a for _, a, _ in clauses))
            )
            return (need | inside,)
        case Distinct(inner) | Reduced(inner) | Slice(inner, _, _):
            return (whole_solution_variables(inner),)
    return tuple(frozenset(visible_variables(child)) for child in node.children)


def whole_solution_variables(inner: Node) -> RequiredVariables:
    """All variables: DISTINCT compares whole solutions, and LIMIT orders by all of them after ORDER BY."""
    return frozenset(visible_variables(inner))


def join_variables(left: Node, right: Node) -> RequiredVariables:
    """The variables that both sides of a join can bind."""
    return frozenset(visible_variables(left)) & frozenset(visible_variables(right))


def variables_of_expressions(expressions: Iterable[Expression]) -> RequiredVariables:
    return frozenset(variable for expression in expressions for variable in expression_variables(expression))


def variables_of_aggregates(inner: Node, aggregates: Iterable[Aggregate]) -> RequiredVariables:
    """The variables of the arguments of aggregates; all variables for COUNT(DISTINCT *)."""
    variables: set[Variable] = set()
    for aggregate in aggregates:
        if aggregate.argument is not None:
            variables |= expression_variables(aggregate.argument)
        elif aggregate.distinct:
            variables |= whole_solution_variables(inner)
    return frozenset(variables)
