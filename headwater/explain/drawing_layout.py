"""Where everything in a drawing stands: each rectangle is laid out alone and is one large item of what is around it.

So nothing can overlap: not two vertices, not two rectangles, and no vertex lies in a rectangle that does not hold it.
A link that leaves a rectangle goes to a port on its border and on from there; which border that is follows from the
layers around the rectangle, which are known before its inside is laid out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headwater.explain.drawing_layers import Item, Link, Point, arrange, layers_of
from headwater.explain.drawing_model import Box, Direction, Drawing

_GAP = {Direction.UP: 38.0, Direction.RIGHT: 46.0}
_RIM = 16.0


@dataclass(frozen=True, slots=True)
class Area:
    """A rectangle on the page, from its upper left corner."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Layout:
    """The areas of vertices and boxes, the way of each edge (by its number) and the size of the page."""

    vertices: dict[str, Area]
    boxes: dict[str, Area]
    routes: dict[int, list[Point]]
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Sizes:
    """The room that things need on the page: vertices, headings of boxes, labels of edges (width, height).

    `middles` says how far below its upper edge the middle of a vertex is, for drawings that lead to the right.
    """

    vertices: dict[str, tuple[float, float]]
    middles: dict[str, float]
    headings: dict[str, tuple[float, float]]
    labels: dict[int, tuple[float, float]]


@dataclass
class _Placed:
    """What was laid out inside one box, from the box's own corner, along (main, cross)."""

    length: float
    breadth: float
    items: dict[str, tuple[Point, Point]] = field(default_factory=dict)
    routes: dict[int, list[list[Point]]] = field(default_factory=dict)
    ports: dict[int, float] = field(default_factory=dict)


def lay_out(drawing: Drawing, sizes: Sizes) -> Layout:
    """The layout of a whole drawing."""
    layouter = _Layouter(drawing, sizes)
    page = layouter.inside(None, (), {})
    up = drawing.direction is Direction.UP

    def turn(point: Point) -> Point:
        return (point[1], page.length - point[0]) if up else point

    areas = {}
    for name, ((main, cross), (length, breadth)) in page.items.items():
        turned = Area(cross, page.length - main - length, breadth, length)
        areas[name] = turned if up else Area(main, cross, length, breadth)
    boxes = {name: area for name, area in areas.items() if name in layouter.box_names}
    vertices = {name: area for name, area in areas.items() if name not in layouter.box_names}
    routes = {}
    for number, parts in page.routes.items():
        edge = drawing.edges[number]
        backwards = page.items[edge.source][0][0] > page.items[edge.target][0][0]
        routes[number] = [turn(point) for point in _whole_route(parts, backwards)]
    size = (page.breadth, page.length) if up else (page.length, page.breadth)
    return Layout(vertices, boxes, routes, *size)


