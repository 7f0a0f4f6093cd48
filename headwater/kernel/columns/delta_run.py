"""A run: the deltas of many ticks in one, as single changes of rows in the order in which they happen.

    tick 0   − (a)  + (b)            rows    (a) (b) (c)
    tick 1   + (c)                   signs    −   +   +
                                     ticks    0   0   1

Ticks are counted from the first of the run and never decrease. Applied one after the other, the changes remove only
rows that are there. Within a tick a row may be removed and added, which changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from headwater.kernel.columns.delta import Delta, Mask, no_rows, stack_rows
from headwater.kernel.columns.ring_index import Ints, first_slot, has_same_key, hash_row
from headwater.terms.compiled_code import compiled

Signs = npt.NDArray[np.int8]


@compiled
def _find_largest_tick(ticks):  # type: ignore[no-untyped-def]
    """How many changes a tick has at the most."""
    largest, low = 0, 0
    for i in range(1, ticks.shape[0] + 1):
        if i == ticks.shape[0] or ticks[i] != ticks[low]:
            largest, low = max(largest, i - low), i
    return largest


@compiled
def _find_net_changes(rows, ticks, signs, sign, key, table, counts, places):  # type: ignore[no-untyped-def]
    """Find the changes of a sign that no other change of their tick cancels (`places`); gives how many there are.

    `counts` is room for the changes of a tick, `table` for twice as many.
    """
    n, low = 0, 0
    while low < rows.shape[0]:
        high, is_mixed = low, False
        while high < rows.shape[0] and ticks[high] == ticks[low]:
            is_mixed |= signs[high] != signs[low]
            high += 1
        if not is_mixed:
            if signs[low] == sign:
                for i in range(low, high):
                    places[n] = i
                    n += 1
            low = high
            continue
        size = 2 * (high - low)
        table[:size] = 0
        for i in range(low, high):
            slot = first_slot(hash_row(rows, i, key), size)
            while table[slot] != 0 and not has_same_key(rows, low + table[slot] - 1, key, rows, i, key):
                slot += 1
                if slot == size:
                    slot = np.int64(0)
            if table[slot] == 0:
                table[slot] = i - low + 1
            counts[i - low] = 0
            counts[table[slot] - 1] += signs[i] * sign
        for i in range(low, high):
            for _ in range(counts[i - low]):
                places[n] = i
                n += 1
        low = high
    return n


class DeltaRun:
    """Changes of rows: `signs` is 1 where a row is added and -1 where one is removed."""

    __slots__ = ("rows", "signs", "ticks")

    def __init__(self, rows: Ints, ticks: Ints, signs: Signs) -> None:
        self.rows = rows
        self.ticks = ticks
        self.signs = signs

    @classmethod
    def empty(cls, width: int) -> DeltaRun:
        return cls(no_rows(width), np.empty(0, np.int64), np.empty(0, np.int8))

    @classmethod
    def of_deltas(cls, deltas: Sequence[tuple[int, Delta]], width: int) -> DeltaRun:
        """The run of some deltas, each with its tick; a tick removes rows before it adds rows."""
        tables = [rows for _, delta in deltas for rows in (delta.removed, delta.added)]
        sizes = [table.shape[0] for table in tables]
        ticks = np.repeat(np.array([tick for tick, _ in deltas for _ in range(2)], np.int64), sizes)
        signs = np.repeat(np.array([-1, 1] * len(deltas), np.int8), sizes)
        return cls(stack_rows(tables, width), ticks, signs)

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def with_rows(self, rows: Ints) -> DeltaRun:
        """The same changes of other rows, one for each."""
        return DeltaRun(rows, self.ticks, self.signs)

    def select(self, places: Mask | Ints) -> DeltaRun:
        """The changes at some places, which are given in ascending order or as a mask."""
        return DeltaRun(self.rows[places], self.ticks[places], self.signs[places])

    def net_places(self, sign: int) -> Ints:
        """Where the rows are that the changes of a tick add to the bag (1) or remove from it (-1) in the end."""
        rows, places = np.ascontiguousarray(self.rows), np.empty(len(self), np.int64)
        key, largest = np.arange(rows.shape[1], dtype=np.int32), int(_find_largest_tick(self.ticks))
        table, counts = np.empty(2 * largest, np.int64), np.empty(largest, np.int64)
        return places[: _find_net_changes(rows, self.ticks, self.signs, sign, key, table, counts, places)]

    def net(self) -> DeltaRun:
        """The changes without those of a tick that cancel each other."""
        removed, added = self.net_places(-1), self.net_places(1)
        places = np.concatenate((removed, added))
        signs: Signs = np.repeat(np.array([-1, 1], np.int8), [removed.shape[0], added.shape[0]])
        order = self.ticks[places].argsort(kind="stable")
        return DeltaRun(self.rows[places[order]], self.ticks[places[order]], signs[order])

    def split(self, tick_count: int) -> Iterator[Delta]:
        """The delta of each tick."""
        for low, high in pairwise(self.ticks.searchsorted(np.arange(tick_count + 1)).tolist()):
            yield self.delta_between(low, high)

    def delta_between(self, low: int, high: int) -> Delta:
        """The changes from one place to another as a delta."""
        rows, is_added = self.rows[low:high], self.signs[low:high] > 0
        return Delta(rows[is_added], rows[~is_added])


def apply_by_ticks(apply: Callable[[Sequence[Delta]], Delta], runs: Sequence[DeltaRun], width: int) -> DeltaRun:
    """Apply runs tick by tick, leaving out the ticks that change no input.

    A row that comes and goes within a tick is left out: an operator might remove it from its result before it adds it.
    """
    if not any(map(len, runs)):
        return DeltaRun.empty(width)
    net = [run.net() for run in runs]
    return DeltaRun.of_deltas([(tick, apply(deltas)) for tick, deltas in _deltas_by_tick(net)], width)


def _deltas_by_tick(runs: Sequence[DeltaRun]) -> Iterator[tuple[int, list[Delta]]]:
    ticks = np.unique(np.concatenate([run.ticks for run in runs]))
    bounds = [[*run.ticks.searchsorted(ticks).tolist(), len(run)] for run in runs]
    for place, tick in enumerate(ticks.tolist()):
        yield tick, [run.delta_between(bound[place], bound[place + 1]) for run, bound in zip(runs, bounds, strict=True)]


def merge_runs(runs: Sequence[DeltaRun]) -> tuple[Ints, Ints]:
    """The changes of some runs in the order of their ticks: the run of each, and its place in all runs put together.

    Within a tick the changes of one run follow those of another.
    """
    sources = np.repeat(np.arange(len(runs)), [len(run) for run in runs])
    if sum(len(run) > 0 for run in runs) < 2:
        return sources, np.arange(sources.shape[0])
    order = np.concatenate([run.ticks for run in runs]).argsort(kind="stable")
    return sources[order], order


def concat_runs(runs: Sequence[DeltaRun], width: int) -> DeltaRun:
    """The changes of all runs, in the order of their ticks."""
    _, order = merge_runs(runs)
    ticks = np.concatenate([run.ticks for run in runs])
    signs = np.concatenate([run.signs for run in runs])
    return DeltaRun(stack_rows([run.rows for run in runs], width), ticks, signs).select(order)
