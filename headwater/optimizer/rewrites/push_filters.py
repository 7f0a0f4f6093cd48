"""Filters go to the smallest parts of the plan that know their variables, on both sides of a join.

    Filter(Join(A, B), c)        →    Join(Filter(A, c), B)             A decides c alone
    Filter(Join(A, B), c)        →    Join(Filter(A, c), Filter(B, c))  each of them does
    Filter(Union(A, B), c)       →    Union(Filter(A, c), Filter(B, c))
    Filter(LeftJoin(A, B), c)    →    LeftJoin(Filter(A, c), B)         A decides c alone
    LeftJoin(A, B, c)            →    LeftJoin(A, Filter(B, c))         B decides c alone

A *decides* c alone against B where each variable of c is bound for sure in A, or cannot be bound in B: then c has the
same value, or the same error, on a solution of A as on every solution that a join makes of it. A triple pattern of a
basic graph pattern counts as an input of a join.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from enum import Enum
from functools import partial, reduce

from headwater.algebra.active_graphs import Source, source_inside
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
from headwater.algebra.scope import certain, conjuncts, visible
from headwater.algebra.translate import conjunction
from headwater.language.expressions import Constant, Expression
from headwater.optimizer.dependencies import has_exists, is_steady, reads, reads_stream
from headwater.optimizer.joins import all_visible, joined, single_factors
from headwater.optimizer.rewrites.bind_equalities import replaced
from headwater.optimizer.rule import Rule, Where, rewritten
from headwater.optimizer.statistics import Statistics
from headwater.terms.model import Variable


class Side(Enum):
    """The inputs of a join that filters may go to."""

    STATIC = "static"
    STREAM = "stream"
    BOTH = "both"


def push_filters(plan: QueryPlan, statistics: Statistics | None = None, side: Side = Side.BOTH) -> Node:
    pushing = _Pushing(plan, side)

    def change(node: Node, where: Where) -> Node:
        match node:
            case Filter(inner, condition) if may_move(condition) and looks_inside(inner, condition, where.correlated):
                return pushing.below(inner, condition, where.source) or node
            case LeftJoin(left, right, Expression() as condition):
                return pushing.into_the_optional_part(left, right, conjuncts(condition), where)
            case Aggregation():
                return pushing.out_of_the_aggregation(node, where.source)
        return node

    return rewritten(plan, change)


def may_move(condition: Expression) -> bool:
    """Chance, clocks and timestamp() stay where they are; so does what reads no variable."""
    return is_steady(condition) and bool(reads(condition))


def looks_inside(node: Node, condition: Expression, correlated: bool) -> bool:
    """Inside EXISTS a variable that the pattern does not bind for sure may have a value from outside."""
    return not correlated or reads(condition) <= certain(node)


def decides(node: Node, others: Iterable[Node], condition: Expression) -> bool:
    """Whether the condition has the same value on the node as after the join with the others."""
    read = reads(condition)
    unsure = read - certain(node)
    return bool(read & frozenset(visible(node))) and not unsure & all_visible(others)


class _Pushing:
    def __init__(self, plan: QueryPlan, side: Side) -> None:
        self._plan = plan
        self._side = side

    def sunk(self, node: Node, condition: Expression, source: Source) -> Node:
        """The node filtered as deep down as possible."""
        return self.below(node, condition, source) or Filter(node, condition)

    def below(self, node: Node, condition: Expression, source: Source) -> Node | None:
        """The node filtered somewhere below itself; None where the condition cannot go below."""
        match node:
            case Filter(inner, other):
                found = self.below(inner, condition, source)
                return None if found is None else Filter(found, other)
            case Join() | Bgp():
                return self._into_join(single_factors(node), condition, source)
            case LeftJoin(left, right, test):
                if not decides(left, [right], condition):
                    return None
                return LeftJoin(
                    self.sunk(left, condition, source), self._mirrored(left, right, condition, source), test
                )
            case Minus(left, right):
                return Minus(self.sunk(left, condition, source), self._mirrored(left, right, condition, source))
            case Union(left, right):
                return Union(self.sunk(left, condition, source), self.sunk(right, condition, source))
            case Extend():
                return self._below_extend(node, condition, source)
            case Graph(name, inner) | Window(_, name, inner):
                if not sees_the_same_inside(name, inner, condition):
                    return None
                return node.with_children(self.sunk(inner, condition, source_inside(self._plan, node, source)))
            case Project(inner, variables):
                if not shows_what_is_read(inner, variables, condition):
                    return None
                return Project(self.sunk(inner, condition, source), variables)
            case Distinct(inner) | Reduced(inner) | OrderBy(inner, _):
                return node.with_children(self.sunk(inner, condition, source))
            case Group(inner, keys, _):
                plain = frozenset(v for v, expression in keys if expression is None)
                if not keeps_groups(plain, condition):
                    return None
                return node.with_children(self.sunk(inner, condition, source))
            case Aggregation(inner, clauses, _):
                if not all(keeps_groups(frozenset(group), condition) for _, _, group in clauses):
                    return None
                return node.with_children(self.sunk(inner, condition, source))
        return None

    def _into_join(self, inputs: list[Node], condition: Expression, source: Source) -> Node | None:
        """To each input that decides the condition."""
        if len(inputs) < 2:
            return None
        chosen = [
            decides(node, [*inputs[:i], *inputs[i + 1 :]], condition) and self._takes(node, source)
            for i, node in enumerate(inputs)
        ]
        if not any(chosen):
            return None
        pairs = zip(inputs, chosen, strict=True)
        return joined(self.sunk(node, condition, source) if mine else node for node, mine in pairs)

    def _takes(self, node: Node, source: Source) -> bool:
        if self._side is Side.BOTH:
            return True
        return reads_stream(self._plan, node, source) == (self._side is Side.STREAM)

    def _mirrored(self, left: Node, right: Node, condition: Expression, source: Source) -> Node:
        """The right side of OPTIONAL or MINUS, without what could only meet left solutions that are filtered out."""
        return self.sunk(right, condition, source) if is_decided_by_both(left, right, condition) else right

    def _below_extend(self, node: Extend, condition: Expression, source: Source) -> Node | None:
        inner, variable, expression = node.inner, node.variable, node.expression
        if reads_the_new_one(variable, condition):
            if not isinstance(expression, Constant) or has_exists(condition):
                return None
            condition = replaced(condition, variable, expression.value)
        return Extend(self.sunk(inner, condition, source), variable, expression)

    def into_the_optional_part(self, left: Node, right: Node, conditions: list[Expression], where: Where) -> Node:
        """OPTIONAL's condition sees both sides; what the right side decides alone goes there, the rest stays."""
        mine = [
            condition
            for condition in conditions
            if may_move(condition)
            and decides(right, [left], condition)
            and looks_inside(right, condition, where.correlated)
        ]
        rest = [c for c in conditions if c not in mine]
        inner = reduce(lambda node, condition: self.sunk(node, condition, where.source), mine, right)
        return LeftJoin(left, inner, conjunction(rest) if rest else None)

    def out_of_the_aggregation(self, node: Aggregation, source: Source) -> Node:
        """A condition of AGGREGATE that keeps or drops whole groups of every clause can be asked before."""
        groups = [frozenset(group) for _, _, group in node.clauses]
        early = [c for c in node.conditions if may_move(c) and all(keeps_groups(group, c) for group in groups)]
        rest = tuple(c for c in node.conditions if c not in early)
        inner = reduce(lambda below, condition: self.sunk(below, condition, source), early, node.inner)
        return Aggregation(inner, node.clauses, rest)


