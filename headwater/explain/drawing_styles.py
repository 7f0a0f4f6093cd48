"""Colours and lines of the drawings, the same in Mermaid and DOT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headwater.explain.drawing_model import BoxKind, Vertex, VertexKind


@dataclass(frozen=True, slots=True)
class Style:
    """Colours of the inside (None: transparent), the border and the text; round corners; the line of the border."""

    fill: str | None
    stroke: str
    ink: str = "#111827"
    is_round: bool = False
    border: Literal["solid", "dashed", "dotted"] = "solid"


VERTEX_STYLES = {
    VertexKind.STREAM: Style("#dbeafe", "#1d4ed8", is_round=True),
    VertexKind.WINDOW: Style("#e0e7ff", "#4338ca"),
    VertexKind.GRAPH: Style("#dcfce7", "#15803d"),
    VertexKind.PATTERN: Style("#ffffff", "#475569"),
    VertexKind.OPERATOR: Style("#f1f5f9", "#475569"),
    VertexKind.FILTER: Style("#fef3c7", "#b45309"),
    VertexKind.AGGREGATION: Style("#ffe4e6", "#be123c"),
    VertexKind.MODIFIER: Style("#f3e8ff", "#7e22ce"),
    VertexKind.RESULT: Style("#1f2937", "#1f2937", "#ffffff", is_round=True),
    VertexKind.VARIABLE: Style("#ffffff", "#334155", is_round=True),
    VertexKind.IRI: Style("#f1f5f9", "#94a3b8"),
    VertexKind.LITERAL: Style("#fefce8", "#ca8a04"),
    VertexKind.FUNCTION: Style("#ffe4e6", "#be123c"),
    VertexKind.KEY: Style("#ffffff", "#be123c", is_round=True),
}
FILLED_STYLE = Style("#334155", "#334155", "#ffffff", is_round=True)
BOX_STYLES = {
    BoxKind.SOURCE: Style(None, "#64748b", border="dashed"),
    BoxKind.PART: Style(None, "#7c8ba1", border="dotted"),
    BoxKind.AGGREGATION: Style("#fff7f8", "#be123c"),
    BoxKind.GROUP: Style("#ffffff", "#be123c"),
}


def style_of(vertex: Vertex) -> Style:
    """The style of a vertex."""
    return FILLED_STYLE if vertex.is_filled else VERTEX_STYLES[vertex.kind]
