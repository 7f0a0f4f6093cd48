"""Which variables a pattern can bind (SPARQL 1.1, section 18.2.1) and which an expression needs.

Both walk with an explicit stack, so that a long generated query cannot exhaust Python's own.
"""

from __future__ import annotations

from collections.abc import Iterator

from headwater.language.expressions import (
    Aggregate,
    Exists,
    Expression,
    FunctionCall,
    Operation,
    Timestamp,
    VariableReference,
)
from headwater.language.patterns import (
    BindItem,
    FilterItem,
    GraphPattern,
    GroupItem,
    GroupPattern,
    InlineData,
    MinusPattern,
    OptionalPattern,
    ServicePattern,
    StreamPattern,
    SubSelect,
    TriplesBlock,
    UnionPattern,
    WindowPattern,
)
from headwater.language.query import SelectQuery
from headwater.terms.model import Variable


def variables_in_scope(*items: GroupItem) -> frozenset[Variable]:
    """The variables that are in scope after these items of a group."""
    variables: set[Variable] = set()
    waiting: list[GroupItem] = list(items)
    while waiting:
        item = waiting.pop()
        if isinstance(item, TriplesBlock):
            for triple in item.triples:
                for term in (triple.subject, triple.predicate, triple.object):
                    if isinstance(term, Variable):
                        variables.add(term)
        elif isinstance(item, GroupPattern):
            waiting += item.items
        elif isinstance(item, OptionalPattern):
            waiting.append(item.pattern)
        elif isinstance(item, UnionPattern):
            waiting += item.branches
        elif isinstance(item, (GraphPattern, ServicePattern, StreamPattern, WindowPattern)):
            waiting.append(item.pattern)
            named = item_name(item)
            if isinstance(named, Variable):
                variables.add(named)
        elif isinstance(item, BindItem):
            variables.add(item.variable)
        elif isinstance(item, InlineData):
            variables.update(item.variables)
        elif isinstance(item, SubSelect):
            variables |= projected_variables(item.query)
    return frozenset(variables)


def item_name(item: GraphPattern | ServicePattern | StreamPattern | WindowPattern) -> object:
    """The name or variable after GRAPH, SERVICE, STREAM or WINDOW."""
    if isinstance(item, ServicePattern):
        return item.endpoint
    return item.stream if isinstance(item, StreamPattern) else item.name


def projected_variables(select: SelectQuery) -> frozenset[Variable]:
    """The variables that a sub-query binds in the query around it."""
    if select.projections is None:
        values = () if select.values is None else (select.values,)
        return variables_in_scope(select.where, *values)
    return frozenset(projection.variable for projection in select.projections)


def inner_patterns(item: GroupItem) -> tuple[GroupPattern, ...]:
    """The groups directly inside an item."""
    if isinstance(item, GroupPattern):
        return (item,)
    if isinstance(item, UnionPattern):
        return item.branches
    if isinstance(item, (OptionalPattern, MinusPattern, GraphPattern, ServicePattern, StreamPattern, WindowPattern)):
        return (item.pattern,)
    return ()


def item_expressions(item: GroupItem) -> tuple[Expression, ...]:
    """The expressions directly inside an item."""
    if isinstance(item, FilterItem):
        return (item.condition,)
    return (item.expression,) if isinstance(item, BindItem) else ()


def expression_parts(expression: Expression, enter_aggregates: bool = True) -> Iterator[Expression]:
    """The expression and everything inside it, except the patterns of EXISTS."""
    waiting = [expression]
    while waiting:
        current = waiting.pop()
        yield current
        if isinstance(current, Operation):
            waiting += current.operands
        elif isinstance(current, FunctionCall):
            waiting += current.arguments
        elif isinstance(current, Aggregate) and enter_aggregates and current.argument is not None:
            waiting.append(current.argument)


def has_aggregate(expression: Expression) -> bool:
    """Whether an aggregate stands anywhere in the expression."""
    return any(isinstance(part, Aggregate) for part in expression_parts(expression))


def free_variables(expression: Expression) -> frozenset[Variable]:
    """The variables that an expression reads outside of its aggregates and EXISTS patterns."""
    return frozenset(
        part.variable
        for part in expression_parts(expression, enter_aggregates=False)
        if isinstance(part, (VariableReference, Timestamp))
    )


def exists_patterns(expression: Expression) -> tuple[GroupPattern, ...]:
    """The patterns of every EXISTS and NOT EXISTS in the expression."""
    return tuple(part.pattern for part in expression_parts(expression) if isinstance(part, Exists))
