"""Mermaid and SVG of drawings: well formed, nothing lost, nothing on top of something else."""

from __future__ import annotations

import re
from itertools import combinations, pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.explain.denotational_graph import denotational_graph
from headwater.explain.drawing_layers import layers_of, spread
from headwater.explain.drawing_layout import Area, Layout, Sizes, lay_out
from headwater.explain.drawing_model import Box, BoxKind, Direction, Drawing, Edge, Kind, Vertex
from headwater.explain.drawing_svg import wrapped
from headwater.explain.mermaid import to_mermaid, to_svg
from headwater.explain.operator_graph import operator_graph
from tests.explain.explain_queries import EVERYTHING, NAMED_GRAPHS, PAPER, plan_of

SVG = "{http://www.w3.org/2000/svg}"
DRAWINGS = [
    draw(plan_of(text)) for text in (PAPER, NAMED_GRAPHS, EVERYTHING) for draw in (operator_graph, denotational_graph)
]


def overlap(one: Area, other: Area) -> bool:
    return (
        one.x < other.x + other.width
        and other.x < one.x + one.width
        and one.y < other.y + other.height
        and other.y < one.y + one.height
    )


def holds(outer: Area, inner: Area) -> bool:
    return (
        outer.x <= inner.x
        and outer.y <= inner.y
        and inner.x + inner.width <= outer.x + outer.width
        and inner.y + inner.height <= outer.y + outer.height
    )


def inside_of(box: Box) -> tuple[set[str], set[str]]:
    """The ids of all vertices and boxes inside a box, at any depth."""
    boxes = list(box.walk())
    return {name for inner in boxes for name in inner.vertices}, {inner.id for inner in boxes}


def check_layout(drawing: Drawing, layout: Layout) -> None:
    for one, other in combinations(layout.vertices.values(), 2):
        assert not overlap(one, other)
    page = Area(0, 0, layout.width, layout.height)
    for box in drawing.all_boxes():
        vertices, boxes = inside_of(box)
        area = layout.boxes[box.id]
        assert holds(page, area)
        for name, vertex in layout.vertices.items():
            assert holds(area, vertex) if name in vertices else not overlap(area, vertex)
        for name, other in layout.boxes.items():
            if name in boxes:
                assert holds(area, other)
            elif box.id not in inside_of(next(b for b in drawing.all_boxes() if b.id == name))[1]:
                assert not overlap(area, other)


def plain_layout(drawing: Drawing) -> Layout:
    size = (80.0, 30.0)
    return lay_out(
        drawing,
        Sizes(
            {v.id: (40.0 + 10 * len(v.lines[0]), 30.0) for v in drawing.vertices},
            {v.id: 15.0 for v in drawing.vertices},
            {box.id: (100.0, 20.0) for box in drawing.all_boxes()},
            {number: size for number, edge in enumerate(drawing.edges) if edge.label},
        ),
    )


@st.composite
def drawings(draw: st.DrawFn) -> Drawing:
    """Any graph, circles and loops included, some of its vertices in nested boxes."""
    count = draw(st.integers(1, 12))
    names = [f"n{number}" for number in range(count)]
    vertices = tuple(Vertex(name, (draw(st.text("ab", max_size=9)),), Kind.VARIABLE) for name in names)
    ends = st.sampled_from(names)
    edges = draw(st.lists(st.builds(Edge, ends, ends, st.sampled_from(["", "label"])), max_size=20))
    home = [draw(st.integers(0, 3)) for _ in names]

    def members(number: int) -> tuple[str, ...]:
        return tuple(name for name, place in zip(names, home, strict=True) if place == number)

    inner = Box("g1_1", "inner", BoxKind.GROUP, members(2))
    boxes = (
        Box("g1", "outer", BoxKind.AGGREGATION, members(1), (inner,) if inner.vertices else ()),
        Box("g2", "other", BoxKind.SOURCE, members(3)),
    )
    used = tuple(box for box in boxes if box.vertices or box.boxes)
    return Drawing("any", vertices, tuple(dict.fromkeys(edges)), used, draw(st.sampled_from(Direction)))


@given(drawings())
def test_nothing_overlaps_and_boxes_hold_their_own(drawing: Drawing) -> None:
    check_layout(drawing, plain_layout(drawing))


@given(drawings())
def test_edges_begin_and_end_at_their_vertices(drawing: Drawing) -> None:
    layout = plain_layout(drawing)
    for number, edge in enumerate(drawing.edges):
        if edge.source == edge.target:
            assert number not in layout.routes
            continue
        route = layout.routes[number]
        for name, (x, y) in ((edge.source, route[0]), (edge.target, route[-1])):
            area = layout.vertices[name]
            assert area.x - 0.01 <= x <= area.x + area.width + 0.01
            assert area.y - 0.01 <= y <= area.y + area.height + 0.01


@given(drawings())
def test_any_drawing_can_be_written(drawing: Drawing) -> None:
    root = ElementTree.fromstring(to_svg(drawing))
    shown = {element.get("id") for element in root.iter(f"{SVG}g")}
    assert {v.id for v in drawing.vertices} | {box.id for box in drawing.all_boxes()} <= shown
    assert to_mermaid(drawing).count(":::") == len(drawing.vertices)


