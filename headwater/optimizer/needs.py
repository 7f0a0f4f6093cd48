"""Which variables of a node anybody above it looks at."""

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
from headwater.algebra.scope import visible
from headwater.language.expressions import Aggregate, Expression
from headwater.optimizer.dependencies import reads
from headwater.terms.model import Variable

Needs = frozenset[Variable]


def needs_below(node: Node, need: Needs) -> tuple[Needs, ...]:
    """What is needed of each child of a node, where `need` is needed of the node itself."""
    match node:
        case Project(_, variables):
            return (frozenset(variables),)
        case Filter(_, condition):
            return (need | reads(condition),)
        case Extend(_, variable, expression):
            return ((need - {variable}) | reads(expression),)
        case OrderBy(_, keys):
            return (need | read_by(expression for expression, _ in keys),)
        case Join(left, right):
            both = shared(left, right)
            return need | both, need | both
        case LeftJoin(left, right, condition):
            kept = need | shared(left, right) | (reads(condition) if condition is not None else frozenset())
            return kept, kept
        case Union():
            return need, need
        case Minus(left, right):
            both = shared(left, right)
            return need | both, both
        case Graph(name, _) | Window(_, name, _):
            return (need | ({name} if isinstance(name, Variable) else frozenset()),)
        case Group(inner, keys, aggregates):
            by = frozenset(variable for variable, expression in keys if expression is None)
            expressions = (expression for _, expression in keys if expression is not None)
            return (by | read_by(expressions) | read_by_aggregates(inner, (a for _, a in aggregates)),)
        case Aggregation(inner, clauses, conditions):
            by = frozenset(variable for _, _, group in clauses for variable in group)
            inside = by | read_by(conditions) | read_by_aggregates(inner, (a for _, a, _ in clauses))
            return (need | inside,)
        case Distinct(inner) | Reduced(inner) | Slice(inner, _, _):
            return (all_that_tell_solutions_apart(inner),)
    return tuple(frozenset(visible(child)) for child in node.children)


def all_that_tell_solutions_apart(inner: Node) -> Needs:
    """DISTINCT looks at whole solutions; LIMIT does too, because all variables settle what ORDER BY leaves open."""
    return frozenset(visible(inner))


def shared(left: Node, right: Node) -> Needs:
    """The variables on which two sides have to agree."""
    return frozenset(visible(left)) & frozenset(visible(right))


def read_by(expressions: Iterable[Expression]) -> Needs:
    return frozenset(variable for expression in expressions for variable in reads(expression))


def read_by_aggregates(inner: Node, aggregates: Iterable[Aggregate]) -> Needs:
    """What aggregates look at: their arguments, or whole solutions for COUNT(DISTINCT *)."""
    found: set[Variable] = set()
    for aggregate in aggregates:
        if aggregate.argument is not None:
            found |= reads(aggregate.argument)
        elif aggregate.distinct:
            found |= all_that_tell_solutions_apart(inner)
    return frozenset(found)
