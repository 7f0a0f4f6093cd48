"""Filters go to the smallest parts of the plan that bind their variables, on both sides of a join.

    Filter(Join(A, B), c)        →    Join(Filter(A, c), B)             A decides c alone
    Filter(Join(A, B), c)        →    Join(Filter(A, c), Filter(B, c))  each of them does
    Filter(Union(A, B), c)       →    Union(Filter(A, c), Filter(B, c))
    Filter(LeftJoin(A, B), c)    →    LeftJoin(Filter(A, c), B)         A decides c alone
    LeftJoin(A, B, c)            →    LeftJoin(A, Filter(B, c))         B decides c alone

A *decides* c alone against B if each variable of c is always bound in A, or never bound in B: then c has the same
value, or the same error, on a solution of A as on every solution of the join that extends it. A triple pattern of a
basic graph pattern counts as an input of a join.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce

from headwater.algebra.active_graphs import ActiveGraph, active_graph_inside
from headwater.algebra.nodes import (
    Aggregation,
    Bgp,
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
    Union,
    Window,
)
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import certain_variables, conjuncts_of, expression_variables, visible_variables
from headwater.algebra.translate import conjunction_of
from headwater.language.expressions import Constant, Expression
from headwater.optimizer.dependencies import has_exists, is_deterministic
from headwater.optimizer.joins import join_plans, single_pattern_operands, visible_in_any
from headwater.optimizer.rewrites.bind_equalities import substitute_in_expression
from headwater.optimizer.rule import NodeContext, Rule, rewrite_plan
from headwater.optimizer.statistics import Statistics
from headwater.terms.model import Variable


def push_filters(
    plan: QueryPlan, statistics: Statistics | None = None, may_filter: Callable[[Node], bool] = lambda _: True
) -> Node:
    """Push filters towards the patterns that bind their variables, into the inputs of joins that may be filtered."""
    pushing = _FilterPusher(plan, may_filter)

    def change(node: Node, context: NodeContext) -> Node:
        match node:
            case Filter(inner, condition) if can_move(condition) and is_independent_of_outside(
                inner, condition, context
            ):
                return pushing.try_push_below(inner, condition, context.active_graph) or node
            case LeftJoin(left, right, Expression() as condition):
                return pushing.push_into_optional(left, right, conjuncts_of(condition), context)
            case Aggregation():
                return pushing.push_below_aggregation(node, context.active_graph)
        return node

    return rewrite_plan(plan, change)


def can_move(condition: Expression) -> bool:
    """Whether a condition may be evaluated elsewhere: it is deterministic and reads a variable."""
    return is_deterministic(condition) and bool(expression_variables(condition))


def is_independent_of_outside(node: Node, condition: Expression, context: NodeContext) -> bool:
    """Whether the node binds all variables of the condition: inside EXISTS others may have values from outside."""
    return not context.is_correlated or expression_variables(condition) <= certain_variables(node)


def is_decided_by(node: Node, others: Iterable[Node], condition: Expression) -> bool:
    """Whether the condition has the same value on the node as after the join with the others."""
    read = expression_variables(condition)
    unsure = read - certain_variables(node)
    return bool(read & frozenset(visible_variables(node))) and not unsure & visible_in_any(others)


class _FilterPusher:
    """Moves filters down one plan, into the inputs of joins that `may_filter` allows."""

    def __init__(self, plan: QueryPlan, may_filter: Callable[[Node], bool]) -> None:
        self._plan = plan
        self._may_filter = may_filter

    def push_down(self, node: Node, condition: Expression, graph: ActiveGraph) -> Node:
        """The node filtered as deep down as possible; by a filter on top of it if not below."""
        return self.try_push_below(node, condition, graph) or Filter(node, condition)

    def try_push_below(self, node: Node, condition: Expression, graph: ActiveGraph) -> Node | None:
        """The node with the filter below it; None if the condition cannot go below."""
        match node:
            case Filter(inner, other):
                filtered = self.try_push_below(inner, condition, graph)
                return None if filtered is None else Filter(filtered, other)
            case Join() | Bgp():
                return self._push_into_join(single_pattern_operands(node), condition, graph)
            case LeftJoin(left, right, test):
                if not is_decided_by(left, [right], condition):
                    return None
                return LeftJoin(
                    self.push_down(left, condition, graph),
                    self._filter_right_side(left, right, condition, graph),
                    test,
                )
            case Minus(left, right):
                return Minus(
                    self.push_down(left, condition, graph), self._filter_right_side(left, right, condition, graph)
                )
            case Union(left, right):
                return Union(self.push_down(left, condition, graph), self.push_down(right, condition, graph))
            case Extend():
                return self._push_below_extend(node, condition, graph)
            case Graph(name, inner) | Window(_, name, inner):
                if not is_same_inside_graph(name, inner, condition):
                    return None
                return node.with_children(
                    self.push_down(inner, condition, active_graph_inside(self._plan, node, graph))
                )
            case Project(inner, variables):
                if not has_projected_variables(inner, variables, condition):
                    return None
                return Project(self.push_down(inner, condition, graph), variables)
            case Distinct(inner) | Reduced(inner) | OrderBy(inner, _):
                return node.with_children(self.push_down(inner, condition, graph))
            case Group(inner, keys, _):
                plain = frozenset(v for v, expression in keys if expression is None)
                if not is_decided_by_group(plain, condition):
                    return None
                return node.with_children(self.push_down(inner, condition, graph))
            case Aggregation(inner, clauses, _):
                if not all(is_decided_by_group(frozenset(group), condition) for _, _, group in clauses):
                    return None
                return node.with_children(self.push_down(inner, condition, graph))
        return None

    def _push_into_join(self, inputs: list[Node], condition: Expression, graph: ActiveGraph) -> Node | None:
        """The join with the filter on each input that decides the condition."""
        if len(inputs) < 2:
            return None
        chosen = [
            is_decided_by(node, [*inputs[:i], *inputs[i + 1 :]], condition) and self._may_filter(node)
            for i, node in enumerate(inputs)
        ]
        if not any(chosen):
            return None
        pairs = zip(inputs, chosen, strict=True)
        return join_plans(self.push_down(node, condition, graph) if mine else node for node, mine in pairs)

    def _filter_right_side(self, left: Node, right: Node, condition: Expression, graph: ActiveGraph) -> Node:
        """The right side of OPTIONAL or MINUS, filtered as well where both sides decide the condition."""
        return self.push_down(right, condition, graph) if is_decided_by_both(left, right, condition) else right

    def _push_below_extend(self, node: Extend, condition: Expression, graph: ActiveGraph) -> Node | None:
        inner, variable, expression = node.inner, node.variable, node.expression
        if reads_extended_variable(variable, condition):
            if not isinstance(expression, Constant) or has_exists(condition):
                return None
            condition = substitute_in_expression(condition, variable, expression.value)
        return Extend(self.push_down(inner, condition, graph), variable, expression)

    def push_into_optional(self, left: Node, right: Node, conditions: list[Expression], context: NodeContext) -> Node:
        """OPTIONAL with those of its conditions that the right side decides alone as filters there."""
        mine = [
            condition
            for condition in conditions
            if can_move(condition)
            and is_decided_by(right, [left], condition)
            and is_independent_of_outside(right, condition, context)
        ]
        rest = [c for c in conditions if c not in mine]
        inner = reduce(lambda node, condition: self.push_down(node, condition, context.active_graph), mine, right)
        return LeftJoin(left, inner, conjunction_of(rest) if rest else None)

    def push_below_aggregation(self, node: Aggregation, graph: ActiveGraph) -> Node:
        """Push conditions of AGGREGATE below it as filters, if they keep or drop whole groups of every clause."""
        groups = [frozenset(group) for _, _, group in node.clauses]
        early = [c for c in node.conditions if can_move(c) and all(is_decided_by_group(group, c) for group in groups)]
        rest = tuple(c for c in node.conditions if c not in early)
        inner = reduce(lambda below, condition: self.push_down(below, condition, graph), early, node.inner)
        return Aggregation(inner, node.clauses, rest)


def is_decided_by_both(left: Node, right: Node, condition: Expression) -> bool:
    """Whether compatible solutions of both sides agree on the condition."""
    return not has_exists(condition) and expression_variables(condition) <= certain_variables(left) & certain_variables(
        right
    )


def reads_extended_variable(variable: Variable, condition: Expression) -> bool:
    """Whether the condition reads the variable of a BIND, which is unbound below it."""
    return variable in expression_variables(condition)


def is_same_inside_graph(name: object, inner: Node, condition: Expression) -> bool:
    """Whether a condition has the same value inside GRAPH or WINDOW, where their name is unbound."""
    if has_exists(condition):
        return False
    return (
        not isinstance(name, Variable)
        or name not in expression_variables(condition)
        or name in certain_variables(inner)
    )


def has_projected_variables(inner: Node, variables: tuple[Variable, ...], condition: Expression) -> bool:
    """Whether the projection keeps all variables of the condition: a hidden one is another variable than outside."""
    return expression_variables(condition) & frozenset(visible_variables(inner)) <= frozenset(variables)


def is_decided_by_group(keys: frozenset[Variable], condition: Expression) -> bool:
    """Whether a condition is true for all solutions of a group or for none."""
    return not has_exists(condition) and expression_variables(condition) <= keys


RULE = Rule(
    "push filters",
    "each variable of the condition is bound for sure in the smaller part, or nothing outside of it can bind it",
    push_filters,
)
