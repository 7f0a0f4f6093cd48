"""Syntax to algebra, by the definition of SPARQL 1.1 (section 18.2.2 to 18.2.5).

The stream clauses become `Window` nodes, AGGREGATE becomes `Aggregation` (C-SPARQL, section 3.1).
"""

from __future__ import annotations

from dataclasses import dataclass, field

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
    WindowGraph,
)
from headwater.algebra.plan import WindowSource
from headwater.algebra.scope import map_expression, visible_variables
from headwater.language.errors import QueryError
from headwater.language.expressions import (
    LONG_CHAIN,
    Aggregate,
    Exists,
    Expression,
    Operation,
    VariableReference,
    combine_chain,
)
from headwater.language.patterns import (
    BindItem,
    FilterItem,
    GraphPattern,
    GroupItem,
    GroupPattern,
    InlineData,
    Inverse,
    Link,
    MinusPattern,
    OptionalPattern,
    Path,
    PatternTerm,
    Sequence,
    ServicePattern,
    StreamPattern,
    SubSelect,
    TriplePattern,
    TriplesBlock,
    UnionPattern,
    WindowPattern,
)
from headwater.language.query import Modifiers, Projection, SelectQuery
from headwater.language.stream_clauses import AggregateClause, WindowSpec
from headwater.terms.model import BlankNode, NamedNode, Variable


