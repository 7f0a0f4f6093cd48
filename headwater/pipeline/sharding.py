"""One run over several shards: which triples go where, and how the answers of the shards become one.

A shard is a key of the stateful step. Every shard hears of every element, its time and its place in the stream, so that
all of them have the same clocks and the same ticks; of the triples it gets those whose key is its own. An answer of
the whole is the bag union of the shards' answers of the same tick.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from headwater.algebra.nodes import Service
from headwater.algebra.partitioning import OneShard, Partitioning, joint_routes, partitioning_of
from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.algebra.scope import nodes
from headwater.optimizer import optimise
from headwater.pipeline.feed import Chunk
from headwater.reference import Answer, Registered, RegistrationError
from headwater.reference.construct import Template
from headwater.reference.ordering import row_text
from headwater.terms.columns import ElementColumns
from headwater.terms.ids import encode
from headwater.terms.names import iri_to_name
from headwater.windows import CountWindow, Report, timestamp_predicate

_MIX = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


@dataclass(frozen=True)
class Sharding:
    """`keys` are the shards' keys in the stateful step; `routes` say by which place (0 or 2) a predicate's triples go.

    `by` names for each query the variable that its shards are made by.
    """

    keys: tuple[int, ...]
    routes: Mapping[str, tuple[tuple[int, int], ...]]
    by: Mapping[str, str]

    def split(self, chunk: Chunk) -> Iterator[tuple[int, Chunk]]:
        """A chunk's part for each shard, with the key of the shard. What is not an element goes to the first."""
        columns = chunk.elements
        if not isinstance(columns, ElementColumns):
            raise TypeError("a chunk is split as columns")
        routes = () if chunk.stream is None else self.routes.get(chunk.stream, ())
        owners = _owners(columns.triples, routes, len(self.keys))
        for number, key in enumerate(self.keys):
            mine = owners == number
            before = np.zeros(mine.shape[0] + 1, dtype=np.int64)
            np.cumsum(mine, out=before[1:])
            part = replace(columns, starts=before[columns.starts], triples=columns.triples[mine])
            yield key, replace(chunk, elements=part, bad=chunk.bad if number == 0 else ())


def _owners(triples: npt.NDArray[np.int64], routes: Sequence[tuple[int, int]], shards: int) -> npt.NDArray[np.int64]:
    """The shard of each triple; -1 where no query looks at its predicate."""
    keys = np.zeros(triples.shape[0], dtype=np.int64)
    routed = np.zeros(triples.shape[0], dtype=np.bool_)
    for predicate, place in routes:
        mask = triples[:, 1] == predicate
        keys[mask] = triples[mask, place]
        routed |= mask
    mixed = keys.view(np.uint64) * _MIX
    mixed ^= mixed >> _HALF
    owners = (mixed % np.uint64(shards)).astype(np.int64)
    owners[~routed] = -1
    return owners


def spreading_keys(shards: int) -> tuple[int, ...]:
    """Keys that Spark's hash sends to different partitions, one to each."""
    found: dict[int, int] = {}
    key = 0
    while len(found) < shards:
        found.setdefault(_spark_hash(key) % shards, key)
        key += 1
    return tuple(found[partition] for partition in range(shards))


def _spark_hash(value: int) -> int:
    """What Spark's `hash` gives for an int: Murmur3 of four bytes with the seed 42, as a signed number."""
    mask = 0xFFFFFFFF
    mixed = value * 0xCC9E2D51 & mask
    mixed = ((mixed << 15 | mixed >> 17) & mask) * 0x1B873593 & mask
    state = 42 ^ mixed
    state = ((state << 13 | state >> 19) & mask) * 5 + 0xE6546B64 & mask
    state ^= 4
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        state = (state ^ state >> shift) * factor & mask
    state ^= state >> 16
    return state - (1 << 32) if state >> 31 else state


def choose(queries: Sequence[Registered], *, has_static_default: bool) -> tuple[list[Partitioning], object] | OneShard:
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


def _choices(query: Registered, *, has_static_default: bool) -> list[Partitioning] | OneShard:
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
    found = partitioning_of(plan, settings.emit)
    if not isinstance(found, OneShard):
        return found
    # Both plans have the same answers over the triples of any shard, so a way to cut either cuts both.
    rewritten = partitioning_of(optimise(plan).plan, settings.emit)
    return found if isinstance(rewritten, OneShard) else rewritten


def sharding(queries: Sequence[Registered], keys: tuple[int, ...], *, has_static_default: bool) -> Sharding | OneShard:
    """How to run queries in as many shards as there are keys."""
    chosen = choose(queries, has_static_default=has_static_default)
    if isinstance(chosen, OneShard):
        return chosen
    partitionings, _ = chosen
    routes: dict[str, dict[int, int]] = {}
    for one in partitionings:
        for stream, places in one.routes.items():
            routes.setdefault(stream, {}).update({encode(predicate): place for predicate, place in places.items()})
    by = {query.plan.name: one.variable.value for query, one in zip(queries, partitionings, strict=True)}
    return Sharding(keys, {stream: tuple(places.items()) for stream, places in routes.items()}, by)


def same_sharding(cut: Sharding, queries: Sequence[Registered], *, has_static_default: bool) -> Sharding:
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


def in_words(query: Registered) -> str:
    """Whether one query can be cut into shards, by what and why not."""
    found = choose([query], has_static_default=False)
    if isinstance(found, OneShard):
        return f"one, because {found.reason.partition(': ')[2]}"
    (partitioning,), _ = found
    places = {place for routes in partitioning.routes.values() for place in routes.values()}
    stands = " and ".join(word for place, word in ((0, "subject"), (2, "object")) if place in places)
    merged = any(source.in_default_graph for source in query.plan.windows)
    condition = "; one where the default graph has static data" if merged else ""
    return f"any number, by ?{partitioning.variable.value} ({stands} of its triples){condition}"


def shard_query(query: Registered) -> Registered:
    """What each shard answers: the rows, which become triples only when they are all together."""
    if query.plan.kind is not QueryKind.CONSTRUCT:
        return query
    return Registered(replace(query.plan, kind=QueryKind.SELECT), query.settings)


class Merging:
    """Makes one answer of those that the shards gave for a tick."""

    def __init__(self, queries: Iterable[Registered]) -> None:
        self._plans: dict[str, QueryPlan] = {}
        self._templates: dict[str, Template] = {}
        for query in queries:
            self._plans[query.plan.name] = query.plan
            self._templates[query.plan.name] = Template(query.plan)

    def merged(self, answers: Iterable[Answer]) -> list[Answer]:
        """The answers of all shards, in the order of time and of the registration of their queries."""
        parts: dict[tuple[int, int, int], list[Answer]] = {}
        order = {name: number for number, name in enumerate(self._plans)}
        for answer in answers:
            parts.setdefault((answer.time, order[answer.query], answer.part), []).append(answer)
        return [self._one(parts[key]) for key in sorted(parts)]

    def _one(self, parts: list[Answer]) -> Answer:
        first = parts[0]
        plan = self._plans[first.query]
        if plan.kind is QueryKind.ASK:
            verdicts = [one.boolean for one in parts if one.boolean is not None]
            return replace(first, boolean=any(verdicts) if verdicts else None)
        rows = [row for one in parts for row in one.rows]
        rows.sort(key=row_text)
        if plan.kind is QueryKind.CONSTRUCT:
            triples = self._templates[plan.name].instantiate(rows, first.time)
            return replace(first, kind=plan.kind, variables=(), rows=(), triples=triples)
        return replace(first, rows=tuple(rows))
