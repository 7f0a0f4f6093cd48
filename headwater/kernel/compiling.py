"""From a plan to operators, for every plan that the kernel can evaluate; the reason why not for the others.

Static parts of a plan are evaluated once, by the definition, and become constant inputs (CQ6). Joins are flattened into
one multiway join, filters go to the input that has all their variables, EXISTS becomes a semi-join.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce

import numpy as np
import numpy.typing as npt
from pyoxigraph import DefaultGraph, Store

from headwater.algebra.nodes import (
    Aggregation,
    Bgp,
    Distinct,
    ExistsPlan,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Minus,
    Node,
    OrderBy,
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
from headwater.algebra.scope import certain, expressions_of, mentioned, nodes, visible
from headwater.kernel.constant import Constant
from headwater.kernel.distinct import Distinct as DistinctRows
from headwater.kernel.expressions import CompiledExpression, can_evaluate
from headwater.kernel.extension import Extension
from headwater.kernel.grouping import AggregateSpec, Grouping
from headwater.kernel.index import Ints
from headwater.kernel.join import MultiwayJoin
from headwater.kernel.left_join import LeftJoin as LeftJoinRows
from headwater.kernel.negation import Minus as MinusRows
from headwater.kernel.negation import SemiJoin
from headwater.kernel.operator import Operator
from headwater.kernel.presenting import Presentation, Presenter
from headwater.kernel.projection import Projection
from headwater.kernel.selection import Selection
from headwater.kernel.triples import NotStatic, PatternMatch, Shared, TickClock, TripleSource
from headwater.kernel.union import Union as UnionRows
from headwater.kernel.vocabulary import Vocabulary
from headwater.language.expressions import Aggregate, Expression, Operation, VariableReference
from headwater.language.patterns import Path, TriplePattern
from headwater.reference.evaluator import ReferenceEvaluator
from headwater.reference.graphs import DEFAULT, window_graph
from headwater.terms.exact import original_triple
from headwater.terms.model import NamedNode, Variable
from headwater.windows import Content, QuerySettings


class NotForTheKernel(Exception):
    """Why a plan stays with the reference evaluator."""


class Compiler:
    """Compiles one plan. `sources` are the leaves to which the evaluator gives what entered and left each window."""

    def __init__(self, plan: QueryPlan, settings: QuerySettings, static: Store, vocabulary: Vocabulary) -> None:
        self._plan = plan
        self._settings = settings
        self._static = static
        self._vocabulary = vocabulary
        self.clock = TickClock()
        self.sources = [TripleSource() for _ in plan.windows]
        self._reference: ReferenceEvaluator | None = None
        self._scopes: dict[NamedNode, Operator] = {}
        self._fresh = 0

    def compile(self) -> tuple[Operator, Presenter | None]:
        """The operator whose rows are the solutions of the plan, and what ORDER BY and LIMIT make of them."""
        presentation, below = Presentation.of(self._plan.root)
        root = self._node(below, DEFAULT)
        if presentation is None:
            return root, None
        unbound = tuple(v for v in names(presentation.variables) if v not in root.variables)
        rows = Projection(root, (*root.variables, *unbound))
        keys = [self._compiled(key, rows.variables).values for key, _ in presentation.keys]
        columns = [rows.variables.index(v) for v in names(presentation.variables)]
        return rows, Presenter(presentation, keys, columns, self._vocabulary)

    def _node(self, node: Node, graph: NamedNode) -> Operator:
        if self._is_static(node, graph):
            return self._static_rows(node, graph)
        match node:
            case Join() | Bgp():
                return self._join(self._parts(node, graph), visible(node))
            case Window(windows, name, inner):
                return self._window(windows, name, inner)
            case Graph(name, inner):
                return self._node(inner, self._graph(name))
            case Filter():
                return self._filter(node, graph)
            case Extend(inner, variable, expression):
                return self._extend(self._node(inner, graph), variable.value, expression)
            case Union(left, right):
                return UnionRows([self._node(left, graph), self._node(right, graph)], names(visible(node)))
            case LeftJoin():
                return self._left_join(node, graph)
            case Minus(left, right):
                shared = self._certainly_shared(left, right, "MINUS")
                return MinusRows(self._node(left, graph), self._node(right, graph), shared)
            case Project(inner, variables):
                return self._project(self._node(inner, graph), names(variables))
            case Distinct(inner) | Reduced(inner):
                return DistinctRows(self._node(inner, graph))
            case Group(inner, keys, aggregates):
                return self._group(self._node(inner, graph), keys, aggregates)
            case Aggregation():
                return self._aggregation(node, graph)
            case OrderBy(inner, _):
                return self._node(inner, graph)
        raise NotForTheKernel(_REASONS.get(type(node), f"{type(node).__name__} has no incremental operator"))

    def _is_static(self, node: Node, graph: NamedNode) -> bool:
        if graph == DEFAULT:
            if any(source.in_default_graph for source in self._plan.windows) and _reads_active_graph(node):
                return False
        elif graph in self._window_graphs():
            return False
        for inner in nodes(node):
            if isinstance(inner, Window | Service):
                return False
            if isinstance(inner, Graph):
                visible_windows = any(source.graph is not None for source in self._plan.windows)
                if (isinstance(inner.name, Variable) and visible_windows) or inner.name in self._window_graphs():
                    return False
            if any(not can_evaluate(e) for e in expressions_of(inner) if not isinstance(e, ExistsPlan)):
                return False
        return True

    def _window_graphs(self) -> dict[NamedNode, list[int]]:
        found: dict[NamedNode, list[int]] = {}
        for number, source in enumerate(self._plan.windows):
            found.setdefault(window_graph(number, source), []).append(number)
        return found

    def _static_rows(self, node: Node, graph: NamedNode) -> Operator:
        """A part that no stream touches, evaluated once."""
        shown = visible(node)
        root: Node = Project(node if graph == DEFAULT else Graph(graph, node), shown)
        if self._reference is None:
            self._reference = ReferenceEvaluator(self._plan, self._settings, self._static)
        rows = self._reference.over_same_data(root, shown)
        return Constant(names(shown), self._vocabulary.rows_of(rows, len(shown)))

    def _parts(self, node: Node, graph: NamedNode) -> list[tuple[Node, NamedNode]]:
        """The inputs of a join, flattened; triple patterns of one graph are parts of their own."""
        match node:
            case Join(left, right):
                return [*self._parts(left, graph), *self._parts(right, graph)]
            case Bgp(triples):
                return [(Bgp((triple,)), graph) for triple in triples]
            case Graph(name, inner) if isinstance(name, NamedNode):
                return self._parts(inner, self._graph(name))
            case Window((number,), None, inner):
                return self._parts(inner, window_graph(number, self._plan.windows[number]))
            case Unit():
                return []
        return [(node, graph)]

    def _join(self, parts: list[tuple[Node, NamedNode]], shown: tuple[Variable, ...]) -> Operator:
        static = [(n, g) for n, g in parts if self._is_static(n, g)]
        inputs = [self._view(group) for group in _connected(static)]
        inputs += [self._input(n, g) for n, g in parts if not self._is_static(n, g)]
        self._check_bound([n for n, _ in parts])
        if len(inputs) == 1:
            return self._project(inputs[0], names(shown))
        return MultiwayJoin(inputs, names(shown))

    def _view(self, group: list[tuple[Node, NamedNode]]) -> Operator:
        """Static parts that share variables are one view."""
        wrapped = [n if g == DEFAULT else Graph(g, n) for n, g in group]
        return self._static_rows(reduce(Join, wrapped), DEFAULT)

    def _input(self, node: Node, graph: NamedNode) -> Operator:
        if isinstance(node, Bgp) and len(node.triples) == 1:
            return self._pattern(node.triples[0], graph)
        return self._node(node, graph)

    def _check_bound(self, parts: list[Node]) -> None:
        """A multiway join compares ids: what several inputs share must be bound in each."""
        for i, part in enumerate(parts):
            shared = {v for j, other in enumerate(parts) if j != i for v in visible(other)} & set(visible(part))
            if shared - certain(part):
                raise NotForTheKernel("a join on variables that may be unbound")

    def _pattern(self, triple: TriplePattern, graph: NamedNode) -> Operator:
        if isinstance(triple.predicate, Path):
            raise NotForTheKernel(_REASONS[PathMatch])
        parts = tuple(
            part.value if isinstance(part, Variable) else self._vocabulary.id_of(part)
            for part in (triple.subject, triple.predicate, triple.object)
        )
        pattern = (parts[0], parts[1], parts[2])
        matched = PatternMatch(self._scope(graph), pattern)
        if graph != DEFAULT:
            return matched
        always = Constant(matched.variables, matched.match(self._static_triples(triple)))
        return UnionRows([always, matched], matched.variables)

    def _static_triples(self, triple: TriplePattern) -> Ints:
        subject, predicate, object_ = (
            part if isinstance(part, NamedNode) else None for part in (triple.subject, triple.predicate, triple.object)
        )
        rows = []
        for graph in self._plan.default_graphs or [DefaultGraph()]:
            for quad in self._static.quads_for_pattern(subject, predicate, object_, graph):
                found = original_triple(quad.triple)
                rows.append((found.subject, found.predicate, found.object))
        return self._vocabulary.rows_of(dict.fromkeys(rows), 3)

    def _scope(self, graph: NamedNode) -> Operator:
        """The triples of a window graph, or of all windows in the default graph, as set or bag."""
        if graph not in self._scopes:
            if graph == DEFAULT:
                numbers = [n for n, source in enumerate(self._plan.windows) if source.in_default_graph]
            else:
                numbers = self._window_graphs()[graph]
            readers: list[Operator] = [self._source(n) for n in numbers]
            merged = readers[0] if len(readers) == 1 else UnionRows(readers, ("s", "p", "o"))
            if self._settings.content is Content.SET:
                if graph == DEFAULT:
                    merged = NotStatic(merged, self._static_default())
                merged = DistinctRows(merged)
            self._scopes[graph] = Shared(merged, self.clock)
        return self._scopes[graph]

    def _source(self, number: int) -> Operator:
        key = NamedNode(f"urn:headwater:source:{number}")
        if key not in self._scopes:
            self._scopes[key] = Shared(self.sources[number], self.clock)
        return self._scopes[key]

    def _static_default(self) -> frozenset[tuple[int, int, int]]:
        anything = TriplePattern(Variable("s"), Variable("p"), Variable("o"))
        return frozenset((int(s), int(p), int(o)) for s, p, o in self._static_triples(anything).tolist())

    def _window(self, windows: tuple[int, ...], name: Variable | None, inner: Node) -> Operator:
        graphs = [window_graph(n, self._plan.windows[n]) for n in windows]
        if name is None:
            return self._node(inner, graphs[0])
        shown = names((name, *(v for v in visible(inner) if v != name)))
        branches: list[Operator] = []
        for number, graph in zip(windows, graphs, strict=True):
            label = Values((name,), ((NamedNode(self._plan.windows[number].label),),))
            branches.append(self._join([(label, DEFAULT), (inner, graph)], tuple(Variable(v) for v in shown)))
        return UnionRows(branches, shown) if branches else Constant(shown, np.zeros((0, len(shown)), dtype=np.int64))

    def _graph(self, name: NamedNode | Variable) -> NamedNode:
        if isinstance(name, Variable):
            raise NotForTheKernel("GRAPH with a variable over streams")
        return name

    def _filter(self, node: Filter, graph: NamedNode) -> Operator:
        conditions = list(_conjuncts(node.condition))
        exists = [c for c in conditions if isinstance(c, ExistsPlan)]
        source = self._node(node.inner, graph)
        plain = [c for c in conditions if not isinstance(c, ExistsPlan)]
        if plain:
            source = Selection(source, self._test(_all(plain), source.variables))
        for condition in exists:
            source = self._semi_join(source, node.inner, condition, graph)
        return source

    def _semi_join(self, source: Operator, left: Node, condition: ExistsPlan, graph: NamedNode) -> Operator:
        inside = frozenset(visible(condition.plan))
        for inner in nodes(condition.plan):
            for expression in expressions_of(inner):
                if mentioned(expression) - inside:
                    raise NotForTheKernel("EXISTS whose filters look outside")
        shared = self._certainly_shared(left, condition.plan, "EXISTS")
        return SemiJoin(source, self._node(condition.plan, graph), shared, negated=condition.negated)

    def _certainly_shared(self, left: Node, right: Node, what: str) -> tuple[str, ...]:
        shared = [v for v in visible(left) if v in set(visible(right))]
        if set(shared) - (certain(left) & certain(right)):
            raise NotForTheKernel(f"{what} on variables that may be unbound")
        return names(shared)

    def _left_join(self, node: LeftJoin, graph: NamedNode) -> Operator:
        self._certainly_shared(node.left, node.right, "OPTIONAL")
        left, right = self._node(node.left, graph), self._node(node.right, graph)
        shown = (*left.variables, *(v for v in right.variables if v not in left.variables))
        test = None if node.condition is None else self._test(node.condition, shown)
        return LeftJoinRows(left, right, test)

    def _test(self, condition: Expression, variables: tuple[str, ...]) -> Callable[[Ints], npt.NDArray[np.bool_]]:
        return self._compiled(condition, variables).holds

    def _compiled(self, expression: Expression, variables: tuple[str, ...]) -> CompiledExpression:
        if not can_evaluate(expression):
            raise NotForTheKernel("an expression that depends on more than its row")
        return CompiledExpression(expression, variables, self._vocabulary, base=self._plan.base)

    def _extend(self, source: Operator, variable: str, expression: Expression) -> Operator:
        return Extension(source, variable, self._compiled(expression, source.variables).values)

    def _project(self, source: Operator, shown: tuple[str, ...]) -> Operator:
        return source if source.variables == shown else Projection(source, shown)

    def _group(
        self,
        source: Operator,
        keys: Iterable[tuple[Variable, Expression | None]],
        aggregates: Iterable[tuple[Variable, Aggregate]],
    ) -> Operator:
        listed = tuple(keys)
        for variable, expression in listed:
            if expression is not None:
                source = self._extend(source, variable.value, expression)
        specs: list[tuple[str, AggregateSpec]] = []
        for variable, aggregate in aggregates:
            argument = aggregate.argument
            column: str | None = None
            if isinstance(argument, VariableReference) and argument.variable.value in source.variables:
                column = argument.variable.value
            elif argument is not None:
                self._fresh += 1
                column = f" argument {self._fresh}"
                source = self._extend(source, column, argument)
            spec = AggregateSpec(aggregate.function, column, aggregate.distinct, aggregate.separator)
            specs.append((variable.value, spec))
        return Grouping(source, names(v for v, _ in listed), tuple(specs), self._vocabulary)

    def _aggregation(self, node: Aggregation, graph: NamedNode) -> Operator:
        """Each row of P with the aggregates of its groups: ids are compared, so that unbound equals unbound."""
        rows = Shared(self._node(node.inner, graph), self.clock)
        inputs: list[Operator] = [rows]
        for variable, aggregate, group in node.clauses:
            inputs.append(self._group(rows, [(v, None) for v in group], [(variable, aggregate)]))
        joined: Operator = MultiwayJoin(inputs, names(visible(node)))
        if node.conditions:
            joined = Selection(joined, self._test(_all(node.conditions), joined.variables))
        return joined


_REASONS: dict[type[Node], str] = {
    PathMatch: "a property path over a stream",
    Service: "SERVICE",
    Slice: "LIMIT or OFFSET in a sub-query",
}


def names(variables: Iterable[Variable]) -> tuple[str, ...]:
    return tuple(variable.value for variable in variables)


def _reads_active_graph(node: Node) -> bool:
    """Whether some pattern of the node is matched against the graph that is active around it."""
    match node:
        case Bgp() | PathMatch():
            return True
        case Graph() | Window() | Service():
            return False
    inside = [part.plan for e in expressions_of(node) for part in [e] if isinstance(part, ExistsPlan)]
    return any(_reads_active_graph(child) for child in (*node.children, *inside))


def _connected(parts: list[tuple[Node, NamedNode]]) -> list[list[tuple[Node, NamedNode]]]:
    """The parts in groups such that no two groups share a variable."""
    groups: list[list[tuple[Node, NamedNode]]] = []
    for part in parts:
        mine = [group for group in groups if any(set(visible(part[0])) & set(visible(n)) for n, _ in group)]
        groups = [group for group in groups if group not in mine]
        groups.append([*(p for group in mine for p in group), part])
    return groups


def _conjuncts(condition: Expression) -> Iterable[Expression]:
    if isinstance(condition, Operation) and condition.operator == "&&":
        for operand in condition.operands:
            yield from _conjuncts(operand)
    else:
        yield condition


def _all(conditions: Iterable[Expression]) -> Expression:
    return reduce(lambda a, b: Operation("&&", (a, b)), conditions)
