"""By which variable a plan can be partitioned into independent shards (CS10).

A plan is *keyed* by a variable if every triple pattern over a stream contains it, at a place that the predicate
determines. Then all stream triples of a solution have the same key, and a shard with all triples of its keys finds
exactly the solutions of those keys. The solutions of the plan are the bag union of the solutions of the shards. Static
data is in every shard, so a static part may be joined to a keyed part, but not stand alone.

    ?o a :Rainfall ; :procedure ?sensor ; :value ?v           keyed by ?o: all by the subject
    … GROUP BY ?o                                             keyed by ?o
    … GROUP BY ?sensor                                        not keyed by ?o, since a sensor has many observations

A plan is *spreadable* if each solution comes from one stream triple. Then any division of the triples will do, as long
as equal triples, which a window holds once, stay together.

    ?sensor :value ?v                                         spreadable, even if one sensor has most of the triples
    ?sensor :value ?v . ?sensor :unit ?u                      not, unless the units are static data
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from headwater.algebra.nodes import (
    Aggregation,
    Bgp,
    Distinct,
    ExistsPlan,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Minus,
    Node,
    PathMatch,
    Project,
    Reduced,
    Union,
    Window,
    WindowGraph,
)
from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.algebra.scope import expressions_of, nodes_of, sub_expressions, visible_variables
from headwater.language.patterns import TriplePattern
from headwater.language.stream_clauses import StreamOperator
from headwater.terms.model import BlankNode, NamedNode, Variable

Routes = Mapping[str, Mapping[NamedNode, int]]
"""For each stream and predicate the place of the key in a triple: 0 for the subject, 2 for the object, or spread."""

SPREAD_SUBJECT, SPREAD_OBJECT = 3, 5
"""Triples are divided by subject and object together, all of them or, where keys are named as large, those whose
subject, or object, is such a key; the others by that term."""
SPREAD = {SPREAD_SUBJECT: 0, SPREAD_OBJECT: 2}
"""The place of the term by which triples are divided that are not spread."""


class _NotPartitionable(Exception):
    """Why a plan is not keyed by a variable."""


@dataclass(frozen=True)
class Partitioning:
    """A variable by which a plan is keyed, and its places in the triples; None where the triples are spread evenly.

    With `has_partial_groups` only the input of the outermost grouping is keyed: shards then give partial groups.
    """

    variable: Variable | None
    routes: Routes
    has_partial_groups: bool = False


@dataclass(frozen=True)
class OneShard:
    """Why a plan cannot be partitioned."""

    reason: str


def partitionings_of(plan: QueryPlan, operator: StreamOperator) -> list[Partitioning] | OneShard:
    """The possible partitionings of a plan, or why there is none."""
    if plan.kind is QueryKind.DESCRIBE:
        return OneShard("DESCRIBE looks at everything")
    if any(isinstance(term, BlankNode) for one in plan.template for term in (one.subject, one.predicate, one.object)):
        return OneShard("the template makes new blank nodes, which are numbered by row")
    partitionings: list[Partitioning] = []
    reasons: list[str] = []
    for variable in _candidates(plan):
        try:
            routes = _KeyCheck(plan, variable).find_routes(operator)
        except _NotPartitionable as why:
            reasons.append(str(why))
            continue
        partitionings.append(Partitioning(variable, routes))
    return partitionings or OneShard(reasons[0] if reasons else "no triple pattern over a stream has a variable")


def spread_partitioning_of(plan: QueryPlan, group_keys: Collection[Variable] = ()) -> Partitioning | OneShard:
    """The partitioning that spreads the triples evenly, or why there is none; groups are made by `group_keys`."""
    try:
        check = _SpreadCheck(plan, Variable("hw_whole_triple"), group_keys)
        return Partitioning(None, check.find_routes(StreamOperator.RSTREAM))
    except _NotPartitionable as why:
        return OneShard(str(why))


def find_joint_routes(choices: Sequence[Sequence[Partitioning]]) -> tuple[list[Partitioning], Routes] | None:
    """One partitioning per plan such that all of them agree on the place of the key for each predicate.

    Plan by plan, the first one that agrees with those chosen before is taken.
    """
    chosen: list[Partitioning] = []
    joint: dict[str, dict[NamedNode, int]] = {}
    for ways in choices:
        fitting = next((one for one in ways if _fits(joint, one.routes)), None)
        if fitting is None:
            return None
        chosen.append(fitting)
        for stream, places in fitting.routes.items():
            joint.setdefault(stream, {}).update(places)
    return chosen, joint


def _fits(routes: Routes, more: Routes) -> bool:
    return all(
        routes.get(stream, {}).get(predicate, place) == place
        for stream, places in more.items()
        for predicate, place in places.items()
    )


def _candidates(plan: QueryPlan) -> list[Variable]:
    """The variables of triple patterns, those that occur most often first."""
    counts: dict[Variable, int] = {}
    for node in nodes_of(plan.root):
        if isinstance(node, Bgp):
            for triple in node.triples:
                for term in dict.fromkeys((triple.subject, triple.object)):
                    if isinstance(term, Variable):
                        counts[term] = counts.get(term, 0) + 1
    return sorted(counts, key=lambda variable: -counts[variable])


class _KeyCheck:
    """Checks whether a plan is keyed by one variable, and collects its places."""

    def __init__(self, plan: QueryPlan, key: Variable) -> None:
        self._plan = plan
        self._key = key
        self._routes: dict[str, dict[NamedNode, int]] = {}
        self._default = [w.stream.value for w in plan.windows if w.in_default_graph]
        self._graphs: dict[NamedNode, list[str]] = {}
        for window in plan.windows:
            if window.graph is not None:
                self._graphs.setdefault(window.graph, []).append(window.stream.value)

    def find_routes(self, operator: StreamOperator) -> Routes:
        root = self._plan.root
        if self._plan.reads_graph_times:
            raise _NotPartitionable("the times of graphs would be repeated in every shard")
        if not self._is_keyed(_below_projection(root), self._default):
            raise _NotPartitionable("no triple pattern over a stream")
        if operator is not StreamOperator.RSTREAM and self._key not in visible_variables(root):
            raise _NotPartitionable(f"changes are compared as a whole, and ?{self._key.value} is not in the answer")
        return self._routes

    def _is_keyed(self, node: Node, streams: list[str]) -> bool:
        """True if the node is keyed, False if it reads no stream; raises `_NotPartitionable` otherwise."""
        match node:
            case Bgp(triples):
                return self._is_pattern_keyed(triples, streams)
            case PathMatch() if streams:
                raise _NotPartitionable("a property path may go from key to key")
            case Join(left, right):
                return self._is_keyed(left, streams) | self._is_keyed(right, streams)
            case LeftJoin(left, right, _) | Minus(left, right):
                self._check_exists(node, streams)
                return self._is_left_keyed(left, right, streams)
            case Filter(inner, _) | Extend(inner, _, _):
                is_keyed = self._is_keyed(inner, streams)
                self._check_exists(node, streams)
                return is_keyed
            case Union(left, right):
                return self._is_each_keyed(left, right, streams)
            case Graph(name, inner):
                return self._is_keyed(inner, self._streams_of(name))
            case WindowGraph(_, inner):
                # Every shard knows the names of all graphs, but has only some of their triples.
                if not self._is_keyed(inner, streams):
                    raise _NotPartitionable("GRAPH in a window would be repeated in every shard")
                return True
            case Window(numbers, _, inner):
                return self._is_keyed(inner, [self._plan.windows[n].stream.value for n in numbers])
            case Distinct(inner) | Reduced(inner) | Project(inner, _):
                is_keyed = self._is_keyed(inner, streams)
                if is_keyed and self._key not in visible_variables(node):
                    raise _NotPartitionable(f"?{self._key.value} does not leave a sub-query")
                return is_keyed
            case Group(inner, keys, _):
                is_keyed = self._is_keyed(inner, streams)
                self._check_exists(node, streams)
                if is_keyed and not any(variable == self._key and e is None for variable, e in keys):
                    raise _NotPartitionable(f"groups are not made by ?{self._key.value}")
                return is_keyed
            case Aggregation(inner, clauses, _):
                is_keyed = self._is_keyed(inner, streams)
                if is_keyed and any(self._key not in keys for _, _, keys in clauses):
                    raise _NotPartitionable(f"an AGGREGATE is not made by ?{self._key.value}")
                return is_keyed
        if not node.children:
            return False
        if any(self._is_keyed(child, streams) for child in node.children):
            raise _NotPartitionable(f"{type(node).__name__} needs all solutions in one place")
        return False

    def _is_left_keyed(self, left: Node, right: Node, streams: list[str]) -> bool:
        is_keyed = self._is_keyed(left, streams)
        if self._is_keyed(right, streams) and not is_keyed:
            raise _NotPartitionable("OPTIONAL or MINUS would be repeated in every shard")
        return is_keyed

    def _is_each_keyed(self, left: Node, right: Node, streams: list[str]) -> bool:
        are_keyed = (self._is_keyed(left, streams), self._is_keyed(right, streams))
        if are_keyed[0] != are_keyed[1]:
            raise _NotPartitionable("a static branch of UNION would be repeated in every shard")
        return are_keyed[0]

    def _check_exists(self, node: Node, streams: list[str]) -> None:
        for expression in expressions_of(node):
            for part in sub_expressions(expression):
                repeats = isinstance(part, ExistsPlan) and self._is_keyed(part.plan, streams)
                if repeats and not self._is_keyed(node.children[0], streams):
                    raise _NotPartitionable("EXISTS would be repeated in every shard")

    def _streams_of(self, name: NamedNode | Variable) -> list[str]:
        if isinstance(name, Variable):
            if self._graphs:
                raise _NotPartitionable("GRAPH with a variable looks at every stream")
            return []
        return self._graphs.get(name, [])

    def _is_pattern_keyed(self, triples: tuple[TriplePattern, ...], streams: list[str]) -> bool:
        """Whether the patterns read streams; notes where in their triples the key stands, and raises if nowhere."""
        if not streams or not triples:
            return False
        for triple in triples:
            if not isinstance(triple.predicate, NamedNode):
                raise _NotPartitionable("a predicate is a variable or a path")
            if triple.subject == self._key:
                place = 0
            elif triple.object == self._key:
                place = 2
            else:
                raise _NotPartitionable(f"not every triple pattern over a stream has ?{self._key.value}")
            for stream in streams:
                known = self._routes.setdefault(stream, {})
                if known.setdefault(triple.predicate, place) != place:
                    raise _NotPartitionable(f"?{self._key.value} stands in two places of {triple.predicate}")
        return True


class _SpreadCheck(_KeyCheck):
    """Checks whether each solution of a plan comes from one stream triple. The key is a variable that nothing binds."""

    def __init__(self, plan: QueryPlan, key: Variable, group_keys: Collection[Variable]) -> None:
        super().__init__(plan, key)
        self._group_keys = group_keys

    def _is_keyed(self, node: Node, streams: list[str]) -> bool:
        match node:
            case Project(inner, _):
                return self._is_keyed(inner, streams)
            case Join(left, right):
                self._check_single(self._is_keyed(left, streams) and self._is_keyed(right, streams))
        return super()._is_keyed(node, streams)

    def _is_left_keyed(self, left: Node, right: Node, streams: list[str]) -> bool:
        self._check_single(self._is_keyed(right, streams))
        return self._is_keyed(left, streams)

    def _check_exists(self, node: Node, streams: list[str]) -> None:
        for expression in expressions_of(node):
            for part in sub_expressions(expression):
                self._check_single(isinstance(part, ExistsPlan) and self._is_keyed(part.plan, streams))

    def _is_pattern_keyed(self, triples: tuple[TriplePattern, ...], streams: list[str]) -> bool:
        if not streams or not triples:
            return False
        self._check_single(len(triples) > 1)
        (triple,) = triples
        if not isinstance(triple.predicate, NamedNode):
            raise _NotPartitionable("a predicate is a variable or a path")
        is_object = triple.object in self._group_keys and triple.subject not in self._group_keys
        for stream in streams:
            place = SPREAD_OBJECT if is_object else SPREAD_SUBJECT
            if self._routes.setdefault(stream, {}).setdefault(triple.predicate, place) != place:
                raise _NotPartitionable("groups are made by subjects here and by objects there")
        return True

    @staticmethod
    def _check_single(is_joined: bool) -> None:
        if is_joined:
            raise _NotPartitionable("a solution needs more than one triple of a stream")


def _below_projection(root: Node) -> Node:
    """The plan below its outermost projections, which may drop the key."""
    while isinstance(root, Project):
        root = root.inner
    return root
