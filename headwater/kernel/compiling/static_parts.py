"""The parts of a plan that read no stream (CQ6): the reference evaluates them once, and they are constant inputs.

STREAM <rfid> [NOW] {?person :detectedAt ?loc}  GRAPH <floorplan> {?loc :name ?n . ?loc :desc ?d}
                                                └──────── one view of ?loc ?n ?d ────────┘
"""

from __future__ import annotations

from dataclasses import replace

from headwater.algebra.nodes import (
    Bgp,
    ExistsPlan,
    Filter,
    Graph,
    Join,
    Node,
    PathMatch,
    Project,
    QuadPattern,
    Service,
    Window,
)
from headwater.algebra.non_literals import non_literal_variables
from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.algebra.scope import certain_variables, expressions_of, nodes_of, sub_expressions, visible_variables
from headwater.algebra.window_graphs import DEFAULT, windows_of
from headwater.execution.static_data import StaticData
from headwater.kernel.columns.delta import UNBOUND
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.compiling.join_inputs import JoinInput
from headwater.kernel.compiling.static_patterns import StaticPatterns
from headwater.kernel.compiling.static_views import ViewData
from headwater.kernel.expressions.compiled_expressions import can_evaluate_node
from headwater.kernel.operators.constant import ConstantOperator
from headwater.kernel.operators.operator import Operator
from headwater.language.expressions import Constant as Written
from headwater.language.expressions import Operation, VariableReference, combine_chain
from headwater.language.patterns import TriplePattern
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.terms.model import NamedNode, Row, Variable
from headwater.windows.settings import QuerySettings

PlacedPart = tuple[Node, NamedNode]
"""A part of a plan, and the graph in which its patterns are matched."""


