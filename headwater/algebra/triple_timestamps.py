"""`timestamp()` (CS6) as an expression over variables that hold the times of triple patterns."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import TypeAlias

from headwater.algebra.nodes import (
    Node,
)
from headwater.algebra.scope import (
    expressions_of,
    nodes_of,
    sub_expressions,
)
from headwater.language.expressions import Constant, Expression, FunctionCall, Operation, Timestamp, VariableReference
from headwater.terms.model import NamedNode, Variable

PatternTime: TypeAlias = tuple[frozenset[Variable], NamedNode | None, Variable]
"""The variables that a triple pattern binds, the stream (None for any), and the variable that holds the time."""


def has_timestamps(plan: Node) -> bool:
    """Whether `timestamp()` stands anywhere in a plan."""
    return any(
        isinstance(part, Timestamp)
        for node in nodes_of(plan)
        for expression in expressions_of(node)
        for part in sub_expressions(expression)
    )


def timestamp_expression(call: Timestamp, times: Iterable[PatternTime], streams: Iterable[NamedNode]) -> Expression:
    """`timestamp()` as an expression over the variables that hold the times of the patterns around it."""
    known = list(times)
    if not isinstance(call.stream, Variable):
        return _newest_time(call.variable, call.stream, known)
    chosen = _error()
    for stream in dict.fromkeys(streams):
        equal = Operation("=", (VariableReference(call.stream), Constant(stream)))
        chosen = FunctionCall("IF", (equal, _newest_time(call.variable, stream, known), chosen))
    return chosen


def _newest_time(variable: Variable, stream: NamedNode | None, times: list[PatternTime]) -> Expression:
    values: list[Expression] = [VariableReference(t) for bound, its, t in times if variable in bound and its == stream]
    while len(values) > 1:
        # In pairs, because each value is written several times.
        values = [reduce(_later, values[i : i + 2]) for i in range(0, len(values), 2)]
    return values[0] if values else _error()


def _later(a: Expression, b: Expression) -> Expression:
    """The greater of two values, either of which may be unbound."""
    greater = FunctionCall("IF", (Operation(">=", (a, b)), a, b))
    return FunctionCall("COALESCE", (greater, a, b))


def _error() -> Expression:
    """An expression that is always an error: `timestamp()` of a variable that no stream binds."""
    return FunctionCall("COALESCE", ())
