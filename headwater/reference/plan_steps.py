"""How many solutions each step of a plan has at a tick, and at which step they end.

12  ?sensor :value ?v
 0  filter: ?v > 80           here they end
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from headwater.algebra.nodes import Bgp, Graph, GraphName, Group, Minus, Node, Union, Unit, Values, Window, WindowGraph
from headwater.algebra.scope import visible_variables
from headwater.algebra.window_graphs import DEFAULT, window_graph
from headwater.explain.notation import Notation
from headwater.explain.step_text import step_text
from headwater.reference.tick_solutions import TickSolutions
from headwater.terms.model import NamedNode, Variable


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step of a plan: how deep it stands in the plan, what it does, how many solutions it has.

    With `is_end` the steps below it have solutions, and it has none.
    """

    depth: int
    text: str
    solutions: int
    is_end: bool = False

    def to_json(self) -> Mapping[str, object]:
        """Its fields, `is_end` only where it is true."""
        found = {"depth": self.depth, "step": self.text, "solutions": self.solutions}
        return {**found, "end": True} if self.is_end else found


def list_steps(tick: TickSolutions) -> tuple[PlanStep, ...]:
    """The steps of a plan at a tick, each behind those that it reads."""
    return tuple(_steps(_Place(tick, DEFAULT), tick.plan.root, Notation.of(tick.plan), 0))


@dataclass(frozen=True)
class _Place:
    """Where steps are counted: in a graph, or with `names` in the graphs of a window that GRAPH names there."""

    tick: TickSolutions
    graph: NamedNode
    names: tuple[GraphName, ...] = ()

    def count(self, node: Node) -> int:
        """The solutions of a step, in all those graphs together."""
        for name in reversed(self.names):
            node = WindowGraph(name, node)
        return self.tick.count(node, self.graph)


def _steps(place: _Place, node: Node, notation: Notation, depth: int) -> Iterator[PlanStep]:
    if isinstance(node, Unit):
        return
    below: list[PlanStep] = []
    if isinstance(node, Graph | Window):
        for graph in _graphs(place.tick, node):
            below += _steps(_Place(place.tick, graph), node.inner, notation, depth + 1)
    elif isinstance(node, WindowGraph):
        below += _steps(replace(place, names=(*place.names, node.name)), node.inner, notation, depth + 1)
    elif isinstance(node, Bgp) and len(node.triples) > 1:
        below += _pattern_steps(place, node, notation, depth + 1)
    else:
        for child in node.children:
            below += _steps(place, child, notation, depth + 1)
    yield from below
    count = place.count(node)
    inputs = [one.solutions for one in below if one.depth == depth + 1]
    needed = inputs[:1] if isinstance(node, Minus) else inputs
    has_inputs = any(needed) if isinstance(node, Union) else all(needed)
    is_leaf = isinstance(node, Bgp | Values) or not node.children
    ends = not count and (is_leaf or has_inputs) and not any(one.is_end and one.depth == depth + 1 for one in below)
    text = notation.triple(node.triples[0]) if isinstance(node, Bgp) and len(node.triples) == 1 else None
    yield PlanStep(depth, text or step_text(node, notation), count, ends)


def _pattern_steps(place: _Place, node: Bgp, notation: Notation, depth: int) -> Iterator[PlanStep]:
    """The patterns of a graph pattern, each by itself, and then joined one after the other until nothing is left."""
    counts = [place.count(Bgp((triple,))) for triple in node.triples]
    for triple, count in zip(node.triples, counts, strict=True):
        yield PlanStep(depth, notation.triple(triple), count, is_end=not count)
    if not all(counts):
        return
    for size in range(2, len(node.triples)):
        count = place.count(Bgp(node.triples[:size]))
        yield PlanStep(depth, f"the first {size} of them together", count, is_end=not count)
        if not count:
            return


def _graphs(tick: TickSolutions, node: Graph | Window) -> list[NamedNode]:
    """The graphs in which the pattern of GRAPH or WINDOW is matched."""
    sources = tick.plan.windows
    if isinstance(node, Window):
        return [window_graph(number, sources[number]) for number in node.windows]
    if isinstance(node.name, Variable):
        streams = (source.graph for source in sources if source.graph is not None)
        return list(dict.fromkeys([*tick.dataset.named, *streams]))
    return [node.name]


def find_end(steps: tuple[PlanStep, ...]) -> PlanStep | None:
    """The first step at which there is nothing left, if the plan has no solution."""
    if not steps or steps[-1].solutions:
        return None
    return next((step for step in steps if step.is_end), None)


def has_empty_group(node: Node) -> bool:
    """Whether a plan has a solution even where nothing matches: aggregates without GROUP BY."""
    if isinstance(node, Group):
        return not node.keys
    return len(node.children) == 1 and bool(visible_variables(node)) and has_empty_group(node.children[0])
