"""What the routes of the protocol ask for: queries, updates and graphs of a data set.

Requests and results are plain values: texts, bytes and numbers. So a service may be in another process, and bytes of a
result are made where the query is evaluated. What goes wrong is a `Problem`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from headwater.terms.names import iri_to_name


@dataclass(frozen=True, slots=True)
class GraphChoice:
    """The graphs that a request names for the dataset of its query or update; empty: those of the text hold."""

    default: tuple[str, ...] = ()
    named: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.default or self.named)


@dataclass(frozen=True, slots=True)
class GraphReader:
    """Whose graphs of windows a sender sees: how the names of the queries begin, and those of the streams."""

    queries: tuple[str, ...] = ("",)
    streams: tuple[str, ...] = ("",)

    def may_read(self, query: str, stream: str) -> bool:
        """Whether the windows of a query over a stream are among them; a stream may be called by name or IRI."""
        names = (stream, iri_to_name(stream))
        return query.startswith(self.queries) and any(name.startswith(self.streams) for name in names)


ANY_READER = GraphReader()
"""Sees the windows of all queries."""


@dataclass(frozen=True, slots=True)
class AcceptedTypes:
    """The media types in which a client takes rows, a truth value and a graph; None: in none that we can write."""

    rows: str | None
    boolean: str | None
    graph: str | None


@dataclass(frozen=True, slots=True)
class QueryRequest:
    """A SPARQL query; `base` resolves its relative IRIs."""

    text: str
    base: str
    graphs: GraphChoice
    accepted: AcceptedTypes
    reader: GraphReader = ANY_READER


@dataclass(frozen=True, slots=True)
class UpdateRequest:
    """A SPARQL Update; `base` resolves its relative IRIs."""

    text: str
    base: str
    graphs: GraphChoice
    reader: GraphReader = ANY_READER


@dataclass(frozen=True, slots=True)
class QueryResult:
    """A result, written."""

    media_type: str
    content: bytes


@dataclass(frozen=True, slots=True)
class RdfDocument:
    """RDF as it was sent; `base` resolves its relative IRIs."""

    media_type: str
    content: bytes
    base: str


@dataclass(frozen=True, slots=True)
class Precondition:
    """What must hold of a graph before it is changed (RFC 9110, section 13): its tags, or `*` for a graph that exists.

    None: nothing must hold.
    """

    if_match: tuple[str, ...] | None = None
    if_none_match: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class WrittenGraph:
    """A graph, written; `tag` names its state."""

    media_type: str
    content: bytes
    tag: str


@dataclass(frozen=True, slots=True)
class GraphChange:
    """What a change of a graph did: whether the graph was there before, and whether it is there now; its new tag."""

    existed: bool
    exists: bool
    tag: str


@dataclass(frozen=True, slots=True)
class GraphSize:
    """A graph and the number of its statements; the default graph has no name."""

    name: str | None
    statements: int


@dataclass(frozen=True, slots=True)
class PropertySize:
    """A property and the number of statements that have it."""

    iri: str
    statements: int


@dataclass(frozen=True, slots=True)
class DataDescription:
    """The size of a data set at a version."""

    version: int
    graphs: tuple[GraphSize, ...]
    properties: tuple[PropertySize, ...]

    @property
    def statements(self) -> int:
        return sum(graph.statements for graph in self.graphs)


class DataService(Protocol):
    """Queries and changes a data set. A graph is given by its IRI, the default graph by None."""

    async def query(self, request: QueryRequest) -> QueryResult:
        """Evaluate a query."""

    async def update(self, request: UpdateRequest) -> int:
        """Execute an update, whole or not at all; gives the version that has it."""

    async def read_graph(
        self, graph: str | None, media_type: str, reader: GraphReader = ANY_READER
    ) -> WrittenGraph | None:
        """A graph; None if there is none of that name that the reader may see."""

    async def replace_graph(
        self, graph: str | None, documents: Sequence[RdfDocument], condition: Precondition
    ) -> GraphChange:
        """Put statements in place of those of a graph."""

    async def merge_graph(
        self, graph: str | None, documents: Sequence[RdfDocument], condition: Precondition
    ) -> GraphChange:
        """Add statements to a graph."""

    async def delete_graph(self, graph: str | None, condition: Precondition) -> GraphChange:
        """Remove a graph."""

    async def describe(self) -> DataDescription:
        """The size of the data set, of its graphs and of its properties."""
