"""Parts of a plan that can have no solution are taken away, with what needs them.

Join(P, ∅)  →  ∅        Union(P, ∅)  →  P        LeftJoin(P, ∅)  →  P        Minus(P, ∅)  →  P
"""

from __future__ import annotations

from headwater.algebra.nodes import (
    Aggregation,
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
    Service,
    Slice,
    Union,
    Values,
    Window,
)
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import nodes_of, visible_variables
from headwater.optimizer.rule import NodeContext, Rule, rewrite_plan
from headwater.optimizer.statistics import Statistics


def prune_empty(plan: QueryPlan, statistics: Statistics | None = None) -> Node:
    """Replace parts that cannot have solutions by an empty VALUES."""

    def change(node: Node, context: NodeContext) -> Node:
        match node:
            case Join(left, right):
                return _empty_values(node) if is_empty(left) or is_empty(right) else node
            case Union(left, right):
                return right if is_empty(left) else left if is_empty(right) else node
            case LeftJoin(left, right, _) | Minus(left, right):
                if is_empty(left):
                    return _empty_values(node)
                return left if is_empty(right) else node
            case Slice(_, _, 0):
                return _empty_values(node)
            case Group(inner, keys, _):
                return _empty_values(node) if is_empty(inner) and has_no_group_if_empty(keys) else node
            case (
                Filter()
                | Extend()
                | Graph()
                | Window()
                | Project()
                | Distinct()
                | Reduced()
                | OrderBy()
                | Slice()
                | Aggregation()
            ):
                return _empty_values(node) if is_empty(node.children[0]) else node
        return node

    root = rewrite_plan(plan, change)
    # A projection stays on top, because it names the variables of the answer.
    return Project(root, visible_variables(plan.root)) if is_empty(root) and not is_empty(plan.root) else root


def is_empty(node: Node) -> bool:
    """Whether a node is an empty VALUES."""
    return isinstance(node, Values) and not node.rows


def has_no_group_if_empty(keys: tuple[object, ...]) -> bool:
    """Whether a grouping of no solutions has no group: without GROUP BY it has one, with a count of zero."""
    return bool(keys)


def _empty_values(node: Node) -> Node:
    """An empty VALUES in place of the node; a part with SERVICE stays, because its endpoint may fail."""
    if is_empty(node) or any(isinstance(part, Service) for part in nodes_of(node)):
        return node
    return Values(visible_variables(node), ())


RULE = Rule(
    "prune empty parts",
    "a join with nothing is nothing, a union with nothing is the other side; one group is left of nothing without keys",
    prune_empty,
)
