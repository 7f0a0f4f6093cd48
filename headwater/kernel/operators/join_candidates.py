"""The inputs that a multiway join can probe next, and where the values of their keys are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headwater.kernel.columns.relation import Key
from headwater.kernel.columns.ring_index import Links
from headwater.kernel.operators.operator import Operator

ValuesByLeaf = tuple[tuple[int, Links, Links], ...]
"""Where the values of a row come from: an input of the join, the columns of it to read, their columns in the row."""


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


def find_candidate(inputs: Sequence[Operator], joined: int, input_index: int) -> JoinCandidate | None:
    """An input as the next one to join; None if it shares no variable with those joined so far (as bits)."""
    shared = [
        (column, holder)
        for column, variable in enumerate(inputs[input_index].variables)
        if (holder := _find_holder(inputs, variable, joined)) is not None
    ]
    if not shared:
        return None
    key = tuple(column for column, _ in shared)
    holders = tuple(holder for _, holder in shared)
    is_single_leaf = len({leaf for leaf, _ in holders}) == 1
    columns = np.array([column for _, column in holders] if is_single_leaf else range(len(key)), dtype=np.int32)
    only = holders[0][0] if is_single_leaf else None
    return JoinCandidate(input_index, key, only, columns, group_by_leaf(holders), joined | 1 << input_index)


def are_connected(inputs: Sequence[Operator]) -> bool:
    """Whether shared variables lead from any input to any other."""
    found, remaining = set(inputs[0].variables), list(inputs[1:])
    while near := [one for one in remaining if found & set(one.variables)]:
        found.update(*(one.variables for one in near))
        remaining = [one for one in remaining if one not in near]
    return not remaining


def _find_holder(inputs: Sequence[Operator], variable: str, joined: int) -> tuple[int, int] | None:
    """The input and column, among those joined so far, that hold a variable."""
    for i, one in enumerate(inputs):
        if joined >> i & 1 and variable in one.variables:
            return i, one.column_of(variable)
    return None


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
