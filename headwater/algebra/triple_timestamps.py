"""`timestamp()` (CS6) in terms of the variables that hold the times of triple patterns."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import TypeAlias

from headwater.algebra.nodes import (
    Node,
)
from headwater.algebra.scope import (
    expressions_of,
    nodes,
    sub_expressions,
)
from headwater.language.expressions import Constant, Expression, FunctionCall, Operation, Timestamp, VariableReference
from headwater.terms.model import NamedNode, Variable

PatternTime: TypeAlias = tuple[frozenset[Variable], NamedNode | None, Variable]
"""The variables that a triple pattern binds, the stream (None for any), and the variable that holds the time."""


def uses_timestamps(plan: Node) -> bool:
    """Whether `timestamp()` stands anywhere in a plan."""
    return any(
        isinstance(part, Timestamp)
        for node in nodes(plan)
        for expression in expressions_of(node)
        for part in sub_expressions(expression)
    )


def time_expression(call: Timestamp, times: Iterable[PatternTime], streams: Iterable[NamedNode]) -> Expression:
    """`timestamp()` in terms of the variables that hold the times of the patterns around it."""
    known = list(times)
    if not isinstance(call.stream, Variable):
        return _newest(call.variable, call.stream, known)
    chosen = _error()
    for stream in dict.fromkeys(streams):
        equal = Operation("=", (VariableReference(call.stream), Constant(stream)))
        chosen = FunctionCall("IF", (equal, _newest(call.variable, stream, known), chosen))
    return chosen


def _newest(variable: Variable, stream: NamedNode | None, times: list[PatternTime]) -> Expression:
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
    """An expression that has no value: `timestamp()` of what no stream bound."""
    return FunctionCall("COALESCE", ())
