"""Parts of a plan that can have no solution, and what follows from that.

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
from headwater.algebra.scope import nodes, visible
from headwater.optimizer.rule import Rule, Where, rewritten
from headwater.optimizer.statistics import Statistics


def prune_empty(plan: QueryPlan, statistics: Statistics | None = None) -> Node:
    def change(node: Node, where: Where) -> Node:
        match node:
            case Join(left, right):
                return _nothing(node) if is_empty(left) or is_empty(right) else node
            case Union(left, right):
                return right if is_empty(left) else left if is_empty(right) else node
            case LeftJoin(left, right, _) | Minus(left, right):
                if is_empty(left):
                    return _nothing(node)
                return left if is_empty(right) else node
            case Slice(_, _, 0):
                return _nothing(node)
            case Group(inner, keys, _):
                return _nothing(node) if is_empty(inner) and groups_of_nothing_are_none(keys) else node
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
                return _nothing(node) if is_empty(node.children[0]) else node
        return node

    root = rewritten(plan, change)
    # The answer keeps its form: a projection stays on top for whoever looks for its variables.
    return Project(root, visible(plan.root)) if is_empty(root) and not is_empty(plan.root) else root


def is_empty(node: Node) -> bool:
    """Whether a node is the bag without solutions."""
    return isinstance(node, Values) and not node.rows


def groups_of_nothing_are_none(keys: tuple[object, ...]) -> bool:
    """Without GROUP BY there is one group even of nothing, with a count of zero."""
    return bool(keys)


def _nothing(node: Node) -> Node:
    """No solutions; a part that asks an endpoint stays, because the endpoint may fail."""
    if is_empty(node) or any(isinstance(part, Service) for part in nodes(node)):
        return node
    return Values(visible(node), ())


RULE = Rule(
    "prune empty parts",
    "a join with nothing is nothing, a union with nothing is the other side; one group is left of nothing without keys",
    prune_empty,
)
