"""From a continuous plan to plain SPARQL algebra over the dataset of a tick (see `tick_dataset`).

Plain form: a window is a named graph.

    Window(w, P)  →  GRAPH <w> { P }

Occurrence form, for bags that hold equal triples and for `timestamp()`: each triple pattern meets the occurrences of
triples, one solution for each, and learns their time.

    Window(w, {t})  →  GRAPH ?o { t } GRAPH <occurrences> { ?o :of <w> ; :time ?τ }

`timestamp(?v)` is then the highest of the ?τ of the patterns that mention ?v, and AGGREGATE is a join with a
grouping of the same pattern.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce

from headwater.algebra.nodes import (
    Aggregation,
    Bgp,
    ExistsPlan,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Node,
    PathMatch,
    Project,
    Union,
    Values,
    Window,
    WindowGraph,
)
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import (
    all_variables,
    certain_variables,
    expression_variables,
    expressions_of,
    map_expression,
    map_expressions,
    nodes_of,
    sub_expressions,
    visible_variables,
)
from headwater.algebra.translate import conjunction_of, join_nodes
from headwater.algebra.triple_timestamps import PatternTime, timestamp_expression
from headwater.algebra.unrolled_paths import can_be_empty, complete_path, has_negated_set, unroll_path
from headwater.algebra.window_graphs import DEFAULT, INTERNAL, graphs_with_static_data, window_graph
from headwater.language.expressions import (
    Constant,
    Expression,
    FunctionCall,
    Operation,
    Timestamp,
    VariableReference,
    combine_chain,
)
from headwater.language.patterns import TriplePattern
from headwater.reference.blank_nodes import make_nodes_per_solution
from headwater.reference.tick_dataset import NAME, NAMES, OCCURRENCES, OF, STATIC, TIME, GraphsInWindows, stream_time
from headwater.terms.model import Literal, NamedNode, Variable
from headwater.windows.settings import Content


@dataclass
class PlanRewriter:
    """Rewrites one plan; `occurrences` chooses the form."""

    plan: QueryPlan
    content: Content
    occurrences: bool
    named_graphs: tuple[NamedNode, ...] = ()
    """The static graphs over which GRAPH ?g ranges."""
    graphs_in_windows: GraphsInWindows = field(default_factory=dict)
    """The named graphs of the windows at the tick, over which GRAPH ranges in the clause of a window."""
    _window: NamedNode = DEFAULT
    """The graph of the window in whose clause the node at work stands."""
    _is_static: bool = False
    """Whether the node at work stands in a static graph: nothing in it occurs in time."""
    _fresh: int = 0
    _times: list[PatternTime] = field(default_factory=list)
    _given: frozenset[Variable] = frozenset()
    """The variables whose values are put into the pattern of the EXISTS at work."""

    def rewrite(self) -> Node:
        plain = self._expressions_with_times(self._rewrite_node(self.plan.root, DEFAULT))
        return make_nodes_per_solution(plain, self.new_variable)

    def new_variable(self) -> Variable:
        """A variable that stands nowhere else in the plan."""
        return self._make_variable("w")

    def _make_variable(self, what: str) -> Variable:
        self._fresh += 1
        prefix = "hwx_"
        while prefix in self.plan.text:
            prefix += "_"
        return Variable(f"{prefix}{what}{self._fresh}")

    def _rewrite_node(self, node: Node, graph: NamedNode | Variable) -> Node:
        """The node rewritten, with `graph` the active graph (`DEFAULT`, a window's, a static one's)."""
        match node:
            case Window(windows, name, inner):
                return self._rewrite_window(windows, name, inner)
            case Graph(name, inner):
                return self._rewrite_graph(name, inner)
            case WindowGraph(name, inner):
                return self._rewrite_window_graph(name, inner)
            case Aggregation():
                return self._rewrite_aggregation(node, graph)
            case Bgp(triples) if self._is_window_graph(graph):
                matches: list[Node] = [self._match_occurrences(triple, graph) for triple in triples]
                return reduce(join_nodes, matches)
            case PathMatch():
                return self._rewrite_path(node, graph)
            case Bgp():
                return self._put_in_graph(node, graph)
            case Group(inner, keys, aggregates) if any(a.distinct and a.argument is None for _, a in aggregates):
                # Variables of our own would make equal solutions different.
                counted = Project(self._rewrite_node(inner, graph), visible_variables(inner))
                return map_expressions(Group(counted, keys, aggregates), lambda e: self._rewrite_exists(e, graph))
        renewed = node.with_children(*(self._rewrite_node(child, graph) for child in node.children))
        scope = frozenset(variable for child in node.children for variable in visible_variables(child))
        renewed = map_expressions(renewed, lambda e: self._rewrite_exists(e, graph, scope))
        return Project(renewed, visible_variables(renewed)) if self._might_look_around(node, scope) else renewed

    def _might_look_around(self, node: Node, scope: frozenset[Variable]) -> bool:
        """Whether pyoxigraph might give a variable of an EXISTS the value that it has in a pattern around.

        Only the solutions that EXISTS judges are in its scope (SPARQL 1.1, section 18.6). A sub-query keeps to that.
        """
        mentions = (expression_variables(expression) for expression in expressions_of(node))
        if not isinstance(node, Filter | Extend | LeftJoin) or any(variables & self._given for variables in mentions):
            return False
        for part in (part for expression in expressions_of(node) for part in sub_expressions(expression)):
            if isinstance(part, ExistsPlan) and (own := all_variables(part.plan) - scope):
                inside = {id(one) for one in nodes_of(part.plan)}
                around = (one for one in nodes_of(self.plan.root) if id(one) not in inside)
                if any(not own.isdisjoint(visible_variables(one)) for one in around):
                    return True
        return False

    def _rewrite_exists(
        self, expression: Expression, graph: NamedNode | Variable, scope: frozenset[Variable] = frozenset()
    ) -> Expression:
        def change(part: Expression) -> Expression | None:
            if not isinstance(part, ExistsPlan):
                return None
            given, self._given = self._given, self._given | scope
            plan = self._rewrite_node(part.plan, graph)
            self._given = given
            return replace(part, plan=plan)

        return map_expression(expression, change)

    def _put_in_graph(self, node: Node, graph: NamedNode | Variable) -> Node:
        return node if graph == DEFAULT else Graph(graph, node)

    def _is_window_graph(self, graph: NamedNode | Variable) -> bool:
        """Whether occurrences decide what a pattern matches in this graph."""
        if not self.occurrences or self._is_static:
            return False
        if graph == DEFAULT:
            return any(source.in_default_graph for source in self.plan.windows)
        if any(graph in graphs.values() for graphs in self.graphs_in_windows.values()):
            return True
        return any(window_graph(n, source) == graph for n, source in enumerate(self.plan.windows))

    def _rewrite_window_graph(self, name: NamedNode | Variable, inner: Node) -> Node:
        """GRAPH in the clause of a window: the graph of that name, or each of them in turn (18.6)."""
        graphs = self.graphs_in_windows.get(self._window, {})
        nothing = Values(visible_variables(WindowGraph(name, inner)), ())
        if isinstance(name, NamedNode):
            return self._rewrite_in_window(graphs[name], inner, self._window) if name in graphs else nothing
        branches: list[Node] = []
        for graph in graphs.values():
            called = Graph(NAMES, Bgp((TriplePattern(graph, NAME, name),)))
            branches.append(Join(self._rewrite_in_window(graph, inner, self._window), called))
        return combine_chain(Union, branches) if branches else nothing

    def _rewrite_window(self, windows: tuple[int, ...], name: Variable | None, inner: Node) -> Node:
        graphs = [window_graph(n, self.plan.windows[n]) for n in windows]
        if name is None:
            return self._rewrite_in_window(graphs[0], inner)
        branches = [
            join_nodes(self._rewrite_in_window(graph, inner), Values((name,), ((self._label_of(n),),)))
            for n, graph in zip(windows, graphs, strict=True)
        ]
        nothing = Values((name, *(v for v in visible_variables(inner) if v != name)), ())
        return combine_chain(Union, branches) if branches else nothing

    def _label_of(self, window_index: int) -> NamedNode:
        return NamedNode(self.plan.windows[window_index].label)

    def _rewrite_in_window(self, graph: NamedNode, inner: Node, window: NamedNode | None = None) -> Node:
        """The inner plan with a window's graph as the active one, or one of the graphs in a window."""
        around = self._window, self._is_static
        self._window, self._is_static = window or graph, False
        try:
            if self.occurrences:
                return self._rewrite_node(inner, graph)
            return Graph(graph, self._rewrite_in_graph(inner))
        finally:
            self._window, self._is_static = around

    def _rewrite_in_graph(self, inner: Node) -> Node:
        # Inside GRAPH the active graph needs no wrapping of each pattern.
        return self._rewrite_node(inner, DEFAULT)

    def _rewrite_graph(self, name: NamedNode | Variable, inner: Node) -> Node:
        """GRAPH over windows and static graphs; a variable may become a union over all of them."""
        visible_windows = [source.graph for source in self.plan.windows if source.graph is not None]
        for window, held in self.graphs_in_windows.items():
            # The one graph in which a part of a plan is explained.
            if isinstance(name, NamedNode) and name in held.values():
                return self._rewrite_in_window(name, inner, window)
        if isinstance(name, NamedNode):
            if name in visible_windows:
                return self._rewrite_in_window(name, inner)
            return Graph(name, self._rewrite_in_static_graph(inner))
        if not self.occurrences and is_matched_in_one_graph(inner, name):
            pattern = Graph(name, self._rewrite_in_graph(inner))
            # Bags keep static triples and occurrences in graphs of ours.
            is_plain = self.content is Content.SET and not self.plan.reads_window_graphs
            if len(visible_windows) == len(self.plan.windows) and is_plain:
                return pattern
            return Filter(pattern, Operation("!", (_starts_with(name, INTERNAL),)))
        graphs = dict.fromkeys([*self.named_graphs, *visible_windows])
        branches = [join_nodes(self._rewrite_graph(graph, inner), Values((name,), ((graph,),))) for graph in graphs]
        nothing = Values((name, *(v for v in visible_variables(inner) if v != name)), ())
        return combine_chain(Union, branches) if branches else nothing

    def _rewrite_in_static_graph(self, inner: Node) -> Node:
        """A pattern over a static graph of the dataset: nothing in it occurs in time."""
        around, self._is_static = self._is_static, True
        try:
            return self._rewrite_node(inner, DEFAULT)
        finally:
            self._is_static = around

    def _match_occurrences(self, triple: TriplePattern, graph: NamedNode | Variable) -> Node:
        """A triple pattern that matches occurrences, each in a graph of its own, and binds their times."""
        occurrence, time = self._make_variable("o"), self._make_variable("t")
        variables = frozenset(v for v in (triple.subject, triple.predicate, triple.object) if isinstance(v, Variable))
        match: Node = Join(
            Graph(occurrence, Bgp((triple,))),
            Graph(OCCURRENCES, Bgp((TriplePattern(occurrence, OF, graph), TriplePattern(occurrence, TIME, time)))),
        )
        self._times.append((variables, None, time))
        for stream in self._timed_streams(graph):
            its_time = self._make_variable("s")
            self._times.append((variables, stream, its_time))
            looked_up = Graph(OCCURRENCES, Bgp((TriplePattern(occurrence, stream_time(stream), its_time),)))
            match = LeftJoin(match, looked_up)
        if graph not in graphs_with_static_data(self.plan):
            return match
        if self.content is Content.BAG:
            return Union(Graph(STATIC, Bgp((triple,))), match)
        return LeftJoin(self._put_in_graph(Bgp((triple,)), graph), match)

    def _timed_streams(self, graph: NamedNode | Variable) -> list[NamedNode]:
        """The streams of a graph whose own times some `timestamp(?v, stream)` reads."""
        if not any(isinstance(p, Timestamp) and p.stream is not None for p in self._all_expressions()):
            return []
        is_in_window = any(graph in graphs.values() for graphs in self.graphs_in_windows.values())
        place = self._window if is_in_window else graph
        here = (
            source.stream
            for n, source in enumerate(self.plan.windows)
            if window_graph(n, source) == place or (place == DEFAULT and source.in_default_graph)
        )
        return list(dict.fromkeys(here))

    def _all_expressions(self) -> list[Expression]:
        return [p for n in nodes_of(self.plan.root) for e in expressions_of(n) for p in sub_expressions(e)]

    def _rewrite_path(self, match: PathMatch, graph: NamedNode | Variable) -> Node:
        """A path: single steps count occurrences, closures are sets by definition."""
        pattern = unroll_path(match, lambda: self._make_variable("m"))
        if pattern != match:
            return self._rewrite_node(pattern, graph)
        return self._put_in_graph(complete_path(match, lambda: self._make_variable("m")), graph)

    def _rewrite_aggregation(self, node: Aggregation, graph: NamedNode | Variable) -> Node:
        """P AGG A: P joined with the aggregates of its groups; a group key that is unbound equals itself only."""
        result = self._rewrite_node(node.inner, graph)
        sure = certain_variables(node.inner)
        for variable, aggregate, group in node.clauses:
            renamed = {v: self._make_variable("g") for v in group if v not in sure}
            keys = tuple((renamed[v], VariableReference(v)) if v in renamed else (v, None) for v in group)
            groups = Group(self._rewrite_node(node.inner, graph), keys, ((variable, aggregate),))
            result = Join(result, Project(groups, (*(k for k, _ in keys), variable)))
            if renamed:
                result = Filter(
                    result, conjunction_of([_same_or_both_unbound(v, other) for v, other in renamed.items()])
                )
        conditions = [self._rewrite_exists(condition, graph) for condition in node.conditions]
        return Filter(result, conjunction_of(conditions)) if conditions else result

    def _expressions_with_times(self, plan: Node) -> Node:
        def timestamp(part: Expression) -> Expression | None:
            if isinstance(part, Timestamp):
                return timestamp_expression(part, self._times, (source.stream for source in self.plan.windows))
            if isinstance(part, ExistsPlan):
                return replace(part, plan=self._expressions_with_times(part.plan))
            return None

        renewed = plan.with_children(*(self._expressions_with_times(child) for child in plan.children))
        return map_expressions(renewed, lambda e: map_expression(e, timestamp))


