"""Plan nodes: the SPARQL 1.1 algebra (section 18.2) with the window and aggregation operators of the stream papers.

A plan is a tree of frozen dataclasses. The docstring of each node says what it evaluates to; `children` and
`with_children` are derived from its fields.

    Project(Filter(Window(0, Bgp(…)), ?v > 80), (?sensor,))
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

from headwater.language.expressions import Aggregate, Expression
from headwater.language.patterns import Path, PatternTerm, TriplePattern
from headwater.language.service_options import ServiceOptions
from headwater.terms.model import Literal, NamedNode, Variable

GraphName: TypeAlias = NamedNode | Variable


_FIELD_NAMES: dict[type[Any], tuple[str, ...]] = {}


def field_names(kind: type[Any]) -> tuple[str, ...]:
    """The names of the fields of a kind of node or expression. They are kept: plans are walked through very often."""
    known = _FIELD_NAMES.get(kind)
    if known is None:
        known = _FIELD_NAMES[kind] = tuple([field.name for field in fields(kind)])
    return known


@dataclass(frozen=True, slots=True)
class Node:
    """A bag of solution mappings, once evaluated over a dataset."""

    @property
    def children(self) -> tuple[Node, ...]:
        """The plan nodes this one reads, left to right."""
        return tuple(v for v in (getattr(self, name) for name in field_names(type(self))) if isinstance(v, Node))

    def with_children(self, *children: Node) -> Node:
        """The same operator over other inputs."""
        names = [name for name in field_names(type(self)) if isinstance(getattr(self, name), Node)]
        changes: dict[str, Any] = dict(zip(names, children, strict=True))
        return replace(self, **changes) if changes else self


@dataclass(frozen=True, slots=True)
class Unit(Node):
    """The one empty solution: what an empty group evaluates to (SPARQL's Z)."""


@dataclass(frozen=True, slots=True)
class Bgp(Node):
    """A basic graph pattern: all its triple patterns matched together against the active graph."""

    triples: tuple[TriplePattern, ...]


@dataclass(frozen=True, slots=True)
class PathMatch(Node):
    """A property path between two terms of the active graph."""

    subject: PatternTerm
    path: Path
    object: PatternTerm


@dataclass(frozen=True, slots=True)
class Join(Node):
    """Ω1 ⋈ Ω2: the unions of all compatible pairs."""

    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class LeftJoin(Node):
    """OPTIONAL: the joins that satisfy the condition, and each left solution that has none."""

    left: Node
    right: Node
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class Union(Node):
    """Ω1 ∪ Ω2 as bags."""

    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Minus(Node):
    """The left solutions that share no variable with, or are incompatible with, every right solution."""

    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Filter(Node):
    """The solutions for which the condition is true."""

    inner: Node
    condition: Expression


@dataclass(frozen=True, slots=True)
class Extend(Node):
    """Each solution with one more binding; unbound where the expression has an error."""

    inner: Node
    variable: Variable
    expression: Expression


@dataclass(frozen=True, slots=True)
class Values(Node):
    """Solutions written in the query; None is UNDEF."""

    variables: tuple[Variable, ...]
    rows: tuple[tuple[NamedNode | Literal | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Graph(Node):
    """The pattern matched against a named graph, or against each of them in turn for a variable."""

    name: GraphName
    inner: Node


@dataclass(frozen=True, slots=True)
class Window(Node):
    """The pattern matched against what the query's window number `window` holds at the tick.

    Where the text names the stream or window by a variable, `name` is that variable and `windows` lists every
    candidate; otherwise there is one.
    """

    windows: tuple[int, ...]
    name: Variable | None
    inner: Node


@dataclass(frozen=True, slots=True)
class WindowGraph(Node):
    """GRAPH inside the clause of a window: the pattern matched against a named graph that the window holds at the tick.

    For a variable, against each of them in turn. Which window it is says the node around it.
    """

    name: GraphName
    inner: Node


@dataclass(frozen=True, slots=True)
class QuadPattern(Node):
    """Triple patterns matched together in one named graph that a window holds; `name` is bound to its name.

    Without a triple pattern it is the names of the graphs, each once.
    """

    name: GraphName
    triples: tuple[TriplePattern, ...] = ()


@dataclass(frozen=True, slots=True)
class Service(Node):
    """The pattern evaluated by a remote SPARQL endpoint; `options` say how fast and fresh it has to be."""

    endpoint: GraphName
    inner: Node
    silent: bool = False
    options: ServiceOptions | None = None


@dataclass(frozen=True, slots=True)
class Group(Node):
    """GROUP BY: one solution per distinct key, with the value of each aggregate over the group.

    A key is a variable with the expression that defines it (None for the variable's own value). With no
    key at all there is exactly one group, even of nothing.
    """

    inner: Node
    keys: tuple[tuple[Variable, Expression | None], ...]
    aggregates: tuple[tuple[Variable, Aggregate], ...]


@dataclass(frozen=True, slots=True)
class Aggregation(Node):
    """C-SPARQL's P AGG A (section 3.1): every solution of P with the aggregate of its group added (CS2).

    The number of solutions stays the same. `conditions` are the FILTERs of the clauses; they see the variables
    of all clauses, because the clauses are evaluated independently and before them.
    """

    inner: Node
    clauses: tuple[tuple[Variable, Aggregate, tuple[Variable, ...]], ...]
    conditions: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class OrderBy(Node):
    """The solutions as a sequence; each key is an expression and whether it descends."""

    inner: Node
    keys: tuple[tuple[Expression, bool], ...]


@dataclass(frozen=True, slots=True)
class Project(Node):
    """The solutions cut down to these variables."""

    inner: Node
    variables: tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class Distinct(Node):
    """Each different solution once."""

    inner: Node


@dataclass(frozen=True, slots=True)
class Reduced(Node):
    """Each different solution at least once, at most as often as it came."""

    inner: Node


@dataclass(frozen=True, slots=True)
class Slice(Node):
    """LIMIT and OFFSET of the sequence."""

    inner: Node
    offset: int = 0
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class ExistsPlan(Expression):
    """EXISTS, with its pattern translated: true where the pattern has a solution under the current bindings."""

    plan: Node
    negated: bool = False
