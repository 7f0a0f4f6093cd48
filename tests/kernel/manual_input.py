"""Operators for tests: an input whose deltas the test gives, and the bag that an operator's deltas add up to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from headwater.kernel.columns.delta import Delta
from headwater.kernel.columns.delta_run import DeltaRun
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.operators.operator import Operator

Bag = Counter[tuple[int, ...]]


def as_rows(rows: Iterable[tuple[int, ...]], width: int) -> Ints:
    listed = list(rows)
    return np.array(listed, dtype=np.int64).reshape(len(listed), width)


def as_bag(rows: Ints) -> Bag:
    return Counter(map(tuple, rows.tolist()))


class ManualInput(Operator):
    """Returns the delta that it was fed last, once."""

    def __init__(self, *variables: str) -> None:
        self.variables = variables
        self._next = Delta.empty(len(variables))
        self._ticks: list[Delta] = []

    def feed(self, added: Iterable[tuple[int, ...]] = (), removed: Iterable[tuple[int, ...]] = ()) -> None:
        width = len(self.variables)
        self._next = Delta(as_rows(added, width), as_rows(removed, width))

    def replace_all(self, added: Iterable[tuple[int, ...]], before: Iterable[tuple[int, ...]]) -> None:
        """Remove all rows that there were at once (`Delta.is_reset`)."""
        width = len(self.variables)
        self._next = Delta(as_rows(added, width), lambda: as_rows(before, width), is_reset=True)

    def feed_rows(self, added: Ints, removed: Ints) -> None:
        self._next = Delta(added, removed)

    def apply(self, deltas: Sequence[Delta]) -> Delta:
        delta, self._next = self._next, Delta.empty(len(self.variables))
        return delta

    def needs_rows_of(self, source: Operator) -> bool:
        return source is self

    def end_tick(self) -> None:
        """Keep what was fed as a tick of the next run."""
        self._ticks.append(self.advance())

    def apply_run(self, runs: Sequence[DeltaRun]) -> DeltaRun:
        """The ticks that were kept. Rows are added before rows are removed: some may come and go within a tick."""
        width = len(self.variables)
        nothing = as_rows((), width)
        changes: list[tuple[int, Delta]] = []
        for tick, delta in enumerate(self._ticks):
            changes += [(tick, Delta(delta.added, nothing)), (tick, Delta(nothing, delta.removed))]
        self._ticks = []
        return DeltaRun.of_deltas(changes, width)


class ResultBag:
    """The bag of an operator's rows, built from its deltas."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self.bag: Bag = Counter()
        self.added: Bag = Counter()
        """What the last delta added."""

    def advance(self) -> Bag:
        delta = self.operator.advance()
        assert delta.added.shape[1] == delta.removed.shape[1] == len(self.operator.variables)
        self.added = as_bag(delta.added)
        self.bag.update(self.added)
        self.bag.subtract(as_bag(delta.removed))
        assert min(self.bag.values(), default=0) >= 0
        self.bag = +self.bag
        return self.bag

    def advance_run(self, ticks: int) -> list[Bag]:
        """The bags after each of some ticks."""
        run = self.operator.advance_run()
        assert run.rows.shape == (len(run), len(self.operator.variables))
        assert (np.diff(run.ticks) >= 0).all() and set(run.ticks.tolist()) <= set(range(ticks))
        bags: list[Bag] = []
        for tick in range(ticks):
            for row, sign in zip(run.rows[run.ticks == tick].tolist(), run.signs[run.ticks == tick], strict=True):
                self.bag[tuple(row)] += int(sign)
                assert self.bag[tuple(row)] >= 0
            self.bag = +self.bag
            bags.append(Counter(self.bag))
        return bags
