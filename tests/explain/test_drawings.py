"""Mermaid, DOT and SVG of drawings: well formed, and with every vertex, edge and rectangle."""

from __future__ import annotations

import re
import shutil
import stat
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.explain.denotational_graph import denotational_graph
from headwater.explain.dot import GraphvizError, to_dot, to_svg
from headwater.explain.drawing_model import Box, BoxKind, Direction, Drawing, Edge, Vertex, VertexKind
from headwater.explain.mermaid import to_mermaid
from headwater.explain.operator_graph import operator_graph
from tests.explain.explain_queries import EVERYTHING, NAMED_GRAPHS, PAPER, plan_of

SVG = "{http://www.w3.org/2000/svg}"
DRAWINGS = [
    draw(plan_of(text)) for text in (PAPER, NAMED_GRAPHS, EVERYTHING) for draw in (operator_graph, denotational_graph)
]
NASTY = '"];end <b>&`*#quot;|{}\\ &lt; \\n ω→語'
needs_graphviz = pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")


def of_one_vertex(text: str) -> Drawing:
    vertex = Vertex("n1", (text,), VertexKind.IRI, (text + "\x01",))
    return Drawing(text, (vertex,), (Edge("n1", "n1", text),), (Box("g1", text, BoxKind.GROUP, ("n1",)),))


@st.composite
def drawings(draw: st.DrawFn) -> Drawing:
    """Any graph, circles and loops included, some of its vertices in nested boxes."""
    count = draw(st.integers(1, 12))
    names = [f"n{number}" for number in range(count)]
    texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
    vertices = tuple(Vertex(name, (draw(texts),), VertexKind.VARIABLE) for name in names)
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


def strings_of(dot: str) -> list[str]:
    """The quoted strings of a DOT text, read as Graphviz reads them."""
    escapes = {'\\"': '"', "\\\\": "\\", "\\n": "\n"}
    return [re.sub(r"\\.", lambda m: escapes[m[0]], text) for text in re.findall(r'"((?:[^"\\]|\\.)*)"', dot)]


def check_dot(drawing: Drawing) -> None:
    """Every vertex stands once, in its cluster, and every edge once."""
    homes = {name: (*path, box.id) for path, box in _with_paths(drawing.boxes, ()) for name in box.vertices}
    path: list[str] = []
    vertices, clusters, edges = [], [], []
    head, *lines, end = to_dot(drawing).splitlines()
    assert (head.startswith("digraph "), end) == (True, "}")
    for line in map(str.strip, lines):
        if opened := re.fullmatch(r'subgraph "cluster_(\w+)" \{', line):
            path.append(opened[1])
            clusters.append(opened[1])
        elif line == "}":
            path.pop()
        elif edge := re.match(r'"(\w+)" -> "(\w+)"', line):
            edges.append((edge[1], edge[2]))
        elif vertex := re.match(r'"(\w+)" \[label=', line):
            vertices.append(vertex[1])
            assert homes.get(vertex[1], ()) == tuple(path)
        else:
            assert re.match(r"(graph|node|edge) \[", line)
    assert path == []
    assert sorted(vertices) == sorted(v.id for v in drawing.vertices)
    assert sorted(clusters) == sorted(box.id for box in drawing.all_boxes())
    assert edges == [(e.source, e.target) for e in drawing.edges]


def _with_paths(boxes: tuple[Box, ...], around: tuple[str, ...]) -> list[tuple[tuple[str, ...], Box]]:
    return [pair for b in boxes for pair in ((around, b), *_with_paths(b.boxes, (*around, b.id)))]


@given(drawings())
def test_any_drawing_can_be_written(drawing: Drawing) -> None:
    check_dot(drawing)
    assert to_mermaid(drawing).count(":::") == len(drawing.vertices)


@pytest.mark.parametrize("drawing", DRAWINGS)
def test_dot_has_every_vertex_edge_and_box(drawing: Drawing) -> None:
    check_dot(drawing)
    text = to_dot(drawing)
    assert f'rankdir="{"BT" if drawing.direction is Direction.UP else "LR"}"' in text
    words = re.sub(r"\s+", "", "".join(strings_of(text)))
    for vertex in drawing.vertices:
        for shown in (*vertex.lines, *vertex.remarks):
            assert re.sub(r"\s+", "", shown).replace("&", "&amp;") in words
    dashed = len([box for box in drawing.all_boxes() if box.kind is BoxKind.SOURCE])
    assert len(re.findall(r'graph \[.*style="dashed"', text)) == dashed


@pytest.mark.parametrize("text", [NASTY, "two\nlines", 'a "quoted" word', "C:\\new\\", "語 ω → é", "&amp; &lt;", ""])
def test_labels_cannot_break_out_of_dot(text: str) -> None:
    drawing = of_one_vertex(text)
    check_dot(drawing)
    strings = strings_of(to_dot(drawing))
    label = text.replace("&", "&amp;")
    assert strings[0] == text
    assert strings.count(label) >= (2 if text else 1)
    assert f"{label}\n[{label}\N{REPLACEMENT CHARACTER}]" in strings


def test_long_lines_are_wrapped_in_dot() -> None:
    words = " ".join(["?subject"] * 20)
    label = next(text for text in strings_of(to_dot(of_one_vertex(words))) if "\n[" in text)
    assert all(len(line) <= 46 for line in label.splitlines())
    assert label.split("\n[")[0].split() == words.split()


@needs_graphviz
@pytest.mark.parametrize("drawing", DRAWINGS)
def test_graphviz_draws_every_vertex_edge_and_box(drawing: Drawing) -> None:
    root = ElementTree.fromstring(to_svg(drawing))
    kinds = [group.get("class") for group in root.iter(f"{SVG}g")]
    assert kinds.count("node") == len(drawing.vertices)
    assert kinds.count("edge") == len(drawing.edges)
    assert kinds.count("cluster") == len(list(drawing.all_boxes()))


@needs_graphviz
def test_graphviz_shows_labels_as_they_are() -> None:
    root = ElementTree.fromstring(to_svg(of_one_vertex(NASTY)))
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert texts.count(NASTY) == 4


def test_a_picture_without_graphviz_is_refused_with_what_helps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GraphvizError, match=r"apt-get install graphviz.*mermaid or dot, which need no tool"):
        to_svg(DRAWINGS[0])


def test_what_graphviz_complains_about_is_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tool = tmp_path / "dot"
    tool.write_text("#!/bin/sh\necho 'syntax error' >&2\nexit 3\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GraphvizError, match="ended with code 3: syntax error"):
        to_svg(DRAWINGS[0])


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


def test_labels_cannot_break_out_of_mermaid() -> None:
    label = re.search(r'n1\["(.*)"\]', to_mermaid(of_one_vertex(NASTY)))
    assert label is not None
    shown = re.sub(r"#(\d+);", lambda match: chr(int(match[1])), label[1].split("<br/>")[0])
    assert shown == NASTY
    assert not set('"<>&`*|{}\\;[]') & set(re.sub(r"#\d+;|<br/>|</?i>", "", label[1]))
