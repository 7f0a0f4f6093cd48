"""Whether queries can be divided into shards that never need each other, by which variables, or why not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headwater.algebra.nodes import Service
from headwater.algebra.outer_grouping import OuterGrouping
from headwater.algebra.partitioning import (
    OneShard,
    Partitioning,
    find_joint_routes,
    partitionings_of,
    spread_partitioning_of,
)
from headwater.algebra.plan import QueryPlan
from headwater.algebra.presentation import Presentation
from headwater.algebra.scope import expressions_of, nodes_of
from headwater.execution.registered import RegisteredQuery, RegistrationError
from headwater.kernel.expressions.compiled_expressions import can_evaluate
from headwater.language.stream_clauses import StreamOperator
from headwater.optimizer.dependencies import has_exists
from headwater.optimizer.distribution import NotDistributable, partition_keys, split_aggregates
from headwater.optimizer.optimise import optimise
from headwater.sharding.answer_merging import presentation_of
from headwater.sharding.shard_plan import ShardPlan
from headwater.terms.ids.term_ids import encode
from headwater.terms.names import iri_to_name
from headwater.windows.model import CountWindow
from headwater.windows.settings import Report, timestamp_predicate_of


def choose_partitionings(
    queries: Sequence[RegisteredQuery], *, has_static_default: bool, spreads: bool = False
) -> list[Partitioning] | OneShard:
    """A partitioning for each query that fits those of the others, or why there is none.

    With `spreads` one that spreads triples evenly goes before those that divide them by a key.
    """
    choices: list[list[Partitioning]] = []
    read = {source.stream.value for query in queries for source in query.plan.windows}
    for query in queries:
        if query.produces in read:
            return OneShard(f"{query.plan.name}: it feeds another query with whole answers")
        possible = _possible_partitionings(query, has_static_default=has_static_default, spreads=spreads)
        if isinstance(possible, OneShard):
            return OneShard(f"{query.plan.name}: {possible.reason}")
        choices.append(possible)
    joint = find_joint_routes(choices)
    return OneShard("the queries want one predicate's triples by different keys") if joint is None else joint[0]


def _possible_partitionings(
    query: RegisteredQuery, *, has_static_default: bool, spreads: bool
) -> list[Partitioning] | OneShard:
    """All partitionings under which shards together give the query's answers, or why there are none."""
    plan, settings = query.plan, query.settings
    if not plan.windows:
        return OneShard("it reads no stream")
    if any(isinstance(window, CountWindow) for window in settings.windows):
        return OneShard("a window counts what comes")
    if any(timestamp_predicate_of(source.spec) for source in plan.windows):
        return OneShard("the time is in the data")
    if any(isinstance(node, Service) for node in nodes_of(plan.root)):
        return OneShard("SERVICE has one view and one budget")
    if settings.report is Report.CHANGE:
        return OneShard("it reports when the content of a window changes")
    # Graphs that FROM names are loaded, or the query would have been refused.
    has_static = has_static_default if plan.default_graphs is None else bool(plan.default_graphs)
    if has_static and any(source.in_default_graph for source in plan.windows):
        return OneShard("the stream is merged with static data, which is in every shard")
    presentation = presentation_of(query)
    if presentation is not None and not all(can_evaluate(key) for key, _ in presentation.keys):
        return OneShard("ORDER BY asks for more than its row")
    whole = _whole_partitionings(plan, settings.emit, presentation, spreads)
    in_parts = _partial_group_partitionings(plan, plan, settings.emit, spreads)
    if isinstance(whole, OneShard) and isinstance(in_parts, OneShard | None):
        # Both plans have the same answers over the triples of any shard, so a partitioning of one is one of the other.
        rewritten = optimise(plan).plan
        found = _whole_partitionings(rewritten, settings.emit, presentation, spreads)
        whole = whole if isinstance(found, OneShard) else found
        in_parts = _partial_group_partitionings(plan, rewritten, settings.emit, spreads)
    possible = [one for some in (whole, in_parts) if isinstance(some, list) for one in some]
    # Even ones go first: they are here only where they are wanted.
    possible.sort(key=lambda one: one.variable is not None)
    if possible or isinstance(whole, list):
        return possible
    return OneShard(f"{whole.reason}, and {in_parts.reason}") if isinstance(in_parts, OneShard) else whole


def _whole_partitionings(
    plan: QueryPlan, emit: StreamOperator, presentation: Presentation | None, spreads: bool
) -> list[Partitioning] | OneShard:
    """The partitionings of a plan below its presentation, which is applied to the rows of all shards."""
    below = plan.root if presentation is None else Presentation.extract_any(plan.root)[1]
    keyed = partitionings_of(replace(plan, root=below), emit)
    if isinstance(keyed, OneShard) or not spreads or emit is not StreamOperator.RSTREAM:
        return keyed
    even = spread_partitioning_of(replace(plan, root=below))
    return keyed if isinstance(even, OneShard) else [even, *keyed]


