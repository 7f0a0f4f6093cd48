"""Variables that nobody looks at are not made: bindings, aggregates, columns of VALUES and of sub-queries.

    SELECT ?x { { SELECT ?x ?y (?y + 1 AS ?z) { … } } }    →    SELECT ?x { { SELECT ?x { … } } }

How often a solution comes stays the same: rows are narrowed, never merged. A sub-query that hides nothing is only its
pattern, and can be joined with what stands around it.
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
from headwater.algebra.scope import visible
from headwater.algebra.translate import conjunction
from headwater.algebra.triple_timestamps import uses_timestamps
from headwater.optimizer.needs import Needs, needs_below, read_by
from headwater.optimizer.rule import Rule
from headwater.optimizer.statistics import Statistics


def drop_unused(plan: QueryPlan, statistics: Statistics | None = None) -> Node:
    # timestamp() does not see into sub-queries, so that even one that hides nothing means something.
    return _trimmed(plan.root, frozenset(visible(plan.root)), unpack=not uses_timestamps(plan.root))


def _trimmed(node: Node, need: Needs, *, unpack: bool) -> Node:
    node = _narrowed(node, need)
    if isinstance(node, Service):
        return node
    below = zip(node.children, needs_below(node, need), strict=True)
    children = [_trimmed(child, wanted, unpack=unpack) for child, wanted in below]
    if unpack and not isinstance(node, Distinct | Reduced | Slice):
        children = [child.inner if hides_nothing(child) else child for child in children]
    return node.with_children(*children)


def hides_nothing(node: Node) -> TypeGuard[Project]:
    """Whether a projection leaves its solutions as they are."""
    if not isinstance(node, Project) or isinstance(node.inner, OrderBy):
        return False
    return frozenset(visible(node.inner)) <= frozenset(node.variables)


def _narrowed(node: Node, need: Needs) -> Node:
    """The node without what nobody needs; itself where that is nothing."""
    match node:
        case Extend(inner, variable, _) if variable not in need:
            return _narrowed(inner, need)
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
            wanted = need | read_by(conditions)
            mine = tuple(clause for clause in clauses if clause[0] in wanted)
            if mine:
                return Aggregation(inner, mine, conditions)
            return _narrowed(Filter(inner, conjunction(list(conditions))) if conditions else inner, need)
    return node


RULE = Rule(
    "drop unused variables",
    "no expression, join, MINUS, DISTINCT or LIMIT above looks at the variable, and the number of solutions stays",
    drop_unused,
)
