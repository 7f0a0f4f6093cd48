"""Expressions, and parts of them, that have one value for all solutions are replaced by it.

    FILTER(?v > 60 * 60)              →    FILTER(?v > 3600)
    FILTER(1 = 1 && ?v > 2)           →    FILTER(?v > 2)
    OPTIONAL { P FILTER(false) }      →    nothing

What has no value keeps its error: `BIND(1/0 AS ?x)` stays, and `1/0 = 1 || ?v > 2` is true where ?v > 2 is.
"""

from __future__ import annotations

from dataclasses import replace

from headwater.algebra.nodes import Aggregation, Extend, Filter, Group, LeftJoin, Node, OrderBy, Values
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import map_expression, map_expressions, visible
from headwater.language.expressions import Constant, Expression, FunctionCall, Operation
from headwater.optimizer.constant_values import FALSE, TRUE, constant_value, is_constant, truth
from headwater.optimizer.rule import Rule, Where, rewritten
from headwater.optimizer.statistics import Statistics


def fold_constants(plan: QueryPlan, statistics: Statistics | None = None) -> Node:
    def change(node: Node, where: Where) -> Node:
        match node:
            case Filter(_, condition):
                return _filter(node, folded_condition(condition))
            case LeftJoin(_, _, Expression() as condition):
                return _left_join(node, folded_condition(condition))
            case Extend() | Group() | OrderBy() | Aggregation():
                return map_expressions(node, folded)
        return node

    return rewritten(plan, change)


def _filter(node: Filter, condition: Expression) -> Node:
    if not is_constant(condition):
        return replace(node, condition=condition)
    return node.inner if truth(condition) else Values(visible(node), ())


def _left_join(node: LeftJoin, condition: Expression) -> Node:
    if not is_constant(condition):
        return replace(node, condition=condition)
    return replace(node, condition=None) if truth(condition) else node.left


def folded(expression: Expression) -> Expression:
    """The expression with its constant parts replaced by their values; it keeps its value and its errors."""

    def inner(part: Expression) -> Expression | None:
        return None if part is expression else folded(part)

    renewed = map_expression(expression, inner)
    known = _decided(renewed)
    if known is not None:
        return known
    if isinstance(renewed, Constant) or not is_constant(renewed):
        return renewed
    value = constant_value(renewed)
    return renewed if value is None else Constant(value)


def _decided(expression: Expression) -> Expression | None:
    """What a part that is known already decides, whatever the others are."""
    match expression:
        case Operation("&&", operands) if any(_is(part, False) for part in operands):
            return FALSE
        case Operation("||", operands) if any(_is(part, True) for part in operands):
            return TRUE
        case FunctionCall("IF", (condition, then, otherwise)):
            if _is(condition, True):
                return then
            return otherwise if _is(condition, False) else None
        case FunctionCall("COALESCE", (Constant() as first, *_)):
            return first
    return None


def folded_condition(condition: Expression) -> Expression:
    """The same for what only has to be true: `true && x` and `false || x` are as true as `x`."""
    match folded(condition):
        case Operation("&&" | "||" as operator, (left, right)):
            neutral = operator == "&&"
            for part, other in ((left, right), (right, left)):
                if _is(part, neutral):
                    return folded_condition(other)
            return Operation(operator, (folded_condition(left), folded_condition(right)))
        case other:
            return other


def _is(expression: Expression, value: bool) -> bool:
    return is_constant(expression) and truth(expression) is value


RULE = Rule(
    "fold constants",
    "the part reads no variable, no clock and no chance, and the engine itself says its value; an error stays one",
    fold_constants,
)
