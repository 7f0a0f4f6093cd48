"""Compiles a plan into operators, or raises `UnsupportedByKernel`.

The plan is taken as it is: the optimizer has rewritten it before (`evaluator_choice`). Static parts are evaluated once,
by the reference, and become constant inputs (`static_parts`). Joins are flattened into one multiway join
(`join_inputs`), triple patterns read the windows behind their graph (`pattern_inputs`), EXISTS becomes a semi-join
(`existence`).

What an expression reads beside the values of its row becomes a column of its own: the times of the patterns for
`timestamp()`, the tick for NOW(), the truth of EXISTS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from headwater.algebra.nodes import (
    Aggregation,
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
    OrderBy,
    PathMatch,
    Project,
    QuadPattern,
    Reduced,
    Service,
    Slice,
    Union,
    Unit,
    Window,
)
from headwater.algebra.non_literals import non_literal_variables
from headwater.algebra.placed_patterns import PlacedPattern
from headwater.algebra.plan import QueryPlan
from headwater.algebra.presentation import Presentation
from headwater.algebra.scope import certain_variables, visible_variables
from headwater.algebra.translate import conjunction_of
from headwater.algebra.unrolled_paths import triples_of, unroll_for_readers, unroll_path
from headwater.algebra.window_graphs import DEFAULT, window_graph
from headwater.execution.static_data import StaticData
from headwater.kernel.aggregation.grouping import AggregateSpec, GroupOperator
from headwater.kernel.columns.delta import no_rows
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.compiling.existence import Variables
from headwater.kernel.compiling.graph_lifting import lift_window_graphs
from headwater.kernel.compiling.join_inputs import JoinInput, join_all, join_multiway
from headwater.kernel.compiling.pattern_inputs import PatternCompiler
from headwater.kernel.compiling.row_expressions import RowExpressions
from headwater.kernel.compiling.stars import Star, find_stars
from headwater.kernel.compiling.static_parts import PlacedPart, StaticParts, group_by_shared_variables
from headwater.kernel.compiling.static_products import take_products_apart
from headwater.kernel.compiling.unsupported import UnsupportedByKernel
from headwater.kernel.operators.constant import ConstantOperator
from headwater.kernel.operators.distinct import DistinctOperator
from headwater.kernel.operators.multiway_join import MultiwayJoinOperator
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.presenter import Presenter
from headwater.kernel.operators.projection import ProjectionOperator
from headwater.kernel.operators.recompute import RecomputeOperator
from headwater.kernel.operators.semi_join import MinusOperator
from headwater.kernel.operators.triple_patterns import SharedOperator, TickClock, TripleSourceOperator
from headwater.kernel.operators.union import UnionOperator
from headwater.language.expressions import Aggregate, Expression, VariableReference
from headwater.terms.model import NamedNode, Variable
from headwater.windows.settings import QuerySettings


class Compiler:
    """Compiles one plan. `sources` are the leaves to which the evaluator gives what entered and left each window."""

    def __init__(self, plan: QueryPlan, settings: QuerySettings, static: StaticData, vocabulary: Vocabulary) -> None:
        self._plan = plan
        self._vocabulary = vocabulary
        self._prefix = "hwk_"
        while self._prefix in plan.text:
            self._prefix += "_"
        self._fresh = 0
        self.clock = TickClock()
        self.matches_stars = False
        """Whether patterns with one subject may be matched as one, without state (`stars`)."""
        self.static_parts = StaticParts(plan, settings, static, vocabulary)
        self._pattern_compiler = PatternCompiler(
            plan, settings, self.static_parts, vocabulary, self.clock, self._prefix
        )
        self._expressions = RowExpressions(self, plan, vocabulary, self._pattern_compiler.times)

    @property
    def sources(self) -> list[TripleSourceOperator]:
        """Where each window's differences go in."""
        return self._pattern_compiler.sources

    @property
    def collapse_counters(self) -> Mapping[PlacedPattern, Callable[[], int]]:
        """For each pattern over a set, how many triples have come while an equal one was there."""
        return self._pattern_compiler.collapse_counters

    @property
    def is_timed(self) -> bool:
        """Whether the plan reads the times of triples."""
        return self._pattern_compiler.is_timed

    @property
    def has_graphs(self) -> bool:
        """Whether the plan reads the names of the graphs of triples."""
        return self._pattern_compiler.has_graphs

    @property
    def has_unfollowed_data(self) -> bool:
        """Whether some static rows were read once: a change of the data set does not reach them as a delta."""
        return self.static_parts.has_unfollowed_data

    def compile(self) -> tuple[Operator, Presenter | None]:
        """The operator whose rows are the solutions of the plan, and what ORDER BY and LIMIT make of them."""
        root = lift_window_graphs(self._plan.root, lambda: Variable(self.new_name("h")))
        presentation, below = Presentation.extract(root)
        if presentation is None:
            return self._compile_node(below, DEFAULT), None
        return self._compile_presentation(presentation, below, DEFAULT)

    def _compile_presentation(
        self, presentation: Presentation, below: Node, graph: NamedNode
    ) -> tuple[Operator, Presenter]:
        """The rows below ORDER BY and LIMIT, and what chooses among them."""
        given = self.input(below, graph)
        keys = [key for key, _ in presentation.keys]
        rows, keys = self._expressions.with_helper_columns(given, keys, graph)
        rows = self._expressions.drop_unneeded_columns(rows, keys, names(presentation.variables))
        columns = [rows.column_of(v) for v in names(presentation.variables)]
        compiled = [self._expressions.compile_expression(key, rows.variables).compute_values for key in keys]
        return rows, Presenter(presentation, compiled, columns, self._vocabulary)

    def input(self, node: Node, graph: NamedNode) -> JoinInput:
        """A part of the plan with `graph` as the active one, and what its rows always bind."""
        operator = self._compile_node(node, graph)
        return JoinInput(operator, frozenset(names(certain_variables(node))), non_literal_variables(node))

    def filter_rows(self, given: JoinInput, condition: Expression, graph: NamedNode) -> Operator:
        """The rows that satisfy a condition."""
        return self._expressions.filter_rows(given, condition, graph)

    def extend_rows(self, given: JoinInput, variable: str, expression: Expression, graph: NamedNode) -> Operator:
        """The rows with one more value."""
        return self._expressions.extend_rows(given, variable, expression, graph)

    def left_join(self, left: JoinInput, right: JoinInput, condition: Expression | None, graph: NamedNode) -> Operator:
        """OPTIONAL."""
        return self._expressions.left_join(left, right, condition, graph)

    def window_graph(self, number: int) -> NamedNode:
        """The graph of a window."""
        return window_graph(number, self._plan.windows[number])

    def time_columns(self, variables: Variables) -> list[str]:
        """The columns that hold the times of patterns that bind one of some variables."""
        return [column.value for bound, _, column in self._pattern_compiler.times if bound & variables]

    def new_name(self, what: str) -> str:
        """A variable name that does not occur in the query."""
        self._fresh += 1
        return f"{self._prefix}{what}{self._fresh}"

    def _compile_node(self, node: Node, graph: NamedNode) -> Operator:
        """The operator of a node, with `graph` as the active graph; subclasses add nodes of their own."""
        if self.static_parts.is_static(node, graph):
            return self.static_parts.rows(node, graph)
        match node:
            case Bgp((triple,)):
                return self._pattern_compiler.pattern(triple, graph)
            case QuadPattern(name, ()):
                return self._pattern_compiler.graph_names(name, graph)
            case QuadPattern(name, (triple,)):
                return self._pattern_compiler.quad_pattern(triple, name, graph)
            case Join() | Bgp() | QuadPattern():
                return self._compile_join(node, graph)
            case PathMatch():
                return self._compile_path(node, graph)
            case Window(windows, Variable() as name, inner):
                labels = [(NamedNode(self._plan.windows[n].label), self.window_graph(n)) for n in windows]
                return self._compile_in_each_graph(name, inner, labels)
            case Window((number,), _, inner):
                return self._compile_node(inner, self.window_graph(number))
            case Graph(Variable() as name, inner):
                return self._compile_graph_variable(name, inner)
            case Graph(NamedNode() as name, inner):
                return self._compile_node(inner, name)
            case Filter(inner, condition):
                return self.filter_rows(self.input(inner, graph), condition, graph)
            case Extend(inner, variable, expression):
                return self.extend_rows(self.input(inner, graph), variable.value, expression, graph)
            case Union(left, right):
                return UnionOperator([self._compile_node(left, graph), self._compile_node(right, graph)])
            case LeftJoin(left, right, condition):
                return self.left_join(self.input(left, graph), self.input(right, graph), condition, graph)
            case Minus(left, right):
                return MinusOperator(self._compile_node(left, graph), self._compile_node(right, graph))
            case Project(inner, variables):
                return project(self._compile_node(inner, graph), names(variables))
            case Distinct(inner) | Reduced(inner):
                return DistinctOperator(self._compile_node(inner, graph))
            case Group(inner, keys, aggregates):
                return self._compile_group(self.input(inner, graph), keys, aggregates, graph)
            case Aggregation():
                return self._compile_aggregation(node, graph)
            case OrderBy(inner, _):
                return self._compile_node(inner, graph)
            case Slice():
                return self._compile_slice(node, graph)
        raise UnsupportedByKernel("SERVICE" if isinstance(node, Service) else f"no operator for {type(node).__name__}")

    def _compile_join(self, node: Node, graph: NamedNode) -> Operator:
        parts, lifted = take_products_apart(
            list(self._split_join(node, graph)), self.static_parts.is_static, self._split_join
        )
        given = self.join_parts(parts)
        for above, place in lifted:
            if isinstance(above, Filter):
                operator = self.filter_rows(given, above.condition, place)
            else:
                operator = self.extend_rows(given, above.variable.value, above.expression, place)
            given = replace(given, operator=operator)
        return given.operator

    def join_parts(self, parts: Sequence[PlacedPart]) -> JoinInput:
        """The inputs of nested joins in one: static ones that share variables are one view."""
        static = [part for part in parts if self.static_parts.is_static(*part)]
        inputs = [self.static_parts.view(group) for group in group_by_shared_variables(static)]
        others = [part for part in parts if not self.static_parts.is_static(*part)]
        if self.matches_stars:
            stars, others = find_stars(others, self._pattern_compiler.can_match_star)
            inputs += map(self._star, stars)
        inputs += [self.input(*part) for part in others]
        return join_all(inputs)

    def _star(self, star: Star) -> JoinInput:
        """The solutions of a star that satisfy its conditions."""
        patterns = Bgp(tuple(star.triples))
        operator = self._pattern_compiler.star(star)
        given = JoinInput(operator, frozenset(operator.variables), non_literal_variables(patterns))
        if not star.conditions:
            return given
        return replace(given, operator=self.filter_rows(given, conjunction_of(star.conditions), star.graph))

    @property
    def star_windows(self) -> frozenset[int]:
        """The windows whose triples are matched by stars."""
        return frozenset(self._pattern_compiler.star_windows)

    def _split_join(self, node: Node, graph: NamedNode) -> Iterable[PlacedPart]:
        """The inputs of a join, flattened; triple patterns of one graph are parts of their own."""
        match node:
            case Join(left, right):
                yield from self._split_join(left, graph)
                yield from self._split_join(right, graph)
            case Bgp(triples):
                yield from ((Bgp((triple,)), graph) for triple in triples)
            case QuadPattern(name, (_, _, *_) as triples):
                yield from ((QuadPattern(name, (triple,)), graph) for triple in triples)
            case Graph(NamedNode() as name, inner):
                yield from self._split_join(inner, name)
            case Window((number,), None, inner):
                yield from self._split_join(inner, self.window_graph(number))
            case Unit():
                return
            case _:
                yield node, graph

    def _compile_path(self, node: PathMatch, graph: NamedNode) -> Operator:
        """A path of fixed length, without the variables in between."""
        between: list[Variable] = []

        def new_variable() -> Variable:
            between.append(Variable(self.new_name("m")))
            return between[-1]

        pattern = unroll_path(node, new_variable)
        if pattern == node:
            raise UnsupportedByKernel("a property path of any length over a stream")
        shown = triples_of(unroll_for_readers(node))
        self._pattern_compiler.written |= zip(triples_of(pattern), shown, strict=True)
        steps = self._compile_node(pattern, graph)
        return project(steps, tuple(v for v in steps.variables if v not in names(between)))

    def _compile_graph_variable(self, name: Variable, inner: Node) -> Operator:
        """GRAPH ?g: the pattern in each static graph and in each stream's, joined with the name of it (18.6)."""
        streams = [(stream, stream) for stream in self.static_parts.streams]
        if self.static_parts.reads_no_stream(inner):
            in_streams = self._compile_in_each_graph(name, inner, streams)
            return UnionOperator([self.static_parts.in_static_graphs(name, inner), in_streams])
        static = [(graph, graph) for graph in self.static_parts.named_graphs]
        return self._compile_in_each_graph(name, inner, [*static, *streams])

    def _compile_in_each_graph(
        self, name: Variable, inner: Node, places: Sequence[tuple[NamedNode, NamedNode]]
    ) -> Operator:
        """The pattern in each of some graphs, with `name` bound to what the graph is called."""
        shown = dict.fromkeys([name.value, *names(visible_variables(inner))])
        branches: list[Operator] = [ConstantOperator(tuple(shown), no_rows(len(shown)))] if not places else []
        for label, graph in places:
            called = ConstantOperator((name.value,), self._vocabulary.ids_of_rows([(label,)], 1))
            always = frozenset({name.value})
            inputs = [JoinInput(called, always, always), self.input(inner, graph)]
            branches.append(join_all(inputs).operator)
        return branches[0] if len(branches) == 1 else UnionOperator(branches)

    def _compile_slice(self, node: Slice, graph: NamedNode) -> Operator:
        presentation, below = Presentation.extract(node)
        if presentation is None:
            raise UnsupportedByKernel("LIMIT or OFFSET of something that is no sub-query")
        rows, presenter = self._compile_presentation(presentation, below, graph)
        return RecomputeOperator(rows, presenter.order_and_slice, names(presentation.variables))

    def _compile_group(
        self,
        given: JoinInput,
        keys: Iterable[tuple[Variable, Expression | None]],
        aggregates: Iterable[tuple[Variable, Aggregate]],
        graph: NamedNode,
    ) -> Operator:
        """GROUP BY: keys and arguments that are no variables of the rows become columns first."""
        listed = tuple(keys)
        for variable, expression in listed:
            if expression is not None:
                given = replace(given, operator=self.extend_rows(given, variable.value, expression, graph))
        specs: list[tuple[str, AggregateSpec]] = []
        for variable, aggregate in aggregates:
            argument = aggregate.argument
            column: str | None = None
            if isinstance(argument, VariableReference) and argument.variable.value in given.operator.variables:
                column = argument.variable.value
            elif argument is not None:
                column = self.new_name("a")
                given = replace(given, operator=self.extend_rows(given, column, argument, graph))
            spec = AggregateSpec(aggregate.function, column, aggregate.distinct, aggregate.separator)
            specs.append((variable.value, spec))
        source = self._without_helpers(given.operator, names(v for v, _ in listed))
        return GroupOperator(source, names(v for v, _ in listed), tuple(specs), self._vocabulary)

    def _without_helpers(self, source: Operator, keys: tuple[str, ...]) -> Operator:
        """The rows without the times of their patterns, so that equal solutions stay equal, and with every key."""
        times = {column.value for _, _, column in self._pattern_compiler.times}
        kept = dict.fromkeys([*(v for v in source.variables if v not in times), *keys])
        return project(source, tuple(kept))

    def _compile_aggregation(self, node: Aggregation, graph: NamedNode) -> Operator:
        """Each row of P with the aggregates of its groups: ids are compared, so that unbound equals unbound."""
        inner = self.input(node.inner, graph)
        groups = {v.value for _, _, group in node.clauses for v in group}
        all_there = project(inner.operator, tuple(dict.fromkeys([*inner.operator.variables, *sorted(groups)])))
        rows = replace(inner, operator=SharedOperator(all_there, self.clock))
        inputs = [rows.operator]
        for variable, aggregate, group in node.clauses:
            inputs.append(self._compile_group(rows, [(v, None) for v in group], [(variable, aggregate)], graph))
        result = join_multiway(inputs)
        result = project(result, tuple(v for v in result.variables if v in inner.operator.variables or v not in groups))
        if node.conditions:
            given = JoinInput(result, inner.always_bound, non_literal_variables(node))
            result = self.filter_rows(given, conjunction_of(list(node.conditions)), graph)
        return result


def names(variables: Iterable[Variable]) -> tuple[str, ...]:
    return tuple(variable.value for variable in variables)


def project(source: Operator, shown: tuple[str, ...]) -> Operator:
    """Some columns; a variable that the source lacks is unbound. A join gives any columns in any order by itself."""
    if source.variables == shown:
        return source
    if isinstance(source, MultiwayJoinOperator) and source.condition is None and set(shown) <= set(source.variables):
        return MultiwayJoinOperator(source.inputs, shown)
    return ProjectionOperator(source, shown)
