"""A plan after the transformations of section 5.1 of the C-SPARQL paper, and no others: what its figure 6 shows.

Conditions and projections move to the sources, and joined patterns of one source become one (MergeJoinedGPOs). The
plan that is evaluated goes further where that pays (constants instead of equalities, filters on single patterns) and
less far where it does not (projections); `headwater.optimizer.rules` gives the reasons.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from headwater.algebra.nodes import Bgp, Filter, Join, Node, Project, Service
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import visible_variables
from headwater.algebra.triple_timestamps import has_timestamps
from headwater.language.expressions import Expression
from headwater.optimizer.joins import join_operands
from headwater.optimizer.optimise import optimise
from headwater.optimizer.required_variables import RequiredVariables, required_of_children
from headwater.optimizer.rewrites import merge_patterns, push_filters, split_filters
from headwater.optimizer.rule import NodeContext, rewrite_plan


def push_to_sources(plan: QueryPlan) -> QueryPlan:
    """The plan with its filters and projections at its sources."""
    pushed = optimise(plan, rewrites=(split_filters.RULE, push_filters.RULE, merge_patterns.RULE), finishing=()).plan
    merged = replace(pushed, root=rewrite_plan(pushed, _merge_filtered_patterns))
    # timestamp() does not see into sub-queries, and a projection is one.
    if has_timestamps(merged.root):
        return merged
    return replace(merged, root=_project_operands(merged.root, frozenset(visible_variables(merged.root))))


def _merge_filtered_patterns(node: Node, context: NodeContext) -> Node:
    """Join(Bgp(t1), Filter(Bgp(t2), c)) → Filter(Bgp(t1, t2), c): the condition sees the same variables, bound."""
    if not isinstance(node, Join):
        return node
    conditions: list[Expression] = []
    pattern = Bgp(())
    for operand in join_operands(node):
        while isinstance(operand, Filter):
            conditions.append(operand.condition)
            operand = operand.inner
        if not isinstance(operand, Bgp):
            return node
        pattern = Bgp((*pattern.triples, *operand.triples))
    merged: Node = pattern
    return reduce(Filter, conditions, merged)


def _project_operands(node: Node, need: RequiredVariables) -> Node:
    """The node with each operand of a join cut down to the variables that something above it reads."""
    if isinstance(node, Service):
        return node
    children = []
    for child, wanted in zip(node.children, required_of_children(node, need), strict=True):
        renewed = _project_operands(child, wanted)
        shown = visible_variables(renewed)
        kept = tuple(variable for variable in shown if variable in wanted)
        is_cut = isinstance(node, Join) and not isinstance(renewed, Join | Project) and 0 < len(kept) < len(shown)
        children.append(Project(renewed, kept) if is_cut else renewed)
    return node.with_children(*children)
