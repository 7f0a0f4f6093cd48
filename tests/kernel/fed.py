"""Operators for tests: a leaf that is told its differences, and a way to read what comes out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from headwater.kernel.columns.delta import Delta
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.operators.operator import Operator

Bag = Counter[tuple[int, ...]]


def as_rows(rows: Iterable[tuple[int, ...]], width: int) -> Ints:
    listed = list(rows)
    return np.array(listed, dtype=np.int64).reshape(len(listed), width)


def as_bag(rows: Ints) -> Bag:
    return Counter(map(tuple, rows.tolist()))


class Fed(Operator):
    """Gives the difference it was fed last, once."""

    def __init__(self, *variables: str) -> None:
        self.variables = variables
        self._next = Delta.empty(len(variables))

    def feed(self, added: Iterable[tuple[int, ...]] = (), removed: Iterable[tuple[int, ...]] = ()) -> None:
        width = len(self.variables)
        self._next = Delta(as_rows(added, width), as_rows(removed, width))

    def begin_anew(self, added: Iterable[tuple[int, ...]], before: Iterable[tuple[int, ...]]) -> None:
        """All rows that there were go at once."""
        width = len(self.variables)
        self._next = Delta(as_rows(added, width), lambda: as_rows(before, width), is_reset=True)

    def feed_rows(self, added: Ints, removed: Ints) -> None:
        self._next = Delta(added, removed)

    def advance(self) -> Delta:
        delta, self._next = self._next, Delta.empty(len(self.variables))
        return delta


class Watched:
    """The bag of an operator's rows, kept up from its differences."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self.bag: Bag = Counter()

    def advance(self) -> Bag:
        delta = self.operator.advance()
        assert delta.added.shape[1] == delta.removed.shape[1] == len(self.operator.variables)
        self.bag.update(as_bag(delta.added))
        self.bag.subtract(as_bag(delta.removed))
        assert min(self.bag.values(), default=0) >= 0
        self.bag = +self.bag
        return self.bag
