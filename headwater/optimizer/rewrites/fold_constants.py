"""Constant expressions, and constant parts of expressions, are replaced by their values.

    FILTER(?v > 60 * 60)              →    FILTER(?v > 3600)
    FILTER(1 = 1 && ?v > 2)           →    FILTER(?v > 2)
    OPTIONAL { P FILTER(false) }      →    nothing

An error stays an error: `BIND(1/0 AS ?x)` stays, and `1/0 = 1 || ?v > 2` is true where ?v > 2 is.
"""

from __future__ import annotations

from dataclasses import replace

from headwater.algebra.nodes import Aggregation, Extend, Filter, Group, LeftJoin, Node, OrderBy, Values
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import map_expression, map_expressions, visible_variables
from headwater.language.expressions import Constant, Expression, FunctionCall, Operation
from headwater.optimizer.constant_values import FALSE, TRUE, constant_value, effective_boolean_value, is_constant
from headwater.optimizer.rule import NodeContext, Rule, rewrite_plan
from headwater.optimizer.statistics import Statistics


def fold_constants(plan: QueryPlan, statistics: Statistics | None = None) -> Node:
    def change(node: Node, context: NodeContext) -> Node:
        match node:
            case Filter(_, condition):
                return _simplify_filter(node, fold_condition(condition))
            case LeftJoin(_, _, Expression() as condition):
                return _simplify_left_join(node, fold_condition(condition))
            case Extend() | Group() | OrderBy() | Aggregation():
                return map_expressions(node, fold_expression)
        return node

    return rewrite_plan(plan, change)


def _simplify_filter(node: Filter, condition: Expression) -> Node:
    if not is_constant(condition):
        return replace(node, condition=condition)
    return node.inner if effective_boolean_value(condition) else Values(visible_variables(node), ())


def _simplify_left_join(node: LeftJoin, condition: Expression) -> Node:
    if not is_constant(condition):
        return replace(node, condition=condition)
    return replace(node, condition=None) if effective_boolean_value(condition) else node.left


def fold_expression(expression: Expression) -> Expression:
    """The expression with its constant parts replaced by their values; value and errors stay the same."""

    def inner(part: Expression) -> Expression | None:
        return None if part is expression else fold_expression(part)

    renewed = map_expression(expression, inner)
    known = _short_circuit(renewed)
    if known is not None:
        return known
    if isinstance(renewed, Constant) or not is_constant(renewed):
        return renewed
    value = constant_value(renewed)
    return renewed if value is None else Constant(value)


def _short_circuit(expression: Expression) -> Expression | None:
    """The value that a constant operand of `&&`, `||`, IF or COALESCE decides alone; None if it does not."""
    match expression:
        case Operation("&&", operands) if any(_has_truth_value(part, False) for part in operands):
            return FALSE
        case Operation("||", operands) if any(_has_truth_value(part, True) for part in operands):
            return TRUE
        case FunctionCall("IF", (condition, then, otherwise)):
            if _has_truth_value(condition, True):
                return then
            return otherwise if _has_truth_value(condition, False) else None
        case FunctionCall("COALESCE", (Constant() as first, *_)):
            return first
    return None


def fold_condition(condition: Expression) -> Expression:
    """The same for a condition, of which only the truth matters: `true && x` and `false || x` become `x`."""
    match fold_expression(condition):
        case Operation("&&" | "||" as operator, (left, right)):
            neutral = operator == "&&"
            for part, other in ((left, right), (right, left)):
                if _has_truth_value(part, neutral):
                    return fold_condition(other)
            return Operation(operator, (fold_condition(left), fold_condition(right)))
        case other:
            return other


def _has_truth_value(expression: Expression, value: bool) -> bool:
    return is_constant(expression) and effective_boolean_value(expression) is value


RULE = Rule(
    "fold constants",
    "the part reads no variable, no clock and no chance, and the engine itself says its value; an error stays one",
    fold_constants,
)
