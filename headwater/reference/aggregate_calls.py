"""Plans whose aggregates are those of `values.aggregates`, in a form that pyoxigraph can evaluate.

Each aggregate but COUNT of rows or of a variable becomes a call of a function of ours, which sees errors as values of
their own. (pyoxigraph's COUNT of an expression is an error where one of its values is; SPARQL's skips those.)

    SUM(?v)    →    <urn:headwater:aggregate:SUM>(COALESCE(?v, <urn:headwater:error>))
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from headwater.algebra.nodes import ExistsPlan, Group, Node, Service
from headwater.algebra.scope import map_expression, map_expressions, nodes_of
from headwater.algebra.window_graphs import INTERNAL
from headwater.language.expressions import Aggregate, Constant, Expression, FunctionCall, VariableReference
from headwater.terms.model import NamedNode, Term
from headwater.terms.stored_forms import restore_term, to_stored_term
from headwater.values.aggregates import aggregate as value_of

if TYPE_CHECKING:
    from pyoxigraph import AggregateFunctionAccumulator

_CALL = INTERNAL + "aggregate:"
_ERROR = NamedNode(INTERNAL + "error")


class AggregateFunction:
    """Collects the multiset of a group's values, which the store may hold in stored forms."""

    def __init__(self, aggregate: Aggregate, has_stored_forms: bool) -> None:
        self._aggregate = aggregate
        self._has_stored_forms = has_stored_forms
        self._values: Counter[Term] = Counter()

    def accumulate(self, element: Term) -> None:
        self._values[element] += 1

    def finish(self) -> Term | None:
        read = restore_term if self._has_stored_forms else _unchanged
        values = {None if term == _ERROR else read(term): times for term, times in self._values.items()}
        call = self._aggregate
        result = value_of(call.function, values, distinct=call.distinct, separator=call.separator)
        return to_stored_term(result) if result is not None and self._has_stored_forms else result


def _unchanged(term: Term) -> Term:
    return term


def with_aggregate_calls(plan: Node) -> Node:
    """The plan with its aggregates replaced by calls; what goes to another engine stays as it is."""
    if isinstance(plan, Service):
        return plan

    def inside(expression: Expression) -> Expression | None:
        if isinstance(expression, ExistsPlan):
            return replace(expression, plan=with_aggregate_calls(expression.plan))
        return None

    renewed = plan.with_children(*(with_aggregate_calls(child) for child in plan.children))
    renewed = map_expressions(renewed, lambda e: map_expression(e, inside))
    if not isinstance(renewed, Group):
        return renewed
    return replace(renewed, aggregates=tuple((v, _call(aggregate)) for v, aggregate in renewed.aggregates))


def _call(aggregate: Aggregate) -> Aggregate:
    if _is_built_in(aggregate) or aggregate.argument is None:
        return aggregate
    seen = FunctionCall("COALESCE", (aggregate.argument, Constant(_ERROR)))
    return replace(aggregate, function=str(_name(aggregate)), argument=seen, distinct=False, separator=None)


def _is_built_in(aggregate: Aggregate) -> bool:
    """Whether pyoxigraph evaluates an aggregate as it is."""
    return aggregate.function == "COUNT" and isinstance(aggregate.argument, VariableReference | None)


def _name(aggregate: Aggregate) -> NamedNode:
    """The name of the function that evaluates an aggregate: all but its argument."""
    distinct = ":distinct" if aggregate.distinct else ""
    separator = "" if aggregate.separator is None else ":" + aggregate.separator.encode().hex()
    return NamedNode(f"{_CALL}{aggregate.function.strip('<>')}{distinct}{separator}")


def aggregate_functions_of(
    plan: Node, has_stored_forms: bool
) -> dict[NamedNode, Callable[[], AggregateFunctionAccumulator]]:
    """What a store has to be given to evaluate the calls that `with_aggregate_calls` makes of a plan's aggregates."""
    aggregates = (a for node in nodes_of(plan) if isinstance(node, Group) for _, a in node.aggregates)
    return {_name(a): partial(AggregateFunction, a, has_stored_forms) for a in aggregates if not _is_built_in(a)}
