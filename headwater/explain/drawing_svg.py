"""A drawing as a standalone SVG picture: no font, style sheet or script from elsewhere, on a light ground.

Labels are set in a fixed-width face, so that the width of a text is known without asking a font; long ones are wrapped.
"""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass
from itertools import pairwise
from xml.sax.saxutils import escape, quoteattr

from headwater.explain.drawing_layers import Point
from headwater.explain.drawing_layout import Area, Layout, Sizes, lay_out
from headwater.explain.drawing_looks import BOX_LOOKS, FILLED, LOOKS, Look
from headwater.explain.drawing_model import Box, Direction, Drawing, Edge, Kind, Vertex

_FONT = "'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace"
_EM = 0.61
_TEXT, _SMALL = 13.0, 11.5
_LINE, _SMALL_LINE = 18.0, 16.0
_LONGEST_LINE = 46
_MARGIN = 20.0
_TITLE_HEIGHT = 30.0

_OPERATOR_KINDS = (
    Kind.STREAM,
    Kind.WINDOW,
    Kind.GRAPH,
    Kind.PATTERN,
    Kind.OPERATOR,
    Kind.FILTER,
    Kind.AGGREGATION,
    Kind.MODIFIER,
    Kind.RESULT,
)


@dataclass(frozen=True, slots=True)
class _Words:
    """A vertex's text, wrapped, and the sizes of its shape and of the remarks below it."""

    lines: tuple[str, ...]
    remarks: tuple[str, ...]
    shape: tuple[float, float]
    note: tuple[float, float]

    @property
    def size(self) -> tuple[float, float]:
        return max(self.shape[0], self.note[0]), self.shape[1] + self.note[1]


def to_svg(drawing: Drawing) -> str:
    """The drawing as an SVG document."""
    words = {vertex.id: _words(vertex) for vertex in drawing.vertices}
    headings = {box.id: _heading(box) for box in drawing.all_boxes()}
    sizes = Sizes(
        {name: text.size for name, text in words.items()},
        {name: text.shape[1] / 2 for name, text in words.items()},
        {name: (_width(lines, _SMALL), len(lines) * _SMALL_LINE + 4) for name, lines in headings.items()},
        {n: (_width((e.label,), _SMALL), _SMALL_LINE) for n, e in enumerate(drawing.edges) if e.label},
    )
    layout = lay_out(drawing, sizes)
    title_width = _width((drawing.title,), 15.0)
    width = max(layout.width, title_width) + 2 * _MARGIN
    height = layout.height + 2 * _MARGIN + _TITLE_HEIGHT
    body = [
        *(_box(box, layout.boxes[box.id], headings[box.id]) for box in drawing.all_boxes()),
        *(_edge(edge, number, layout, words, drawing.direction) for number, edge in enumerate(drawing.edges)),
        *(_vertex(vertex, words[vertex.id], layout.vertices[vertex.id]) for vertex in drawing.vertices),
        *(_edge_label(edge, number, layout) for number, edge in enumerate(drawing.edges) if edge.label),
    ]
    left = (width - layout.width) / 2
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="{_FONT}" font-size="{_TEXT:g}">',
            f"<title>{escape(drawing.title)}</title>",
            "<defs>",
            _marker("arrow", "#475569"),
            _marker("faint", "#94a3b8"),
            "</defs>",
            f'<rect width="{width:.0f}" height="{height:.0f}" fill="#fbfcfe"/>',
            f'<text x="{_MARGIN:g}" y="{_MARGIN + 12:g}" font-size="15" font-weight="bold" fill="#111827">'
            f"{escape(drawing.title)}</text>",
            f'<g transform="translate({left:.1f} {_MARGIN + _TITLE_HEIGHT:.1f})">',
            *(part for part in body if part),
            "</g>",
            "</svg>",
            "",
        ]
    )


def _marker(name: str, colour: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
        f'orient="auto-start-reverse"><path d="M0 0.8 L9.5 5 L0 9.2 z" fill="{colour}"/></marker>'
    )


def _columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _width(lines: tuple[str, ...], size: float) -> float:
    return max(map(_columns, lines), default=0) * size * _EM


def wrapped(text: str, longest: int = _LONGEST_LINE) -> list[str]:
    """The text in lines of at most `longest` columns: broken at spaces, else after / # & |, else anywhere."""
    lines = []
    rest = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    while _columns(rest) > longest:
        room = rest[:longest]
        while _columns(room) > longest:
            room = room[:-1]
        cut = room.rfind(" ") + 1
        if cut < longest // 3:
            cut = max((room.rfind(c) + 1 for c in "/#&|"), default=0)
        if cut < longest // 3:
            cut = len(room)
        lines.append(rest[:cut].rstrip())
        rest = "  " + rest[cut:].lstrip()
    return [*lines, rest]


def _words(vertex: Vertex) -> _Words:
    lines = tuple(part for line in vertex.lines for part in wrapped(line))
    remarks = tuple(part for remark in vertex.remarks for part in wrapped(remark))
    padding = 30.0 if _look(vertex).round else 22.0
    shape = (max(_width(lines, _TEXT) + padding, 44.0), len(lines) * _LINE + 12)
    note = (_width(remarks, _SMALL) + 14, len(remarks) * _SMALL_LINE + 10) if remarks else (0.0, 0.0)
    return _Words(lines, remarks, shape, note)


def _look(vertex: Vertex) -> Look:
    return FILLED if vertex.filled else LOOKS[vertex.kind]


def _heading(box: Box) -> tuple[str, ...]:
    return tuple(wrapped(box.label, 64))


