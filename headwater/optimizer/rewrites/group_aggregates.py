"""Replaces AGGREGATE under SELECT DISTINCT by GROUP BY, where only groups and aggregates are shown (C-SPARQL, 5.2).

    Distinct(Project(Aggregation(P, {(?total, SUM(?amount), {?broker})}), ?broker ?total))
        →    Distinct(Project(Group(P, {?broker}, SUM(?amount) AS ?total), ?broker ?total))

AGGREGATE adds a value to each solution of P. Where all solutions of a group look the same afterwards, DISTINCT keeps
one of them. That one is the solution of the group, so the aggregates need not be joined with P again. All clauses have
to have the same group, which must not be empty: the empty group is there even if P has no solution.
"""

from __future__ import annotations

from headwater.algebra.nodes import Aggregation, Distinct, Filter, Group, Node, Project, Reduced
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import expression_variables
from headwater.optimizer.dependencies import has_exists, is_deterministic
from headwater.optimizer.rule import NodeContext, Rule, rewrite_plan
from headwater.optimizer.statistics import Statistics
from headwater.terms.model import Variable


def group_aggregates(plan: QueryPlan, statistics: Statistics | None = None) -> Node:
    """Replace AGGREGATE by GROUP BY below DISTINCT."""

    def change(node: Node, context: NodeContext) -> Node:
        match node:
            case Distinct(Project(Aggregation() as below, variables)) | Reduced(
                Project(Aggregation() as below, variables)
            ) if not context.is_correlated:
                grouped = _group_of(below, frozenset(variables))
                return node if grouped is None else Distinct(Project(grouped, variables))
        return node

    return rewrite_plan(plan, change)


def _group_of(node: Aggregation, shown: frozenset[Variable]) -> Node | None:
    """The grouping whose solutions are those of AGGREGATE without duplicates; None if there is none."""
    groups = {frozenset(group) for _, _, group in node.clauses}
    if len(groups) != 1 or not is_decided_by_group(node, shown):
        return None
    keys = tuple((variable, None) for variable in dict.fromkeys(node.clauses[0][2]))
    result: Node = Group(node.inner, keys, tuple((variable, call) for variable, call, _ in node.clauses))
    for condition in node.conditions:
        result = Filter(result, condition)
    return result


def is_decided_by_group(node: Aggregation, shown: frozenset[Variable]) -> bool:
    """Whether the group of a solution, and the aggregates, decide what is shown of it and whether it is kept."""
    group = frozenset(node.clauses[0][2])
    known = group | {variable for variable, _, _ in node.clauses}
    calls = [call.argument for _, call, _ in node.clauses if call.argument is not None]
    return (
        bool(group)
        and shown <= known
        and all(map(is_deterministic, calls))
        and all(
            expression_variables(one) <= known and is_deterministic(one) and not has_exists(one)
            for one in node.conditions
        )
    )


RULE = Rule(
    "aggregates to groups",
    "the group of a solution decides all that is shown of it, and equal solutions count once",
    group_aggregates,
)
