"""The inputs of a join in the order in which they cut down the solutions soonest, by counted triples.

The smallest input comes first; then always the one that adds the fewest solutions to those found so far, among those
that share a variable with them. Without statistics the order stays as it was written.

    { ?room :in ?floor . ?room :alarm ?a }    →    { ?room :alarm ?a . ?room :in ?floor }    few alarms, many rooms
"""

from __future__ import annotations

from headwater.algebra.active_graphs import Source, default_source, source_inside
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
from headwater.algebra.scope import nodes, visible
from headwater.language.patterns import TriplePattern
from headwater.optimizer.joins import factors, joined
from headwater.optimizer.rule import Rule
from headwater.optimizer.statistics import GUESS, Statistics
from headwater.terms.model import NamedNode, Variable

_FILTERED = 0.3
"""The share of solutions that a filter is assumed to let through."""


def order_joins(plan: QueryPlan, statistics: Statistics | None = None) -> Node:
    if statistics is None:
        return plan.root
    return _Ordering(plan, statistics).node(plan.root, default_source(plan))


class _Ordering:
    def __init__(self, plan: QueryPlan, statistics: Statistics) -> None:
        self._plan = plan
        self._statistics = statistics

    def node(self, node: Node, source: Source) -> Node:
        """The node with every join below it in order."""
        if isinstance(node, Service):
            return node
        if isinstance(node, Join):
            inputs = [self.node(factor, source) for factor in factors(node)]
            # An endpoint is asked about what stands before it.
            if any(isinstance(part, Service) for factor in inputs for part in nodes(factor)):
                return joined(inputs)
            return joined(self._ordered(inputs, source))
        if isinstance(node, Bgp):
            singles: list[Node] = [Bgp((triple,)) for triple in node.triples]
            return joined(self._ordered(singles, source))
        within = source_inside(self._plan, node, source)
        return node.with_children(*(self.node(child, within) for child in node.children))

    def _ordered(self, inputs: list[Node], source: Source) -> list[Node]:
        waiting = list(range(len(inputs)))
        chosen: list[int] = []
        bound: frozenset[Variable] = frozenset()

        def cost(number: int) -> tuple[bool, float, int]:
            apart = bool(chosen) and not bound & frozenset(visible(inputs[number]))
            return apart, self.solutions(inputs[number], source, bound), number

        while waiting:
            best = min(waiting, key=cost)
            waiting.remove(best)
            chosen.append(best)
            bound |= frozenset(visible(inputs[best]))
        return [inputs[number] for number in chosen]

    def solutions(self, node: Node, source: Source, bound: frozenset[Variable] = frozenset()) -> float:
        """About how many solutions a node has for given values of the bound variables."""
        match node:
            case Unit():
                return 1.0
            case Values(_, rows):
                return float(len(rows))
            case Bgp(triples):
                return self._patterns(triples, source, bound)
            case PathMatch(subject, _, object_):
                ends = [end for end in (subject, object_) if isinstance(end, Variable) and end not in bound]
                return float(GUESS.triples ** (len(ends) / 2))
            case Join(left, right):
                return self.solutions(left, source, bound) * self.solutions(
                    right, source, bound | frozenset(visible(left))
                )
            case Union(left, right):
                return self.solutions(left, source, bound) + self.solutions(right, source, bound)
            case Filter(inner, _):
                return _FILTERED * self.solutions(inner, source, bound)
            case Slice(_, _, int() as limit):
                return float(limit)
            case LeftJoin(inner, _, _) | Minus(inner, _):
                return self.solutions(inner, source, bound)
            case Extend(inner, _, _) | Project(inner, _) | Distinct(inner) | Reduced(inner):
                return self.solutions(inner, source, bound)
            case Group(inner, keys, _):
                return self.solutions(inner, source, bound) ** 0.5 if keys else 1.0
            case Graph(_, inner) | Window(_, _, inner):
                return self.solutions(inner, source_inside(self._plan, node, source), bound)
        return float(GUESS.triples)

    def _patterns(self, triples: tuple[TriplePattern, ...], source: Source, bound: frozenset[Variable]) -> float:
        found = 1.0
        for triple in triples:
            found *= self._pattern(triple, source, bound)
            bound |= frozenset(visible(Bgp((triple,))))
        return found

    def _pattern(self, triple: TriplePattern, source: Source, bound: frozenset[Variable]) -> float:
        known = triple.predicate if isinstance(triple.predicate, NamedNode) else Variable("any")
        counts = self._statistics.counts(self._plan, source, known)
        found = float(counts.triples)
        if _is_given(triple.subject, bound):
            found /= max(1, counts.subjects)
        if _is_given(triple.object, bound):
            found /= max(1, counts.objects)
        return found


def _is_given(term: object, bound: frozenset[Variable]) -> bool:
    return not isinstance(term, Variable) or term in bound


RULE = Rule(
    "order joins",
    "a join gives the same solutions in any order of its inputs; nothing moves across OPTIONAL, MINUS, BIND or LIMIT",
    order_joins,
)
