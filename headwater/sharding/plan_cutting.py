"""How queries are cut into shards that never need each other, or why they cannot be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headwater.algebra.nodes import Service
from headwater.algebra.outer_grouping import OuterGrouping
from headwater.algebra.partitioning import OneShard, Partitioning, joint_routes, partitioning_of
from headwater.algebra.plan import QueryPlan
from headwater.algebra.presentation import Presentation
from headwater.algebra.scope import expressions_of, nodes
from headwater.execution.registered import RegisteredQuery, RegistrationError
from headwater.kernel.expressions.compiled_expressions import can_evaluate
from headwater.language.stream_clauses import StreamOperator
from headwater.optimizer.dependencies import has_exists
from headwater.optimizer.distribution import NotDistributable, partition_keys, splits_of
from headwater.optimizer.optimise import optimise
from headwater.sharding.merging import presentation_of
from headwater.sharding.sharding import Sharding
from headwater.terms.ids.term_ids import encode
from headwater.terms.names import iri_to_name
from headwater.windows.model import CountWindow
from headwater.windows.settings import Report, timestamp_predicate


def choose(
    queries: Sequence[RegisteredQuery], *, has_static_default: bool
) -> tuple[list[Partitioning], object] | OneShard:
    """A partitioning for each query that fits the others', with the routes of all, or why there is none."""
    choices: list[list[Partitioning]] = []
    read = {source.stream.value for query in queries for source in query.plan.windows}
    for query in queries:
        if query.produces in read:
            return OneShard(f"{query.plan.name}: it feeds another query with whole answers")
        found = _choices(query, has_static_default=has_static_default)
        if isinstance(found, OneShard):
            return OneShard(f"{query.plan.name}: {found.reason}")
        choices.append(found)
    joint = joint_routes(choices)
    return OneShard("the queries want one predicate's triples by different keys") if joint is None else joint


def _choices(query: RegisteredQuery, *, has_static_default: bool) -> list[Partitioning] | OneShard:
    plan, settings = query.plan, query.settings
    if not plan.windows:
        return OneShard("it reads no stream")
    if any(isinstance(window, CountWindow) for window in settings.windows):
        return OneShard("a window counts what comes")
    if any(timestamp_predicate(source.spec) for source in plan.windows):
        return OneShard("the time is in the data")
    if any(isinstance(node, Service) for node in nodes(plan.root)):
        return OneShard("SERVICE has one view and one budget")
    if settings.report is Report.CHANGE:
        return OneShard("it reports when the content of a window changes")
    if has_static_default and any(source.in_default_graph for source in plan.windows):
        return OneShard("the stream is merged with static data, which is in every shard")
    presentation = presentation_of(query)
    if presentation is not None and not all(can_evaluate(key) for key, _ in presentation.keys):
        return OneShard("ORDER BY asks for more than its row")
    whole = _partitionings(plan, settings.emit, presentation)
    in_parts = _in_parts(plan, plan, settings.emit)
    if isinstance(whole, OneShard) and isinstance(in_parts, OneShard | None):
        # Both plans have the same answers over the triples of any shard, so a way to cut either cuts both.
        rewritten = optimise(plan).plan
        found = _partitionings(rewritten, settings.emit, presentation)
        whole = whole if isinstance(found, OneShard) else found
        in_parts = _in_parts(plan, rewritten, settings.emit)
    ways = [one for found in (whole, in_parts) if isinstance(found, list) for one in found]
    if ways or isinstance(whole, list):
        return ways
    return OneShard(f"{whole.reason}, and {in_parts.reason}") if isinstance(in_parts, OneShard) else whole


def _partitionings(
    plan: QueryPlan, emit: StreamOperator, presentation: Presentation | None
) -> list[Partitioning] | OneShard:
    """The ways to cut what is below a presentation, which is for the rows of all shards together."""
    below = plan.root if presentation is None else Presentation.of_all(plan.root)[1]
    return partitioning_of(replace(plan, root=below), emit)


