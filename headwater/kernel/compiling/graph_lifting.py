"""GRAPH in the clause of a window, as patterns that match the names of graphs beside their triples.

By the definition (SPARQL 1.1, section 18.6) the pattern is evaluated in one graph after the other, and the name of the
graph is joined last. Here all graphs are evaluated together: each triple pattern has the name of its graph as one more
column, and everything inside joins on it.

    GRAPH ?g { ?s :p ?v OPTIONAL { ?s :q ?w } }    →    LeftJoin(Quad(?g, ?s :p ?v), Quad(?g, ?s :q ?w))

What stands inside and reads no triple, such as VALUES, is joined with the names of the graphs. What needs the solutions
of one graph alone (LIMIT, a group of everything) is left to the reference if the name is a variable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from headwater.algebra.named_graphs import needs_triple, reads_window_graphs
from headwater.algebra.nodes import (
    Aggregation,
    Bgp,
    Distinct,
    ExistsPlan,
    Extend,
    Filter,
    Graph,
    GraphName,
    Group,
    Join,
    LeftJoin,
    Minus,
    Node,
    OrderBy,
    PathMatch,
    Project,
    QuadPattern,
    Reduced,
    Service,
    Union,
    Unit,
    Values,
    Window,
    WindowGraph,
)
from headwater.algebra.scope import (
    all_variables,
    certain_variables,
    map_expression,
    map_expressions,
    map_plan,
    nodes_of,
    visible_variables,
)
from headwater.algebra.translate import join_nodes
from headwater.algebra.triple_timestamps import has_timestamps
from headwater.algebra.unrolled_paths import unroll_path
from headwater.kernel.compiling.unsupported import UnsupportedByKernel
from headwater.language.expressions import Expression, FunctionCall, VariableReference
from headwater.terms.model import NamedNode, Variable

NewVariable = Callable[[], Variable]


def lift_window_graphs(root: Node, new_variable: NewVariable) -> Node:
    """The plan without GRAPH in the clauses of windows; raises `UnsupportedByKernel` where that cannot be."""
    if not reads_window_graphs(root):
        return root
    paths = (node for graph in nodes_of(root) if isinstance(graph, WindowGraph) for node in nodes_of(graph))
    if has_timestamps(root) and any(isinstance(node, PathMatch) for node in paths):
        raise UnsupportedByKernel("timestamp() with a property path in GRAPH of a window")

    def change(node: Node) -> Node:
        return _lift_graph(node, new_variable) if isinstance(node, WindowGraph) else node

    return map_plan(root, change)


def _lift_graph(node: WindowGraph, new_variable: NewVariable) -> Node:
    """One GRAPH, whose inside has no other."""
    name, inner = node.name, node.inner
    if isinstance(name, NamedNode):
        lifted = _Lifting(name, new_variable).lift(inner)
        return lifted if needs_triple(inner) else join_nodes(QuadPattern(name), lifted)
    if name not in all_variables(inner):
        return _Lifting(name, new_variable).lift(inner)
    # Inside, ?g is a variable like any other: the name of the graph is joined last.
    hidden = new_variable()
    lifted = _Lifting(hidden, new_variable).lift(inner)
    # The hidden variable stays, because a projection would hide the times of the patterns. It equals ?g in every
    # solution, so solutions that are equal without it are equal with it.
    if name not in visible_variables(inner):
        return Extend(lifted, name, _value(hidden))
    if name in certain_variables(inner):
        return Filter(lifted, FunctionCall("SAMETERM", (_value(name), _value(hidden))))
    return Join(lifted, Extend(QuadPattern(hidden), name, _value(hidden)))


class _Lifting:
    """Puts the name of a graph, a constant or a variable, into all patterns of a part that are matched in it."""

    def __init__(self, name: GraphName, new_variable: NewVariable) -> None:
        self._name = name
        self._new_variable = new_variable

    def lift(self, node: Node) -> Node:
        """The solutions of a node in each graph, with the name of the graph where that is a variable."""
        match node:
            case Bgp(triples):
                return QuadPattern(self._name, triples)
            case PathMatch():
                return self._lift_path(node)
            case Unit() | Values() | Graph() | Window() | Service() | QuadPattern():
                return node if isinstance(self._name, NamedNode) else join_nodes(QuadPattern(self._name), node)
            case Join(left, right):
                return self._lift_join(left, right)
        if isinstance(self._name, NamedNode):
            return self._lift_inside(node)
        return self._lift_with_variable(node, self._name)

    def _lift_join(self, left: Node, right: Node) -> Node:
        """A join: what reads no triple needs no name of its own beside something that has it."""
        if isinstance(right, Values | Unit):
            return join_nodes(self.lift(left), right)
        if isinstance(left, Values | Unit):
            return join_nodes(left, self.lift(right))
        return Join(self.lift(left), self.lift(right))

    def _lift_inside(self, node: Node) -> Node:
        """The same operator over patterns of the graph."""
        return self._lift_expressions(node.with_children(*map(self.lift, node.children)))

    def _lift_expressions(self, node: Node) -> Node:
        def change(part: Expression) -> Expression | None:
            return replace(part, plan=self.lift(part.plan)) if isinstance(part, ExistsPlan) else None

        return map_expressions(node, lambda expression: map_expression(expression, change))

    def _lift_with_variable(self, node: Node, name: Variable) -> Node:
        match node:
            case LeftJoin() | Union() | Filter() | Extend() | Distinct() | Reduced() | OrderBy():
                return self._lift_inside(node)
            case Minus(left, right):
                if not frozenset(visible_variables(left)) & frozenset(visible_variables(right)):
                    return self.lift(left)
                if certain_variables(left) & certain_variables(right):
                    return self._lift_inside(node)
                raise UnsupportedByKernel("MINUS of solutions that may share no variable, in GRAPH of a window")
            case Project(inner, variables):
                return Project(self.lift(inner), (*variables, name))
            case Group(inner, (_, *_) as keys, aggregates):
                return self._lift_expressions(Group(self.lift(inner), (*keys, (name, None)), aggregates))
            case Aggregation(inner, clauses, conditions):
                by_graph = tuple((v, aggregate, (*group, name)) for v, aggregate, group in clauses)
                return self._lift_expressions(Aggregation(self.lift(inner), by_graph, conditions))
        raise UnsupportedByKernel(f"{type(node).__name__} in GRAPH with a variable in a window")

    def _lift_path(self, node: PathMatch) -> Node:
        """A path of fixed length, without the variables in between."""
        between: list[Variable] = []

        def new_variable() -> Variable:
            between.append(self._new_variable())
            return between[-1]

        pattern = unroll_path(node, new_variable)
        if pattern == node:
            raise UnsupportedByKernel("a property path of any length over a stream")
        lifted = self.lift(pattern)
        kept = tuple(variable for variable in visible_variables(lifted) if variable not in between)
        return Project(lifted, kept) if between else lifted


def _value(variable: Variable) -> Expression:
    return VariableReference(variable)
