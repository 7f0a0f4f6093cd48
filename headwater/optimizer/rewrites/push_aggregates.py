"""Aggregates are computed where their streams are, and put together afterwards (C-SPARQL, section 5.2).

Totally distributable: each group lies in one branch.

    Group(Union(A, B), {?market …})          →    Union(Group(A, …), Group(B, …))
        A has BIND(:x AS ?market), B has BIND(:y AS ?market)

Partially distributable: each branch, or the stream side of a join with static data, gives partial aggregates.

    Group(Union(A, B), K, COUNT)             →    Group(Union(Group(A, K, COUNT), Group(B, K, COUNT)), K, SUM)
    Group(Join(stream, static), K, COUNT)    →    Group(Join(Group(stream, K', COUNT), static), K, SUM)
        K' are the variables of the stream side among K, and those on which the two sides meet

Only aggregates that can be computed in two steps are pushed this way (`distribution.split`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from headwater.algebra.active_graphs import Source, default_source, source_inside
from headwater.algebra.nodes import Extend, Group, Node, Service, Union
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import all_variables, certain, visible
from headwater.language.expressions import Aggregate, Constant, Expression, VariableReference
from headwater.optimizer.dependencies import is_steady, is_steady_plan, reads_stream
from headwater.optimizer.distribution import NotDistributable, Split, splits_of
from headwater.optimizer.joins import all_visible, factors, joined
from headwater.optimizer.needs import read_by_aggregates, shared
from headwater.optimizer.rule import Rule
from headwater.optimizer.statistics import Statistics
from headwater.terms.model import Literal, NamedNode, Variable


def push_aggregates(plan: QueryPlan, statistics: Statistics | None = None) -> Node:
    return _Distributing(plan).node(plan.root, default_source(plan))


class _Distributing:
    def __init__(self, plan: QueryPlan) -> None:
        self._plan = plan
        self._fresh = _fresh_names(plan)

    def node(self, node: Node, source: Source) -> Node:
        """The node with every grouping below it distributed where that can be done."""
        if isinstance(node, Service):
            return node
        within = source_inside(self._plan, node, source)
        renewed = node.with_children(*(self.node(child, within) for child in node.children))
        if not isinstance(renewed, Group) or not self._is_worth_it(renewed, source):
            return renewed
        return self._over_union(renewed) or self._over_join(renewed, source) or renewed

    def _is_worth_it(self, group: Group, source: Source) -> bool:
        steady = all(expression is None or is_steady(expression) for _, expression in group.keys)
        return steady and bool(group.aggregates) and reads_stream(self._plan, group.inner, source)

    def _over_union(self, group: Group) -> Node | None:
        branches = _branches(group.inner)
        if len(branches) < 2 or any(isinstance(branch, Group) for branch in branches):
            return None
        if groups_lie_in_one_branch(group, branches):
            whole: list[Node] = [Group(branch, group.keys, group.aggregates) for branch in branches]
            return reduce(Union, whole)
        splits = in_two_steps(group)
        if splits is None or not empty_parts_do_not_count(group.keys, splits):
            return None
        names = [self._fresh() for _ in splits]
        partial = tuple((name, one.partial) for name, one in zip(names, splits, strict=True))
        parts: list[Node] = [Group(branch, group.keys, partial) for branch in branches]
        keys = tuple((variable, None) for variable, _ in group.keys)
        return Group(reduce(Union, parts), keys, _merging(splits, names))

    def _over_join(self, group: Group, source: Source) -> Node | None:
        inputs = factors(group.inner)
        streams = [node for node in inputs if reads_stream(self._plan, node, source)]
        static = [node for node in inputs if node not in streams]
        splits = in_two_steps(group)
        if not static or splits is None or any(isinstance(node, Group | Service) for node in inputs):
            return None
        stream, other = joined(streams), joined(static)
        plain = [variable for variable, expression in group.keys if expression is None]
        meeting = [v for v in visible(stream) if v in plain or v in shared(stream, other)]
        if len(plain) < len(group.keys) or not meeting or not cuts_down(stream, meeting):
            return None
        if not (is_steady_plan(stream) and the_stream_alone_knows_the_arguments(group, stream, other)):
            return None
        names = [self._fresh() for _ in splits]
        partial = tuple((name, one.partial) for name, one in zip(names, splits, strict=True))
        counted = Group(stream, tuple((v, None) for v in meeting), partial)
        return Group(joined([counted, *static]), group.keys, _merging(splits, names))


def groups_lie_in_one_branch(group: Group, branches: list[Node]) -> bool:
    """Whether some grouping variable is another constant in each branch."""
    for variable, expression in group.keys:
        if expression is None:
            constants = [_constant(branch, variable) for branch in branches]
            if None not in constants and len(set(constants)) == len(constants):
                return True
    return False


def _constant(branch: Node, variable: Variable) -> NamedNode | Literal | None:
    """The term that a branch binds a variable to, where that is always the same one."""
    while isinstance(branch, Extend):
        if branch.variable == variable:
            return branch.expression.value if isinstance(branch.expression, Constant) else None
        branch = branch.inner
    return None


def in_two_steps(group: Group) -> tuple[Split, ...] | None:
    """All aggregates in two steps, if each can be computed that way."""
    found = splits_of(group)
    return None if isinstance(found, NotDistributable) else found


def empty_parts_do_not_count(keys: tuple[tuple[Variable, Expression | None], ...], splits: Sequence[Split]) -> bool:
    """Without keys an empty branch has a group as well; its MIN is an error, which would spoil the whole."""
    return bool(keys) or all(one.aggregate.function not in ("MIN", "MAX") for one in splits)


def the_stream_alone_knows_the_arguments(group: Group, stream: Node, other: Node) -> bool:
    """Whether every argument has the same value on the stream's solutions as after the join."""
    read = read_by_aggregates(stream, (aggregate for _, aggregate in group.aggregates))
    return read <= frozenset(visible(stream)) and not (read - certain(stream)) & all_visible([other])


def cuts_down(stream: Node, keys: list[Variable]) -> bool:
    """Whether solutions of the stream can agree on the keys at all, so that counting them early saves something."""
    return bool(frozenset(visible(stream)) - frozenset(keys))


def _branches(node: Node) -> list[Node]:
    return [*_branches(node.left), *_branches(node.right)] if isinstance(node, Union) else [node]


def _merging(splits: Sequence[Split], names: list[Variable]) -> tuple[tuple[Variable, Aggregate], ...]:
    return tuple(
        (one.variable, Aggregate(one.merge, VariableReference(name))) for one, name in zip(splits, names, strict=True)
    )


def _fresh_names(plan: QueryPlan) -> Callable[[], Variable]:
    """Names for variables that no text has and no other rule has given."""
    prefix = "hw_"
    while prefix in plan.text:
        prefix += "_"
    taken = {variable.value for variable in all_variables(plan.root)}
    number = 0

    def fresh() -> Variable:
        nonlocal number
        number += 1
        while f"{prefix}p{number}" in taken:
            number += 1
        return Variable(f"{prefix}p{number}")

    return fresh


RULE = Rule(
    "push aggregates",
    "each group lies in one part, or its partial aggregates are exact and parts without solutions do not count",
    push_aggregates,
)