@dataclass
class Translator:
    """Turns the patterns of one query into plan nodes.

    `windows` grows as STREAM clauses are met; `named` holds the windows that FROM NAMED WINDOW declared;
    `streams` lists what `STREAM ?s` ranges over; `prefix` begins the names of invented variables and is chosen so
    that no variable of the text has it.
    """

    text: str
    prefix: str
    streams: tuple[NamedNode, ...] = ()
    windows: list[WindowSource] = field(default_factory=list)
    named: dict[NamedNode, int] = field(default_factory=dict)
    _variable_count: int = 0
    _is_in_window: bool = False
    """Whether the pattern at work stands in the clause of a window: there GRAPH names the graphs of the window."""

    def new_variable(self) -> Variable:
        """A new variable that does not occur in the text."""
        self._variable_count += 1
        return Variable(f"{self.prefix}{self._variable_count}")

    def is_new_variable(self, variable: Variable) -> bool:
        return variable.value.startswith(self.prefix)

    def translate_group(self, pattern: GroupPattern) -> Node:
        """A group graph pattern: its elements joined in order, then its filters."""
        node, filters = self._translate_items(pattern)
        return Filter(node, conjunction_of(filters)) if filters else node

    def _translate_items(self, pattern: GroupPattern) -> tuple[Node, list[Expression]]:
        node: Node = Unit()
        filters: list[Expression] = []
        triples: list[TriplePattern] = []
        for item in pattern.items:
            if isinstance(item, TriplesBlock):
                triples.extend(item.triples)
            elif isinstance(item, FilterItem):
                filters.append(self.translate_expression(item.condition))
            else:
                node = self._translate_item(join_nodes(node, self._translate_triples(triples)), item)
                triples = []
        return balance_joins(join_nodes(node, self._translate_triples(triples))), filters

    def _translate_item(self, before: Node, item: GroupItem) -> Node:
        """The algebra of a group with one more item, `before` being that of the items before it (18.2.2.6)."""
        match item:
            case OptionalPattern(pattern):
                inner, filters = self._translate_items(pattern)
                return LeftJoin(before, inner, conjunction_of(filters) if filters else None)
            case MinusPattern(pattern):
                return Minus(before, self.translate_group(pattern))
            case BindItem(expression, variable):
                return Extend(before, variable, self.translate_expression(expression))
            case GroupPattern():
                return join_nodes(before, self.translate_group(item))
            case UnionPattern(branches):
                return join_nodes(before, combine_chain(Union, [self.translate_group(branch) for branch in branches]))
            case GraphPattern(name, pattern):
                return join_nodes(before, self._translate_graph(name, pattern))
            case ServicePattern(endpoint, pattern, silent):
                asked = self._translate_in(pattern, is_window=False)
                return join_nodes(before, Service(endpoint, asked, silent, item.options))
            case InlineData(variables, rows):
                return join_nodes(before, Values(variables, rows))
            case SubSelect(query):
                return join_nodes(before, self.translate_select(query))
            case StreamPattern(stream, spec, pattern):
                return join_nodes(before, self._translate_stream(stream, spec, pattern))
            case WindowPattern(name, pattern):
                return join_nodes(before, self._translate_window(name, pattern, item.at))
        raise TypeError(f"no translation for {type(item).__name__}")

    def _translate_graph(self, name: NamedNode | Variable, pattern: GroupPattern) -> Node:
        """GRAPH; in the clause of a window it names graphs of the window, and so it does in GRAPH of a stream."""
        if self._is_in_window:
            return WindowGraph(name, self.translate_group(pattern))
        is_stream = any(source.graph == name for source in self.windows)
        return Graph(name, self._translate_in(pattern, is_window=is_stream))

    def _translate_in(self, pattern: GroupPattern, *, is_window: bool) -> Node:
        """The group of a clause that is, or is not, that of a window."""
        around, self._is_in_window = self._is_in_window, is_window
        try:
            return self.translate_group(pattern)
        finally:
            self._is_in_window = around

    def _translate_stream(self, stream: NamedNode | Variable, spec: WindowSpec, pattern: GroupPattern) -> Node:
        if isinstance(stream, Variable):
            windows = tuple(self.add_window(WindowSource(s, spec, s.value)) for s in self.streams)
            return Window(windows, stream, self._translate_in(pattern, is_window=True))
        source = WindowSource(stream, spec, stream.value)
        return Window((self.add_window(source),), None, self._translate_in(pattern, is_window=True))

    def _translate_window(self, name: NamedNode | Variable, pattern: GroupPattern, at: int) -> Node:
        if isinstance(name, Variable):
            return Window(tuple(self.named.values()), name, self._translate_in(pattern, is_window=True))
        if name not in self.named:
            declared = ", ".join(f"<{known.value}>" for known in self.named) or "none"
            raise QueryError(
                f"window <{name.value}> is not declared; declared by FROM NAMED WINDOW: {declared}", self.text, at
            )
        return Window((self.named[name],), None, self._translate_in(pattern, is_window=True))

    def add_window(self, source: WindowSource) -> int:
        """Add a window, unless an equal one is there; return its index."""
        if source not in self.windows:
            self.windows.append(source)
        return self.windows.index(source)

    def _translate_triples(self, triples: list[TriplePattern]) -> Node:
        node: Node = Unit()
        run: list[TriplePattern] = []
        for triple in triples:
            for part in self._translate_path(triple.subject, triple.predicate, triple.object):
                if isinstance(part, TriplePattern):
                    run.append(part)
                else:
                    node = join_nodes(join_nodes(node, Bgp(tuple(run)) if run else Unit()), part)
                    run = []
        return join_nodes(node, Bgp(tuple(run)) if run else Unit())

    def _translate_path(
        self, subject: PatternTerm, predicate: NamedNode | Variable | Path, object_: PatternTerm
    ) -> list[TriplePattern | PathMatch]:
        """Paths that are plain steps become triple patterns (18.2.2.4); the rest stays a path."""
        start, end = self._translate_term(subject), self._translate_term(object_)
        match predicate:
            case Link(iri):
                return [TriplePattern(start, iri, end)]
            case Inverse(inner):
                return self._translate_path(end, inner, start)
            case Sequence(left, right):
                middle = self.new_variable()
                return [*self._translate_path(start, left, middle), *self._translate_path(middle, right, end)]
            case Path():
                return [PathMatch(start, predicate, end)]
        return [TriplePattern(start, predicate, end)]

    def _translate_term(self, term: PatternTerm) -> PatternTerm:
        """The term of a pattern; a blank node becomes a variable that does not occur in the text."""
        return Variable(f"{self.prefix}b_{_word(term.value)}") if isinstance(term, BlankNode) else term

    def translate_expression(self, expression: Expression) -> Expression:
        """The expression with the patterns of EXISTS translated."""

        def change(part: Expression) -> Expression | None:
            return ExistsPlan(self.translate_group(part.pattern), part.negated) if isinstance(part, Exists) else None

        return map_expression(expression, change)

    def translate_select(self, query: SelectQuery, aggregates: tuple[AggregateClause, ...] = ()) -> Node:
        """A SELECT query or sub-query (18.2.4 and 18.2.5)."""
        pattern = self.add_aggregation(self.translate_group(query.where), aggregates)
        items = query.projections
        named = {item.variable: item.expression for item in items or () if item.expression is not None}
        node, projections, order = self._apply_grouping(pattern, items, query.modifiers, named, query.values)
        for variable, expression in projections:
            if expression is not None:
                node = Extend(node, variable, expression)
        if items is None:
            variables = tuple(v for v in visible_variables(node) if not self.is_new_variable(v))
        else:
            # A variable that is named twice is projected once.
            variables = tuple(dict.fromkeys(variable for variable, _ in projections))
        if order:
            node = OrderBy(node, order)
        node = Project(node, variables)
        if query.distinct:
            node = Distinct(node)
        if query.reduced:
            node = Reduced(node)
        return self._apply_slice(node, query.modifiers)

    def translate_solutions(
        self,
        where: GroupPattern,
        modifiers: Modifiers,
        values: InlineData | None,
        aggregates: tuple[AggregateClause, ...] = (),
    ) -> Node:
        """The solutions of the other forms, all their visible variables kept."""
        query = SelectQuery(None, where, modifiers, values=values)
        if modifiers.group_by:
            query = SelectQuery(
                tuple(
                    Projection(variable)
                    for variable, _ in (self._group_key(key.expression, key.variable) for key in modifiers.group_by)
                    if not self.is_new_variable(variable)
                ),
                where,
                modifiers,
                values=values,
            )
        return self.translate_select(query, aggregates)

    def add_aggregation(self, pattern: Node, clauses: tuple[AggregateClause, ...]) -> Node:
        """AGGREGATE clauses, if there are any, around the pattern of WHERE."""
        if not clauses:
            return pattern
        return Aggregation(
            pattern,
            tuple(
                (
                    clause.variable,
                    Aggregate(
                        clause.function,
                        VariableReference(clause.argument) if clause.argument is not None else None,
                        clause.distinct,
                    ),
                    clause.group,
                )
                for clause in clauses
            ),
            tuple(self.translate_expression(clause.condition) for clause in clauses if clause.condition is not None),
        )

    def _apply_grouping(
        self,
        pattern: Node,
        items: tuple[Projection, ...] | None,
        modifiers: Modifiers,
        named: dict[Variable, Expression],
        values: InlineData | None,
    ) -> tuple[Node, list[tuple[Variable, Expression | None]], tuple[tuple[Expression, bool], ...]]:
        """The pattern with grouping and VALUES applied, and the expressions rewritten to read the groups."""
        collected: dict[Aggregate, Variable] = {}

        def change(part: Expression) -> Expression | None:
            if isinstance(part, Aggregate):
                argument = self.translate_expression(part.argument) if part.argument is not None else None
                plain = Aggregate(part.function, argument, part.distinct, part.separator)
                return VariableReference(collected.setdefault(plain, self.new_variable()))
            if isinstance(part, Exists):
                return ExistsPlan(self.translate_group(part.pattern), part.negated)
            return None

        inner_variables = set(visible_variables(pattern))

        def alias(part: Expression) -> Expression | None:
            # HAVING may use a name that SELECT defines: it stands for its expression.
            if isinstance(part, VariableReference) and part.variable not in inner_variables:
                return named.get(part.variable)
            return None

        projections = [
            (item.variable, None if item.expression is None else map_expression(item.expression, change))
            for item in items or ()
        ]
        having = [map_expression(map_expression(e, alias), change) for e in modifiers.having]
        order = tuple((map_expression(key.expression, change), key.descending) for key in modifiers.order_by)
        node = pattern
        if modifiers.group_by or collected or having:
            keys = tuple(self._group_key(key.expression, key.variable) for key in modifiers.group_by)
            by_expression = {e: v for v, e in keys if e is not None}

            def use_key(part: Expression) -> Expression | None:
                return VariableReference(by_expression[part]) if part in by_expression else None

            projections = [(v, e if e is None else map_expression(e, use_key)) for v, e in projections]
            order = tuple((map_expression(e, use_key), descending) for e, descending in order)
            having = [map_expression(e, use_key) for e in having]
            node = Group(node, keys, tuple((v, a) for a, v in collected.items()))
            if having:
                node = Filter(node, conjunction_of(having))
        if values is not None:
            node = join_nodes(node, Values(values.variables, values.rows))
        return node, projections, order

    def _group_key(self, expression: Expression, name: Variable | None) -> tuple[Variable, Expression | None]:
        if name is None and isinstance(expression, VariableReference):
            return expression.variable, None
        return name or self.new_variable(), self.translate_expression(expression)

    def _apply_slice(self, node: Node, modifiers: Modifiers) -> Node:
        if modifiers.limit is None and not modifiers.offset:
            return node
        return Slice(node, modifiers.offset, modifiers.limit)


def join_nodes(left: Node, right: Node) -> Node:
    """Ω1 ⋈ Ω2, simplified where one side is the empty group, the neutral element."""
    if isinstance(left, Unit):
        return right
    return left if isinstance(right, Unit) else Join(left, right)


def balance_joins(node: Node) -> Node:
    """The same joins; a long chain of them, which is grouped from the left, as a balanced tree."""
    inputs: list[Node] = []
    rest = node
    while isinstance(rest, Join):
        inputs.append(rest.right)
        rest = rest.left
    return node if len(inputs) < LONG_CHAIN else combine_chain(Join, [rest, *reversed(inputs)])


def conjunction_of(conditions: list[Expression]) -> Expression:
    """The conjunction of all conditions."""
    return combine_chain(lambda a, b: Operation("&&", (a, b)), conditions)


def _word(label: str) -> str:
    return "".join(c if c.isalnum() else f"_{ord(c):x}_" for c in label)
