"""The plan of a query with the sources of its default graph apart (C-SPARQL, section 4).

In C-SPARQL the default graph is the merge of windows and static graphs, so that a triple pattern may be matched by any
of them. The paper assumes that the schema of each source is known, and draws each pattern at the source that has it:

    ?b :is_from ?c . ?b :does ?t    in FROM <brokers> and stream <market>
    →  GRAPH <brokers> { ?b :is_from ?c } WINDOW <market> { ?b :does ?t }    if only <brokers> has :is_from, …

Both plans have the same answers as long as each source keeps to its predicates. Nothing can hold a stream to them, so
this plan is for drawings; what is evaluated is the plan over the merged graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from headwater.algebra.active_graphs import ActiveGraph, default_active_graph
from headwater.algebra.nodes import Bgp, Graph, Node, PathMatch, Window
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import nodes_of
from headwater.language.patterns import TriplePattern
from headwater.optimizer.joins import join_plans
from headwater.optimizer.rule import NodeContext, rewrite_plan
from headwater.terms.model import NamedNode, Variable

Predicates: TypeAlias = frozenset[NamedNode]

_NOTE = "each pattern is shown at the source that has its predicate; evaluated is the default graph that merges them"


@dataclass(frozen=True)
class SourceVocabularies:
    """The predicates that each stream and each static graph has; None as a graph's name is the default graph.

    A stream that is missing may have every predicate, and so may all graphs where `graphs` is None.
    """

    streams: Mapping[NamedNode, Predicates]
    graphs: Mapping[NamedNode | None, Predicates] | None = None

    def stream_has(self, stream: NamedNode, predicate: object) -> bool:
        """Whether a stream may have a triple with this predicate; a variable or a path stands for any."""
        return not isinstance(predicate, NamedNode) or stream not in self.streams or predicate in self.streams[stream]

    def graph_has(self, graph: NamedNode | None, predicate: object) -> bool:
        """Whether a static graph may have a triple with this predicate; a variable or a path stands for any."""
        if not isinstance(predicate, NamedNode) or self.graphs is None:
            return True
        return predicate in self.graphs.get(graph, frozenset())


def separate_sources(plan: QueryPlan, vocabularies: SourceVocabularies) -> QueryPlan:
    """The plan in which a pattern of the default graph reads the one source that can match it, where there is one."""
    separator = _Separator(plan, vocabularies)
    root = rewrite_plan(plan, separator.change)
    windows = plan.windows
    if not separator.needs_merge:
        windows = tuple(replace(window, in_default_graph=False) for window in windows)
    named = plan.named_graphs
    if separator.named:
        named = tuple(dict.fromkeys((*(named or ()), *separator.named)))
    notes = plan.notes if root == plan.root else (*plan.notes, _NOTE)
    return replace(plan, root=root, windows=windows, named_graphs=named, notes=notes)


class _Separator:
    """Rewrites the patterns of the default graph, and notes what the rewritten plan needs."""

    def __init__(self, plan: QueryPlan, vocabularies: SourceVocabularies) -> None:
        self._vocabularies = vocabularies
        self._graphs: tuple[NamedNode | None, ...] = (None,) if plan.default_graphs is None else plan.default_graphs
        self._plan = plan
        self._default = default_active_graph(plan)
        # A graph that is named for a pattern would be one more over which GRAPH ?g ranges.
        self._may_name = not any(
            isinstance(node, Graph) and isinstance(node.name, Variable) for node in nodes_of(plan.root)
        )
        self.named: list[NamedNode] = []
        self.needs_merge = False

    def change(self, node: Node, context: NodeContext) -> Node:
        if not context.active_graph.is_merged or not context.active_graph.windows:
            return node
        if isinstance(node, PathMatch):
            self.needs_merge = True
        if not isinstance(node, Bgp):
            return node
        by_source: dict[int | NamedNode | None, list[TriplePattern]] = {}
        for triple in node.triples:
            by_source.setdefault(self._find_source(triple, context.active_graph), []).append(triple)
        return join_plans(_at_source(source, triples) for source, triples in by_source.items())

    def _find_source(self, triple: TriplePattern, around: ActiveGraph) -> int | NamedNode | None:
        """The number of the window or the name of the graph that a pattern reads; None: the merged graph around it."""
        known = self._vocabularies
        windows = [n for n in around.windows if known.stream_has(self._plan.windows[n].stream, triple.predicate)]
        graphs = [graph for graph in self._graphs if known.graph_has(graph, triple.predicate)]
        if not graphs and len(windows) == 1:
            return windows[0]
        if not windows and len(graphs) == 1 and graphs[0] is not None and self._may_name:
            self.named.append(graphs[0])
            return graphs[0]
        # Without windows the default graph is static, but the graph of a stream is its window alone.
        self.needs_merge |= bool(windows) or around != self._default
        return None


def _at_source(source: int | NamedNode | None, triples: Iterable[TriplePattern]) -> Node:
    pattern = Bgp(tuple(triples))
    if source is None:
        return pattern
    return Graph(source, pattern) if isinstance(source, NamedNode) else Window((source,), None, pattern)