class _Layouter:
    def __init__(self, drawing: Drawing, sizes: Sizes) -> None:
        self.drawing = drawing
        self.sizes = sizes
        self.up = drawing.direction is Direction.UP
        self.chains: dict[str, tuple[str, ...]] = {name: () for name in drawing.free_vertices}
        self.box_names = {box.id for box in drawing.all_boxes()}
        for box in drawing.boxes:
            self._enter(box, ())

    def _enter(self, box: Box, around: tuple[str, ...]) -> None:
        chain = (*around, box.id)
        self.chains.update(dict.fromkeys(box.vertices, chain))
        for inner in box.boxes:
            self._enter(inner, chain)

    def _axes(self, size: tuple[float, float]) -> tuple[float, float]:
        """A (width, height) along (main, cross)."""
        return (size[1], size[0]) if self.up else size

    def _lift(self, vertex: str, chain: tuple[str, ...]) -> str | None:
        """The item directly inside the box that is or holds a vertex; None where the vertex is not in the box."""
        own = self.chains[vertex]
        if own[: len(chain)] != chain:
            return None
        return own[len(chain)] if len(own) > len(chain) else vertex

    def inside(self, box: Box | None, chain: tuple[str, ...], leaving: dict[int, bool]) -> _Placed:
        """Lays out a box; `leaving` are the edges that leave it, true for those that leave it forwards."""
        boxes = self.drawing.boxes if box is None else box.boxes
        names = list(self.drawing.free_vertices if box is None else box.vertices) + [b.id for b in boxes]
        pairs, ports = self._pairs(chain, leaving)
        own = [(low, high) for low, high in pairs.values() if low not in ports and high not in ports]
        layer = layers_of(self._in_edge_order(names, own), own, late=self.up)
        last = max(layer.values(), default=0) + 1
        layer |= {port: last if forward else -1 for port, forward in ports.items()}
        if -1 in layer.values():
            layer = {item: number + 1 for item, number in layer.items()}
        links = [
            Link(number, *((low, high) if layer[low] < layer[high] else (high, low)), self._room(number))
            for number, (low, high) in pairs.items()
        ]
        placed: dict[str, _Placed] = {}
        for inner in sorted(boxes, key=lambda inner: layer[inner.id]):
            placed[inner.id] = self._child(inner, chain, links, placed)
        items = {name: self._item(name, placed) for name in names} | {port: Item(0.0, 0.0, 0.0) for port in ports}
        rims = (
            0.0 if False in ports.values() else _RIM,
            0.0 if True in ports.values() else _RIM,
        )
        level = arrange(items, links, layer, _GAP[self.drawing.direction], rims)
        return self._collect(box, level.positions, level.routes, (level.length, level.breadth), placed, items, ports)

    def _pairs(
        self, chain: tuple[str, ...], leaving: dict[int, bool]
    ) -> tuple[dict[int, tuple[str, str]], dict[str, bool]]:
        """The edges of this level between its items, and the ports of those that leave it."""
        pairs: dict[int, tuple[str, str]] = {}
        ports: dict[str, bool] = {}
        for number, edge in enumerate(self.drawing.edges):
            source, target = self._lift(edge.source, chain), self._lift(edge.target, chain)
            if source is not None and target is not None and source != target:
                pairs[number] = (source, target)
        for number, forward in leaving.items():
            edge = self.drawing.edges[number]
            item = self._lift(edge.source, chain) or self._lift(edge.target, chain)
            assert item is not None
            port = f"\0port {number}"
            ports[port] = forward
            pairs[number] = (item, port) if forward else (port, item)
        return pairs, ports

    def _in_edge_order(self, names: list[str], pairs: list[tuple[str, str]]) -> list[str]:
        """Items that nothing leads to first, so that circles are cut where they are entered."""
        entered = {high for _, high in pairs}
        return [n for n in names if n not in entered] + [n for n in names if n in entered]

    def _room(self, number: int) -> float:
        size = self.sizes.labels.get(number)
        return 0.0 if size is None else self._axes(size)[0] + 28.0

    def _child(self, box: Box, chain: tuple[str, ...], links: list[Link], placed: dict[str, _Placed]) -> _Placed:
        """Lays out an inner box, its ports in the order in which links come out of the boxes before it."""

        def comes_from(link: Link) -> tuple[str, float]:
            before = placed.get(link.low)
            return (link.low, before.ports[link.number]) if before else (link.low, 0.0)

        touching = [link for link in links if box.id in (link.low, link.high)]
        leaving = {link.number: link.low == box.id for link in sorted(touching, key=comes_from)}
        return self.inside(box, (*chain, box.id), leaving)

    def _item(self, name: str, placed: dict[str, _Placed]) -> Item:
        if name in placed:
            inner = placed[name]
            return Item(inner.length, inner.breadth, inner.breadth / 2, inner.ports)
        length, breadth = self._axes(self.sizes.vertices[name])
        return Item(length, breadth, middle=breadth / 2 if self.up else self.sizes.middles[name])

    def _collect(
        self,
        box: Box | None,
        positions: dict[str, Point],
        routes: dict[int, list[Point]],
        size: tuple[float, float],
        placed: dict[str, _Placed],
        items: dict[str, Item],
        ports: dict[str, bool],
    ) -> _Placed:
        """Puts what stands inside the inner boxes into one table, with the heading's room before it."""
        heading = (0.0, 0.0) if box is None else self.sizes.headings[box.id]
        before_main, before_cross = 0.0, _RIM
        length, breadth = size[0], size[1] + 2 * _RIM
        if box is not None:
            along, across = self._axes(heading)
            if self.up:
                length += along
                before_cross += max(0.0, (across + 2 * _RIM - breadth) / 2)
                breadth = max(breadth, across + 2 * _RIM)
            else:
                before_cross += across
                breadth += across
                before_main = max(0.0, (along + 2 * _RIM - length) / 2)
                length = max(length, along + 2 * _RIM)

        def moved(point: Point) -> Point:
            return point[0] + before_main, point[1] + before_cross

        result = _Placed(length, breadth)
        for name, item in items.items():
            if name in ports:
                result.ports[int(name.removeprefix("\0port "))] = positions[name][1] + before_cross
                continue
            corner = moved(positions[name])
            result.items[name] = (corner, (item.length, item.breadth))
            if name in placed:
                self._merge(result, placed[name], corner)
        for number, route in routes.items():
            points = [moved(point) for point in route]
            if f"\0port {number}" in ports:
                forward = ports[f"\0port {number}"]
                border = (length if forward else 0.0, points[-1 if forward else 0][1])
                points = [*points, border] if forward else [border, *points]
            result.routes.setdefault(number, []).append(list(dict.fromkeys(points)))
        return result

    def _merge(self, result: _Placed, inner: _Placed, corner: Point) -> None:
        for name, ((main, cross), size) in inner.items.items():
            result.items[name] = ((main + corner[0], cross + corner[1]), size)
        for number, parts in inner.routes.items():
            shifted = [[(main + corner[0], cross + corner[1]) for main, cross in part] for part in parts]
            result.routes.setdefault(number, []).extend(shifted)


def _whole_route(parts: list[list[Point]], backwards: bool) -> list[Point]:
    """The parts of an edge's way, each leading forwards, as one way from its source to its target."""
    points = [point for part in sorted(parts, key=lambda part: part[0][0]) for point in part]
    found = list(dict.fromkeys(points))
    return found[::-1] if backwards else found
