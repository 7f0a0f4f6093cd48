"""Inputs that act as sliding windows: each slide removes the oldest rows and adds as many new ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headwater.kernel.columns.delta import Delta, no_rows
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.operators.operator import Operator


class SlidingInput(Operator):
    """A window of `size` rows over given rows.

    The first delta is the whole first window, and `slide` prepares the next one. Several operators may read the
    same window, each once per slide.
    """

    def __init__(self, variables: tuple[str, ...], rows: Ints, size: int) -> None:
        self.variables = variables
        self._rows = rows
        self._size = size
        self._begin = 0
        self._next = Delta(rows[:size], no_rows(len(variables)))

    def slide(self, count: int) -> None:
        begin, end = self._begin, self._begin + self._size
        if end + count > self._rows.shape[0]:
            raise ValueError(f"{self._rows.shape[0]} rows are too few for another slide of {count}")
        self._next = Delta(self._rows[end : end + count], self._rows[begin : begin + count])
        self._begin += count

    def apply(self, deltas: Sequence[Delta]) -> Delta:
        return self._next

    @property
    def content(self) -> Ints:
        """The rows in the window."""
        return self._rows[self._begin : self._begin + self._size]

    @property
    def delta(self) -> Delta:
        return self._next


def hashed_ids(random: np.random.Generator, count: int) -> Ints:
    """Random ids that look like those of IRIs."""
    return random.integers(0, 1 << 62, count)


def draw_values(random: np.random.Generator, domain: Ints, count: int) -> Ints:
    """Draw values of a domain at random; a permutation if as many are drawn as there are."""
    if count == domain.shape[0]:
        return random.permutation(domain)
    return domain[random.integers(0, domain.shape[0], count)]


def pairs(first: Ints, second: Ints) -> Ints:
    return np.stack([first, second], axis=1)


def distinct_pairs(random: np.random.Generator, keys: int, count: int) -> Ints:
    """So many pairs of keys, all different, as the triples of a set are."""
    codes = random.integers(0, keys * keys, count + count // 2 + 16)
    _, first = np.unique(codes, return_index=True)
    kept = codes[np.sort(first)[:count]]
    domain = hashed_ids(random=np.random.default_rng(0), count=keys)
    return pairs(domain[kept // keys], domain[kept % keys])
