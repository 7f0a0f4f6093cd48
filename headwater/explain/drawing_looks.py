"""Colours and lines of the drawings, the same in Mermaid and SVG."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.explain.drawing_model import BoxKind, Kind


@dataclass(frozen=True, slots=True)
class Look:
    """Colours of the inside, the border and the text; whether the ends are round; dashes of the border."""

    fill: str
    stroke: str
    ink: str = "#111827"
    round: bool = False
    dashes: str = ""


LOOKS = {
    Kind.STREAM: Look("#dbeafe", "#1d4ed8", round=True),
    Kind.WINDOW: Look("#e0e7ff", "#4338ca"),
    Kind.GRAPH: Look("#dcfce7", "#15803d", round=True),
    Kind.PATTERN: Look("#ffffff", "#475569"),
    Kind.OPERATOR: Look("#f1f5f9", "#475569"),
    Kind.FILTER: Look("#fef3c7", "#b45309"),
    Kind.AGGREGATION: Look("#ffe4e6", "#be123c"),
    Kind.MODIFIER: Look("#f3e8ff", "#7e22ce"),
    Kind.RESULT: Look("#1f2937", "#1f2937", "#ffffff", round=True),
    Kind.VARIABLE: Look("#ffffff", "#334155", round=True),
    Kind.IRI: Look("#f1f5f9", "#94a3b8"),
    Kind.LITERAL: Look("#fefce8", "#ca8a04"),
    Kind.FUNCTION: Look("#ffe4e6", "#be123c", round=True),
    Kind.KEY: Look("#ffffff", "#be123c", round=True),
}
FILLED = Look("#334155", "#334155", "#ffffff", round=True)
BOX_LOOKS = {
    BoxKind.SOURCE: Look("none", "#64748b", dashes="6 4"),
    BoxKind.PART: Look("none", "#7c8ba1", dashes="2 3"),
    BoxKind.AGGREGATION: Look("#fff7f8", "#be123c"),
    BoxKind.GROUP: Look("#ffffff", "#be123c"),
}
