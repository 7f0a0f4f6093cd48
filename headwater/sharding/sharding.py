"""Several shards: which triples go where.

A shard is a key of the stateful step. Every shard hears of every element, its time and its place in the stream, so that
all of them have the same clocks and the same ticks; of the triples it gets those whose key is its own. How queries are
cut is found in `cutting`, how the answers of the shards become one in `merging`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from headwater.sources.feed import Chunk
from headwater.terms.element_columns import ElementColumns

_MIX = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


@dataclass(frozen=True)
class Sharding:
    """`keys` are the shards' keys in the stateful step; `routes` say by which place (0 or 2) a predicate's triples go.

    `by` names for each query the variable that its shards are made by; `in_parts` are the queries whose groups are
    spread over shards (`group_parts`).
    """

    keys: tuple[int, ...]
    routes: Mapping[str, tuple[tuple[int, int], ...]]
    by: Mapping[str, str]
    in_parts: frozenset[str] = frozenset()

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
