"""Whether an aggregation can be computed in parts: per stream, or per shard of a stream (CS10; C-SPARQL, section 5.2).

- *Totally*: every group lies in one part as a whole. That is so where the streams are cut along a grouping variable by
  which the solutions are keyed (`algebra.partitioning`); the answer is the union of the parts' answers.
- *Partially*: a group is spread over parts, but its aggregates can be put together from partial ones.
- *Not*: neither holds; the reason is told.

| aggregate              | partial     | merged by   |                         |
|------------------------|-------------|-------------|-------------------------|
| COUNT                  | COUNT       | SUM         |                         |
| MIN, MAX, SAMPLE       | the same    | the same    | of parts with solutions |
| SUM, AVG               | PARTIAL_SUM | SUM, AVG    | an exact sum            |
| DISTINCT, GROUP_CONCAT | none        |             |                         |

SUM and AVG are those of the exact sum, rounded once (`reference/aggregates`): a partial sum that was rounded to a
double, or that left the range of integers, could not be put together to the same answer. So they travel as exact sums,
which are literals of a type of their own (`reference.numeric.ExactSum`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from headwater.algebra.active_graphs import default_source
from headwater.algebra.nodes import Aggregation, Graph, Group, Node, PathMatch, Service, Window
from headwater.algebra.partitioning import OneShard, partitioning_of
from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.algebra.scope import certain, nodes
from headwater.language.expressions import Aggregate
from headwater.language.stream_clauses import StreamOperator
from headwater.optimizer.dependencies import is_steady, patterns
from headwater.terms.model import Variable


@dataclass(frozen=True, slots=True)
class Split:
    """An aggregate in two steps: the partial one of each part, and the function that puts its values together."""

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
    """Parts cut along any of these variables hold parts of groups, which the splits put together."""

    keys: frozenset[Variable]
    splits: tuple[Split, ...]


@dataclass(frozen=True, slots=True)
class NotDistributable:
    """Why the whole input has to come together."""

    reason: str


Distribution: TypeAlias = TotallyDistributable | PartiallyDistributable | NotDistributable


def distribution(plan: QueryPlan, group: Group) -> Distribution:
    """How a grouping that stands in a plan can be computed in parts."""
    common = partition_keys(plan, _in_its_graph(plan.root, group) or group.inner)
    if isinstance(common, NotDistributable):
        return common
    plain = frozenset(variable for variable, expression in group.keys if expression is None)
    if common & plain:
        return TotallyDistributable(common & plain)
    splits = splits_of(group)
    return splits if isinstance(splits, NotDistributable) else PartiallyDistributable(common, splits)


def splits_of(group: Group) -> tuple[Split, ...] | NotDistributable:
    """All aggregates of a grouping in two steps, or why one of them cannot be."""
    found = [split(variable, aggregate) for variable, aggregate in group.aggregates]
    refused = next((one for one in found if isinstance(one, NotDistributable)), None)
    return refused or tuple(one for one in found if isinstance(one, Split))


def clause_groups(node: Aggregation) -> list[Group]:
    """The groupings that an AGGREGATE clause stands for: each is joined with the solutions again."""
    return [
        Group(node.inner, tuple((v, None) for v in group), ((variable, aggregate),))
        for variable, aggregate, group in node.clauses
    ]


def _in_its_graph(node: Node, group: Group) -> Node | None:
    """What a grouping reads, inside the GRAPH or WINDOW that it stands in; None where it stands elsewhere."""
    if node == group:
        return group.inner
    for child in node.children:
        found = _in_its_graph(child, group)
        if found is not None:
            return node.with_children(found) if isinstance(node, Graph | Window) else found
    return None


def partition_keys(plan: QueryPlan, inner: Node) -> frozenset[Variable] | NotDistributable:
    """The variables along which the streams can be cut such that each solution comes from exactly one part."""
    for node, where in patterns(plan, inner, default_source(plan)):
        if isinstance(node, PathMatch) and where.windows:
            return NotDistributable("a property path over a stream may lead from one part into another")
    if any(isinstance(node, Service) for node in nodes(inner)):
        return NotDistributable("every part would ask the endpoint of SERVICE")
    part = replace(plan, root=inner, kind=QueryKind.SELECT, template=())
    found = partitioning_of(part, StreamOperator.RSTREAM)
    if isinstance(found, OneShard):
        return NotDistributable(found.reason)
    keys = frozenset(one.variable for one in found) & certain(inner)
    return keys or NotDistributable("no variable by which the streams could be cut is always bound")


def split(variable: Variable, aggregate: Aggregate) -> Split | NotDistributable:
    """An aggregate in two steps, or why it cannot be."""
    if aggregate.argument is not None and not is_steady(aggregate.argument):
        return NotDistributable("an argument depends on more than its solution")
    if aggregate.distinct:
        return NotDistributable(f"{aggregate.function}(DISTINCT …) must see equal values of all parts together")
    match aggregate.function:
        case "COUNT":
            return Split(variable, aggregate, aggregate, "SUM")
        case "MIN" | "MAX" | "SAMPLE" as function:
            return Split(variable, aggregate, aggregate, function)
        case "SUM" | "AVG" as function:
            return Split(variable, aggregate, Aggregate("PARTIAL_SUM", aggregate.argument), function)
    return NotDistributable(f"{aggregate.function} depends on the order of all its values")
