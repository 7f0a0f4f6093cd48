"""What a triple pattern reads: the windows behind its graph, and where they are merged the static data beside them.

    BAG   pattern = static matches + the matches of every triple of every window
    SET   pattern = the same, each once (`DistinctOperator`), or each with its newest time (`NewestTimeOperator`)

Patterns that no window triple matches are static parts and do not come here (`static_patterns`).

The bindings of a pattern determine the triple, so a set of bindings is the set of triples, and only triples that
match something are counted. Equal patterns share one operator, whatever their variables are called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from headwater.algebra.aggregated_patterns import aggregated_patterns
from headwater.algebra.nodes import GraphName, Node
from headwater.algebra.placed_patterns import PlacedPattern
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import expressions_of, nodes_of, sub_expressions
from headwater.algebra.triple_timestamps import PatternTime
from headwater.algebra.window_graphs import graphs_with_static_data, windows_of
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.compiling.stars import Star
from headwater.kernel.compiling.static_parts import StaticParts
from headwater.kernel.compiling.unsupported import UnsupportedByKernel
from headwater.kernel.operators.distinct import DistinctOperator
from headwater.kernel.operators.extend import ExtendOperator
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.projection import ProjectionOperator
from headwater.kernel.operators.star import StarOperator, StarPattern
from headwater.kernel.operators.triple_patterns import (
    GRAPH_NAME,
    TIMED_TRIPLE,
    TRIPLE,
    NamedGraphOperator,
    PatternOperator,
    RenameOperator,
    SharedOperator,
    TickClock,
    TripleSourceOperator,
)
from headwater.kernel.operators.triple_times import NewestTimeOperator, TimeTermsOperator
from headwater.kernel.operators.union import UnionOperator
from headwater.language.expressions import Timestamp
from headwater.language.patterns import Path, TriplePattern
from headwater.terms.model import NamedNode, Variable
from headwater.windows.model import TimeWindow
from headwater.windows.settings import Content, QuerySettings

Pattern = tuple[int | str, int | str, int | str]
GraphKey = int | bool
"""The id of the name of a graph; True for a variable, False for the merge of all."""
PatternKey = tuple[NamedNode, Pattern, GraphKey]
"""The graph of some windows in which a pattern is matched, the pattern, and whose name its triples have."""


@dataclass
class PatternOperators:
    """The operators of patterns over some windows, which all who read the same windows can share.

    `sources` are given what enters and leaves each window; `read` gives it to several readers.
    """

    sources: list[TripleSourceOperator]
    read: list[Operator]
    graphs: dict[NamedNode, Operator] = field(default_factory=dict)
    merged: dict[NamedNode, Operator] = field(default_factory=dict)
    patterns: dict[PatternKey, Operator] = field(default_factory=dict)
    names: dict[tuple[NamedNode, GraphKey], Operator] = field(default_factory=dict)
    stars: dict[tuple[NamedNode, tuple[StarPattern, ...]], tuple[Operator, StarOperator]] = field(default_factory=dict)
    sets: dict[PatternKey, DistinctOperator | NewestTimeOperator] = field(default_factory=dict)

    @classmethod
    def over(cls, windows: int, columns: tuple[str, ...], clock: TickClock) -> PatternOperators:
        """Without any patterns yet, over so many windows whose triples have these columns."""
        sources = [TripleSourceOperator(columns) for _ in range(windows)]
        return cls(sources, [SharedOperator(source, clock) for source in sources])


class PatternCompiler:
    """Compiles triple patterns. `sources` are given the deltas of each window.

    `prefix` begins the names of the columns that hold times; `times` lists them as they are made. With `shared`,
    operators that are there are used, and others are added; the plan must read neither times nor names of graphs.
    """

    def __init__(
        self,
        plan: QueryPlan,
        settings: QuerySettings,
        static_parts: StaticParts,
        vocabulary: Vocabulary,
        clock: TickClock,
        prefix: str,
        shared: PatternOperators | None = None,
    ) -> None:
        self._plan = plan
        self._as_set = settings.content is Content.SET
        self._static_parts = static_parts
        self._vocabulary = vocabulary
        self._clock = clock
        self._prefix = prefix
        asked = list(_timestamps(plan.root))
        self.is_timed = bool(asked)
        self._by_stream = any(part.stream is not None for part in asked)
        self.has_graphs = plan.reads_window_graphs
        columns = (*TRIPLE, *([GRAPH_NAME] if self.has_graphs else []), *(TIMED_TRIPLE[3:] if self.is_timed else []))
        operators = shared or PatternOperators.over(len(plan.windows), columns, clock)
        self.sources, self._read = operators.sources, operators.read
        self.times: list[PatternTime] = []
        self._graphs_with_static_data = graphs_with_static_data(plan)
        self._graphs, self._merged, self._patterns = operators.graphs, operators.merged, operators.patterns
        self._names, self._stars, self._sets = operators.names, operators.stars, operators.sets
        self._windows = settings.windows
        self.star_windows: set[int] = set()
        """The windows that some star reads."""
        self.collapse_counters: dict[PlacedPattern, Callable[[], int]] = {}
        """For each pattern over a set, how many triples have come while an equal one was there."""
        self.written: dict[TriplePattern, TriplePattern] = {}
        """The names that readers see in the patterns of a path, for those that they have here."""
        self._aggregated = aggregated_patterns(plan.root) if self._as_set else frozenset[TriplePattern]()

    def pattern(self, triple: TriplePattern, graph: NamedNode) -> Operator:
        """The solutions of a triple pattern in a graph that some window feeds, with the columns of its times."""
        return self._pattern(triple, graph, None)

    def quad_pattern(self, triple: TriplePattern, name: GraphName, graph: NamedNode) -> Operator:
        """The same in the named graph of the window that is called so, or in each for a variable, which is bound."""
        return self._pattern(triple, graph, name)

    def _pattern(self, triple: TriplePattern, graph: NamedNode, name: GraphName | None) -> Operator:
        if isinstance(triple.predicate, Path):
            raise UnsupportedByKernel("a property path over a stream")
        parts = (triple.subject, triple.predicate, triple.object)
        variables = list(dict.fromkeys(part for part in parts if isinstance(part, Variable)))
        first, second, third = (
            f"v{variables.index(part)}" if isinstance(part, Variable) else self._vocabulary.id_of(part)
            for part in parts
        )
        key = graph, (first, second, third), self._graph_key(name)
        if key not in self._patterns:
            self._patterns[key] = SharedOperator(self._match_pattern(triple, *key, len(variables)), self._clock)
        if (unique := self._sets.get(key)) is not None:
            written = self.written.get(triple, triple)
            self.collapse_counters[PlacedPattern.of(graph, written, name)] = lambda: unique.collapsed
            if written in self._aggregated and isinstance(unique, DistinctOperator):
                unique.counts_all_copies = True
        shared = self._patterns[key]
        shown = [variable.value for variable in variables]
        if isinstance(name, Variable):
            shown.append(name.value)
        times = [self._time(column, variables) for column in shared.variables[len(shown) :]]
        return RenameOperator(shared, (*shown, *times))

    def _graph_key(self, name: GraphName | None) -> GraphKey:
        return self._vocabulary.id_of(name) if isinstance(name, NamedNode) else isinstance(name, Variable)

    def graph_names(self, name: GraphName, graph: NamedNode) -> Operator:
        """The names of the graphs of the windows of a graph, each once; only the given one if it is a constant."""
        key = graph, self._graph_key(name)
        if key not in self._names:
            column = ProjectionOperator(self._rows(graph), (GRAPH_NAME,))
            chosen = NamedGraphOperator(column, name_id=key[1] if isinstance(name, NamedNode) else None)
            self._names[key] = SharedOperator(DistinctOperator(chosen), self._clock)
        shown = name.value if isinstance(name, Variable) else f"{self._prefix}n{len(self._names)}"
        return RenameOperator(self._names[key], (shown,))

    def can_match_star(self, graph: NamedNode) -> bool:
        """Whether a graph has the triples of one window alone, which come and go by their times, many at a tick."""
        windows = [self._windows[number] for number in windows_of(self._plan, graph)]
        is_plain = not self.is_timed and not self.has_graphs
        is_alone = len(windows) == 1 and graph not in self._graphs_with_static_data and is_plain
        return is_alone and isinstance(windows[0], TimeWindow) and windows[0].slide is not None

    def star(self, star: Star) -> Operator:
        """The solutions of a star, in a graph that can be matched by stars."""
        ids = [(self._vocabulary.id_of(one.predicate), one.object) for one in star.triples]  # type: ignore[arg-type]
        patterns = tuple(
            (predicate, None if isinstance(value, Variable) else self._vocabulary.id_of(value))
            for predicate, value in ids
        )
        self.star_windows.update(windows_of(self._plan, star.graph))
        key = star.graph, patterns
        if key not in self._stars:
            names = tuple(f"v{place}" for place in range(1 + sum(value is None for _, value in patterns)))
            operator = StarOperator(self._graph(star.graph), patterns, names, as_set=self._as_set)
            self._stars[key] = SharedOperator(operator, self._clock), operator
        shared, matcher = self._stars[key]
        if self._as_set:
            for place, triple in enumerate(star.triples):
                self.collapse_counters[PlacedPattern(star.graph, triple)] = partial(matcher.count_collapsed, place)
        shown = [star.subject, *(value for _, value in ids if isinstance(value, Variable))]
        return RenameOperator(shared, tuple(variable.value for variable in shown))

    def _time(self, name: str, variables: list[Variable]) -> str:
        """A column for a time of a pattern, entered under what it is the time of."""
        column = f"{self._prefix}t{len(self.times)}"
        stream = None if name == TIMED_TRIPLE[-1] else NamedNode(name)
        self.times.append((frozenset(variables), stream, Variable(column)))
        return column

    def _match_pattern(
        self, triple: TriplePattern, graph: NamedNode, pattern: Pattern, name: GraphKey, width: int
    ) -> Operator:
        matched: Operator = PatternOperator(self._graph(graph) if name is False else self._rows(graph), pattern)
        if name is not False:
            matched = NamedGraphOperator(matched, name_id=None if name is True else name)
            width += 1
            if name is not True:
                matched = ProjectionOperator(matched, tuple(v for v in matched.variables if v != GRAPH_NAME))
                width -= 1
        elif graph in self._graphs_with_static_data:
            static = self._static_parts.matches(triple)
            if static is not None:
                named = RenameOperator(static, matched.variables[:width])
                matched = UnionOperator([named, matched], matched.variables)
        if self._as_set:
            matched = NewestTimeOperator(matched, width) if self.is_timed else DistinctOperator(matched)
            self._sets[graph, pattern, name] = matched
        return TimeTermsOperator(matched, width, self._vocabulary) if self.is_timed else matched

    def _graph(self, graph: NamedNode) -> Operator:
        """The triples of all windows of a graph, each as often as it came."""
        if not self.has_graphs:
            return self._rows(graph)
        if graph not in self._merged:
            # Without the names: in a set, triples that are equal but for the graph are one.
            rows = self._rows(graph)
            merged = ProjectionOperator(rows, tuple(v for v in rows.variables if v != GRAPH_NAME))
            self._merged[graph] = SharedOperator(merged, self._clock)
        return self._merged[graph]

    def _rows(self, graph: NamedNode) -> Operator:
        """The triples of all windows of a graph, with all columns that the windows have."""
        if graph not in self._graphs:
            numbers = windows_of(self._plan, graph)
            readers = [self._add_time_column(number) for number in numbers]
            self._graphs[graph] = (
                readers[0] if len(readers) == 1 else SharedOperator(UnionOperator(readers), self._clock)
            )
        return self._graphs[graph]

    def _add_time_column(self, number: int) -> Operator:
        """A window's triples, with their time once more under the name of the stream where the plan reads that."""
        if not self._by_stream:
            return self._read[number]
        stream = self._plan.windows[number].stream.value
        return ExtendOperator(self._read[number], stream, lambda rows: rows[:, -1])


def _timestamps(plan: Node) -> Iterator[Timestamp]:
    for node in nodes_of(plan):
        for expression in expressions_of(node):
            yield from (part for part in sub_expressions(expression) if isinstance(part, Timestamp))