def _in_parts(plan: QueryPlan, rewritten: QueryPlan, emit: StreamOperator) -> list[Partitioning] | OneShard | None:
    """The ways to cut what the outermost grouping reads, so that shards have parts of its groups, or why they may not.

    None where there is no such grouping, or nothing to cut it by. The shards evaluate the plan as it was written;
    `rewritten` is one with the same solutions below its grouping.
    """
    written, outer = OuterGrouping.of(plan.root), OuterGrouping.of(rewritten.root)
    if written is None or outer is None:
        return None
    keys = partition_keys(rewritten, outer.group.inner)
    found = partitioning_of(replace(rewritten, root=outer.group.inner), StreamOperator.RSTREAM)
    if isinstance(keys, NotDistributable) or isinstance(found, OneShard):
        return None
    if emit is not StreamOperator.RSTREAM:
        return OneShard("ISTREAM and DSTREAM compare whole groups with those of the tick before")
    if not written.steps_are(can_evaluate):
        return OneShard("HAVING or SELECT asks for more than a group")
    if any(map(has_exists, expressions_of(written.group))):
        return OneShard("the groups depend on EXISTS")
    splits = splits_of(written.group)
    if isinstance(splits, NotDistributable):
        return OneShard(splits.reason)
    return [replace(one, in_parts=True) for one in found if one.variable in keys]


def sharding(
    queries: Sequence[RegisteredQuery], keys: tuple[int, ...], *, has_static_default: bool
) -> Sharding | OneShard:
    """How to run queries in as many shards as there are keys."""
    chosen = choose(queries, has_static_default=has_static_default)
    if isinstance(chosen, OneShard):
        return chosen
    partitionings, _ = chosen
    routes: dict[str, dict[int, int]] = {}
    for one in partitionings:
        for stream, places in one.routes.items():
            routes.setdefault(stream, {}).update({encode(predicate): place for predicate, place in places.items()})
    chosen_for = {query.plan.name: one for query, one in zip(queries, partitionings, strict=True)}
    by = {name: one.variable.value for name, one in chosen_for.items()}
    in_parts = frozenset(name for name, one in chosen_for.items() if one.in_parts)
    return Sharding(keys, {stream: tuple(places.items()) for stream, places in routes.items()}, by, in_parts)


def same_sharding(cut: Sharding, queries: Sequence[RegisteredQuery], *, has_static_default: bool) -> Sharding:
    """The shards of a pipeline at work, for other queries; a `RegistrationError` where they do not fit."""
    found = sharding(queries, cut.keys, has_static_default=has_static_default)
    if isinstance(found, OneShard):
        reason = found.reason
    else:
        moved = (
            stream
            for stream, routes in found.routes.items()
            if any(dict(cut.routes.get(stream, ())).get(predicate, place) != place for predicate, place in routes)
        )
        stream = next(moved, None)
        if stream is None:
            return found
        reason = f"the triples of {iri_to_name(stream)} would have to go by another key"
    raise RegistrationError(
        f"the pipeline at work is cut into {len(cut.keys)} shards, and with these queries it cannot be: {reason}; "
        "stop it and begin with shards=1, or register the query in another engine"
    )


def in_words(query: RegisteredQuery) -> str:
    """Whether one query can be cut into shards, by what and why not."""
    found = choose([query], has_static_default=False)
    if isinstance(found, OneShard):
        return f"one, because {found.reason.partition(': ')[2]}"
    (partitioning,), _ = found
    places = {place for routes in partitioning.routes.values() for place in routes.values()}
    stands = " and ".join(word for place, word in ((0, "subject"), (2, "object")) if place in places)
    merged = any(source.in_default_graph for source in query.plan.windows)
    more = "; their groups are put together" if partitioning.in_parts else ""
    more += "; ordered, cut or told apart when they are together" if presentation_of(query) is not None else ""
    more += "; one where the default graph has static data" if merged else ""
    return f"any number, by ?{partitioning.variable.value} ({stands} of its triples){more}"
