"""Inputs that act as sliding windows: each slide removes the oldest rows and adds as many new ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headwater.kernel.columns.delta import Delta, no_rows
from headwater.kernel.columns.delta_run import DeltaRun
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.operators.operator import Operator


class SlidingInput(Operator):
    """A window of `size` rows over given rows.

    The first delta is the whole first window, and `slide` prepares the next one. Several operators may read the
    same window, each once per slide. `empty` and `fill` begin with fewer rows, where a whole window has too many
    results at once. `slide_run` prepares many slides of one row for `advance_run`.
    """

    def __init__(self, variables: tuple[str, ...], rows: Ints, size: int) -> None:
        self.variables = variables
        self._rows = rows
        self._begin = 0
        self._end = size
        self._next = Delta(rows[:size], no_rows(len(variables)))
        self._next_run = DeltaRun.empty(len(variables))

    def empty(self) -> None:
        """Begin without rows."""
        self._end = 0
        self.fill(0)

    def fill(self, count: int) -> None:
        """Add rows and remove none."""
        self._next = Delta(self._take_rows(count), self._rows[:0])

    def slide(self, count: int) -> None:
        added = self._take_rows(count)
        self._next = Delta(added, self._rows[self._begin : self._begin + count])
        self._begin += count

    def slide_run(self, ticks: Ints) -> None:
        """Slide by one row at each of some ticks: the oldest row is removed, then a new one is added."""
        count = ticks.shape[0]
        rows = np.empty((2 * count, len(self.variables)), np.int64)
        rows[1::2] = self._take_rows(count)
        rows[::2] = self._rows[self._begin : self._begin + count]
        self._begin += count
        self._next_run = DeltaRun(rows, np.repeat(ticks, 2), np.tile(np.array([-1, 1], np.int8), count))

    def _take_rows(self, count: int) -> Ints:
        begin, self._end = self._end, self._end + count
        if self._end > self._rows.shape[0]:
            raise ValueError(f"{self._rows.shape[0]} rows are too few for another {count}")
        return self._rows[begin : self._end]

    def apply(self, deltas: Sequence[Delta]) -> Delta:
        return self._next

    def apply_run(self, runs: Sequence[DeltaRun]) -> DeltaRun:
        return self._next_run

    @property
    def content(self) -> Ints:
        """The rows in the window."""
        return self._rows[self._begin : self._end]

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
