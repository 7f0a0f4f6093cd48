"""The definition of provenance: for each solution of a plan at a tick, the triples in its derivations.

Slow and obvious: from the leaves up, every mapping of every node with the triples behind it, by nested loops.

| node | the triples behind a mapping |
|---|---|
| triple pattern | the triple that it matched |
| path | the triples on all walks between the two ends |
| join | those of both sides, of all pairs that give the mapping |
| OPTIONAL, MINUS, NOT EXISTS | those of what is there; what is missing has none |
| FILTER and BIND | those of the inner mapping; with EXISTS, also those of all that it found |
| GROUP BY, AGGREGATE | those of all members of the group |
| GRAPH in a window | those of the pattern; of a pattern that needs none, all of the graph |
| UNION, DISTINCT, projections | those of all mappings that become this one |

A triple stands for all its copies in the windows of its graph, and for the static one. So a mapping that occurs twice
in a bag has one provenance. Without LIMIT and without groups over what is missing, a solution stays if all else is
removed; in a plan without OPTIONAL, MINUS, NOT EXISTS and groups it goes if all of it is removed.
"""

from __future__ import annotations

from collections.abc import Iterable

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
from headwater.algebra.scope import visible_variables
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
from headwater.terms.model import NamedNode, Variable

Leaves = frozenset[Leaf]
Annotated = dict[Solution, Leaves]
"""Solutions with the triples behind them."""
NONE: Leaves = frozenset()


