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
from functools import reduce

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
from headwater.algebra.notation import conjuncts
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import certain, visible
from headwater.algebra.translate import conjunction
from headwater.language.expressions import Constant, Expression
from headwater.optimizer.bind_equalities import replaced
from headwater.optimizer.joins import all_visible, connected_groups, joined, single_factors
from headwater.optimizer.reading import has_exists, is_steady, reads
from headwater.optimizer.rule import Rule, rewritten
from headwater.optimizer.statistics import Statistics
from headwater.terms.model import Variable

_LARGEST_GROUP = 3
_MOST_FACTORS = 16
"""How many inputs of a join are looked at for a group that decides a filter; beyond, only single ones are."""


def push_filters(plan: QueryPlan, statistics: Statistics | None = None) -> Node:
    def change(node: Node, correlated: bool) -> Node:
        match node:
            case Filter(inner, condition) if may_move(condition) and looks_inside(inner, condition, correlated):
                return _pushed(inner, condition) or node
            case LeftJoin(left, right, Expression() as condition):
                return _into_the_optional_part(left, right, conjuncts(condition), correlated)
            case Aggregation():
                return _out_of_the_aggregation(node)
        return node

    return rewritten(plan.root, change)


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


def _sunk(node: Node, condition: Expression) -> Node:
    """The node filtered as deep down as possible."""
    return _pushed(node, condition) or Filter(node, condition)


def _pushed(node: Node, condition: Expression) -> Node | None:
    """The node filtered somewhere below itself; None where the condition cannot go below."""
    match node:
        case Filter(inner, other):
            found = _pushed(inner, condition)
            return None if found is None else Filter(found, other)
        case Join() | Bgp():
            return _into_join(single_factors(node), condition)
        case LeftJoin(left, right, test):
            if not decides(left, [right], condition):
                return None
            return LeftJoin(_sunk(left, condition), _mirrored(left, right, condition), test)
        case Minus(left, right):
            return Minus(_sunk(left, condition), _mirrored(left, right, condition))
        case Union(left, right):
            return Union(_sunk(left, condition), _sunk(right, condition))
        case Extend():
            return _below_extend(node, condition)
        case Graph(name, inner) | Window(_, name, inner):
            if not sees_the_same_inside(name, inner, condition):
                return None
            return node.with_children(_sunk(inner, condition))
        case Project(inner, variables):
            if not shows_what_is_read(inner, variables, condition):
                return None
            return Project(_sunk(inner, condition), variables)
        case Distinct(inner) | Reduced(inner) | OrderBy(inner, _):
            return node.with_children(_sunk(inner, condition))
        case Group(inner, keys, _):
            plain = frozenset(v for v, expression in keys if expression is None)
            return node.with_children(_sunk(inner, condition)) if keeps_groups(plain, condition) else None
        case Aggregation(inner, clauses, _):
            if not all(keeps_groups(frozenset(group), condition) for _, _, group in clauses):
                return None
            return node.with_children(_sunk(inner, condition))
    return None


def _into_join(inputs: list[Node], condition: Expression) -> Node | None:
    """To each input that decides the condition, or else to the smallest group of inputs that does."""
    if len(inputs) < 2:
        return None
    deciding = [decides(node, _without(inputs, (i,)), condition) for i, node in enumerate(inputs)]
    if any(deciding):
        pairs = zip(inputs, deciding, strict=True)
        return joined(_sunk(node, condition) if chosen else node for node, chosen in pairs)
    if len(inputs) > _MOST_FACTORS:
        return None
    for group in connected_groups(inputs, _LARGEST_GROUP):
        together = joined(inputs[i] for i in group)
        rest = _without(inputs, group)
        if decides(together, rest, condition):
            return joined([Filter(together, condition), *rest])
    return None


def _mirrored(left: Node, right: Node, condition: Expression) -> Node:
    """The right side of OPTIONAL or MINUS, without what could only meet left solutions that are filtered out."""
    return _sunk(right, condition) if is_decided_by_both(left, right, condition) else right


def _below_extend(node: Extend, condition: Expression) -> Node | None:
    inner, variable, expression = node.inner, node.variable, node.expression
    if reads_the_new_one(variable, condition):
        if not isinstance(expression, Constant) or has_exists(condition):
            return None
        condition = replaced(condition, variable, expression.value)
    return Extend(_sunk(inner, condition), variable, expression)


def _into_the_optional_part(left: Node, right: Node, conditions: list[Expression], correlated: bool) -> Node:
    """OPTIONAL's condition sees both sides; what the right side decides alone goes there, the rest stays."""
    mine = [c for c in conditions if may_move(c) and decides(right, [left], c) and looks_inside(right, c, correlated)]
    rest = [c for c in conditions if c not in mine]
    return LeftJoin(left, reduce(_sunk, mine, right), conjunction(rest) if rest else None)


def _out_of_the_aggregation(node: Aggregation) -> Node:
    """A condition of AGGREGATE that keeps or drops whole groups of every clause can be asked before."""
    groups = [frozenset(group) for _, _, group in node.clauses]
    early = [c for c in node.conditions if may_move(c) and all(keeps_groups(group, c) for group in groups)]
    rest = tuple(c for c in node.conditions if c not in early)
    return Aggregation(reduce(_sunk, early, node.inner), node.clauses, rest)


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


def _without(inputs: list[Node], numbers: tuple[int, ...]) -> list[Node]:
    return [node for i, node in enumerate(inputs) if i not in numbers]


RULE = Rule(
    "push filters",
    "each variable of the condition is bound for sure in the smaller part, or nothing outside of it can bind it",
    push_filters,
)
