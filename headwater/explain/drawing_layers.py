"""Layered layout of one level of a drawing (the method of Sugiyama, Tagawa and Toda).

Items are put into layers such that every link leads to a later one (longest path), links that pass a layer get a place
in it, layers are ordered to cross few links (barycentres), and items are moved towards their neighbours as far as the
distances allow. All is said along two axes, so that drawings can lead upwards or to the right: `main` is the
direction in which links lead, `cross` the other one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

Point: TypeAlias = tuple[float, float]
"""A point as (main, cross)."""

_SWEEPS = 16
_ITEM_DISTANCE = 24.0
_LINE_DISTANCE = 12.0


@dataclass(frozen=True, slots=True)
class Item:
    """Something with a size. Along `cross`, links end around its `middle`, certain links at their `ports`."""

    length: float
    breadth: float
    middle: float
    ports: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Link:
    """A link between two items; `number` tells links of the same items apart, `room` is the space its label needs."""

    number: int
    low: str
    high: str
    room: float = 0.0


@dataclass(frozen=True, slots=True)
class Level:
    """A finished level: where each item begins, the way of each link from low to high, and the whole size."""

    positions: dict[str, Point]
    routes: dict[int, list[Point]]
    length: float
    breadth: float


def layers_of(items: Sequence[str], pairs: Iterable[tuple[str, str]], *, late: bool) -> dict[str, int]:
    """A layer for each item, such that pairs lead to later layers, save those that close a circle.

    With `late`, items stand as near to what they lead to as they can, otherwise as near to where they come from.
    """
    after: dict[str, list[str]] = {item: [] for item in items}
    for low, high in _without_circles(items, pairs):
        after[low].append(high)
    before: dict[str, list[str]] = {item: [] for item in items}
    for low, highs in after.items():
        for high in highs:
            before[high].append(low)
    if late:
        height = _longest(items, after)
        top = max(height.values(), default=0)
        layer = {item: top - height[item] for item in items}
    else:
        layer = _longest(items, before)
    _tighten(items, before, after, layer)
    return layer


def _without_circles(items: Sequence[str], pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The pairs, those that would close a circle turned round."""
    follows: dict[str, list[str]] = {item: [] for item in items}
    for low, high in dict.fromkeys(pairs):
        if low != high:
            follows[low].append(high)
    state: dict[str, int] = {}
    found: list[tuple[str, str]] = []
    for root in items:
        if root in state:
            continue
        state[root] = 1
        stack = [(root, iter(follows[root]))]
        while stack:
            item, rest = stack[-1]
            for following in rest:
                if state.get(following) == 1:
                    found.append((following, item))
                    continue
                found.append((item, following))
                if following not in state:
                    state[following] = 1
                    stack.append((following, iter(follows[following])))
                    break
            else:
                state[item] = 2
                stack.pop()
    return list(dict.fromkeys(found))


def _longest(items: Sequence[str], next_of: dict[str, list[str]]) -> dict[str, int]:
    """The number of steps of the longest way from each item along `next_of`."""
    lengths: dict[str, int] = {}
    for root in items:
        stack = [root]
        while stack:
            item = stack[-1]
            open_items = [n for n in next_of[item] if n not in lengths]
            if open_items:
                stack.extend(open_items)
                continue
            lengths[item] = max((lengths[n] + 1 for n in next_of[item]), default=0)
            stack.pop()
    return lengths


def _tighten(
    items: Sequence[str], before: dict[str, list[str]], after: dict[str, list[str]], layer: dict[str, int]
) -> None:
    """Moves each item to the side on which it has more links, which shortens them."""
    for _ in range(4):
        for item in items:
            if len(after[item]) > len(before[item]):
                layer[item] = min(layer[high] for high in after[item]) - 1
            elif len(after[item]) < len(before[item]):
                layer[item] = max(layer[low] for low in before[item]) + 1
    first = min(layer.values(), default=0)
    for item in layer:
        layer[item] -= first


