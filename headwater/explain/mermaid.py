"""Drawings as Mermaid flowcharts, for pages that render them."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.explain.drawing_model import Box, Direction, Drawing, Edge, Vertex, VertexKind
from headwater.explain.drawing_styles import BOX_STYLES, FILLED_STYLE, VERTEX_STYLES, Style

_SHAPES = {
    VertexKind.STREAM: ("([", "])"),
    VertexKind.GRAPH: ("[(", ")]"),
    VertexKind.FILTER: ("{{", "}}"),
    VertexKind.RESULT: ("([", "])"),
    VertexKind.VARIABLE: ("([", "])"),
    VertexKind.FUNCTION: ("((", "))"),
    VertexKind.KEY: ("([", "])"),
}
_DASHES = {"dashed": "6 4", "dotted": "2 3"}
_PLAIN = frozenset(" ?:,.=+-/!'@%_()")


def to_mermaid(drawing: Drawing) -> str:
    """A Mermaid flowchart of the drawing; rectangles are subgraphs."""
    by_id = {vertex.id: vertex for vertex in drawing.vertices}
    lines = ["---", f"title: {_title(drawing.title)}", "---"]
    lines.append(f"flowchart {'BT' if drawing.direction is Direction.UP else 'LR'}")
    lines += [f"  {_vertex(by_id[name])}" for name in drawing.free_vertices]
    for box in drawing.boxes:
        lines += _subgraph(box, by_id, "  ")
    lines += [f"  {_edge(edge)}" for edge in drawing.edges]
    used = dict.fromkeys(vertex.kind for vertex in drawing.vertices if not vertex.is_filled)
    lines += [f"  classDef {_class(kind)} {_style(VERTEX_STYLES[kind])}" for kind in used]
    if any(vertex.is_filled for vertex in drawing.vertices):
        lines.append(f"  classDef filled {_style(FILLED_STYLE)}")
    lines += [f"  style {box.id} {_style(BOX_STYLES[box.kind])}" for box in drawing.all_boxes()]
    return "\n".join(lines) + "\n"


def _subgraph(box: Box, by_id: dict[str, Vertex], indent: str) -> Iterator[str]:
    yield f'{indent}subgraph {box.id}["{_escape(box.label)}"]'
    for name in box.vertices:
        yield f"{indent}  {_vertex(by_id[name])}"
    for inner in box.boxes:
        yield from _subgraph(inner, by_id, indent + "  ")
    yield f"{indent}end"


def _vertex(vertex: Vertex) -> str:
    before, after = _SHAPES.get(vertex.kind, ("[", "]"))
    shown = [_escape(line) for line in vertex.lines] + [f"<i>{_escape(text)}</i>" for text in vertex.remarks]
    group = "filled" if vertex.is_filled else _class(vertex.kind)
    return f'{vertex.id}{before}"{"<br/>".join(shown)}"{after}:::{group}'


def _class(kind: VertexKind) -> str:
    # `graph` alone is a keyword of Mermaid, even here.
    return f"{kind.value}_vertex"


def _edge(edge: Edge) -> str:
    arrow = "-.->" if edge.is_dashed else "-->"
    label = f'|"{_escape(edge.label)}"|' if edge.label else ""
    return f"{edge.source} {arrow}{label} {edge.target}"


def _style(style: Style) -> str:
    dashes = f",stroke-dasharray:{_DASHES[style.border]}" if style.border in _DASHES else ""
    return f"fill:{style.fill or 'none'},stroke:{style.stroke},color:{style.ink}{dashes}"


def _escape(text: str) -> str:
    """Text inside quotes: what Mermaid, HTML or Markdown could read as their own is written by its number."""
    return "".join(c if c.isalnum() or c in _PLAIN else f"#{ord(c)};" for c in text)


def _title(text: str) -> str:
    """A double-quoted YAML string, because the title stands in the front matter."""
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else " " for c in quoted) + '"'
