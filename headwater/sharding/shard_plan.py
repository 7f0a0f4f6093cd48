"""Several shards: which triples go to which shard.

A shard is a key of the stateful step. Every shard gets every element with its time and its position, so that all have
the same clocks and the same ticks. Of the triples a shard gets those that belong to its key. `shard_planning` finds out
how queries are divided, `answer_merging` makes one answer of the shards' answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from headwater.algebra.partitioning import SPREAD
from headwater.sources.feed import Chunk
from headwater.terms.element_columns import ElementColumns

_MIX = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


@dataclass(frozen=True)
class ShardPlan:
    """How the triples of the streams are divided among shards.

    `keys` are the shards' keys in the stateful step. `routes` give for each stream the ids of the predicates whose
    triples are divided, and by which term: 0 the subject, 2 the object, or spread. `variables` are, by query, the
    variables whose values divide the solutions, none for a query whose triples are spread evenly. `partial_groups` are
    the queries whose groups are spread over shards. `large` are the ids of the keys whose triples are spread where not
    all are.
    """

    keys: tuple[int, ...]
    routes: Mapping[str, tuple[tuple[int, int], ...]]
    variables: Mapping[str, str]
    partial_groups: frozenset[str] = frozenset()
    large: tuple[int, ...] = ()

    @property
    def spreads(self) -> bool:
        """Whether triples of some predicate are spread."""
        return any(place in SPREAD for routes in self.routes.values() for _, place in routes)

    def split(self, chunk: Chunk) -> Iterator[tuple[int, Chunk]]:
        """The chunk for each shard, with the key of the shard. Bad elements go to the first shard only."""
        columns = chunk.elements
        if not isinstance(columns, ElementColumns):
            raise TypeError("a chunk is split as columns")
        routes = () if chunk.stream is None else self.routes.get(chunk.stream, ())
        shards = _shards_of(columns.triples, routes, len(self.keys), self.large)
        for index, key in enumerate(self.keys):
            own = columns.select_triples(shards == index)
            yield key, replace(chunk, elements=own, bad=chunk.bad if index == 0 else ())


def _shards_of(
    triples: npt.NDArray[np.int64], routes: Sequence[tuple[int, int]], count: int, large: Sequence[int]
) -> npt.NDArray[np.int64]:
    """The index of the shard of each triple; -1 where no query reads its predicate."""
    keys = np.zeros(triples.shape[0], dtype=np.int64)
    routed = np.zeros(triples.shape[0], dtype=np.bool_)
    for predicate, place in routes:
        mask = triples[:, 1] == predicate
        keys[mask] = triples[mask, SPREAD.get(place, place)]
        routed |= mask
        if place in SPREAD:
            # Equal triples stay together: a window holds them once.
            spread = mask & np.isin(keys, large) if large else mask
            keys[spread] = _mix_folded(triples[spread, 0]) ^ (_mix_folded(triples[spread, 2]) << 1)
    shards = (_mix(keys) % np.uint64(count)).astype(np.int64)
    shards[~routed] = -1
    return shards


def _mix(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    mixed = np.ascontiguousarray(keys).view(np.uint64) * _MIX
    mixed ^= mixed >> _HALF
    return mixed


def _mix_folded(ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Numbers in which all bits of the ids count: those of short texts differ in their high bits alone."""
    return _mix(ids ^ (ids >> 32)).view(np.int64)


def find_shard_keys(shards: int) -> tuple[int, ...]:
    """Keys that Spark's hash sends to different partitions, one to each."""
    keys: dict[int, int] = {}
    key = 0
    while len(keys) < shards:
        keys.setdefault(_spark_hash(key) % shards, key)
        key += 1
    return tuple(keys[partition] for partition in range(shards))


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
