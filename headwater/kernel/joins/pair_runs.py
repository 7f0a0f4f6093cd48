"""Pairs of compatible rows of two inputs over a run of ticks: one compiled loop over the changes, in their order.

A row that is added is written into its side, then the partners of the other side are looked up; a row that is removed
is looked up first. OPTIONAL, MINUS, EXISTS and the join of rows with unbound variables are made of these pairs.

Row ids that become free in a stretch of changes are not used again in it: until the next stretch, the values of every
row that a pair names can be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from headwater.kernel.columns.array_addresses import links_at
from headwater.kernel.columns.delta import Mask
from headwater.kernel.columns.delta_run import DeltaRun, Signs
from headwater.kernel.columns.larger_arrays import enlarge_ints
from headwater.kernel.columns.ring_index import Ints, Links, ring_head, ring_size
from headwater.kernel.joins.compatibility import JoinSide, MaskProbe
from headwater.kernel.joins.join_runs import MergedChanges
from headwater.kernel.joins.relation_tables import (
    KEY_WIDTH,
    LINK_WIDTH,
    LINKS,
    RelationTables,
    add_row,
    probe_index,
    remove_from_indexes,
    rows_of,
    take_indexed_row,
    take_oldest_row,
)
from headwater.terms.compiled_code import compiled
from headwater.values.query_guard import check_rows

_MANY_PAIRS = 1 << 20
"""After so many pairs a stretch ends, so that they can be used before there are more."""
_INDEX, _MASK, _COLUMNS = range(3)
"""The fields of a probe: by which index, the mask that partners have, and where the columns of its key begin."""


@compiled
def _find_pairs(  # type: ignore[no-untyped-def]
    n, begun, sources, signs, offsets, values, relations, indexes, keys, kind_numbers, probe_bounds, probes, columns,
    row_ids, freed, freed_count, partners, finders, count, probe, whole
):  # fmt: skip
    """Apply changes from `n` on, of which the first was begun up to a probe if `begun` has its number, not -1.

    Gives the change that it stopped at, the probe for whose pairs there is no room, or -1, and the new counts.
    """
    while n < sources.shape[0]:
        side = sources[n]
        rows = rows_of(relations, side)
        offset = offsets[n]
        is_added = signs[n] > 0
        first = probe_bounds[kind_numbers[n]]
        if begun >= 0:
            first, row, begun = begun, row_ids[n], np.int64(-1)
        else:
            if count >= _MANY_PAIRS:
                break
            if is_added:
                row = add_row(relations, indexes, keys, side, rows, values, offset)
            else:
                row = take_oldest_row(relations, side, rows, values, offset)
                if row < 0:
                    row = take_indexed_row(relations, indexes, keys, side, rows, values, offset, probe, whole)
                    if row < 0:
                        break
            row_ids[n] = row
        for p in range(first, probe_bounds[kind_numbers[n] + 1]):
            index = probes[p, _INDEX]
            probe[0, 0] = probes[p, _MASK]
            for c in range(1, indexes[index, KEY_WIDTH]):
                probe[0, c] = values[offset + columns[probes[p, _COLUMNS] + c - 1]]
            entry = probe_index(relations, indexes, keys, index, probe, whole)
            if count + ring_size(entry) > partners.shape[0]:
                return n, np.int64(p), count, freed_count
            partner = ring_head(entry)
            for remaining in range(ring_size(entry), 0, -1):
                partners[count] = partner
                finders[count] = n
                count += 1
                if remaining > 1:
                    links = links_at(indexes[index, LINKS], partner + 1, indexes[index, LINK_WIDTH])
                    partner = np.int64(links[partner, 0])
        if not is_added:
            remove_from_indexes(relations, indexes, keys, side, rows, row)
            freed[freed_count, 0] = side
            freed[freed_count, 1] = row
            freed_count += 1
        n += 1
    return n, np.int64(-1), count, freed_count


@compiled(makes_arrays=True)
def _pair_changes(  # type: ignore[no-untyped-def]
    start, sources, signs, offsets, values, relations, indexes, keys, kind_numbers, probe_bounds, probes, columns,
    row_ids, freed
):  # fmt: skip
    """Apply changes from `start` on. Gives the partners, the change that found each, and the change that it stopped at.

    `row_ids` gets the row of each change, `freed` the rows that were removed. It stops before a removal of a row that
    is not the oldest, if the side has no index of whole rows yet; and when there are many pairs.
    """
    whole = np.arange(keys.shape[0] + 1).astype(np.int32)
    probe = np.empty((1, keys.shape[0] + 1), np.int64)
    partners = np.empty(1024, np.int64)
    finders = np.empty(1024, np.int64)
    n, begun, count, freed_count = start, np.int64(-1), 0, 0
    while True:
        n, begun, count, freed_count = _find_pairs(
            n, begun, sources, signs, offsets, values, relations, indexes, keys, kind_numbers, probe_bounds, probes,
            columns, row_ids, freed, freed_count, partners, finders, count, probe, whole,
        )  # fmt: skip
        if begun < 0:
            return partners[:count], finders[:count], freed_count, n
        partners, finders = enlarge_ints(partners), enlarge_ints(finders)


@dataclass(frozen=True, slots=True)
class PairStretch:
    """The changes of a run from `low` to `high`, and the pairs that they made or removed.

    `row_ids` has the row of each change. A pair is a left row, a right row, and the place of the change that found it;
    it comes or goes with the sign of that change.
    """

    changes: MergedChanges
    low: int
    high: int
    row_ids: Ints
    left_rows: Ints
    right_rows: Ints
    places: Ints

    @property
    def is_from_left(self) -> Mask:
        """For each change of the stretch, whether it is one of the left input."""
        is_from_left: Mask = self.changes.sources[self.low : self.high] == 0
        return is_from_left

    @property
    def signs(self) -> Signs:
        """For each change of the stretch, 1 if a row is added and -1 if one is removed."""
        return self.changes.signs[self.low : self.high]

    def make_run(self, rows: Ints, places: Ints, signs: Signs) -> DeltaRun:
        """A run of output rows: row i has the sign `signs[i]` and the tick of the change `places[i]` of the stretch."""
        order = places.argsort(kind="stable")
        ticks = self.changes.ticks[self.low : self.high]
        return DeltaRun(rows[order], ticks[places[order]], signs[order])


class PairFinder:
    """Joins the changes of two inputs over many ticks: gives the pairs of compatible rows that come and go.

    `columns` has the columns of the variables that both inputs have: those in the left input, those in the right one.
    """

    def __init__(self, left: JoinSide, right: JoinSide, columns: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
        self._sides = (left, right)
        self._columns = columns

    def find(self, runs: Sequence[DeltaRun]) -> Iterator[PairStretch]:
        """Apply the runs of both inputs to their rows; gives the pairs, stretch of changes by stretch.

        The row ids of a stretch may be used for other rows once the next stretch is asked for.
        """
        masked = [run.with_rows(side.add_masks(run.rows)) for side, run in zip(self._sides, runs, strict=True)]
        changes = MergedChanges.of_runs(masked)
        end = changes.sources.shape[0]
        # A kind of change is a side and a mask.
        kinds, kind_numbers = np.unique(changes.values[changes.offsets] << 1 | changes.sources, return_inverse=True)
        for side, run in zip(self._sides, masked, strict=True):
            side.count_masks(run.rows[run.signs > 0], 1)
        low = count = 0
        while low < end:
            # There is room in indexes for the changes that come after they were made.
            probes = self._list_probes(kinds.tolist())
            for number, side in enumerate(self._sides):
                signs = changes.signs[low:][changes.sources[low:] == number]
                added = int((signs > 0).sum())
                side.relation.reserve(added, signs.shape[0] - added)
                side.relation.record_inserts(added)
            tables = RelationTables([side.relation for side in self._sides])
            row_ids, freed = np.empty(end, np.int64), np.empty((end - low, 2), np.int64)
            partners, finders, freed_count, high = _pair_changes(
                low, changes.sources, changes.signs, changes.offsets, changes.values, tables.relations, tables.indexes,
                tables.keys, kind_numbers, *self._probe_tables(probes, tables), row_ids, freed,
            )  # fmt: skip
            tables.store()
            if high == low:
                self._sides[int(changes.sources[low])].relation.index_rows()
                continue
            count += partners.shape[0]
            check_rows(count, 3)
            is_left, own_rows = changes.sources[finders] == 0, row_ids[finders]
            lefts, rights = np.where(is_left, own_rows, partners), np.where(is_left, partners, own_rows)
            yield PairStretch(changes, low, high, row_ids[low:high], lefts, rights, finders - low)
            released = freed[:freed_count]
            for number, side in enumerate(self._sides):
                side.relation.release(released[released[:, 0] == number, 1])
            low = high
        for side, run in zip(self._sides, masked, strict=True):
            side.count_masks(run.rows[run.signs < 0], -1)

    def _list_probes(self, kinds: Sequence[int]) -> dict[int, list[MaskProbe]]:
        """What is probed for a change of each kind; the indexes are there afterwards."""
        return {kind: self._sides[1 - (kind & 1)].list_probes(kind >> 1, self._columns[kind & 1]) for kind in kinds}

    def _probe_tables(self, by_kind: dict[int, list[MaskProbe]], tables: RelationTables) -> tuple[Ints, Ints, Links]:
        """Probes as tables of integers: where those of each kind begin, the probes, and the columns of their keys."""
        probes: list[tuple[int, int, int]] = []
        columns: list[int] = []
        bounds = [0]
        for kind, of_kind in by_kind.items():
            for probe in of_kind:
                probes.append((tables.index_number(1 - (kind & 1), probe.index_key), probe.mask, len(columns)))
                columns.extend(probe.columns)
            bounds.append(len(probes))
        return np.array(bounds), np.array(probes, np.int64).reshape(len(probes), 3), np.array(columns, np.int32)