@pytest.mark.parametrize("drawing", DRAWINGS)
def test_the_svg_shows_every_vertex_edge_and_box_apart(drawing: Drawing) -> None:
    root = ElementTree.fromstring(to_svg(drawing))
    boxes, shapes = {}, []
    for group in root.iter(f"{SVG}g"):
        if group.get("id") is None:
            continue
        # A vertex with remarks has two rectangles: the note, then the shape.
        areas = [
            Area(*(float(rect.get(key, "0")) for key in ("x", "y", "width", "height")))
            for rect in group.findall(f"{SVG}rect")
        ]
        if group.get("class", "").startswith("box "):
            boxes[group.get("id")] = areas[0]
        else:
            shapes.append(areas)
    assert len(shapes) == len(drawing.vertices)
    assert set(boxes) == {box.id for box in drawing.all_boxes()}
    for one, other in combinations(shapes, 2):
        assert not any(overlap(a, b) for a in one for b in other)
    lines = [path for path in root.iter(f"{SVG}path") if path.get("marker-end")]
    assert len(lines) == len(drawing.edges)
    dashed = [g for g in root.iter(f"{SVG}g") if g.get("class") == "box source"]
    assert all(rect.get("stroke-dasharray") for g in dashed for rect in g.findall(f"{SVG}rect"))


def test_the_svg_of_operators_leads_upwards() -> None:
    drawing = operator_graph(plan_of(EVERYTHING))
    layout = plain_layout(drawing)
    for edge in drawing.edges:
        assert layout.vertices[edge.source].y > layout.vertices[edge.target].y


def test_text_fits_into_its_shape() -> None:
    drawing = denotational_graph(plan_of(EVERYTHING))
    for group in ElementTree.fromstring(to_svg(drawing)).iter(f"{SVG}g"):
        if group.get("class") != "variable":
            continue
        width = float(group.findall(f"{SVG}rect")[-1].get("width", "0"))
        label = group.findall(f"{SVG}text")[-1].text or ""
        assert len(label) * 7.9 < width


@pytest.mark.parametrize("drawing", DRAWINGS)
def test_mermaid_has_balanced_subgraphs_and_declares_what_it_uses(drawing: Drawing) -> None:
    text = to_mermaid(drawing)
    depth = 0
    for line in text.splitlines():
        depth += line.strip().startswith("subgraph ") - (line.strip() == "end")
        assert depth >= 0
    assert depth == 0
    assert len(re.findall(r"^ *subgraph ", text, re.M)) == len(list(drawing.all_boxes()))
    assert len(re.findall(r" (?:-->|-\.->)", text)) == len(drawing.edges)
    used = set(re.findall(r":::(\w+)$", text, re.M))
    assert used == set(re.findall(r"classDef (\w+) ", text))
    assert not used & {"graph", "end", "style", "class", "default"}
    for box in drawing.all_boxes():
        if box.kind is BoxKind.SOURCE:
            assert re.search(rf"style {box.id} .*stroke-dasharray:", text)


def test_labels_cannot_break_out_of_mermaid_or_svg() -> None:
    nasty = '"];end <b>&`*#quot;|{}\\'
    drawing = Drawing(nasty, (Vertex("n1", (nasty,), Kind.IRI, (nasty + "\x01",)),), (Edge("n1", "n1", nasty),))
    label = re.search(r'n1\["(.*)"\]', to_mermaid(drawing))
    assert label is not None
    shown = re.sub(r"#(\d+);", lambda match: chr(int(match[1])), label[1].split("<br/>")[0])
    assert shown == nasty
    assert not set('"<>&`*|{}\\;[]') & set(re.sub(r"#\d+;|<br/>|</?i>", "", label[1]))
    texts = [element.text for element in ElementTree.fromstring(to_svg(drawing)).iter(f"{SVG}text")]
    assert texts.count(nasty) == 2


@given(st.text(max_size=200))
def test_wrapping_keeps_all_that_is_visible(text: str) -> None:
    lines = wrapped(text, 20)
    assert all(len(line) <= 20 for line in lines)
    visible = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    assert "".join("".join(lines).split()) == "".join(visible.split())


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20), st.booleans())
def test_layers_of_a_graph_without_circles_follow_every_edge(pairs: list[tuple[int, int]], late: bool) -> None:
    names = [f"n{number}" for number in range(8)]
    forward = [(f"n{low}", f"n{high}") for low, high in pairs if low < high]
    layer = layers_of(names, forward, late=late)
    assert min(layer.values()) == 0
    assert all(layer[low] < layer[high] for low, high in forward)


@given(st.lists(st.tuples(st.floats(-100, 100), st.floats(0.1, 5), st.floats(0, 30)), min_size=1, max_size=9))
def test_spreading_keeps_distances_and_moves_nothing_without_need(wishes: list[tuple[float, float, float]]) -> None:
    places = spread([w for w, _, _ in wishes], [w for _, w, _ in wishes], [d for _, _, d in wishes])
    for (one, other), (_, _, distance) in zip(pairwise(places), wishes[1:], strict=True):
        assert other - one >= distance - 1e-6
    again = spread(places, [1.0] * len(places), [0.0] + [d for _, _, d in wishes[1:]])
    assert again == pytest.approx([place for place in places])