def is_decided_by_both(left: Node, right: Node, condition: Expression) -> bool:
    """Whether solutions of both sides that are compatible agree on the condition."""
    return not has_exists(condition) and reads(condition) <= certain(left) & certain(right)


def reads_the_new_one(variable: Variable, condition: Expression) -> bool:
    """What BIND makes is not there below it."""
    return variable in reads(condition)


def sees_the_same_inside(name: object, inner: Node, condition: Expression) -> bool:
    """Inside GRAPH and WINDOW the name is not bound yet, and EXISTS would look at another graph."""
    if has_exists(condition):
        return False
    return not isinstance(name, Variable) or name not in reads(condition) or name in certain(inner)


def shows_what_is_read(inner: Node, variables: tuple[Variable, ...], condition: Expression) -> bool:
    """A variable that a sub-query hides is not the one that is meant outside."""
    return reads(condition) & frozenset(visible(inner)) <= frozenset(variables)


def keeps_groups(keys: frozenset[Variable], condition: Expression) -> bool:
    """Whether a condition is true for all solutions of a group or for none."""
    return not has_exists(condition) and reads(condition) <= keys


RULE = Rule(
    "push filters",
    "each variable of the condition is bound for sure in the smaller part, or nothing outside of it can bind it",
    push_filters,
)

TO_ONE_SIDE = {
    side: replace(RULE, name=f"push filters to the {side.value} side", rewrite=partial(push_filters, side=side))
    for side in (Side.STATIC, Side.STREAM)
}
"""Half of the rule, for those who want to know what each half is worth (`benchmarks.pushdown`)."""