class StaticParts:
    """Finds the static parts of one plan and evaluates them. `views` lists those that were evaluated."""

    def __init__(
        self,
        plan: QueryPlan,
        settings: QuerySettings,
        static: StaticData,
        vocabulary: Vocabulary,
    ) -> None:
        self._plan = plan
        self._settings = settings
        self._static = static
        self._vocabulary = vocabulary
        self.patterns = StaticPatterns(plan, static)
        self.streams = tuple(dict.fromkeys(source.graph for source in plan.windows if source.graph is not None))
        """The window graphs over which GRAPH ?g ranges."""
        self.views: list[Node] = []
        self.view_locations: list[str] = []
        """For each of the views, in words for `explain`, where its rows are."""
        self.follows_views = False
        """Whether views are inputs with deltas. Otherwise joins read their relations in place."""
        self.assumes_static_patterns = True
        """Whether patterns of a merged default graph are static until a window triple matches them."""
        self.has_unfollowed_data = False
        """Whether some static rows were read once: a change of the data set does not reach them as a delta."""

    @property
    def named_graphs(self) -> list[NamedNode]:
        """The static graphs over which GRAPH ?g ranges."""
        self.has_unfollowed_data = True
        chosen = self._static.named_graphs() if self._plan.named_graphs is None else self._plan.named_graphs
        return [graph for graph in chosen if isinstance(graph, NamedNode) and graph not in self.streams]

    def is_static(self, node: Node, graph: NamedNode) -> bool:
        """Whether a part in a graph reads no stream, and nothing in it changes by itself."""
        if not self.reads_no_stream(node):
            return False
        if not windows_of(self._plan, graph) or not _reads_active_graph(node):
            return True
        return graph == DEFAULT and self.assumes_static_patterns and self.patterns.is_static(node)

    def _is_static_node(self, node: Node) -> bool:
        if isinstance(node, Window | Service | QuadPattern):
            return False
        if isinstance(node, Graph) and (isinstance(node.name, Variable) or node.name in self.streams) and self.streams:
            return False
        parts = (part for expression in expressions_of(node) for part in sub_expressions(expression))
        return all(isinstance(part, ExistsPlan) or can_evaluate_node(part) for part in parts)

    def reads_no_stream(self, node: Node) -> bool:
        """Whether a part reads no stream, in whatever graph its patterns are matched."""
        return all(self._is_static_node(inner) for inner in nodes_of(node))

    def rows(self, node: Node, graph: NamedNode) -> Operator:
        """The solutions of a static part."""
        return self._evaluate_part(with_graph(node, graph))[0]

    def _evaluate_part(self, part: Node) -> tuple[Operator, frozenset[str]]:
        """The solutions of a part in the default graph, and the variables that are bound in all of them."""
        shown = visible_variables(part)
        names = tuple(variable.value for variable in shown)
        self.views.append(part)
        if isinstance(self._static, ViewData):
            # Queries over other streams, or in which a graph has another name, share the view.
            plan = replace(self._plan, windows=())
            view = self._static.view(plan, part, lambda data: self._evaluate_by_reference(part, shown, data))
            self.view_locations.append(view.relation.describe())
            if self.follows_views:
                return view.follow(names), frozenset(variable.value for variable in certain_variables(part))
            return ConstantOperator(names, view.relation), frozenset(names[place] for place in view.always_bound)
        rows = self._vocabulary.ids_of_rows(self._evaluate_by_reference(part, shown), len(names))
        self.view_locations.append("asked once of the reference")
        always_bound = frozenset(v for place, v in enumerate(names) if not (rows[:, place] == UNBOUND).any())
        return ConstantOperator(names, rows), always_bound

    def _evaluate_by_reference(
        self, part: Node, shown: tuple[Variable, ...], data: StaticData | None = None
    ) -> list[Row]:
        """The solutions by the reference, over a copy of the data that it reads; `data` may be at another version."""
        root = Project(part, shown)
        plan = replace(self._plan, root=root, variables=shown, kind=QueryKind.SELECT)
        static = self._static if data is None else data
        return ReferenceEvaluator(plan, self._settings, static).evaluate_static_part(root, shown)

    def view(self, parts: list[PlacedPart]) -> JoinInput:
        """Several static parts joined."""
        part = combine_chain(Join, [with_graph(*part) for part in parts])
        return JoinInput(*self._evaluate_part(part), non_literal_variables(part))

    def matches(self, triple: TriplePattern) -> Operator | None:
        """The matches of a triple pattern in the static default graph; None if there are none and will be none."""
        if not self.follows_views and not self.patterns.has_static_match(triple):
            return None
        return self.rows(Bgp((triple,)), DEFAULT)

    def in_static_graphs(self, name: Variable, inner: Node) -> Operator:
        """`GRAPH ?g` over the graphs that are no stream's, with ?g bound to each."""
        pattern: Node = Graph(name, inner)
        for stream in self.streams:
            pattern = Filter(pattern, Operation("!=", (VariableReference(name), Written(stream))))
        return self.rows(pattern, DEFAULT)


def group_by_shared_variables(parts: list[PlacedPart]) -> list[list[PlacedPart]]:
    """Parts in groups such that no two groups share a variable."""
    groups: list[list[PlacedPart]] = []
    for part in parts:
        mine = [
            group
            for group in groups
            if any(set(visible_variables(part[0])) & set(visible_variables(n)) for n, _ in group)
        ]
        groups = [group for group in groups if group not in mine]
        groups.append([*(p for group in mine for p in group), part])
    return groups


def with_graph(node: Node, graph: NamedNode) -> Node:
    """The part with its graph written around it, so that it means the same in the default graph."""
    return Graph(graph, node) if graph != DEFAULT and _reads_active_graph(node) else node


def _reads_active_graph(node: Node) -> bool:
    """Whether some pattern of the node is matched against the graph that is active around it."""
    match node:
        case Bgp() | PathMatch():
            return True
        case Graph() | Window() | Service():
            return False
    parts = (part for expression in expressions_of(node) for part in sub_expressions(expression))
    inside = [part.plan for part in parts if isinstance(part, ExistsPlan)]
    return any(_reads_active_graph(child) for child in (*node.children, *inside))
