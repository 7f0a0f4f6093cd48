"""A query ready to be evaluated: its algebra, the windows it reads and what happens to each result."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from headwater.algebra.nodes import Node
from headwater.language.patterns import TriplePattern
from headwater.language.stream_clauses import Dialect, Registration, StreamOperator, WindowSpec
from headwater.terms.model import NamedNode, Variable


class QueryKind(Enum):
    """The four forms of SPARQL."""

    SELECT = "select"
    CONSTRUCT = "construct"
    DESCRIBE = "describe"
    ASK = "ask"


@dataclass(frozen=True, slots=True)
class WindowSource:
    """One window of a query: which stream it cuts, how, and where its content can be seen.

    `graph` is the IRI under which GRAPH sees the content (C-SPARQL: the stream's own), None where only the
    query's own Window nodes see it. `in_default_graph` says that it is merged into the default graph.
    `label` is what people call it: the name in WINDOW, or the stream.
    """

    stream: NamedNode
    spec: WindowSpec
    label: str
    graph: NamedNode | None = None
    in_default_graph: bool = False


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """What a registered query means.

    `root` always evaluates to solutions; `kind` says what they become: rows, instances of `template`, descriptions
    of the values of `described`, or a yes or no. `default_graphs` is None where the text has no FROM, and then the
    default graph of the engine's static data is meant; `named_graphs` is None where it has neither FROM nor FROM
    NAMED, and then all named graphs are.
    """

    name: str
    kind: QueryKind
    root: Node
    variables: tuple[Variable, ...]
    windows: tuple[WindowSource, ...]
    dialect: Dialect
    template: tuple[TriplePattern, ...] = ()
    described: tuple[NamedNode | Variable, ...] = ()
    default_graphs: tuple[NamedNode, ...] | None = None
    named_graphs: tuple[NamedNode, ...] | None = None
    registration: Registration | None = None
    stream_operator: StreamOperator | None = None
    prefixes: tuple[tuple[str, str], ...] = ()
    base: str | None = None
    """What `IRI("name")` resolves relative names against."""
    text: str = ""
    notes: tuple[str, ...] = ()
    """Readings that the text did not spell out, for `explain`."""
    reads_window_graphs: bool = False
    """Whether GRAPH stands in the clause of a window. Like the next, it is decided by the text: what windows hold must
    not depend on patterns that a rewrite takes away."""
    reads_graph_times: bool = False
    """Whether some pattern has the property that gives the time of a graph."""
