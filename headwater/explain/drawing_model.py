"""A small neutral graph to draw: vertices, edges and rectangles around vertices, nested where needed.

`operator_graph` and `denotational_graph` build a `Drawing`; `mermaid` and `dot` write it as text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, TypeAlias

PlanGraph: TypeAlias = Literal["operators", "denotational"]
PlanStage: TypeAlias = Literal["written", "paper", "evaluated"]
"""Which plan is shown: as the query is written, after the rules of the C-SPARQL paper alone, or as it is evaluated."""
PlanFormat: TypeAlias = Literal["text", "mermaid", "dot", "svg"]


class VertexKind(Enum):
    """What a vertex stands for; it decides shape and colour."""

    STREAM = "stream"
    WINDOW = "window"
    GRAPH = "graph"
    PATTERN = "pattern"
    OPERATOR = "operator"
    FILTER = "filter"
    AGGREGATION = "aggregation"
    MODIFIER = "modifier"
    RESULT = "result"
    VARIABLE = "variable"
    IRI = "iri"
    LITERAL = "literal"
    FUNCTION = "function"
    KEY = "key"


class BoxKind(Enum):
    """What a rectangle stands for: a source (dashed), a part of the pattern (dotted), a hyper-node (solid)."""

    SOURCE = "source"
    PART = "part"
    AGGREGATION = "aggregation"
    GROUP = "group"


class Direction(Enum):
    """Where the edges of a drawing lead."""

    UP = "up"
    RIGHT = "right"


@dataclass(frozen=True, slots=True)
class Vertex:
    """A vertex: its label line by line, remarks that are attached to it, and whether it is filled."""

    id: str
    lines: tuple[str, ...]
    kind: VertexKind
    remarks: tuple[str, ...] = ()
    is_filled: bool = False


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge; a dashed one says that two vertices belong together rather than that something flows."""

    source: str
    target: str
    label: str = ""
    is_dashed: bool = False


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle around the vertices with these ids and around other rectangles."""

    id: str
    label: str
    kind: BoxKind
    vertices: tuple[str, ...] = ()
    boxes: tuple[Box, ...] = ()

    def walk(self) -> Iterator[Box]:
        """This rectangle and all inside it."""
        yield self
        for box in self.boxes:
            yield from box.walk()


@dataclass(frozen=True, slots=True)
class Drawing:
    """A graph to draw. Each vertex is a member of at most one rectangle."""

    title: str
    vertices: tuple[Vertex, ...]
    edges: tuple[Edge, ...]
    boxes: tuple[Box, ...] = ()
    direction: Direction = Direction.UP

    def all_boxes(self) -> Iterator[Box]:
        """Every rectangle, the outer ones first."""
        for box in self.boxes:
            yield from box.walk()

    @property
    def free_vertices(self) -> tuple[str, ...]:
        """The ids of the vertices that no rectangle holds."""
        held = {vertex for box in self.all_boxes() for vertex in box.vertices}
        return tuple(vertex.id for vertex in self.vertices if vertex.id not in held)


@dataclass
class DrawingBuilder:
    """Collects vertices and edges. Ids are given in order, so that equal plans give equal drawings."""

    vertices: list[Vertex] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)

    def add_vertex(self, kind: VertexKind, *lines: str) -> str:
        """Add a vertex; return its id."""
        name = f"n{len(self.vertices) + 1}"
        self.vertices.append(Vertex(name, lines, kind))
        return name

    def add_edge(self, source: str, target: str, label: str = "", *, is_dashed: bool = False) -> None:
        """Add an edge, unless it is there."""
        edge = Edge(source, target, label, is_dashed)
        if edge not in self.edges:
            self.edges.append(edge)
