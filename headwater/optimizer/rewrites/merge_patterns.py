"""Joined patterns over the same graph become one (MergeJoinedGPOs of the C-SPARQL paper, section 5.1).

Join(Bgp(t1), Bgp(t2))                  →    Bgp(t1, t2)
Join(Window(w, A), Window(w, B))        →    Window(w, Join(A, B))
Join(Graph(<g>, A), Graph(<g>, B))      →    Graph(<g>, Join(A, B))
"""

from __future__ import annotations

from headwater.algebra.nodes import Bgp, Graph, Join, Node, Unit, Window
from headwater.algebra.plan import QueryPlan
from headwater.optimizer.joins import join_operands, join_plans
from headwater.optimizer.rule import NodeContext, Rule, rewrite_plan
from headwater.optimizer.statistics import Statistics
from headwater.terms.model import NamedNode


def merge_patterns(plan: QueryPlan, statistics: Statistics | None = None) -> Node:
    def change(node: Node, context: NodeContext) -> Node:
        if not isinstance(node, Join):
            return node
        merged: list[Node] = []
        for factor in join_operands(node):
            place = next((i for i, other in enumerate(merged) if has_same_graph(other, factor)), None)
            if place is None:
                merged.append(factor)
            else:
                merged[place] = _merge_nodes(merged[place], factor)
        return join_plans(merged)

    return rewrite_plan(plan, change)


def has_same_graph(one: Node, other: Node) -> bool:
    """Whether two inputs of a join are matched against the same graph, known by its name."""
    match one, other:
        case Bgp(), Bgp():
            return True
        case Graph(NamedNode() as name, _), Graph(second, _):
            return name == second
        case Window((number,), None, _), Window((second,), None, _):
            return number == second
    return False


def _merge_nodes(one: Node, other: Node) -> Node:
    """Two patterns over the same graph as one."""
    match one, other:
        case Bgp(first), Bgp(second):
            return Bgp((*first, *second))
    (first_inner,), (second_inner,) = one.children, other.children
    inputs = [*join_operands(first_inner), *join_operands(second_inner)]
    return one.with_children(join_plans(inputs) if inputs else Unit())


RULE = Rule(
    "merge patterns",
    "the patterns are joined and matched against the same graph or window; each still matches its own triples",
    merge_patterns,
)
