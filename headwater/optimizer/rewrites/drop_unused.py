"""Variables that nothing above reads are not computed: BIND, aggregates, columns of VALUES and of sub-queries.

    SELECT ?x { { SELECT ?x ?y (?y + 1 AS ?z) { … } } }    →    SELECT ?x { { SELECT ?x { … } } }

Multiplicities stay the same: rows lose columns and are never merged. A sub-query that projects all its variables is
replaced by its pattern, which can then be joined with the patterns around it.
"""

from __future__ import annotations

from typing import TypeGuard

from headwater.algebra.nodes import (
    Aggregation,
    Distinct,
    Extend,
    Filter,
    Group,
    Node,
    OrderBy,
    Project,
    Reduced,
    Service,
    Slice,
    Values,
)
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import visible_variables
from headwater.algebra.translate import conjunction_of
from headwater.algebra.triple_timestamps import has_timestamps
from headwater.optimizer.required_variables import RequiredVariables, required_of_children, variables_of_expressions
from headwater.optimizer.rule import Rule
from headwater.optimizer.statistics import Statistics


def drop_unused(plan: QueryPlan, statistics: Statistics | None = None) -> Node:
    # timestamp() does not see into sub-queries, so none may be taken away.
    return _drop_below(plan.root, frozenset(visible_variables(plan.root)), can_unnest=not has_timestamps(plan.root))


def _drop_below(node: Node, need: RequiredVariables, *, can_unnest: bool) -> Node:
    node = _drop_in_node(node, need)
    if isinstance(node, Service):
        return node
    below = zip(node.children, required_of_children(node, need), strict=True)
    children = [_drop_below(child, wanted, can_unnest=can_unnest) for child, wanted in below]
    if can_unnest and not isinstance(node, Distinct | Reduced | Slice):
        children = [child.inner if is_identity_projection(child) else child for child in children]
    return node.with_children(*children)


def is_identity_projection(node: Node) -> TypeGuard[Project]:
    """Whether a projection keeps all variables."""
    if not isinstance(node, Project) or isinstance(node.inner, OrderBy):
        return False
    return frozenset(visible_variables(node.inner)) <= frozenset(node.variables)


def _drop_in_node(node: Node, need: RequiredVariables) -> Node:
    """The node without the variables that are not needed; the node itself if all are."""
    match node:
        case Extend(inner, variable, _) if variable not in need:
            return _drop_in_node(inner, need)
        case Project(inner, variables):
            # Without a variable at all, SPARQL's text would show all of them.
            kept = tuple(v for v in variables if v in need) or variables
            return Project(inner, kept)
        case Values(variables, rows):
            places = [i for i, variable in enumerate(variables) if variable in need]
            if not places:
                return node
            return Values(tuple(variables[i] for i in places), tuple(tuple(row[i] for i in places) for row in rows))
        case Group(inner, keys, aggregates):
            used = tuple((v, aggregate) for v, aggregate in aggregates if v in need)
            return Group(inner, keys, used or aggregates[:1])
        case Aggregation(inner, clauses, conditions):
            wanted = need | variables_of_expressions(conditions)
            mine = tuple(clause for clause in clauses if clause[0] in wanted)
            if mine:
                return Aggregation(inner, mine, conditions)
            return _drop_in_node(Filter(inner, conjunction_of(list(conditions))) if conditions else inner, need)
    return node


RULE = Rule(
    "drop unused variables",
    "no expression, join, MINUS, DISTINCT or LIMIT above looks at the variable, and the number of solutions stays",
    drop_unused,
)
