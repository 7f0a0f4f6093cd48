"""Parts that occur more than once in the plans of one or several queries, so that they are evaluated once.

Plan nodes are equal where they are written alike, but that is not enough: a window is a number in its own query, the
default graph is what FROM says, and variables may have other names. `key_of` says what a part means apart from that:

    { ?a :p ?b } in one query and { ?x :p ?y } in another, over the same window of the same stream, have one key;
    the columns of one are those of the other in the order of `columns`.

Whoever evaluates a part by its key gives every place its rows under the names of that place.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from headwater.algebra.active_graphs import Source, StaticGraph, default_source, source_inside
from headwater.algebra.nodes import Bgp, Node, OrderBy, PathMatch, Service, Unit, Values, Window
from headwater.algebra.plan import QueryPlan, WindowSource
from headwater.algebra.scope import nodes, visible
from headwater.language.expressions import Expression
from headwater.language.patterns import TriplePattern
from headwater.optimizer.dependencies import is_steady_plan, patterns
from headwater.terms.model import Variable


@dataclass(frozen=True)
class SubplanKey:
    """What a part means: equal keys have equal solutions over the same data.

    `node` has canonical variables and window numbers; `windows` are what the numbers stand for; `places` are the static
    graphs that its patterns read. `context` is whatever else decides what windows hold, for instance the settings.
    """

    node: Node
    windows: tuple[WindowSource, ...]
    places: tuple[tuple[StaticGraph, ...], ...]
    context: Hashable = None


@dataclass(frozen=True)
class Place:
    """A part of one of the plans and its active graph. `columns` are its variables in the order of the key's."""

    plan: int
    node: Node
    source: Source
    columns: tuple[Variable, ...]


@dataclass(frozen=True)
class SharedSubplan:
    """A part that occurs in several places."""

    key: SubplanKey
    places: tuple[Place, ...]


def shared_subplans(plans: Sequence[QueryPlan], contexts: Sequence[Hashable] = ()) -> tuple[SharedSubplan, ...]:
    """The largest parts that several places of the plans have in common.

    `contexts`, one for each plan, keeps apart what is evaluated under other settings. A part that occurs only within
    larger common parts is not listed again.
    """
    found: dict[SubplanKey, list[Place]] = {}
    inside: dict[SubplanKey, list[SubplanKey | None]] = {}
    for number, plan in enumerate(plans):
        context = contexts[number] if contexts else None
        for node, source, above in _candidates(plan, plan.root, default_source(plan), None, context):
            key, columns = key_of(plan, node, source, context)
            found.setdefault(key, []).append(Place(number, node, source, columns))
            inside.setdefault(key, []).append(above)
    common = {key for key, places in found.items() if len(places) > 1}
    largest = [key for key in common if not all(above in common for above in inside[key])]
    return tuple(SharedSubplan(key, tuple(places)) for key, places in found.items() if key in largest)


def _candidates(
    plan: QueryPlan, node: Node, source: Source, above: SubplanKey | None, context: Hashable
) -> Iterator[tuple[Node, Source, SubplanKey | None]]:
    """The parts that can be evaluated by themselves, each with the key of the part around it; EXISTS is not entered."""
    inner: SubplanKey | None = above
    if may_be_shared(node):
        yield node, source, above
        inner = key_of(plan, node, source, context)[0]
    within = source_inside(plan, node, source)
    for child in node.children:
        if not isinstance(node, Service):
            yield from _candidates(plan, child, within, inner, context)


def may_be_shared(node: Node) -> bool:
    """Whether one evaluation serves for several: nothing by chance, no sequence, and something to evaluate at all."""
    reads_data = any(isinstance(part, Bgp | PathMatch) for part in nodes(node))
    return reads_data and not isinstance(node, OrderBy | Unit | Values) and is_steady_plan(node)


def key_of(
    plan: QueryPlan, node: Node, source: Source, context: Hashable = None
) -> tuple[SubplanKey, tuple[Variable, ...]]:
    """What a node means in its active graph, and its variables in the order of the key's."""
    naming = _Naming()
    canonical = naming.node(node)
    assert isinstance(canonical, Node)
    places: list[tuple[StaticGraph, ...]] = []
    for _, where in patterns(plan, node, source):
        # A name in GRAPH stands in the node itself; what stands for a variable is told by the windows and graphs.
        naming.windows += [number for number in where.windows if number not in naming.windows]
        places.append(tuple(replace(g, name=None) if isinstance(g.name, Variable) else g for g in where.graphs))
    canonical = _renumbered(canonical, naming.windows)
    around = (tuple(naming.windows.index(n) for n in source.windows if n in naming.windows), source.merged)
    shown = frozenset(visible(node))
    columns = tuple(variable for variable in naming.names if variable in shown)
    sources = tuple(plan.windows[number] for number in naming.windows)
    return SubplanKey(canonical, sources, tuple(places), (around, plan.base, context)), columns


class _Naming:
    """Gives variables numbers in the order in which they are met."""

    def __init__(self) -> None:
        self.names: dict[Variable, Variable] = {}
        self.windows: list[int] = []

    def node(self, value: Any) -> Any:
        """The value with every variable in it renamed."""
        if isinstance(value, Variable):
            return self.names.setdefault(value, Variable(f"v{len(self.names)}"))
        if isinstance(value, tuple):
            return tuple(self.node(part) for part in value)
        if isinstance(value, Node | Expression | TriplePattern):
            if isinstance(value, Window):
                self.windows += [number for number in value.windows if number not in self.windows]
            changes = {f.name: self.node(getattr(value, f.name)) for f in fields(value)}
            return replace(value, **changes)
        return value


def _renumbered(node: Node, order: list[int]) -> Node:
    def change(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(change(part) for part in value)
        if isinstance(value, Node | Expression):
            changes = {f.name: change(getattr(value, f.name)) for f in fields(value)}
            renewed = replace(value, **changes)
            if isinstance(renewed, Window):
                return replace(renewed, windows=tuple(order.index(number) for number in renewed.windows))
            return renewed
        return value

    renewed = change(node)
    assert isinstance(renewed, Node)
    return renewed