class Provenance:
    """The triples behind the solutions of a plan at one tick."""

    def __init__(self, tick: TickSolutions) -> None:
        self._tick = tick
        self._known: dict[tuple[Node, NamedNode], Annotated] = {}

    def of_plan(self) -> Annotated:
        """Each solution of the plan with the triples behind it."""
        return self.of(self._tick.plan.root, DEFAULT)

    def of(self, node: Node, graph: NamedNode) -> Annotated:
        """Each solution of a node, with `graph` as the active one."""
        if (node, graph) not in self._known:
            self._known[node, graph] = self._derive(node, graph)
        return self._known[node, graph]

    def _derive(self, node: Node, graph: NamedNode) -> Annotated:
        solutions = self._tick.solutions(node, graph)
        match node:
            case Unit() | Values():
                return dict.fromkeys(solutions, NONE)
            case Bgp(triples):
                return {one: frozenset(Leaf(graph, instantiate(t, one)) for t in triples) for one in solutions}
            case PathMatch(start, path, end):
                walks = PathWalks(self._tick.triples(graph))
                return {
                    one: frozenset(
                        Leaf(graph, triple) for triple in walks.between(path, value_of(start, one), value_of(end, one))
                    )
                    for one in solutions
                }
            case Join(left, right):
                return _join(self.of(left, graph), self.of(right, graph))
            case LeftJoin(left, right, condition):
                return self._left_join(left, right, condition, graph)
            case Union(left, right):
                return _collect([*self.of(left, graph).items(), *self.of(right, graph).items()])
            case Minus(left, _):
                return _select(self.of(left, graph), solutions)
            case Filter(inner, condition):
                rows = _select(self.of(inner, graph), solutions)
                return {one: leaves | self._found(condition, one, graph) for one, leaves in rows.items()}
            case Extend(inner, variable, expression):
                rows = self.of(inner, graph)
                return {
                    one: rows.get(without(one, variable), NONE) | self._found(expression, one, graph)
                    for one in solutions
                }
            case Distinct(inner) | Reduced(inner) | OrderBy(inner, _) | Slice(inner, _, _):
                return _select(self.of(inner, graph), solutions)
            case Project(inner, variables):
                return _collect((restrict(one, variables), leaves) for one, leaves in self.of(inner, graph).items())
            case Group(_, keys, _):
                members = self.of(with_key_columns(node), graph)
                return {one: _of_group(members, one, [variable for variable, _ in keys]) for one in solutions}
            case Aggregation(inner, clauses, _):
                return {
                    one: self.of(inner, graph)
                    .get(restrict(one, visible_variables(inner)), NONE)
                    .union(*(_of_group(self.of(inner, graph), one, group) for _, _, group in clauses))
                    for one in solutions
                }
            case WindowGraph(name, inner):
                return self._in_graphs_of_window(name, inner, graph)
            case Graph(Variable() as name, inner):
                return self._in_each(name, inner, [(one, one) for one in self._graphs()])
            case Graph(NamedNode() as name, inner):
                return self.of(inner, name)
            case Window(windows, name, inner):
                sources = self._tick.plan.windows
                places = [(NamedNode(sources[n].label), window_graph(n, sources[n])) for n in windows]
                return self.of(inner, places[0][1]) if name is None else self._in_each(name, inner, places)
        raise TypeError(f"no provenance of {type(node).__name__}")

    def _graphs(self) -> list[NamedNode]:
        streams = (source.graph for source in self._tick.plan.windows if source.graph is not None)
        return list(dict.fromkeys([*self._tick.dataset.named, *streams]))

    def _in_each(self, name: Variable, inner: Node, places: Iterable[tuple[NamedNode, NamedNode]]) -> Annotated:
        """The solutions in each of some graphs, with the name of the graph."""
        return _collect(
            (named, leaves)
            for label, graph in places
            for one, leaves in self.of(inner, graph).items()
            if (named := merge(one, frozenset({(name, label)}))) is not None
        )

    def _in_graphs_of_window(self, name: GraphName, inner: Node, window: NamedNode) -> Annotated:
        found: list[tuple[Solution, Leaves]] = []
        for label, graph in self._tick.graphs_in_window(window, name).items():
            own = self.of(inner, graph)
            if not needs_triple(inner):
                # That the graph is there is what the solution rests on.
                all_of_it = frozenset(Leaf(graph, triple) for triple in self._tick.triples(graph))
                own = {one: leaves | all_of_it for one, leaves in own.items()}
            for one, leaves in own.items():
                named = merge(one, frozenset({(name, label)})) if isinstance(name, Variable) else one
                found += [] if named is None else [(named, leaves)]
        return _collect(found)

    def _left_join(self, left: Node, right: Node, condition: Expression | None, graph: NamedNode) -> Annotated:
        both: Node = Join(left, right)
        allowed = self._tick.solutions(both if condition is None else Filter(both, condition), graph)
        found: list[tuple[Solution, Leaves]] = []
        for one, leaves in self.of(left, graph).items():
            partners = [
                (joined, leaves | others)
                for other, others in self.of(right, graph).items()
                if (joined := merge(one, other)) is not None and joined in allowed
            ]
            found += partners or [(one, leaves)]
        if condition is not None:
            found = [(one, leaves | self._found(condition, one, graph)) for one, leaves in found]
        return _collect(found)

    def _found(self, expression: Expression, solution: Solution, graph: NamedNode) -> Leaves:
        """The triples behind what the EXISTS of an expression found for a solution."""
        return NONE.union(
            *(
                leaves
                for pattern in correlated_patterns(expression, solution)
                for one, leaves in self.of(pattern, graph).items()
                if merge(one, solution) is not None
            )
        )


def _collect(found: Iterable[tuple[Solution, Leaves]]) -> Annotated:
    """Equal solutions as one, with the triples behind all of them."""
    collected: Annotated = {}
    for one, leaves in found:
        collected[one] = collected.get(one, NONE) | leaves
    return collected


def _join(left: Annotated, right: Annotated) -> Annotated:
    return _collect(
        (joined, leaves | others)
        for one, leaves in left.items()
        for other, others in right.items()
        if (joined := merge(one, other)) is not None
    )


def _select(rows: Annotated, solutions: Iterable[Solution]) -> Annotated:
    return {one: rows.get(one, NONE) for one in solutions}


def _of_group(members: Annotated, solution: Solution, keys: Iterable[Variable]) -> Leaves:
    """The triples behind all members of the group to which a solution belongs."""
    names = frozenset(keys)
    group = restrict(solution, names)
    return NONE.union(*(leaves for one, leaves in members.items() if restrict(one, names) == group))
