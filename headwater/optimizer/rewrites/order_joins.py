"""The inputs of a join are ordered by estimated size, greedily.

The smallest input comes first; then always the one with the fewest solutions per solution so far, among those that
share a variable with them. Sizes come from counted triples. Without statistics the order stays as written.

    { ?room :in ?floor . ?room :alarm ?a }    →    { ?room :alarm ?a . ?room :in ?floor }    few alarms, many rooms

A join of very many inputs stays as written, too: each choice looks at all that are left.
"""

from __future__ import annotations

from headwater.algebra.active_graphs import ActiveGraph, active_graph_inside, default_active_graph
from headwater.algebra.nodes import (
    Bgp,
    Distinct,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Minus,
    Node,
    PathMatch,
    Project,
    Reduced,
    Service,
    Slice,
    Union,
    Unit,
    Values,
    Window,
)
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import nodes_of, visible_variables
from headwater.language.patterns import TriplePattern
from headwater.optimizer.joins import join_operands, join_plans
from headwater.optimizer.rule import Rule
from headwater.optimizer.statistics import DEFAULT_COUNTS, Statistics
from headwater.terms.model import NamedNode, Variable

_FILTER_SELECTIVITY = 0.3
"""The share of solutions that a filter is assumed to let through."""
_MOST_ORDERED = 64
"""Joins of more inputs are not ordered."""


def order_joins(plan: QueryPlan, statistics: Statistics | None = None) -> Node:
    if statistics is None:
        return plan.root
    return _JoinOrderer(plan, statistics).order_below(plan.root, default_active_graph(plan))


class _JoinOrderer:
    """Orders the joins of one plan by its statistics."""

    def __init__(self, plan: QueryPlan, statistics: Statistics) -> None:
        self._plan = plan
        self._statistics = statistics

    def order_below(self, node: Node, graph: ActiveGraph) -> Node:
        """The node with every join in it ordered."""
        if isinstance(node, Service):
            return node
        if isinstance(node, Join):
            inputs = [self.order_below(factor, graph) for factor in join_operands(node)]
            # SERVICE gets its keys from the inputs before it.
            if any(isinstance(part, Service) for factor in inputs for part in nodes_of(factor)):
                return join_plans(inputs)
            return join_plans(self._order_inputs(inputs, graph))
        if isinstance(node, Bgp):
            singles: list[Node] = [Bgp((triple,)) for triple in node.triples]
            return join_plans(self._order_inputs(singles, graph))
        within = active_graph_inside(self._plan, node, graph)
        return node.with_children(*(self.order_below(child, within) for child in node.children))

    def _order_inputs(self, inputs: list[Node], graph: ActiveGraph) -> list[Node]:
        """Order inputs greedily: next is one that shares a variable and has the fewest estimated solutions."""
        if len(inputs) > _MOST_ORDERED:
            return inputs
        waiting = list(range(len(inputs)))
        chosen: list[int] = []
        bound: frozenset[Variable] = frozenset()

        def cost(number: int) -> tuple[bool, float, int]:
            apart = bool(chosen) and not bound & frozenset(visible_variables(inputs[number]))
            return apart, self.estimate_solutions(inputs[number], graph, bound), number

        while waiting:
            best = min(waiting, key=cost)
            waiting.remove(best)
            chosen.append(best)
            bound |= frozenset(visible_variables(inputs[best]))
        return [inputs[number] for number in chosen]

    def estimate_solutions(self, node: Node, graph: ActiveGraph, bound: frozenset[Variable] = frozenset()) -> float:
        """The estimated number of solutions of a node, given values of the bound variables."""
        match node:
            case Unit():
                return 1.0
            case Values(_, rows):
                return float(len(rows))
            case Bgp(triples):
                return self._estimate_patterns(triples, graph, bound)
            case PathMatch(subject, _, object_):
                ends = [end for end in (subject, object_) if isinstance(end, Variable) and end not in bound]
                return float(DEFAULT_COUNTS.triples ** (len(ends) / 2))
            case Join(left, right):
                return self.estimate_solutions(left, graph, bound) * self.estimate_solutions(
                    right, graph, bound | frozenset(visible_variables(left))
                )
            case Union(left, right):
                return self.estimate_solutions(left, graph, bound) + self.estimate_solutions(right, graph, bound)
            case Filter(inner, _):
                return _FILTER_SELECTIVITY * self.estimate_solutions(inner, graph, bound)
            case Slice(_, _, int() as limit):
                return float(limit)
            case LeftJoin(inner, _, _) | Minus(inner, _):
                return self.estimate_solutions(inner, graph, bound)
            case Extend(inner, _, _) | Project(inner, _) | Distinct(inner) | Reduced(inner):
                return self.estimate_solutions(inner, graph, bound)
            case Group(inner, keys, _):
                return self.estimate_solutions(inner, graph, bound) ** 0.5 if keys else 1.0
            case Graph(_, inner) | Window(_, _, inner):
                return self.estimate_solutions(inner, active_graph_inside(self._plan, node, graph), bound)
        return float(DEFAULT_COUNTS.triples)

    def _estimate_patterns(
        self, triples: tuple[TriplePattern, ...], graph: ActiveGraph, bound: frozenset[Variable]
    ) -> float:
        size = 1.0
        for triple in triples:
            size *= self._estimate_pattern(triple, graph, bound)
            bound |= frozenset(visible_variables(Bgp((triple,))))
        return size

    def _estimate_pattern(self, triple: TriplePattern, graph: ActiveGraph, bound: frozenset[Variable]) -> float:
        known = triple.predicate if isinstance(triple.predicate, NamedNode) else Variable("any")
        counts = self._statistics.counts(self._plan, graph, known)
        size = float(counts.triples)
        if _is_bound(triple.subject, bound):
            size /= max(1, counts.subjects)
        if _is_bound(triple.object, bound):
            size /= max(1, counts.objects)
        return size


def _is_bound(term: object, bound: frozenset[Variable]) -> bool:
    return not isinstance(term, Variable) or term in bound


RULE = Rule(
    "order joins",
    "a join gives the same solutions in any order of its inputs; nothing moves across OPTIONAL, MINUS, BIND or LIMIT",
    order_joins,
)
