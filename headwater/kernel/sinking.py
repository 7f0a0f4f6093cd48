"""Filters go down to the inputs that have all their variables, so that less is kept and joined.

    Filter(Join(A, B), c)          →   Join(Filter(A, c), B)            every variable of c is bound in all of A,
                                                                        or in A alone
    Filter(LeftJoin(A, B), c)      →   LeftJoin(Filter(A, c), B)        every variable of c is bound in all of A
    LeftJoin(A, B, c)              →   LeftJoin(A, Filter(B, c))        … of B, or in B alone
    Filter(Union(A, B), c)         →   Union(Filter(A, c), Filter(B, c))
    Filter(Minus(A, B), c)         →   Minus(Filter(A, c), B)
    Filter(Extend(A, ?v, e), c)    →   Extend(Filter(A, c), ?v, e)      c does not mention ?v

A condition that both A and B can decide goes to both. Conditions that depend on more than their row (EXISTS, NOW(),
timestamp()) stay where they are, but for an EXISTS that looks at the right side of OPTIONAL alone; so do those that
name a variable nobody around binds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import reduce

from headwater.algebra.nodes import Bgp, ExistsPlan, Extend, Filter, Graph, Join, LeftJoin, Minus, Node, Union, Window
from headwater.algebra.scope import certain, map_plan, mentioned, sub_expressions, visible
from headwater.kernel.expressions import can_evaluate, is_steady
from headwater.language.expressions import Expression, Operation
from headwater.reference.rewrite import uses_timestamps
from headwater.terms.model import Variable


def conjuncts(condition: Expression) -> Iterator[Expression]:
    """The conditions that `&&` connects."""
    if isinstance(condition, Operation) and condition.operator == "&&":
        for operand in condition.operands:
            yield from conjuncts(operand)
    else:
        yield condition


def all_of(conditions: Iterable[Expression]) -> Expression:
    """All conditions at once."""
    return reduce(lambda a, b: Operation("&&", (a, b)), conditions)


def filtered(node: Node, conditions: Iterable[Expression]) -> Node:
    """The solutions for which all conditions hold."""
    listed = list(conditions)
    return Filter(node, all_of(listed)) if listed else node


def sunk(plan: Node) -> Node:
    """The plan with every filter as low as its meaning allows."""

    def change(node: Node) -> Node:
        match node:
            case Filter(inner, condition):
                return _sink(inner, list(conjuncts(condition)))
            case LeftJoin(left, right, Expression() as condition):
                return _into_the_right(left, right, list(conjuncts(condition)))
        return node

    return map_plan(plan, change)


def _sink(node: Node, conditions: list[Expression]) -> Node:
    if isinstance(node, Filter):
        return _sink(node.inner, [*conjuncts(node.condition), *conditions])
    bound = set(visible(node))
    plain = [c for c in conditions if can_evaluate(c) and mentioned(c) <= bound]
    others = [c for c in conditions if c not in plain]
    below, left_over = _below(node, plain)
    return filtered(below, [*left_over, *others])


def _below(node: Node, conditions: list[Expression]) -> tuple[Node, list[Expression]]:
    """The node with conditions inside it, and those that had to stay outside."""
    match node:
        case _ if not conditions:
            return node, []
        case Bgp(triples) if len(triples) > 1:
            return _into_parts([Bgp((triple,)) for triple in triples], conditions)
        case Join():
            return _into_parts(list(_parts(node)), conditions)
        case LeftJoin(left, _, _):
            sure = certain(left)
            mine = [c for c in conditions if mentioned(c) <= sure]
            return replace(node, left=_sink(left, mine)), [c for c in conditions if c not in mine]
        case Union(left, right):
            return Union(_sink_all(left, conditions), _sink_all(right, conditions)), []
        case Minus(left, right):
            return Minus(_sink_all(left, conditions), right), []
        case Extend(inner, variable, expression):
            mine = [c for c in conditions if variable not in mentioned(c)]
            return Extend(_sink(inner, mine), variable, expression), [c for c in conditions if c not in mine]
        case Graph(name, inner) | Window(_, name, inner):
            mine = [c for c in conditions if name not in mentioned(c)]
            return node.with_children(_sink(inner, mine)), [c for c in conditions if c not in mine]
    return node, conditions


def _sink_all(node: Node, conditions: list[Expression]) -> Node:
    """All conditions inside, those that name a variable which this node lacks around what the others leave."""
    bound = set(visible(node))
    mine = [c for c in conditions if mentioned(c) <= bound]
    return filtered(_sink(node, mine), (c for c in conditions if c not in mine))


def _parts(node: Node) -> Iterator[Node]:
    """The inputs of nested joins; a basic graph pattern is the join of its triples."""
    match node:
        case Join(left, right):
            yield from _parts(left)
            yield from _parts(right)
        case Bgp(triples):
            yield from (Bgp((triple,)) for triple in triples)
        case _:
            yield node


def _into_parts(parts: list[Node], conditions: list[Expression]) -> tuple[Node, list[Expression]]:
    """The join of some parts with each condition in every part that decides it."""
    mine: list[list[Expression]] = [[] for _ in parts]
    left_over: list[Expression] = []
    for condition in conditions:
        wanted = mentioned(condition)
        places = [i for i in range(len(parts)) if wanted and _decides(parts, i, wanted)]
        for place in places:
            mine[place].append(condition)
        if not places:
            left_over.append(condition)
    sunk_parts = [_sink(part, own) if own else part for part, own in zip(parts, mine, strict=True)]
    return reduce(Join, _together(sunk_parts)), left_over


def _decides(parts: list[Node], place: int, wanted: frozenset[Variable]) -> bool:
    """Whether the values of some variables are the same in a part as in the join."""
    mine, sure = set(visible(parts[place])), certain(parts[place])
    others = {v for i, other in enumerate(parts) if i != place for v in visible(other)}
    return bool(wanted & mine) and all(v in sure or v not in others for v in wanted)


def _together(parts: list[Node]) -> list[Node]:
    """Triple patterns without a condition as one basic graph pattern again."""
    triples = [triple for part in parts if isinstance(part, Bgp) for triple in part.triples]
    rest = [part for part in parts if not isinstance(part, Bgp)]
    return [Bgp(tuple(triples)), *rest] if triples else rest


def _into_the_right(left: Node, right: Node, conditions: list[Expression]) -> Node:
    """OPTIONAL with those of its conditions inside that the right side decides."""
    sure, outside = certain(right), set(visible(left))
    mine = [c for c in conditions if _is_timeless(c) and all(v in sure or v not in outside for v in mentioned(c))]
    rest = [c for c in conditions if c not in mine]
    inner = _sink(right, mine) if mine else right
    return LeftJoin(left, inner, all_of(rest) if rest else None)


def _is_timeless(condition: Expression) -> bool:
    """Whether a condition is one on values, or on patterns that have a solution, but not on when they came."""
    parts = list(sub_expressions(condition))
    patterns = [part.plan for part in parts if isinstance(part, ExistsPlan)]
    return all(isinstance(part, ExistsPlan) or is_steady(part) for part in parts) and not any(
        map(uses_timestamps, patterns)
    )
