"""The triples behind some solutions, found from the top down: only what leads to these solutions is looked at.

It gives what `provenance` defines. For each node the solutions that take part are found by an index over those of the
node below, so the work follows the solutions that are asked for, and not all pairs of a join.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from headwater.algebra.named_graphs import needs_triple
from headwater.algebra.nodes import (
    Aggregation,
    Bgp,
    Distinct,
    Extend,
    Filter,
    Graph,
    GraphName,
    Group,
    Join,
    LeftJoin,
    Minus,
    Node,
    OrderBy,
    PathMatch,
    Project,
    Reduced,
    Slice,
    Union,
    Unit,
    Values,
    Window,
    WindowGraph,
)
from headwater.algebra.scope import certain_variables, visible_variables
from headwater.algebra.window_graphs import DEFAULT, window_graph
from headwater.language.expressions import Expression
from headwater.reference.mappings import (
    correlated_patterns,
    instantiate,
    merge,
    restrict,
    value_of,
    with_key_columns,
    without,
)
from headwater.reference.path_walks import PathWalks
from headwater.reference.tick_solutions import Leaf, Solution, TickSolutions
from headwater.terms.model import NamedNode, Term, Variable

Solutions = Collection[Solution]


class Derivations:
    """Finds the triples behind solutions of a plan at one tick."""

    def __init__(self, tick: TickSolutions) -> None:
        self._tick = tick
        self._indexes: dict[tuple[Node, NamedNode, frozenset[Variable]], dict[Solution, list[Solution]]] = {}
        self._walks: dict[NamedNode, PathWalks] = {}

    def find(self, solutions: Solutions) -> frozenset[Leaf]:
        """The triples behind some solutions of the plan."""
        return frozenset(self._find(self._tick.plan.root, DEFAULT, solutions))

    def _find(self, node: Node, graph: NamedNode, wanted: Solutions) -> Iterator[Leaf]:
        if not wanted:
            return
        match node:
            case Unit() | Values():
                return
            case Bgp(triples):
                yield from (Leaf(graph, instantiate(triple, one)) for one in wanted for triple in triples)
            case PathMatch(start, path, end):
                if graph not in self._walks:
                    self._walks[graph] = PathWalks(self._tick.triples(graph))
                for one in wanted:
                    triples_between = self._walks[graph].between(path, value_of(start, one), value_of(end, one))
                    yield from (Leaf(graph, triple) for triple in triples_between)
            case Join(left, right):
                yield from self._find_pairs(left, right, graph, wanted)
            case LeftJoin(left, right, condition):
                yield from self._find_optional(node, graph, wanted)
                if condition is not None:
                    yield from self._find_existing(condition, graph, wanted)
            case Union(left, right):
                for side in (left, right):
                    yield from self._find(side, graph, self._tick.solutions(side, graph).intersection(wanted))
            case Minus(inner, _) | Distinct(inner) | Reduced(inner) | OrderBy(inner, _) | Slice(inner, _, _):
                yield from self._find(inner, graph, wanted)
            case Filter(inner, condition):
                yield from self._find(inner, graph, wanted)
                yield from self._find_existing(condition, graph, wanted)
            case Extend(inner, variable, expression):
                yield from self._find(inner, graph, {without(one, variable) for one in wanted})
                yield from self._find_existing(expression, graph, wanted)
            case Project(inner, variables):
                yield from self._find_groups(inner, graph, variables, wanted)
            case Group(_, keys, _):
                yield from self._find_groups(with_key_columns(node), graph, [v for v, _ in keys], wanted)
            case Aggregation(inner, clauses, _):
                yield from self._find(inner, graph, {restrict(one, visible_variables(inner)) for one in wanted})
                for _, _, group in clauses:
                    yield from self._find_groups(inner, graph, group, wanted)
            case WindowGraph(name, inner):
                yield from self._find_in_graphs_of_window(name, inner, graph, wanted)
            case Graph() | Window():
                yield from self._find_placed(node, wanted)
            case _:
                raise TypeError(f"no derivations of {type(node).__name__}")

    def _find_placed(self, node: Graph | Window, wanted: Solutions) -> Iterator[Leaf]:
        """The triples behind solutions in a graph or window, or in those that a variable names."""
        sources, name = self._tick.plan.windows, node.name
        if isinstance(node, Window):
            places = {NamedNode(sources[n].label): window_graph(n, sources[n]) for n in node.windows}
        else:
            names = (dict(one).get(name) for one in wanted) if isinstance(name, Variable) else (name,)
            places = {label: label for label in names if isinstance(label, NamedNode)}
        for label, graph in places.items():
            yield from self._find(node.inner, graph, self._solutions_inside(node.inner, graph, name, label, wanted))

    def _solutions_inside(
        self, inner: Node, graph: NamedNode, name: GraphName | None, label: Term, wanted: Solutions
    ) -> Solutions:
        """The solutions in a graph that is called `label`, of those with its name where a variable has that."""
        if not isinstance(name, Variable):
            return wanted
        here = [one for one in wanted if dict(one).get(name) == label]
        inside = {part for one in here for part in (one, without(one, name))}
        return self._tick.solutions(inner, graph).intersection(inside)

    def _find_in_graphs_of_window(
        self, name: GraphName, inner: Node, window: NamedNode, wanted: Solutions
    ) -> Iterator[Leaf]:
        """The triples behind solutions in one graph of a window, or in each; all of it where the pattern needs none."""
        for label, graph in self._tick.graphs_in_window(window, name).items():
            inside = self._solutions_inside(inner, graph, name, label, wanted)
            yield from self._find(inner, graph, inside)
            if inside and not needs_triple(inner):
                yield from (Leaf(graph, triple) for triple in self._tick.triples(graph))

    def _find_groups(
        self, inner: Node, graph: NamedNode, variables: Iterable[Variable], wanted: Solutions
    ) -> Iterator[Leaf]:
        """The triples behind all solutions of a node that agree with one that is wanted on some variables."""
        names = frozenset(variables)
        index = self._index(inner, graph, names)
        members = {one for key in {restrict(one, names) for one in wanted} for one in index.get(key, ())}
        yield from self._find(inner, graph, members)

    def _index(self, node: Node, graph: NamedNode, names: frozenset[Variable]) -> dict[Solution, list[Solution]]:
        """The solutions of a node by their values of some variables."""
        if (node, graph, names) not in self._indexes:
            index = self._indexes[node, graph, names] = {}
            for one in self._tick.solutions(node, graph):
                index.setdefault(restrict(one, names), []).append(one)
        return self._indexes[node, graph, names]

    def _find_pairs(self, left: Node, right: Node, graph: NamedNode, wanted: Solutions) -> Iterator[Leaf]:
        """The triples behind all pairs of solutions that give a wanted one."""
        lefts: set[Solution] = set()
        rights: set[Solution] = set()
        keys = certain_variables(left), certain_variables(right)
        first, second = self._index(left, graph, keys[0]), self._index(right, graph, keys[1])
        for one in wanted:
            mine = [part for part in first.get(restrict(one, keys[0]), ()) if part <= one]
            yours = [part for part in second.get(restrict(one, keys[1]), ()) if part <= one]
            for part in mine:
                partners = [other for other in yours if part | other == one]
                if partners:
                    lefts.add(part)
                    rights.update(partners)
        yield from self._find(left, graph, lefts)
        yield from self._find(right, graph, rights)

    def _find_optional(self, node: LeftJoin, graph: NamedNode, wanted: Solutions) -> Iterator[Leaf]:
        both: Node = Join(node.left, node.right)
        allowed = both if node.condition is None else Filter(both, node.condition)
        joined = self._tick.solutions(allowed, graph).intersection(wanted)
        yield from self._find_pairs(node.left, node.right, graph, joined)
        # A solution without a partner; one that has partners gives them, and is not in the result by itself.
        yield from self._find(node.left, graph, [one for one in wanted if one not in joined])

    def _find_existing(self, expression: Expression, graph: NamedNode, wanted: Solutions) -> Iterator[Leaf]:
        """The triples behind what the EXISTS of an expression found for some solutions."""
        for one in wanted:
            for pattern in correlated_patterns(expression, one):
                found = [other for other in self._tick.solutions(pattern, graph) if merge(other, one) is not None]
                yield from self._find(pattern, graph, found)
