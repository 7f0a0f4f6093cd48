"""SERVICE clauses of a plan replaced by the solutions that their endpoints gave, before pyoxigraph gets the plan.

pyoxigraph has an HTTP client of its own, which knows neither the egress policy nor credentials, limits and deadlines.
So no text that it gets has a SERVICE in it. By its definition (SPARQL 1.1 Federated Query, section 4) a SERVICE is the
bag of the solutions of its pattern at the endpoint, which is what VALUES is:

    SERVICE <e> { ?x :p ?y }    →    VALUES (?x ?y) { … }

`SERVICE ?e` asks every endpoint that the rows around it bind to ?e: those of the group in which it stands and, inside
EXISTS, those that EXISTS judges.

Terms that VALUES cannot hold (blank nodes, triple terms) are numbers there, from which a function of ours makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from headwater.algebra.nodes import ExistsPlan, Extend, Filter, Graph, Join, LeftJoin, Node, Project, Service, Values
from headwater.algebra.scope import map_expression, map_expressions, nodes_of, visible_variables
from headwater.algebra.window_graphs import INTERNAL
from headwater.errors import HeadwaterError
from headwater.language.expressions import Expression, FunctionCall, VariableReference
from headwater.terms.model import XSD, Literal, NamedNode, Row, Term, Variable

FetchSolutions = Callable[[str, Node], Sequence[Row]]
"""Asks the endpoint at an address for all solutions of a pattern, with the columns of its visible variables."""
FindValues = Callable[[Node, Variable], Sequence[Term | None]]
"""The different values of a variable in the solutions of a plan."""

_TERM = NamedNode(INTERNAL + "remote-term")
_COLUMN = "hw_remote_"
_INTEGER = NamedNode(XSD + "integer")


class ServiceError(HeadwaterError, OSError):
    """An endpoint that has never answered, or a SERVICE of which nobody says whom it asks."""


def has_services(plan: Node) -> bool:
    """Whether a SERVICE stands anywhere in a plan, inside EXISTS included."""
    return any(isinstance(node, Service) for node in nodes_of(plan))


def refuse_services(url: str, pattern: Node) -> Sequence[Row]:
    """A `FetchSolutions` for those who have no client."""
    raise ServiceError("SERVICE is asked through an engine, and this was made without one")


@dataclass
class RemoteSolutions:
    """Replaces the SERVICE clauses of one plan; `functions` are what pyoxigraph needs for the plan that results.

    `find_values` gives the endpoints of `SERVICE ?e`; without it, such a clause is an error.
    """

    fetch: FetchSolutions
    find_values: FindValues | None = None
    functions: dict[NamedNode, Callable[..., Term | None]] = field(default_factory=dict)
    _terms: list[Term] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.functions[_TERM] = self._term_of

    def replace_services(self, plan: Node) -> Node:
        """The plan without SERVICE. Endpoints are asked now; what they raise is raised, unless the clause is SILENT."""
        return self._replace(plan, None, None)

    def _replace(self, node: Node, around: Node | None, graph: NamedNode | Variable | None) -> Node:
        """The node without SERVICE; `around` has the rows that are joined with it, `graph` is the active graph."""
        if not has_services(node):
            return node
        match node:
            case Service(endpoint, inner, silent):
                if isinstance(endpoint, NamedNode):
                    return self._ask([endpoint], inner, silent, None)
                return self._ask(self._endpoints_of(endpoint, around, graph), inner, silent, endpoint)
            case Join(left, right):
                # The side that names no endpoints by variables is done first: it may bind those of the other.
                if _has_variable_endpoint(left) and not _has_variable_endpoint(right):
                    done = self._replace(right, around, graph)
                    return Join(self._replace(left, _join(around, done), graph), done)
                done = self._replace(left, around, graph)
                return Join(done, self._replace(right, _join(around, done), graph))
            case LeftJoin(left, right, condition):
                done = self._replace(left, around, graph)
                within = _join(around, done)
                optional = self._replace(right, within, graph)
                judged = _join(within, optional)
                test = None if condition is None else self._replace_in(condition, judged, graph)
                return LeftJoin(done, optional, test)
            case Filter(inner, _) | Extend(inner, _, _):
                done = self._replace(inner, around, graph)
                within = _join(around, done)
                return map_expressions(node.with_children(done), lambda one: self._replace_in(one, within, graph))
            case Graph(name, inner):
                return Graph(name, self._replace(inner, around, name))
        children = [self._replace(child, None, graph) for child in node.children]
        below = children[0] if children else None
        return map_expressions(node.with_children(*children), lambda one: self._replace_in(one, below, graph))

    def _replace_in(
        self, expression: Expression, around: Node | None, graph: NamedNode | Variable | None
    ) -> Expression:
        """The expression with the patterns of its EXISTS without SERVICE."""

        def change(part: Expression) -> Expression | None:
            if isinstance(part, ExistsPlan):
                return replace(part, plan=self._replace(part.plan, around, graph))
            return None

        return map_expression(expression, change)

    def _endpoints_of(
        self, variable: Variable, around: Node | None, graph: NamedNode | Variable | None
    ) -> Sequence[Term | None]:
        if self.find_values is None or around is None or variable not in visible_variables(around):
            raise ServiceError(
                f"SERVICE {variable}: no pattern beside it binds {variable}, so nobody can be asked; bind it in the "
                "same group, or write the address"
            )
        return self.find_values(around if graph is None else Graph(graph, around), variable)

    def _ask(self, endpoints: Sequence[Term | None], pattern: Node, silent: bool, variable: Variable | None) -> Node:
        """The solutions of a pattern at each endpoint, with the endpoint in the column of `variable`."""
        inner = visible_variables(pattern)
        columns = inner if variable is None or variable in inner else (variable, *inner)
        rows: list[Row] = []
        for endpoint in endpoints:
            found: Sequence[Row]
            try:
                if not isinstance(endpoint, NamedNode):
                    shown = "it is unbound" if endpoint is None else str(endpoint)
                    raise ServiceError(f"SERVICE {variable}: {shown} is no address to ask")
                found = self.fetch(endpoint.value, pattern)
            except (HeadwaterError, OSError):
                if not silent:
                    raise
                # One solution that binds nothing (section 3.1).
                found = [(None,) * len(inner)]
            if variable is None:
                rows += found
            elif variable not in inner:
                rows += ((endpoint, *row) for row in found)
            else:
                place = inner.index(variable)
                rows += ((*row[:place], endpoint, *row[place + 1 :]) for row in found if row[place] in (None, endpoint))
        return self._values(columns, rows)

    def _values(self, columns: tuple[Variable, ...], rows: Sequence[Row]) -> Node:
        """Rows as VALUES, with numbers in other columns for the terms that VALUES cannot hold."""
        odd = [index for index in range(len(columns)) if not all(_can_be_written(row[index]) for row in rows)]
        hidden = {index: Variable(f"{_COLUMN}{len(self._terms)}_{index}") for index in odd}
        written = tuple(
            tuple(self._number(term) if index in hidden else term for index, term in enumerate(row)) for row in rows
        )
        node: Node = Values(tuple(hidden.get(index, name) for index, name in enumerate(columns)), written)  # type: ignore[arg-type]
        for index, variable in hidden.items():
            node = Extend(node, columns[index], FunctionCall(_TERM, (VariableReference(variable),)))
        return Project(node, columns) if hidden else node

    def _number(self, term: Term | None) -> Literal | None:
        if term is None:
            return None
        self._terms.append(term)
        return Literal(str(len(self._terms) - 1), datatype=_INTEGER)

    def _term_of(self, number: Term) -> Term | None:
        return self._terms[int(number.value)] if isinstance(number, Literal) else None


def _can_be_written(term: Term | None) -> bool:
    return term is None or isinstance(term, NamedNode | Literal)


def _has_variable_endpoint(plan: Node) -> bool:
    return any(isinstance(node, Service) and isinstance(node.endpoint, Variable) for node in nodes_of(plan))


def _join(around: Node | None, node: Node) -> Node:
    return node if around is None else Join(around, node)
