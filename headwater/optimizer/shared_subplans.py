"""Common sub-plans of one or several queries: parts that can be evaluated once.

Equal plan nodes are not enough to find them: a window is an index in its own query, the default graph depends on FROM,
and variables may have other names. `subplan_key` normalises all of these:

    { ?a :p ?b } in one query and { ?x :p ?y } in another, over the same window of the same stream, have one key;
    the columns of one are those of the other in the order of `columns`.

An evaluator of a part renames its columns for each occurrence.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from headwater.algebra.active_graphs import ActiveGraph, StaticGraph, active_graph_inside, default_active_graph
from headwater.algebra.nodes import Bgp, Node, OrderBy, PathMatch, Service, Unit, Values, Window
from headwater.algebra.plan import QueryPlan, WindowSource
from headwater.algebra.scope import nodes_of, visible_variables
from headwater.language.expressions import Expression
from headwater.language.patterns import TriplePattern
from headwater.optimizer.dependencies import is_deterministic_plan, patterns_with_graphs
from headwater.terms.model import Variable


@dataclass(frozen=True)
class SubplanKey:
    """The meaning of a part: equal keys have equal solutions over the same data.

    `node` has canonical variables and window indexes; `windows` are what the indexes stand for; `static_graphs` are
    those that its patterns read. `context` is what else decides the content of windows, for instance the settings.
    """

    node: Node
    windows: tuple[WindowSource, ...]
    static_graphs: tuple[tuple[StaticGraph, ...], ...]
    context: Hashable = None


@dataclass(frozen=True)
class Occurrence:
    """A part of one of the plans, by the index of the plan, with its active graph.

    `columns` are its variables in the order of the variables of the key.
    """

    plan: int
    node: Node
    active_graph: ActiveGraph
    columns: tuple[Variable, ...]


@dataclass(frozen=True)
class SharedSubplan:
    """A part that occurs several times."""

    key: SubplanKey
    occurrences: tuple[Occurrence, ...]


def shared_subplans(plans: Sequence[QueryPlan], contexts: Sequence[Hashable] = ()) -> tuple[SharedSubplan, ...]:
    """The largest parts that occur several times in the plans.

    `contexts`, one for each plan, keeps parts apart that run under different settings. A part that occurs only inside
    larger common parts is not listed.
    """
    occurrences: dict[SubplanKey, list[Occurrence]] = {}
    inside: dict[SubplanKey, list[SubplanKey | None]] = {}
    for number, plan in enumerate(plans):
        context = contexts[number] if contexts else None
        for node, graph, above in _candidates(plan, plan.root, default_active_graph(plan), None, context):
            key, columns = subplan_key(plan, node, graph, context)
            occurrences.setdefault(key, []).append(Occurrence(number, node, graph, columns))
            inside.setdefault(key, []).append(above)
    common = {key for key, same in occurrences.items() if len(same) > 1}
    largest = [key for key in common if not all(above in common for above in inside[key])]
    return tuple(SharedSubplan(key, tuple(same)) for key, same in occurrences.items() if key in largest)


def _candidates(
    plan: QueryPlan, node: Node, graph: ActiveGraph, above: SubplanKey | None, context: Hashable
) -> Iterator[tuple[Node, ActiveGraph, SubplanKey | None]]:
    """The parts that can be evaluated by themselves, each with the key of the part around it; EXISTS is not entered."""
    inner: SubplanKey | None = above
    if can_be_shared(node):
        yield node, graph, above
        inner = subplan_key(plan, node, graph, context)[0]
    within = active_graph_inside(plan, node, graph)
    for child in node.children:
        if not isinstance(node, Service):
            yield from _candidates(plan, child, within, inner, context)


def can_be_shared(node: Node) -> bool:
    """Whether one evaluation serves several occurrences: deterministic, unordered, and reading data."""
    reads_data = any(isinstance(part, Bgp | PathMatch) for part in nodes_of(node))
    return reads_data and not isinstance(node, OrderBy | Unit | Values) and is_deterministic_plan(node)


def subplan_key(
    plan: QueryPlan, node: Node, graph: ActiveGraph, context: Hashable = None
) -> tuple[SubplanKey, tuple[Variable, ...]]:
    """The key of a node in its active graph, and its variables in the order of the variables of the key."""
    naming = CanonicalNames()
    canonical = naming.rename(node)
    assert isinstance(canonical, Node)
    places: list[tuple[StaticGraph, ...]] = []
    for _, active_graph in patterns_with_graphs(plan, node, graph):
        # A name in GRAPH is part of the node itself; the windows and graphs are those that a variable ranges over.
        naming.windows += [number for number in active_graph.windows if number not in naming.windows]
        places.append(
            tuple(replace(g, name=None) if isinstance(g.name, Variable) else g for g in active_graph.static_graphs)
        )
    canonical = _renumber_windows(canonical, naming.windows)
    around = (tuple(naming.windows.index(n) for n in graph.windows if n in naming.windows), graph.is_merged)
    shown = frozenset(visible_variables(node))
    columns = tuple(variable for variable in naming.variables if variable in shown)
    sources = tuple(plan.windows[number] for number in naming.windows)
    return SubplanKey(canonical, sources, tuple(places), (around, plan.base, context)), columns


class CanonicalNames:
    """Renames variables to numbers in the order of their first appearance."""

    def __init__(self) -> None:
        self.variables: dict[Variable, Variable] = {}
        self.windows: list[int] = []

    def rename(self, value: Any) -> Any:
        """The value with every variable in it renamed."""
        if isinstance(value, Variable):
            return self.variables.setdefault(value, Variable(f"v{len(self.variables)}"))
        if isinstance(value, tuple):
            return tuple(self.rename(part) for part in value)
        if isinstance(value, Node | Expression | TriplePattern):
            if isinstance(value, Window):
                self.windows += [number for number in value.windows if number not in self.windows]
            changes = {f.name: self.rename(getattr(value, f.name)) for f in fields(value)}
            return replace(value, **changes)
        return value


def _renumber_windows(node: Node, order: list[int]) -> Node:
    """The node with each window index replaced by its place in `order`."""

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