class _Arranger:
    """Orders and places the items of one level; passing links are items named by their link and layer."""

    def __init__(self, items: dict[str, Item], links: Sequence[Link], layer: dict[str, int]) -> None:
        self.items = dict(items)
        self.links = links
        count = max(layer.values(), default=-1) + 1
        self.rows: list[list[str]] = [[] for _ in range(count)]
        for item in items:
            self.rows[layer[item]].append(item)
        self.chains: dict[int, list[str]] = {}
        self.above: dict[str, list[tuple[str, int]]] = {}
        self.below: dict[str, list[tuple[str, int]]] = {}
        for link in links:
            chain = [link.low]
            for between in range(layer[link.low] + 1, layer[link.high]):
                name = f"\0{link.number}/{between}"
                self.items[name] = Item(0.0, 0.0, 0.0)
                self.rows[between].append(name)
                chain.append(name)
            chain.append(link.high)
            self.chains[link.number] = chain
            for low, high in pairwise(chain):
                self.above.setdefault(low, []).append((high, link.number))
                self.below.setdefault(high, []).append((low, link.number))
        self.cross: dict[str, float] = {}

    def port(self, item: str, number: int) -> float:
        """Where on an item, along `cross`, a link ends."""
        known = self.items[item]
        return known.ports.get(number, known.middle)

    def order(self) -> None:
        """Orders each layer by the barycentres of its neighbours, and keeps the best order met."""
        best, fewest = [list(row) for row in self.rows], self._crossings()
        for sweep in range(_SWEEPS):
            if fewest == 0:
                break
            forward = sweep % 2 == 0
            neighbours = self.below if forward else self.above
            rows = self.rows if forward else self.rows[::-1]
            for previous, row in pairwise(rows):
                self._sort(row, previous, neighbours)
            crossings = self._crossings()
            if crossings < fewest:
                best, fewest = [list(row) for row in self.rows], crossings
        self.rows = best

    def _rank(self, row: list[str]) -> dict[str, int]:
        return {item: place for place, item in enumerate(row)}

    def _end(self, rank: dict[str, int], item: str, number: int) -> float:
        breadth = self.items[item].breadth
        return rank[item] + (0.8 * self.port(item, number) / breadth if breadth else 0.4)

    def _sort(self, row: list[str], previous: list[str], neighbours: dict[str, list[tuple[str, int]]]) -> None:
        rank, own = self._rank(previous), self._rank(row)
        centre = {}
        for item in row:
            ends = [self._end(rank, other, number) for other, number in neighbours.get(item, [])]
            centre[item] = sum(ends) / len(ends) if ends else own[item] * len(previous) / max(len(row), 1)
        row.sort(key=lambda item: (centre[item], own[item]))

    def _crossings(self) -> int:
        total = 0
        for low_row, high_row in pairwise(self.rows):
            low, high = self._rank(low_row), self._rank(high_row)
            ends = sorted(
                (self._end(low, item, number), self._end(high, other, number))
                for item in low_row
                for other, number in self.above.get(item, [])
            )
            total += sum(
                1
                for place, (start, end) in enumerate(ends)
                for other_start, other_end in ends[:place]
                if other_start < start and other_end > end
            )
        return total

    def place(self) -> None:
        """Gives each item its place along `cross`."""
        for row in self.rows:
            place = 0.0
            for item, distance in zip(row, self._distances(row), strict=True):
                place += distance
                self.cross[item] = place
        for sweep in range(_SWEEPS):
            forward = sweep % 2 == 0
            for row in self.rows if forward else self.rows[::-1]:
                self._settle(row, both=sweep >= _SWEEPS // 2, below=forward)
        # Last of all each item follows what leads to it, which makes chains straight.
        for row in self.rows:
            self._settle(row, both=False, below=True)
        lowest = min(self.cross.values(), default=0.0)
        for item in self.cross:
            self.cross[item] -= lowest

    def _distances(self, row: list[str]) -> list[float]:
        """How far each item must begin after the one before it."""
        found = [0.0]
        for item, following in pairwise(row):
            line = self.items[item].breadth == 0 or self.items[following].breadth == 0
            found.append(self.items[item].breadth + (_LINE_DISTANCE if line else _ITEM_DISTANCE))
        return found[: len(row)]

    def _settle(self, row: list[str], *, both: bool, below: bool) -> None:
        wishes, weights = [], []
        for item in row:
            near = (self.below if below else self.above).get(item, [])
            if both or not near:
                near = self.below.get(item, []) + self.above.get(item, [])
            ends = [self.cross[other] + self.port(other, number) - self.port(item, number) for other, number in near]
            wishes.append(sum(ends) / len(ends) if ends else self.cross[item])
            # A link that passes is worth a straight line more than an item its place.
            weights.append((len(ends) or 0.1) * (4.0 if self.items[item].breadth == 0 else 1.0))
        for item, place in zip(row, spread(wishes, weights, self._distances(row)), strict=True):
            self.cross[item] = place


def spread(wishes: list[float], weights: list[float], distances: list[float]) -> list[float]:
    """The places nearest to the wishes (least squares) that keep the distances, by pooling neighbours that collide."""
    offsets: list[float] = []
    for distance in distances:
        offsets.append((offsets[-1] if offsets else 0.0) + distance)
    pools: list[tuple[float, float, int]] = []
    for wish, weight, offset in zip(wishes, weights, offsets, strict=True):
        pool = (wish - offset, weight, 1)
        while pools and pools[-1][0] > pool[0]:
            value, pooled, size = pools.pop()
            total = pooled + pool[1]
            pool = ((value * pooled + pool[0] * pool[1]) / total, total, size + pool[2])
        pools.append(pool)
    values = [value for value, _, size in pools for _ in range(size)]
    return [value + offset for value, offset in zip(values, offsets, strict=True)]


def arrange(
    items: dict[str, Item],
    links: Sequence[Link],
    layer: dict[str, int],
    gap: float,
    rims: tuple[float, float],
) -> Level:
    """Places the items of one level. `rims` is the room before the first layer and after the last."""
    arranger = _Arranger(items, links, layer)
    arranger.order()
    arranger.place()
    starts, ends = _spans(arranger, gap, rims)
    positions = {}
    for number, row in enumerate(arranger.rows):
        for item in row:
            if item in items:
                middle = (starts[number] + ends[number] - items[item].length) / 2
                positions[item] = (middle, arranger.cross[item])
    docks = _docks(arranger)
    routes = {link.number: _route(arranger, link, layer, docks, positions, (starts, ends)) for link in links}
    breadth = max((arranger.cross[i] + arranger.items[i].breadth for i in arranger.items), default=0.0)
    return Level(positions, routes, (ends[-1] if ends else rims[0]) + rims[1], breadth)


def _spans(arranger: _Arranger, gap: float, rims: tuple[float, float]) -> tuple[list[float], list[float]]:
    """Where each layer begins and ends along `main`."""
    row_of = {item: number for number, row in enumerate(arranger.rows) for item in row}
    room = [gap] * len(arranger.rows)
    for link in arranger.links:
        room[row_of[link.low]] = max(room[row_of[link.low]], link.room)
    starts, ends, place = [], [], rims[0]
    for number, row in enumerate(arranger.rows):
        starts.append(place)
        ends.append(place + max((arranger.items[item].length for item in row), default=0.0))
        place = ends[-1] + room[number]
    return starts, ends


def _docks(arranger: _Arranger) -> dict[tuple[str, int], float]:
    """Where along `cross` each link touches its two items: side by side, in the order of where they lead."""
    found: dict[tuple[str, int], float] = {}
    for neighbours in (arranger.above, arranger.below):
        for item, ends in neighbours.items():
            known = arranger.items[item]
            free = [(arranger.cross[o] + arranger.port(o, n), n) for o, n in ends if n not in known.ports]
            step = min(14.0, 1.4 * known.middle / max(len(free) - 1, 1))
            for place, (_, number) in enumerate(sorted(free)):
                shift = known.middle + (place - (len(free) - 1) / 2) * step
                found[item, number] = arranger.cross[item] + shift
            for _, number in ends:
                if number in known.ports:
                    found[item, number] = arranger.cross[item] + known.ports[number]
    return found


def _route(
    arranger: _Arranger,
    link: Link,
    layer: dict[str, int],
    docks: dict[tuple[str, int], float],
    positions: dict[str, Point],
    spans: tuple[list[float], list[float]],
) -> list[Point]:
    starts, ends = spans
    low, high = layer[link.low], layer[link.high]
    out, into = docks[link.low, link.number], docks[link.high, link.number]
    points = [(positions[link.low][0] + arranger.items[link.low].length, out), (ends[low], out)]
    for between, name in enumerate(arranger.chains[link.number][1:-1], start=low + 1):
        cross = arranger.cross[name]
        points += [(starts[between], cross), (ends[between], cross)]
    points += [(starts[high], into), (positions[link.high][0], into)]
    return list(dict.fromkeys(points))