def _vertex(vertex: Vertex, words: _Words, area: Area) -> str:
    look = _look(vertex)
    width, height = words.shape
    left, middle = area.x + (area.width - width) / 2, area.x + area.width / 2
    corner = min(height / 2, 15.0) if look.round else 4.0
    parts = [f"<g id={quoteattr(vertex.id)} class={quoteattr(vertex.kind.value)}>"]
    if words.remarks:
        parts.append(_note(words, area))
    parts.append(
        f'<rect x="{left:.1f}" y="{area.y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{corner:g}" '
        f'fill="{look.fill}" stroke="{look.stroke}" stroke-width="1.3"/>'
    )
    for number, line in enumerate(words.lines):
        strong = ' font-weight="bold"' if number == 0 and _has_name(vertex) else ""
        parts.append(_line(line, middle, area.y + 19 + number * _LINE, look.ink, strong))
    return "".join([*parts, "</g>"])


def _has_name(vertex: Vertex) -> bool:
    """Whether the first line names an operator rather than being all there is."""
    return vertex.kind in _OPERATOR_KINDS or vertex.filled


def _line(text: str, x: float, y: float, ink: str, more: str = "") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" fill="{ink}" xml:space="preserve"{more}>'
        f"{escape(text)}</text>"
    )


def _note(words: _Words, area: Area) -> str:
    width, height = words.note
    left, top = area.x + (area.width - width) / 2, area.y + words.shape[1] - 3
    shape = (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" rx="3" '
        'fill="#fef3c7" stroke="#d97706" stroke-width="0.8"/>'
    )
    lines = [
        _line(
            text,
            area.x + area.width / 2,
            top + 17 + number * _SMALL_LINE,
            "#78350f",
            f' font-size="{_SMALL:g}"',
        )
        for number, text in enumerate(words.remarks)
    ]
    return shape + "".join(lines)


def _box(box: Box, area: Area, heading: tuple[str, ...]) -> str:
    look = BOX_LOOKS[box.kind]
    pattern = f' stroke-dasharray="{look.dashes}"' if look.dashes else ""
    shape = (
        f'<rect x="{area.x:.1f}" y="{area.y:.1f}" width="{area.width:.1f}" height="{area.height:.1f}" '
        f'rx="8" fill="{look.fill}" stroke="{look.stroke}" stroke-width="1.2"{pattern}/>'
    )
    lines = [
        f'<text x="{area.x + 10:.1f}" y="{area.y + 17 + number * _SMALL_LINE:.1f}" font-size="{_SMALL:g}" '
        f'fill="{look.stroke}" xml:space="preserve">{escape(text)}</text>'
        for number, text in enumerate(heading)
    ]
    return f"<g id={quoteattr(box.id)} class={quoteattr('box ' + box.kind.value)}>{shape}{''.join(lines)}</g>"


def _edge(edge: Edge, number: int, layout: Layout, words: dict[str, _Words], direction: Direction) -> str:
    colour, marker = ("#94a3b8", "faint") if edge.faint else ("#475569", "arrow")
    dashes = ' stroke-dasharray="4 3"' if edge.faint else ""
    route = layout.routes.get(number)
    if route is None:
        path = _loop(layout.vertices[edge.source])
    else:
        path = _curve(_up_to_shapes(edge, route, layout, words, direction), direction)
    return f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.3"{dashes} marker-end="url(#{marker})"/>'


def _up_to_shapes(
    edge: Edge, route: list[Point], layout: Layout, words: dict[str, _Words], direction: Direction
) -> list[Point]:
    """The way, made longer where a remark is wider than the vertex that it belongs to."""
    if direction is Direction.UP:
        return route

    def end(vertex: str, point: Point) -> Point:
        area = layout.vertices[vertex]
        gap = (area.width - words[vertex].shape[0]) / 2
        return point[0] + (gap if point[0] < area.x + area.width / 2 else -gap), point[1]

    return [end(edge.source, route[0]), *route, end(edge.target, route[-1])]


def _curve(route: list[Point], direction: Direction) -> str:
    """Straight along the layers, bent between them."""
    (x, y), *rest = route
    parts = [f"M{x:.1f} {y:.1f}"]
    for next_x, next_y in rest:
        if direction is Direction.UP:
            middle = (y + next_y) / 2
            bend = f"C{x:.1f} {middle:.1f} {next_x:.1f} {middle:.1f} {next_x:.1f} {next_y:.1f}"
            straight = abs(x - next_x) < 0.5
        else:
            middle = (x + next_x) / 2
            bend = f"C{middle:.1f} {y:.1f} {middle:.1f} {next_y:.1f} {next_x:.1f} {next_y:.1f}"
            straight = abs(y - next_y) < 0.5
        parts.append(f"L{next_x:.1f} {next_y:.1f}" if straight else bend)
        x, y = next_x, next_y
    return " ".join(parts)


def _loop(area: Area) -> str:
    """A vertex that leads to itself (`?x ?x ?y`)."""
    x, y = area.x + area.width / 2, area.y
    return f"M{x - 8:.1f} {y:.1f} C{x - 20:.1f} {y - 22:.1f} {x + 20:.1f} {y - 22:.1f} {x + 8:.1f} {y:.1f}"


def _edge_label(edge: Edge, number: int, layout: Layout) -> str:
    route = layout.routes.get(number)
    if route is None:
        return ""
    steps = pairwise(route)
    (x, y), (other_x, other_y) = max(steps, key=lambda step: math.dist(*step))
    middle, height = (x + other_x) / 2, (y + other_y) / 2
    width = _width((edge.label,), _SMALL) + 6
    ground = (
        f'<rect x="{middle - width / 2:.1f}" y="{height - 8:.1f}" width="{width:.1f}" height="16" rx="3" '
        'fill="#fbfcfe" fill-opacity="0.9"/>'
    )
    return ground + _line(edge.label, middle, height + 4, "#475569", f' font-size="{_SMALL:g}"')