def is_matched_in_one_graph(inner: Node, name: Variable) -> bool:
    """Whether the patterns under `GRAPH ?g` meet in one graph by themselves.

    pyoxigraph gives ?g to each pattern and joins on it. By the definition (18.6) the whole is evaluated in one graph
    after the other and ?g is joined last; that is the same only where every pattern shows ?g and nothing else reads it.
    """
    match inner:
        case Bgp(triples):
            return bool(triples)
        case PathMatch(_, path, _):
            return not can_be_empty(path) and not has_negated_set(path)
        case Join(left, right) | Union(left, right):
            return is_matched_in_one_graph(left, name) and is_matched_in_one_graph(right, name)
        case LeftJoin(left, right, None):
            simple = is_matched_in_one_graph(left, name) and is_matched_in_one_graph(right, name)
            return simple and name not in visible_variables(inner)
        case Filter(filtered, condition):
            parts = list(sub_expressions(condition))
            plain = not any(isinstance(part, ExistsPlan) for part in parts) and name not in expression_variables(
                condition
            )
            return plain and is_matched_in_one_graph(filtered, name)
    return False


def _same_or_both_unbound(left: Variable, right: Variable) -> Expression:
    both = (VariableReference(left), VariableReference(right))
    unbound = conjunction_of([Operation("!", (FunctionCall("BOUND", (v,)),)) for v in both])
    return Operation("||", (unbound, FunctionCall("SAMETERM", both)))


def _starts_with(variable: Variable, prefix: str) -> Expression:
    text = FunctionCall("STR", (VariableReference(variable),))
    return FunctionCall("STRSTARTS", (text, Constant(Literal(prefix))))
