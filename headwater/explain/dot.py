"""Drawings as DOT, the language of Graphviz, and as SVG pictures that Graphviz makes of it.

The text needs no tool. For a picture the program `dot` must be on the PATH: laying out graphs is its field.
"""

from __future__ import annotations

import shutil
import subprocess
import textwrap
from collections.abc import Iterator, Mapping

from headwater.errors import HeadwaterError
from headwater.explain.drawing_model import Box, Direction, Drawing, Edge, Vertex, VertexKind
from headwater.explain.drawing_styles import BOX_STYLES, Style, style_of

_SHAPES = {VertexKind.GRAPH: "cylinder", VertexKind.FILTER: "hexagon", VertexKind.FUNCTION: "ellipse"}
_LONGEST_LINE = 46
"""Graphviz does not break lines itself."""


class GraphvizError(HeadwaterError, RuntimeError):
    """The picture cannot be made: Graphviz is not installed, or refuses the graph."""


def to_svg(drawing: Drawing) -> str:
    """The drawing as an SVG document, made by Graphviz."""
    dot = shutil.which("dot")
    if dot is None:
        raise GraphvizError(
            "a picture needs the program `dot` of Graphviz, which is not on the PATH: install it "
            "(apt-get install graphviz), or choose the format mermaid or dot, which need no tool"
        )
    finished = subprocess.run([dot, "-Tsvg"], input=to_dot(drawing), capture_output=True, encoding="utf-8", check=False)
    if finished.returncode:
        raise GraphvizError(f"{dot} ended with code {finished.returncode}: {finished.stderr.strip()}")
    return finished.stdout


def to_dot(drawing: Drawing) -> str:
    """The drawing as a DOT digraph; rectangles are clusters."""
    by_id = {vertex.id: vertex for vertex in drawing.vertices}
    lines = [f"digraph {_quote(drawing.title)} {{"]
    graph = {"label": _label([drawing.title]), "labelloc": "t", "labeljust": "l", "fontname": "Helvetica"}
    graph["rankdir"] = "BT" if drawing.direction is Direction.UP else "LR"
    lines.append(f"  graph {_attributes(graph)}")
    lines.append(f"  node {_attributes({'shape': 'box', 'fontname': 'Helvetica', 'fontsize': '12'})}")
    lines.append(f"  edge {_attributes({'color': '#475569', 'fontname': 'Helvetica', 'fontsize': '11'})}")
    lines += [f"  {_vertex(by_id[name])}" for name in drawing.free_vertices]
    for box in drawing.boxes:
        lines += _cluster(box, by_id, "  ")
    lines += [f"  {_edge(edge)}" for edge in drawing.edges]
    return "\n".join([*lines, "}"]) + "\n"


def _cluster(box: Box, by_id: Mapping[str, Vertex], indent: str) -> Iterator[str]:
    # Graphviz draws a rectangle around a subgraph whose name begins with "cluster".
    yield f"{indent}subgraph {_quote(f'cluster_{box.id}')} {{"
    style = BOX_STYLES[box.kind]
    attributes = {"label": _label([box.label]), "fontcolor": style.stroke, "fontsize": "11"} | _lines_and_fill(style)
    yield f"{indent}  graph {_attributes(attributes)}"
    for name in box.vertices:
        yield f"{indent}  {_vertex(by_id[name])}"
    for inner in box.boxes:
        yield from _cluster(inner, by_id, indent + "  ")
    yield f"{indent}}}"


def _vertex(vertex: Vertex) -> str:
    style = style_of(vertex)
    attributes = {"label": _label([*vertex.lines, *(f"[{remark}]" for remark in vertex.remarks)])}
    if vertex.kind in _SHAPES:
        attributes["shape"] = _SHAPES[vertex.kind]
    return f"{_quote(vertex.id)} {_attributes(attributes | _lines_and_fill(style) | {'fontcolor': style.ink})}"


def _edge(edge: Edge) -> str:
    attributes = {"label": _label([edge.label])} if edge.label else {}
    if edge.is_dashed:
        attributes |= {"style": "dashed", "color": "#94a3b8"}
    ends = f"{_quote(edge.source)} -> {_quote(edge.target)}"
    return f"{ends} {_attributes(attributes)}" if attributes else ends


def _lines_and_fill(style: Style) -> dict[str, str]:
    words = [style.border] + (["rounded"] if style.is_round else []) + (["filled"] if style.fill else [])
    fill = {"fillcolor": style.fill} if style.fill else {}
    return {"style": ",".join(words), "color": style.stroke, **fill}


def _attributes(values: Mapping[str, str]) -> str:
    return f"[{', '.join(f'{name}={_quote(value)}' for name, value in values.items())}]"


def _label(lines: list[str]) -> str:
    """Text to show: long lines are wrapped, and Graphviz sees no entity (`&lt;`) where the text has an ampersand."""
    shown = [part for line in lines for part in _wrap(line)]
    return "\n".join(shown).replace("&", "&amp;")


def _wrap(text: str) -> list[str]:
    # XML has no place for control characters.
    printable = "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)
    return [
        part
        for line in printable.split("\n")
        for part in textwrap.wrap(line, _LONGEST_LINE, subsequent_indent="  ", break_on_hyphens=False) or [""]
    ]


def _quote(text: str) -> str:
    """A quoted string of DOT, in which a backslash begins an escape and a line break is one of them."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
