"""Streams hand on only the variables that somebody looks at later.

    WINDOW w { ?o :value ?v FILTER(?v > 3) } P    →    WINDOW w { SELECT ?o { ?o :value ?v FILTER(?v > 3) } } P

Projections are set on single patterns of a window, and on the two sides of OPTIONAL and MINUS, never around a join that
is part of a larger join: those are evaluated together, in an order that follows the data. Static patterns stay as
they are: their store walks from one pattern to the next, which a sub-query would forbid.
"""

from __future__ import annotations

from enum import Enum

from headwater.algebra.active_graphs import Source, default_source, source_inside
from headwater.algebra.nodes import Bgp, Graph, Join, LeftJoin, Minus, Node, Project, Service, Window
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import visible
from headwater.algebra.triple_timestamps import uses_timestamps
from headwater.optimizer.dependencies import patterns
from headwater.optimizer.joins import all_visible, joined
from headwater.optimizer.needs import Needs, needs_below
from headwater.optimizer.rule import Rule
from headwater.optimizer.statistics import Statistics


def push_projections(plan: QueryPlan, statistics: Statistics | None = None) -> Node:
    # timestamp() does not see into sub-queries, and a projection is one.
    if uses_timestamps(plan.root):
        return plan.root
    return _Projecting(plan).node(plan.root, frozenset(visible(plan.root)), default_source(plan))


class _Place(Enum):
    """Where a node stands: in a join, as a side of OPTIONAL or MINUS, or anywhere else."""

    JOIN = "join"
    SIDE = "side"
    ELSEWHERE = "elsewhere"


class _Projecting:
    def __init__(self, plan: QueryPlan) -> None:
        self._plan = plan

    def node(self, node: Node, need: Needs, source: Source, place: _Place = _Place.ELSEWHERE) -> Node:
        """The node with projections on the parts below it, and on itself where its place asks for one."""
        if isinstance(node, Service):
            return node
        within = source_inside(self._plan, node, source)
        below = zip(node.children, needs_below(node, need), strict=True)
        where = _place_below(node, place)
        renewed = node.with_children(*(self.node(child, wanted, within, where) for child, wanted in below))
        if isinstance(renewed, Bgp) and len(renewed.triples) > 1:
            renewed = self._patterns(renewed, need, source)
        if place is _Place.ELSEWHERE or isinstance(renewed, Window | Graph | Project):
            return renewed
        is_join = isinstance(renewed, Join) or (isinstance(renewed, Bgp) and len(renewed.triples) > 1)
        return renewed if is_join and place is _Place.JOIN else self._projected(renewed, need, source)

    def _patterns(self, node: Bgp, need: Needs, source: Source) -> Node:
        singles = [Bgp((triple,)) for triple in node.triples]
        found: list[Node] = []
        for i, single in enumerate(singles):
            others = all_visible(other for j, other in enumerate(singles) if j != i)
            found.append(self._projected(single, need | others, source))
        return joined(found)

    def _projected(self, node: Node, need: Needs, source: Source) -> Node:
        shown = visible(node)
        kept = tuple(variable for variable in shown if variable in need)
        # Without a variable at all, SPARQL's text would show all of them.
        if not kept or len(kept) == len(shown) or not self._is_stream(node, source):
            return node
        return Project(node, kept)

    def _is_stream(self, node: Node, source: Source) -> bool:
        """Whether all patterns of a node are matched against single windows."""
        places = [where for _, where in patterns(self._plan, node, source)]
        return bool(places) and all(len(w.windows) == 1 and not w.graphs and w.name is None for w in places)


def _place_below(node: Node, place: _Place) -> _Place:
    match node:
        case Join():
            return _Place.JOIN
        case LeftJoin() | Minus():
            return _Place.SIDE
        case Window() | Graph():
            return place
    return _Place.ELSEWHERE


RULE = Rule(
    "push projections",
    "no expression, join, MINUS, DISTINCT or LIMIT above looks at the variable; equal solutions stay apart",
    push_projections,
)
