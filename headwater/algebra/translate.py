"""Syntax to algebra, by the definition of SPARQL 1.1 (section 18.2.2 to 18.2.5).

The stream clauses become `Window` nodes, AGGREGATE becomes `Aggregation` (C-SPARQL, section 3.1).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce

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
from headwater.algebra.plan import WindowSource
from headwater.algebra.scope import map_expression, visible
from headwater.language.errors import QueryError
from headwater.language.expressions import Aggregate, Exists, Expression, Operation, VariableReference
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
    _fresh: int = 0

    def fresh(self) -> Variable:
        """A variable that no text can name."""
        self._fresh += 1
        return Variable(f"{self.prefix}{self._fresh}")

    def is_fresh(self, variable: Variable) -> bool:
        return variable.value.startswith(self.prefix)

    def group(self, pattern: GroupPattern) -> Node:
        """A group graph pattern: its elements joined in order, then its filters."""
        node, filters = self._group_and_filters(pattern)
        return Filter(node, conjunction(filters)) if filters else node

    def _group_and_filters(self, pattern: GroupPattern) -> tuple[Node, list[Expression]]:
        node: Node = Unit()
        filters: list[Expression] = []
        triples: list[TriplePattern] = []
        for item in pattern.items:
            if isinstance(item, TriplesBlock):
                triples.extend(item.triples)
            elif isinstance(item, FilterItem):
                filters.append(self.expression(item.condition))
            else:
                node = self._item(join(node, self._triples(triples)), item)
                triples = []
        return join(node, self._triples(triples)), filters

    def _item(self, before: Node, item: GroupItem) -> Node:
        match item:
            case OptionalPattern(pattern):
                inner, filters = self._group_and_filters(pattern)
                return LeftJoin(before, inner, conjunction(filters) if filters else None)
            case MinusPattern(pattern):
                return Minus(before, self.group(pattern))
            case BindItem(expression, variable):
                return Extend(before, variable, self.expression(expression))
            case GroupPattern():
                return join(before, self.group(item))
            case UnionPattern(branches):
                return join(before, reduce(Union, [self.group(branch) for branch in branches]))
            case GraphPattern(name, pattern):
                return join(before, Graph(name, self.group(pattern)))
            case ServicePattern(endpoint, pattern, silent):
                return join(before, Service(endpoint, self.group(pattern), silent, item.options))
            case InlineData(variables, rows):
                return join(before, Values(variables, rows))
            case SubSelect(query):
                return join(before, self.select(query))
            case StreamPattern(stream, spec, pattern):
                return join(before, self._stream(stream, spec, pattern))
            case WindowPattern(name, pattern):
                return join(before, self._window(name, pattern, item.at))
        raise TypeError(f"no translation for {type(item).__name__}")

    def _stream(self, stream: NamedNode | Variable, spec: WindowSpec, pattern: GroupPattern) -> Node:
        if isinstance(stream, Variable):
            found = tuple(self.window(WindowSource(s, spec, s.value)) for s in self.streams)
            return Window(found, stream, self.group(pattern))
        source = WindowSource(stream, spec, stream.value)
        return Window((self.window(source),), None, self.group(pattern))

    def _window(self, name: NamedNode | Variable, pattern: GroupPattern, at: int) -> Node:
        if isinstance(name, Variable):
            return Window(tuple(self.named.values()), name, self.group(pattern))
        if name not in self.named:
            declared = ", ".join(f"<{known.value}>" for known in self.named) or "none"
            raise QueryError(
                f"window <{name.value}> is not declared; declared by FROM NAMED WINDOW: {declared}", self.text, at
            )
        return Window((self.named[name],), None, self.group(pattern))

    def window(self, source: WindowSource) -> int:
        """The number of a window; equal clauses share one."""
        if source not in self.windows:
            self.windows.append(source)
        return self.windows.index(source)

    def _triples(self, triples: list[TriplePattern]) -> Node:
        node: Node = Unit()
        run: list[TriplePattern] = []
        for triple in triples:
            for part in self._steps(triple.subject, triple.predicate, triple.object):
                if isinstance(part, TriplePattern):
                    run.append(part)
                else:
                    node = join(join(node, Bgp(tuple(run)) if run else Unit()), part)
                    run = []
        return join(node, Bgp(tuple(run)) if run else Unit())

    def _steps(
        self, subject: PatternTerm, predicate: NamedNode | Variable | Path, object_: PatternTerm
    ) -> list[TriplePattern | PathMatch]:
        """Paths that are plain steps become triple patterns (18.2.2.4); the rest stays a path."""
        start, end = self._term(subject), self._term(object_)
        match predicate:
            case Link(iri):
                return [TriplePattern(start, iri, end)]
            case Inverse(inner):
                return self._steps(end, inner, start)
            case Sequence(left, right):
                middle = self.fresh()
                return [*self._steps(start, left, middle), *self._steps(middle, right, end)]
            case Path():
                return [PathMatch(start, predicate, end)]
        return [TriplePattern(start, predicate, end)]

    def _term(self, term: PatternTerm) -> PatternTerm:
        """A blank node of a pattern is a variable that nobody can name."""
        return Variable(f"{self.prefix}b_{_word(term.value)}") if isinstance(term, BlankNode) else term

    def expression(self, expression: Expression) -> Expression:
        """The expression with the patterns of EXISTS translated."""

        def change(part: Expression) -> Expression | None:
            return ExistsPlan(self.group(part.pattern), part.negated) if isinstance(part, Exists) else None

        return map_expression(expression, change)

    def select(self, query: SelectQuery, aggregates: tuple[AggregateClause, ...] = ()) -> Node:
        """A SELECT query or sub-query (18.2.4 and 18.2.5)."""
        pattern = self.aggregation(self.group(query.where), aggregates)
        items = query.projections
        named = {item.variable: item.expression for item in items or () if item.expression is not None}
        node, projections, order = self._grouped(pattern, items, query.modifiers, named, query.values)
        for variable, expression in projections:
            if expression is not None:
                node = Extend(node, variable, expression)
        if items is None:
            variables = tuple(v for v in visible(node) if not self.is_fresh(v))
        else:
            # Naming one twice asks for nothing more.
            variables = tuple(dict.fromkeys(variable for variable, _ in projections))
        if order:
            node = OrderBy(node, order)
        node = Project(node, variables)
        if query.distinct:
            node = Distinct(node)
        if query.reduced:
            node = Reduced(node)
        return self._slice(node, query.modifiers)

    def solutions(
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
                    for variable, _ in (self._key(key.expression, key.variable) for key in modifiers.group_by)
                    if not self.is_fresh(variable)
                ),
                where,
                modifiers,
                values=values,
            )
        return self.select(query, aggregates)

    def aggregation(self, pattern: Node, clauses: tuple[AggregateClause, ...]) -> Node:
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
            tuple(self.expression(clause.condition) for clause in clauses if clause.condition is not None),
        )

    def _grouped(
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
                argument = self.expression(part.argument) if part.argument is not None else None
                plain = Aggregate(part.function, argument, part.distinct, part.separator)
                return VariableReference(collected.setdefault(plain, self.fresh()))
            if isinstance(part, Exists):
                return ExistsPlan(self.group(part.pattern), part.negated)
            return None

        inner_variables = set(visible(pattern))

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
            keys = tuple(self._key(key.expression, key.variable) for key in modifiers.group_by)
            by_expression = {e: v for v, e in keys if e is not None}

            def use_key(part: Expression) -> Expression | None:
                return VariableReference(by_expression[part]) if part in by_expression else None

            projections = [(v, e if e is None else map_expression(e, use_key)) for v, e in projections]
            order = tuple((map_expression(e, use_key), descending) for e, descending in order)
            having = [map_expression(e, use_key) for e in having]
            node = Group(node, keys, tuple((v, a) for a, v in collected.items()))
            if having:
                node = Filter(node, conjunction(having))
        if values is not None:
            node = join(node, Values(values.variables, values.rows))
        return node, projections, order

    def _key(self, expression: Expression, name: Variable | None) -> tuple[Variable, Expression | None]:
        if name is None and isinstance(expression, VariableReference):
            return expression.variable, None
        return name or self.fresh(), self.expression(expression)

    def _slice(self, node: Node, modifiers: Modifiers) -> Node:
        if modifiers.limit is None and not modifiers.offset:
            return node
        return Slice(node, modifiers.offset, modifiers.limit)


def join(left: Node, right: Node) -> Node:
    """Ω1 ⋈ Ω2, where the empty group is the neutral element."""
    if isinstance(left, Unit):
        return right
    return left if isinstance(right, Unit) else Join(left, right)


def conjunction(conditions: list[Expression]) -> Expression:
    """All conditions at once."""
    return reduce(lambda a, b: Operation("&&", (a, b)), conditions)


def _word(label: str) -> str:
    return "".join(c if c.isalnum() else f"_{ord(c):x}_" for c in label)
