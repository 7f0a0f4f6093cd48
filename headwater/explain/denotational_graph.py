"""The D-Graph of a plan (C-SPARQL, section 4): the data that a query describes, apart from how it is computed.

The six rules of the paper, and how they are read here:

1. Variables, IRIs and literals are vertices. A variable is one vertex wherever it stands, a term one per source; an
   IRI in the place of the predicate gets one per triple pattern, because patterns that share it would be connected.
2. A triple pattern (s, p, o) is two edges, s → p and p → o.
3. Each conjunct of a FILTER is a remark on the vertices of its variables.
4. An aggregation is a hyper-node with the hyper-node of its group G inside; G and the parameter p lead to the
   function f, and f to the new variable v.
5. The variables of the result are filled.
6. Each source (a window, a static graph, the merged default graph, an endpoint) is a dashed rectangle around the
   vertices that emerge from it. A variable that several sources bind stands between them.

The rules assume a conjunctive query. What is not (OPTIONAL, UNION, MINUS, EXISTS, sub-queries) is drawn as a dotted
rectangle inside its source, and the remarks of filters inside it begin with its name.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from headwater.algebra.active_graphs import ActiveGraph, active_graph_inside, default_active_graph
from headwater.algebra.nodes import (
    Aggregation,
    Bgp,
    Distinct,
    ExistsPlan,
    Extend,
    Filter,
    Graph,
    Group,
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
    Values,
    Window,
    WindowGraph,
)
from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.algebra.scope import conjuncts_of, expression_variables, sub_expressions, visible_variables
from headwater.explain.active_graph_text import active_graph_text
from headwater.explain.drawing_model import Box, BoxKind, Direction, Drawing, DrawingBuilder, VertexKind
from headwater.explain.notation import Notation
from headwater.explain.operator_text import operator_lines
from headwater.language.expressions import Aggregate, Expression, VariableReference
from headwater.language.patterns import Path, PatternTerm
from headwater.terms.model import BlankNode, Literal, NamedNode, Variable

BoxKey: TypeAlias = tuple[BoxKind, str, int]
Place: TypeAlias = tuple[BoxKey, ...]
"""Where a vertex occurs: the rectangles around it, from the outside in."""

_SELECT_NODES = (Project, Distinct, Reduced, OrderBy, Slice)


def denotational_graph(plan: QueryPlan, *, brief: bool = True) -> Drawing:
    """The D-Graph of a plan."""
    builder = _Builder(plan, Notation.of(plan, brief=brief))
    pattern = plan.root
    while isinstance(pattern, _SELECT_NODES):
        pattern = pattern.inner
    context = _Context(default_active_graph(plan), (), _Scope(0))
    builder.walk(pattern, context)
    for variable in _result_variables(plan):
        builder.filled.add(builder.variable(variable, context.scope))
    return builder.build()


def _result_variables(plan: QueryPlan) -> list[Variable]:
    match plan.kind:
        case QueryKind.SELECT:
            return list(plan.variables)
        case QueryKind.CONSTRUCT:
            terms = [term for triple in plan.template for term in (triple.subject, triple.predicate, triple.object)]
            return list(dict.fromkeys(term for term in terms if isinstance(term, Variable)))
        case QueryKind.DESCRIBE:
            return [term for term in plan.described if isinstance(term, Variable)]
    return []


@dataclass(frozen=True)
class _Scope:
    """The scope of a sub-query: it shares with the query around it only the variables that it projects."""

    number: int
    around: _Scope | None = None
    shared: frozenset[Variable] = frozenset()

    def home(self, variable: Variable) -> int:
        if self.around is not None and variable in self.shared:
            return self.around.home(variable)
        return self.number


@dataclass(frozen=True)
class _Context:
    active_graph: ActiveGraph
    parts: Place
    scope: _Scope

    def inside(self, part: BoxKey) -> _Context:
        return replace(self, parts=(*self.parts, part))


@dataclass
class _Builder:
    plan: QueryPlan
    notation: Notation
    shapes: DrawingBuilder = field(default_factory=DrawingBuilder)
    ids: dict[object, str] = field(default_factory=dict)
    places: dict[str, list[Place]] = field(default_factory=dict)
    remarks: dict[str, list[str]] = field(default_factory=dict)
    filled: set[str] = field(default_factory=set)
    active_graphs: dict[ActiveGraph, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    scopes: int = 0

    def variable(self, variable: Variable, scope: _Scope, place: Place | None = None) -> str:
        """The vertex of a variable; `place`, if given, is noted as one where it is bound."""
        variable = self.notation.aliases.get(variable, variable)
        key = (scope.home(variable), variable)
        return self._add_vertex(key, VertexKind.VARIABLE, self.notation.variable(variable), place)

    def _add_vertex(self, key: object, kind: VertexKind, text: str, place: Place | None) -> str:
        if key not in self.ids:
            self.ids[key] = self.shapes.add_vertex(kind, text)
        vertex = self.ids[key]
        if place is not None:
            self.places.setdefault(vertex, []).append(place)
        return vertex

    def _new_box_key(self, name: str, kind: BoxKind = BoxKind.PART) -> BoxKey:
        """The key of a new box, numbered among those of the same name."""
        self.counts[name] = self.counts.get(name, 0) + 1
        return kind, f"{name} {self.counts[name]}", self.counts[name]

    def _place_of(self, context: _Context) -> Place:
        number = self.active_graphs.setdefault(context.active_graph, len(self.active_graphs))
        return (
            (BoxKind.SOURCE, active_graph_text(context.active_graph, self.plan, self.notation), number),
            *context.parts,
        )

    def walk(self, node: Node, context: _Context) -> None:
        """Add the vertices and edges of a node and everything below it."""
        match node:
            case Bgp(triples):
                for triple in triples:
                    self._add_triple(triple.subject, triple.predicate, triple.object, context)
            case PathMatch(subject, path, object_):
                self._add_triple(subject, path, object_, context)
            case LeftJoin(left, right, condition):
                self.walk(left, context)
                optional = context.inside(self._new_box_key("OPTIONAL"))
                self.walk(right, optional)
                if condition is not None:
                    self._add_condition(condition, optional)
            case Union():
                for branch in _branches(node):
                    self.walk(branch, context.inside(self._new_box_key("UNION branch")))
            case Minus(left, right):
                self.walk(left, context)
                self.walk(right, context.inside(self._new_box_key("MINUS")))
            case Filter(inner, condition):
                self.walk(inner, context)
                self._add_condition(condition, context)
            case Extend(inner, variable, expression):
                self.walk(inner, context)
                self._add_definition(variable, expression, context)
            case Values(variables, _):
                self._add_values(node, variables, context)
            case Graph(name, inner) | WindowGraph(name, inner) | Window(_, name, inner) | Service(name, inner, _):
                within = replace(context, active_graph=active_graph_inside(self.plan, node, context.active_graph))
                if isinstance(name, Variable):
                    self.variable(name, context.scope, self._place_of(within))
                self.walk(inner, within)
            case Group(inner, keys, aggregates):
                self.walk(inner, context)
                self._add_group(keys, aggregates, context)
            case Aggregation(inner, clauses, conditions):
                self.walk(inner, context)
                for variable, aggregate, group in clauses:
                    self._add_group(tuple((key, None) for key in group), ((variable, aggregate),), context)
                for condition in conditions:
                    self._add_condition(condition, context)
            case Project() | Distinct() | Reduced() | OrderBy() | Slice():
                self._add_sub_query(node, context)
            case _:
                for child in node.children:
                    self.walk(child, context)

    def _add_triple(
        self,
        subject: PatternTerm,
        predicate: NamedNode | Variable | Path,
        object_: PatternTerm,
        context: _Context,
    ) -> None:
        """Add a triple pattern or path as an edge from the subject over the predicate to the object."""
        place = self._place_of(context)
        start = self._add_term(subject, context, place)
        if isinstance(predicate, Variable):
            middle = self.variable(predicate, context.scope, place)
        else:
            text = self.notation.predicate(predicate)
            middle = self._add_vertex(("predicate", len(self.ids)), VertexKind.IRI, text, place)
        self.shapes.add_edge(start, middle)
        self.shapes.add_edge(middle, self._add_term(object_, context, place))

    def _add_term(self, term: PatternTerm, context: _Context, place: Place) -> str:
        if isinstance(term, Variable):
            return self.variable(term, context.scope, place)
        kind = VertexKind.LITERAL if isinstance(term, Literal) else VertexKind.IRI
        if isinstance(term, BlankNode):
            kind = VertexKind.VARIABLE
        return self._add_vertex((place[0], term), kind, self.notation.term(term), place)

    def _add_remark(self, vertex: str, text: str, context: _Context) -> None:
        named = f"{context.parts[-1][1]}: {text}" if context.parts else text
        remarks = self.remarks.setdefault(vertex, [])
        if named not in remarks:
            remarks.append(named)

    def _add_condition(self, condition: Expression, context: _Context) -> None:
        for part in conjuncts_of(condition):
            text = self.notation.expression(part)
            variables = self._variables_of(part, context.scope)
            for variable in variables:
                self._add_remark(self.variable(variable, context.scope), text, context)
            if not variables:
                self.shapes.add_vertex(VertexKind.FILTER, text)
            self._add_exists(part, context)

    def _variables_of(self, expression: Expression, scope: _Scope) -> list[Variable]:
        """The variables of an expression, in a fixed order, without those that occur only in an EXISTS inside it."""
        only_inside = {
            variable
            for part in sub_expressions(expression)
            if isinstance(part, ExistsPlan)
            for variable in expression_variables(part)
            if (scope.home(variable), variable) not in self.ids
        }
        return sorted(expression_variables(expression) - only_inside, key=lambda variable: variable.value)

    def _add_exists(self, expression: Expression, context: _Context) -> None:
        for part in sub_expressions(expression):
            if isinstance(part, ExistsPlan):
                name = self.notation.expression(part)
                self.walk(part.plan, context.inside((BoxKind.PART, name, 0)))

    def _add_definition(self, variable: Variable, expression: Expression, context: _Context) -> None:
        held = expression.variable if isinstance(expression, VariableReference) else variable
        if self.notation.aliases.get(held) == variable:
            return
        new = self.variable(variable, context.scope)
        self._add_remark(new, f":= {self.notation.expression(expression)}", context)
        for part in self._variables_of(expression, context.scope):
            self.shapes.add_edge(self.variable(part, context.scope), new, "defines", is_dashed=True)
        self._add_exists(expression, context)

    def _add_values(self, node: Values, variables: tuple[Variable, ...], context: _Context) -> None:
        _, head, *rows = operator_lines(node, self.notation)
        text = f"VALUES {head} {{ {' '.join(rows)} }}"
        for variable in variables:
            self._add_remark(self.variable(variable, context.scope), text, context)

    def _add_group(
        self,
        keys: tuple[tuple[Variable, Expression | None], ...],
        aggregates: tuple[tuple[Variable, Aggregate], ...],
        context: _Context,
    ) -> None:
        """Add a box for GROUP BY: its keys, and the aggregates with the variables that they read and bind."""
        outer = self._new_box_key("aggregation", BoxKind.AGGREGATION)
        inner = (BoxKind.GROUP, "group G", outer[2])
        ports = []
        for variable, expression in keys:
            text = self.notation.variable(variable)
            shown = text if expression is None else f"{text} := {self.notation.expression(expression)}"
            port = self._add_vertex((inner, variable), VertexKind.KEY, shown, (outer, inner))
            ports.append(port)
            members = [variable] if expression is None else sorted(expression_variables(expression), key=str)
            for member in members:
                self.shapes.add_edge(self.variable(member, context.scope), port, is_dashed=True)
        if not keys:
            ports.append(self._add_vertex((inner, None), VertexKind.KEY, "all solutions", (outer, inner)))
        for variable, aggregate in aggregates:
            function = self._add_vertex(
                (outer, variable), VertexKind.FUNCTION, self._function_text(aggregate), (outer,)
            )
            for port in ports:
                self.shapes.add_edge(port, function)
            if aggregate.argument is not None:
                for parameter in sorted(expression_variables(aggregate.argument), key=str):
                    self.shapes.add_edge(self.variable(parameter, context.scope), function, "parameter")
                self._add_exists(aggregate.argument, context)
            self.shapes.add_edge(function, self.variable(variable, context.scope, (outer,)), "binds")

    def _function_text(self, aggregate: Aggregate) -> str:
        if isinstance(aggregate.argument, VariableReference) and not aggregate.distinct:
            return aggregate.function
        return self.notation.expression(aggregate)

    def _add_sub_query(self, node: Node, context: _Context) -> None:
        modifiers = []
        shared = frozenset(visible_variables(node))
        while isinstance(node, _SELECT_NODES):
            if not isinstance(node, Project):
                modifiers.append(" ".join(operator_lines(node, self.notation)))
            node = node.inner
        self.scopes += 1
        kind, name, number = self._new_box_key("sub-query")
        label = f"{name} ({', '.join(reversed(modifiers))})" if modifiers else name
        scope = _Scope(self.scopes, context.scope, shared)
        self.walk(node, replace(context.inside((kind, label, number)), scope=scope))

    def build(self) -> Drawing:
        """The drawing with the vertices in their rectangles."""
        vertices = tuple(
            replace(vertex, remarks=tuple(self.remarks.get(vertex.id, ())), is_filled=vertex.id in self.filled)
            for vertex in self.shapes.vertices
        )
        homes = {vertex: _common(places) for vertex, places in self.places.items()}
        every = [place for places in self.places.values() for place in places]
        return Drawing(
            f"Data of {self.plan.name}",
            vertices,
            tuple(self.shapes.edges),
            _boxes(homes, every, ()),
            Direction.RIGHT,
        )


def _branches(node: Node) -> list[Node]:
    if isinstance(node, Union):
        return [*_branches(node.left), *_branches(node.right)]
    return [node]


def _common(places: list[Place]) -> Place:
    """The innermost rectangle that holds all places."""
    shared: list[BoxKey] = []
    for keys in zip(*places, strict=False):
        if len(set(keys)) > 1:
            break
        shared.append(keys[0])
    return tuple(shared)


def _boxes(homes: dict[str, Place], every: list[Place], around: Place) -> tuple[Box, ...]:
    depth = len(around)
    keys = dict.fromkeys(place[depth] for place in every if len(place) > depth and place[:depth] == around)
    boxes = []
    for key in keys:
        place = (*around, key)
        members = tuple(vertex for vertex, home in homes.items() if home == place)
        name = "g" + "_".join(str(number) for number in _path_numbers(place, every))
        boxes.append(Box(name, key[1], key[0], members, _boxes(homes, every, place)))
    return tuple(box for box in boxes if box.vertices or box.boxes)


def _path_numbers(place: Place, every: list[Place]) -> list[int]:
    """The index of a rectangle among its siblings, from 1, for each level."""
    numbers = []
    for depth in range(len(place)):
        siblings = list(dict.fromkeys(p[depth] for p in every if len(p) > depth and p[:depth] == place[:depth]))
        numbers.append(siblings.index(place[depth]) + 1)
    return numbers