def _partial_group_partitionings(
    plan: QueryPlan, rewritten: QueryPlan, emit: StreamOperator, spreads: bool
) -> list[Partitioning] | OneShard | None:
    """The partitionings of the input of the outermost grouping, which gives partial groups, or why there is none.

    None where there is no such grouping, or no variable to divide it by. The shards evaluate the plan as written;
    `rewritten` is one with the same solutions below its grouping.
    """
    written, outer = OuterGrouping.of(plan.root), OuterGrouping.of(rewritten.root)
    if written is None or outer is None:
        return None
    keys = partition_keys(rewritten, outer.group.inner)
    found = partitionings_of(replace(rewritten, root=outer.group.inner), StreamOperator.RSTREAM)
    if isinstance(keys, NotDistributable) or isinstance(found, OneShard):
        return None
    if emit is not StreamOperator.RSTREAM:
        return OneShard("ISTREAM and DSTREAM compare whole groups with those of the tick before")
    if not written.can_evaluate_steps(can_evaluate):
        return OneShard("HAVING or SELECT asks for more than a group")
    if any(map(has_exists, expressions_of(written.group))):
        return OneShard("the groups depend on EXISTS")
    splits = split_aggregates(written.group)
    if isinstance(splits, NotDistributable):
        return OneShard(splits.reason)
    fitting = [one for one in found if one.variable in keys]
    if spreads:
        plain_keys = {variable for variable, expression in outer.group.keys if expression is None}
        even = spread_partitioning_of(replace(rewritten, root=outer.group.inner), plain_keys)
        fitting += [] if isinstance(even, OneShard) else [even]
    return [replace(one, has_partial_groups=True) for one in fitting]


def plan_shards(
    queries: Sequence[RegisteredQuery],
    keys: tuple[int, ...],
    *,
    has_static_default: bool,
    spreads: bool = False,
    large: tuple[int, ...] = (),
) -> ShardPlan | OneShard:
    """How to run queries in as many shards as there are keys, or why they need one.

    With `spreads` triples are spread evenly where a query allows it: all, or those of the keys with the ids `large`.
    """
    partitionings = choose_partitionings(queries, has_static_default=has_static_default, spreads=spreads)
    if isinstance(partitionings, OneShard):
        return partitionings
    routes: dict[str, dict[int, int]] = {}
    for one in partitionings:
        for stream, places in one.routes.items():
            routes.setdefault(stream, {}).update({encode(predicate): place for predicate, place in places.items()})
    by_query = {query.plan.name: one for query, one in zip(queries, partitionings, strict=True)}
    variables = {name: one.variable.value for name, one in by_query.items() if one.variable is not None}
    partial_groups = frozenset(name for name, one in by_query.items() if one.has_partial_groups)
    by_stream = {stream: tuple(places.items()) for stream, places in routes.items()}
    return ShardPlan(keys, by_stream, variables, partial_groups, large)


def keep_shard_plan(current: ShardPlan, queries: Sequence[RegisteredQuery], *, has_static_default: bool) -> ShardPlan:
    """The plan for other queries with the shards of a running pipeline; a `RegistrationError` where they do not fit."""
    how = {"has_static_default": has_static_default, "spreads": current.spreads}
    found = plan_shards(queries, current.keys, **how, large=current.large)
    if isinstance(found, OneShard):
        reason = found.reason
    else:
        moved = (
            stream
            for stream, routes in found.routes.items()
            if any(dict(current.routes.get(stream, ())).get(predicate, place) != place for predicate, place in routes)
        )
        stream = next(moved, None)
        if stream is None:
            return found
        reason = f"the triples of {iri_to_name(stream)} would have to go by another key"
    raise RegistrationError(
        f"the pipeline at work is cut into {len(current.keys)} shards, and with these queries it cannot be: {reason}; "
        "stop it and begin with shards=1, or register the query in another engine"
    )


def describe_sharding(query: RegisteredQuery) -> str:
    """A sentence for `explain`: whether one query can be divided into shards, by which variable, or why not."""
    chosen = choose_partitionings([query], has_static_default=False)
    if isinstance(chosen, OneShard):
        return f"one, because {chosen.reason.partition(': ')[2]}"
    (partitioning,) = chosen
    places = {place for routes in partitioning.routes.values() for place in routes.values()}
    positions = " and ".join(word for place, word in ((0, "subject"), (2, "object")) if place in places)
    merged = any(source.in_default_graph for source in query.plan.windows)
    more = "; their groups are put together" if partitioning.has_partial_groups else ""
    more += "; ORDER BY, DISTINCT and LIMIT after the merge" if presentation_of(query) is not None else ""
    more += "; one where the default graph has static data" if merged else ""
    assert partitioning.variable is not None
    return f"any number, by ?{partitioning.variable.value} ({positions} of its triples){more}"
