"""Whether an aggregation can be computed in parts: per stream, or per shard of a stream (CS10; C-SPARQL, section 5.2).

- *Totally*: every group lies in one part as a whole, because the streams are cut along a grouping variable by which the
  solutions are keyed (`algebra.partitioning`). The answer is the union of the answers of the parts.
- *Partially*: a group is spread over parts, but its aggregates can be merged from partial ones.
- *Not*: neither holds; `NotDistributable` has the reason.

| aggregate              | partial     | merged by   |                         |
|------------------------|-------------|-------------|-------------------------|
| COUNT                  | COUNT       | SUM         |                         |
| MIN, MAX, SAMPLE       | the same    | the same    | of parts with solutions |
| SUM, AVG               | PARTIAL_SUM | SUM, AVG    | an exact sum            |
| DISTINCT, GROUP_CONCAT | none        |             |                         |

SUM and AVG are those of the exact sum, rounded once (`values/aggregates`): a partial sum that was rounded to a
double, or that left the range of integers, could not be put together to the same answer. So they travel as exact sums,
which are literals of a type of their own (`values.numeric.ExactSum`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from headwater.algebra.active_graphs import default_active_graph
from headwater.algebra.nodes import Aggregation, Graph, Group, Node, PathMatch, Service, Window, WindowGraph
from headwater.algebra.partitioning import OneShard, partitionings_of
from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.algebra.scope import certain_variables, nodes_of
from headwater.language.expressions import Aggregate
from headwater.language.stream_clauses import StreamOperator
from headwater.optimizer.dependencies import is_deterministic, patterns_with_graphs
from headwater.terms.model import Variable


@dataclass(frozen=True, slots=True)
class AggregateSplit:
    """An aggregate in two steps: the partial one of each part, and the function that merges their values."""

    variable: Variable
    aggregate: Aggregate
    partial: Aggregate
    merge: str


@dataclass(frozen=True, slots=True)
class TotallyDistributable:
    """Parts cut along any of these grouping variables hold whole groups."""

    keys: frozenset[Variable]


@dataclass(frozen=True, slots=True)
class PartiallyDistributable:
    """Parts cut along any of these variables hold parts of groups, which the splits merge."""

    keys: frozenset[Variable]
    splits: tuple[AggregateSplit, ...]


@dataclass(frozen=True, slots=True)
class NotDistributable:
    """Why the whole input has to come together."""

    reason: str


Distribution: TypeAlias = TotallyDistributable | PartiallyDistributable | NotDistributable


def distribution_of(plan: QueryPlan, group: Group) -> Distribution:
    """How a grouping of a plan can be computed in parts."""
    common = partition_keys(plan, _input_in_graph(plan.root, group) or group.inner)
    if isinstance(common, NotDistributable):
        return common
    plain = frozenset(variable for variable, expression in group.keys if expression is None)
    if common & plain:
        return TotallyDistributable(common & plain)
    splits = split_aggregates(group)
    return splits if isinstance(splits, NotDistributable) else PartiallyDistributable(common, splits)


def split_aggregates(group: Group) -> tuple[AggregateSplit, ...] | NotDistributable:
    """All aggregates of a grouping in two steps, or why one of them cannot be split."""
    splits = [split_aggregate(variable, aggregate) for variable, aggregate in group.aggregates]
    refused = next((one for one in splits if isinstance(one, NotDistributable)), None)
    return refused or tuple(one for one in splits if isinstance(one, AggregateSplit))


def groups_of_clauses(node: Aggregation) -> list[Group]:
    """The groupings that an AGGREGATE clause stands for: each is joined with the solutions again."""
    return [
        Group(node.inner, tuple((v, None) for v in group), ((variable, aggregate),))
        for variable, aggregate, group in node.clauses
    ]


def _input_in_graph(node: Node, group: Group) -> Node | None:
    """The input of a grouping inside the GRAPH or WINDOW around it; None if the grouping is not below the node."""
    if node == group:
        return group.inner
    for child in node.children:
        inner = _input_in_graph(child, group)
        if inner is not None:
            return node.with_children(inner) if isinstance(node, Graph | WindowGraph | Window) else inner
    return None


def partition_keys(plan: QueryPlan, inner: Node) -> frozenset[Variable] | NotDistributable:
    """The variables along which the streams can be cut such that each solution comes from exactly one part."""
    for node, active_graph in patterns_with_graphs(plan, inner, default_active_graph(plan)):
        if isinstance(node, PathMatch) and active_graph.windows:
            return NotDistributable("a property path over a stream may lead from one part into another")
    if any(isinstance(node, Service) for node in nodes_of(inner)):
        return NotDistributable("every part would ask the endpoint of SERVICE")
    part = replace(plan, root=inner, kind=QueryKind.SELECT, template=())
    partitionings = partitionings_of(part, StreamOperator.RSTREAM)
    if isinstance(partitionings, OneShard):
        return NotDistributable(partitionings.reason)
    keys = frozenset(one.variable for one in partitionings if one.variable is not None) & certain_variables(inner)
    return keys or NotDistributable("no variable by which the streams could be cut is always bound")


def split_aggregate(variable: Variable, aggregate: Aggregate) -> AggregateSplit | NotDistributable:
    """An aggregate in two steps, or why it cannot be split."""
    if aggregate.argument is not None and not is_deterministic(aggregate.argument):
        return NotDistributable("an argument depends on more than its solution")
    if aggregate.distinct:
        return NotDistributable(f"{aggregate.function}(DISTINCT …) must see equal values of all parts together")
    match aggregate.function:
        case "COUNT":
            return AggregateSplit(variable, aggregate, aggregate, "SUM")
        case "MIN" | "MAX" | "SAMPLE" as function:
            return AggregateSplit(variable, aggregate, aggregate, function)
        case "SUM" | "AVG" as function:
            return AggregateSplit(variable, aggregate, Aggregate("PARTIAL_SUM", aggregate.argument), function)
    return NotDistributable(f"{aggregate.function} depends on the order of all its values")
