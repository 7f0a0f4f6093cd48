"""Stream patterns are projected to the variables that operators above read.

    WINDOW w { ?o :value ?v FILTER(?v > 3) } P    →    WINDOW w { SELECT ?o { ?o :value ?v FILTER(?v > 3) } } P

Projections are put on single patterns of a window and on the two sides of OPTIONAL and MINUS, never around a join that
is part of a larger join: those are evaluated together, in an order that follows the data. Static patterns stay as
they are: the store evaluates them by index lookups from pattern to pattern, which a sub-query would prevent.
"""

from __future__ import annotations

from enum import Enum

from headwater.algebra.active_graphs import ActiveGraph, active_graph_inside, default_active_graph
from headwater.algebra.nodes import Bgp, Graph, Join, LeftJoin, Minus, Node, Project, Service, Window
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import visible_variables
from headwater.algebra.triple_timestamps import has_timestamps
from headwater.optimizer.dependencies import patterns_with_graphs
from headwater.optimizer.joins import join_plans, visible_in_any
from headwater.optimizer.required_variables import RequiredVariables, required_of_children
from headwater.optimizer.rule import Rule
from headwater.optimizer.statistics import Statistics


def push_projections(plan: QueryPlan, statistics: Statistics | None = None) -> Node:
    # timestamp() does not see into sub-queries, and a projection is one.
    if has_timestamps(plan.root):
        return plan.root
    return _ProjectionPusher(plan).push_below(
        plan.root, frozenset(visible_variables(plan.root)), default_active_graph(plan)
    )


class _Position(Enum):
    """Where a node stands: in a join, as a side of OPTIONAL or MINUS, or anywhere else."""

    JOIN = "join"
    SIDE = "side"
    ELSEWHERE = "elsewhere"


class _ProjectionPusher:
    """Puts projections on the stream patterns of one plan."""

    def __init__(self, plan: QueryPlan) -> None:
        self._plan = plan

    def push_below(
        self, node: Node, need: RequiredVariables, graph: ActiveGraph, position: _Position = _Position.ELSEWHERE
    ) -> Node:
        """The node with projections on the parts below it, and on itself where its position asks for one."""
        if isinstance(node, Service):
            return node
        within = active_graph_inside(self._plan, node, graph)
        below = zip(node.children, required_of_children(node, need), strict=True)
        position_below = _position_below(node, position)
        renewed = node.with_children(
            *(self.push_below(child, wanted, within, position_below) for child, wanted in below)
        )
        if isinstance(renewed, Bgp) and len(renewed.triples) > 1:
            renewed = self._project_patterns(renewed, need, graph)
        if position is _Position.ELSEWHERE or isinstance(renewed, Window | Graph | Project):
            return renewed
        is_join = isinstance(renewed, Join) or (isinstance(renewed, Bgp) and len(renewed.triples) > 1)
        return renewed if is_join and position is _Position.JOIN else self._project(renewed, need, graph)

    def _project_patterns(self, node: Bgp, need: RequiredVariables, graph: ActiveGraph) -> Node:
        singles = [Bgp((triple,)) for triple in node.triples]
        projected: list[Node] = []
        for i, single in enumerate(singles):
            others = visible_in_any(other for j, other in enumerate(singles) if j != i)
            projected.append(self._project(single, need | others, graph))
        return join_plans(projected)

    def _project(self, node: Node, need: RequiredVariables, graph: ActiveGraph) -> Node:
        shown = visible_variables(node)
        kept = tuple(variable for variable in shown if variable in need)
        # Without a variable at all, SPARQL's text would show all of them.
        if not kept or len(kept) == len(shown) or not self._has_single_windows(node, graph):
            return node
        return Project(node, kept)

    def _has_single_windows(self, node: Node, graph: ActiveGraph) -> bool:
        """Whether all patterns of a node are matched against single windows."""
        graphs = [active_graph for _, active_graph in patterns_with_graphs(self._plan, node, graph)]
        return bool(graphs) and all(len(w.windows) == 1 and not w.static_graphs and w.name is None for w in graphs)


def _position_below(node: Node, position: _Position) -> _Position:
    match node:
        case Join():
            return _Position.JOIN
        case LeftJoin() | Minus():
            return _Position.SIDE
        case Window() | Graph():
            return position
    return _Position.ELSEWHERE


RULE = Rule(
    "push projections",
    "no expression, join, MINUS, DISTINCT or LIMIT above looks at the variable; equal solutions stay apart",
    push_projections,
)
