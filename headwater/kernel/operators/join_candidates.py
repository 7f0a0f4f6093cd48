"""What a multiway join can probe next, and where the values of a key are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headwater.kernel.columns.relation import Key
from headwater.kernel.columns.ring_index import Links

ValuesByLeaf = tuple[tuple[int, Links, Links], ...]
"""Values of a row: each leaf that holds some, with its columns and the places of the values in the row."""


@dataclass(frozen=True, slots=True)
class JoinCandidate:
    """An input that may be joined next: the columns it is probed on (`key`), and where their values are.

    `holder` is the leaf that has all the values, in `columns`. It is None where several leaves have some of them, as
    `key_sources` says. `joined` is the set of inputs that are joined after this step, as bits.
    """

    input_index: int
    key: Key
    holder: int | None
    columns: Links
    key_sources: ValuesByLeaf
    joined: int

    def places(self) -> tuple[tuple[int, int], ...]:
        """The leaf and column of each value of the key."""
        return places_of(self.key_sources, len(self.key))


def places_of(values: ValuesByLeaf, count: int) -> tuple[tuple[int, int], ...]:
    """The leaf and column of each of some values."""
    found = [(0, 0)] * count
    for leaf, columns, places in values:
        for column, place in zip(columns.tolist(), places.tolist(), strict=True):
            found[place] = (leaf, column)
    return tuple(found)


def group_by_leaf(holders: Sequence[tuple[int, int]]) -> ValuesByLeaf:
    """Group values, given by leaf and column, by the leaf that holds them."""
    by_leaf: dict[int, list[tuple[int, int]]] = {}
    for place, (leaf, column) in enumerate(holders):
        by_leaf.setdefault(leaf, []).append((column, place))
    return tuple(
        (leaf, np.array([c for c, _ in pairs], dtype=np.int32), np.array([p for _, p in pairs], dtype=np.int32))
        for leaf, pairs in by_leaf.items()
    )
