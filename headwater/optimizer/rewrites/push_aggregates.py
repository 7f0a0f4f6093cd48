"""Aggregates are computed per branch or per stream and merged afterwards (C-SPARQL, section 5.2).

Totally distributable: each group lies in one branch.

    Group(Union(A, B), {?market …})          →    Union(Group(A, …), Group(B, …))
        A has BIND(:x AS ?market), B has BIND(:y AS ?market)

`GRAPH ?market { P }` over streams is such a union, with a branch for each stream: each stream is one market.

Partially distributable: each branch, or the stream side of a join with static data, gives partial aggregates.

    Group(Union(A, B), K, COUNT)             →    Group(Union(Group(A, K, COUNT), Group(B, K, COUNT)), K, SUM)
    Group(Join(stream, static), K, COUNT)    →    Group(Join(Group(stream, K', COUNT), static), K, SUM)
        K' are the variables of the stream side among K, and the join variables

Only aggregates that can be computed in two steps are pushed this way (`distribution.split_aggregate`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from headwater.algebra.active_graphs import ActiveGraph, active_graph_inside, default_active_graph
from headwater.algebra.nodes import Extend, Graph, Group, Node, Service, Union
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import all_variables, certain_variables, visible_variables
from headwater.language.expressions import Aggregate, Constant, Expression, VariableReference
from headwater.optimizer.dependencies import has_stream_pattern, is_deterministic, is_deterministic_plan
from headwater.optimizer.distribution import AggregateSplit, NotDistributable, split_aggregates
from headwater.optimizer.joins import join_operands, join_plans, visible_in_any
from headwater.optimizer.required_variables import join_variables, variables_of_aggregates
from headwater.optimizer.rule import Rule
from headwater.optimizer.statistics import Statistics
from headwater.terms.model import Literal, NamedNode, Variable


def push_aggregates(plan: QueryPlan, statistics: Statistics | None = None) -> Node:
    return _AggregatePusher(plan).push_below(plan.root, default_active_graph(plan))


class _AggregatePusher:
    """Pushes the groupings of one plan into unions and joins."""

    def __init__(self, plan: QueryPlan) -> None:
        self._plan = plan
        self._fresh = _fresh_variables(plan)

    def push_below(self, node: Node, graph: ActiveGraph) -> Node:
        """The node with every grouping in it pushed down where that can be done."""
        if isinstance(node, Service):
            return node
        within = active_graph_inside(self._plan, node, graph)
        renewed = node.with_children(*(self.push_below(child, within) for child in node.children))
        if not isinstance(renewed, Group) or not self._is_worth_it(renewed, graph):
            return renewed
        return self._push_into_union(renewed) or self._push_into_join(renewed, graph) or renewed

    def _is_worth_it(self, group: Group, graph: ActiveGraph) -> bool:
        steady = all(expression is None or is_deterministic(expression) for _, expression in group.keys)
        return steady and bool(group.aggregates) and has_stream_pattern(self._plan, group.inner, graph)

    def _push_into_union(self, group: Group) -> Node | None:
        """Group each branch of a UNION first and merge the partial aggregates; None if it cannot be done."""
        branches = _branches(group.inner, self._plan)
        if len(branches) < 2 or any(isinstance(branch, Group) for branch in branches):
            return None
        if is_partitioned_by_branch(group, branches):
            whole: list[Node] = [Group(branch, group.keys, group.aggregates) for branch in branches]
            return reduce(Union, whole)
        splits = split_all(group)
        if splits is None or not can_merge_empty_parts(group.keys, splits):
            return None
        names = [self._fresh() for _ in splits]
        partial = tuple((name, one.partial) for name, one in zip(names, splits, strict=True))
        parts: list[Node] = [Group(branch, group.keys, partial) for branch in branches]
        keys = tuple((variable, None) for variable, _ in group.keys)
        return Group(reduce(Union, parts), keys, _merge_aggregates(splits, names))

    def _push_into_join(self, group: Group, graph: ActiveGraph) -> Node | None:
        """Group the stream side of a join before it meets the static data; None if it cannot be done."""
        inputs = join_operands(group.inner)
        streams = [node for node in inputs if has_stream_pattern(self._plan, node, graph)]
        static = [node for node in inputs if node not in streams]
        splits = split_all(group)
        if not static or splits is None or any(isinstance(node, Group | Service) for node in inputs):
            return None
        stream, other = join_plans(streams), join_plans(static)
        plain = [variable for variable, expression in group.keys if expression is None]
        meeting = [v for v in visible_variables(stream) if v in plain or v in join_variables(stream, other)]
        if len(plain) < len(group.keys) or not meeting or not can_reduce_rows(stream, meeting):
            return None
        if not (is_deterministic_plan(stream) and has_arguments_from_stream(group, stream, other)):
            return None
        names = [self._fresh() for _ in splits]
        partial = tuple((name, one.partial) for name, one in zip(names, splits, strict=True))
        counted = Group(stream, tuple((v, None) for v in meeting), partial)
        return Group(join_plans([counted, *static]), group.keys, _merge_aggregates(splits, names))


def is_partitioned_by_branch(group: Group, branches: list[Node]) -> bool:
    """Whether each group lies in one branch: a grouping variable is a different constant in each of them."""
    for variable, expression in group.keys:
        if expression is None:
            constants = [_constant_of(branch, variable) for branch in branches]
            if None not in constants and len(set(constants)) == len(constants):
                return True
    return False


def _constant_of(branch: Node, variable: Variable) -> NamedNode | Literal | None:
    """The term that BIND gives a variable in a branch; None if it is not a constant."""
    while isinstance(branch, Extend):
        if branch.variable == variable:
            return branch.expression.value if isinstance(branch.expression, Constant) else None
        branch = branch.inner
    return None


def split_all(group: Group) -> tuple[AggregateSplit, ...] | None:
    """All aggregates as partial ones and their merge; None if one cannot be split."""
    splits = split_aggregates(group)
    return None if isinstance(splits, NotDistributable) else splits


def can_merge_empty_parts(
    keys: tuple[tuple[Variable, Expression | None], ...], splits: Sequence[AggregateSplit]
) -> bool:
    """Whether empty branches do no harm: without keys they have a group as well, whose MIN or MAX is an error."""
    return bool(keys) or all(one.aggregate.function not in ("MIN", "MAX") for one in splits)


def has_arguments_from_stream(group: Group, stream: Node, other: Node) -> bool:
    """Whether the stream side alone decides the value of every argument."""
    read = variables_of_aggregates(stream, (aggregate for _, aggregate in group.aggregates))
    return read <= frozenset(visible_variables(stream)) and not (read - certain_variables(stream)) & visible_in_any(
        [other]
    )


def can_reduce_rows(stream: Node, keys: list[Variable]) -> bool:
    """Whether several solutions of the stream can have the same keys, so that early grouping saves rows."""
    return bool(frozenset(visible_variables(stream)) - frozenset(keys))


def _branches(node: Node, plan: QueryPlan) -> list[Node]:
    """The branches of a union; GRAPH with a variable has one for each graph, if all of these are known."""
    match node:
        case Union(left, right):
            return [*_branches(left, plan), *_branches(right, plan)]
        case Graph(Variable() as name, inner) if plan.named_graphs is not None and name not in all_variables(inner):
            streams = [source.graph for source in plan.windows if source.graph is not None]
            graphs = dict.fromkeys([*streams, *plan.named_graphs])
            return [Extend(Graph(graph, inner), name, Constant(graph)) for graph in graphs] or [node]
    return [node]


def _merge_aggregates(
    splits: Sequence[AggregateSplit], names: list[Variable]
) -> tuple[tuple[Variable, Aggregate], ...]:
    return tuple(
        (one.variable, Aggregate(one.merge, VariableReference(name))) for one, name in zip(splits, names, strict=True)
    )


def _fresh_variables(plan: QueryPlan) -> Callable[[], Variable]:
    """Makes variables that occur neither in the text nor in the plan."""
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
