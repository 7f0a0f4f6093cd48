"""How many partners each left row has on the right: what OPTIONAL, MINUS and EXISTS share (OA9).

    n(μ, R) = | { μ' ∈ R | μ' ~ μ and the condition holds for μ ∪ μ' } |        n(μ, R + ΔR) = n(μ, R) + n(μ, ΔR)

The printed equations 8 and 9 of the paper are corrected here. A left row that is removed takes the output rows that it
made with it, those with partners or the one without: it never adds one. A right row that is removed changes the output
for a left row without partners only if it was the last partner. Both follow from the counts.
State: both inputs, and one count for each left row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from headwater.kernel.columns.delta import Condition, Delta, no_rows, stack_rows
from headwater.kernel.columns.delta_run import DeltaRun, Signs
from headwater.kernel.columns.ring_index import Ints, Links
from headwater.kernel.columns.row_ids import enlarge, grow_capacity
from headwater.kernel.joins.compatibility import JoinSide, MappingLayout, Pairs
from headwater.kernel.joins.pair_runs import PairFinder, PairStretch
from headwater.kernel.operators.operator import Operator
from headwater.terms.compiled_code import compiled


@dataclass(slots=True)
class DeltaBuilder:
    """Collects the rows of a delta, table by table."""

    added: list[Ints] = field(default_factory=list)
    removed: list[Ints] = field(default_factory=list)

    def build(self, width: int) -> Delta:
        return Delta(stack_rows(self.added, width), stack_rows(self.removed, width))


@dataclass(slots=True)
class MatchChanges:
    """The deltas of the left rows without a partner, of the left rows with one or more, and of the joined rows."""

    unmatched: DeltaBuilder = field(default_factory=DeltaBuilder)
    matched: DeltaBuilder = field(default_factory=DeltaBuilder)
    joined: DeltaBuilder = field(default_factory=DeltaBuilder)


@compiled
def _count_in_turn(counts, is_from_left, signs, row_ids, lefts, places, events):  # type: ignore[no-untyped-def]
    """Count the partners of left rows, change by change; gives the number of `events`.

    An event is the place of a change, a left row, and by how much that changes the left rows without a partner and
    those with one or more.
    """
    n, pair = 0, 0
    for change in range(row_ids.shape[0]):
        first = pair
        while pair < places.shape[0] and places[pair] == change:
            pair += 1
        if is_from_left[change]:
            row, sign = row_ids[change], signs[change]
            if sign > 0:
                counts[row] = pair - first
            events[n, 0], events[n, 1], events[n, 2], events[n, 3] = change, row, sign, 0
            if counts[row]:
                events[n, 2], events[n, 3] = 0, sign
            n += 1
            continue
        for i in range(first, pair):
            before = counts[lefts[i]]
            counts[lefts[i]] = after = before + signs[change]
            if before == 0 or after == 0:
                became_unmatched = 1 if after == 0 else -1
                events[n, 0], events[n, 1], events[n, 2], events[n, 3] = (
                    change, lefts[i], became_unmatched, -became_unmatched,
                )  # fmt: skip
                n += 1
    return n


@dataclass(frozen=True, slots=True)
class MatchStretch:
    """What a stretch of changes does to left rows and joined rows.

    Left row `i` comes to those without a partner or goes from them by `unmatched[i]` (1, -1 or 0), and to those with
    one or more by `matched[i]`, with the change at place `places[i]`. Joined rows come and go with the changes at
    `joined_places`.
    """

    pairs: PairStretch
    left_rows: Ints
    places: Ints
    unmatched: Signs
    matched: Signs
    joined: Ints
    joined_places: Ints

    def select_left_rows(self, signs: Signs) -> DeltaRun:
        """The run of left rows, `signs` being `unmatched` or `matched`."""
        some = np.flatnonzero(signs)
        return self.pairs.make_run(self.left_rows[some], self.places[some], signs[some])

    def joined_run(self) -> DeltaRun:
        """The run of the joined rows."""
        return self.pairs.make_run(self.joined, self.joined_places, self.pairs.signs[self.joined_places])


class PartnerCounter:
    """Counts the partners of each left row as both inputs change."""

    def __init__(
        self,
        left: Operator,
        right: Operator,
        layout: MappingLayout,
        condition: Condition | None = None,
        *,
        has_disjoint_partners: bool = True,
        needs_joined_rows: bool = False,
    ) -> None:
        self.inputs = (left, right)
        self._layout = layout
        self._condition = condition
        self._needs_joined_rows = needs_joined_rows
        self._needs_rows = needs_joined_rows or condition is not None
        self._no_rows = no_rows(len(layout.variables))
        self._left = JoinSide(len(left.variables), layout.left_shared, has_disjoint_partners=has_disjoint_partners)
        self._right = JoinSide(len(right.variables), layout.right_shared, has_disjoint_partners=has_disjoint_partners)
        self._pairs = PairFinder(self._left, self._right, (layout.left_shared, layout.right_shared))
        self._counts: Links = np.empty(0, dtype=np.int32)

    def apply(self, deltas: Sequence[Delta]) -> MatchChanges:
        """Follow both inputs. Rows are removed before rows are added, so that no row is joined only to be removed."""
        changes = MatchChanges()
        left_delta, right_delta = deltas
        removed, added = self._left.cancel_and_take(left_delta)
        if removed.shape[0]:
            self._remove_left_rows(removed, changes)
        if not right_delta.is_empty:
            self._change_right_rows(right_delta, changes)
        if added.shape[0]:
            self._add_left_rows(added, changes)
        return changes

    def apply_run(self, runs: Sequence[DeltaRun]) -> Iterator[MatchStretch]:
        """Follow both inputs over a run, of which at least one has changes."""
        for pairs in self._pairs.find(runs):
            lefts, places, joined = pairs.left_rows, pairs.places, self._no_rows
            if self._needs_rows:
                joined = self._layout.join_pairs(self._left.rows(lefts), self._right.rows(pairs.right_rows))
                if self._condition is not None and joined.shape[0]:
                    holds = self._condition(joined)
                    lefts, places, joined = lefts[holds], places[holds], joined[holds]
            self._grow()
            is_from_left = pairs.is_from_left
            events = np.empty((int(is_from_left.sum()) + places.shape[0], 4), np.int64)
            count = _count_in_turn(self._counts, is_from_left, pairs.signs, pairs.row_ids, lefts, places, events)
            changes, rows, unmatched, matched = np.ascontiguousarray(events[:count].T)
            signs: tuple[Signs, Signs] = (unmatched.astype(np.int8), matched.astype(np.int8))
            yield MatchStretch(pairs, self._left.rows(rows), changes, *signs, joined, places)

    def _grow(self) -> None:
        """Make room for the counts of all left rows."""
        if self._left.capacity > self._counts.shape[0]:
            self._counts = enlarge(self._counts, grow_capacity(self._left.capacity, self._counts.shape[0]))

    def _remove_left_rows(self, removed: Ints, changes: MatchChanges) -> None:
        rows = self._left.rows(removed)
        was_matched = self._counts[removed] > 0
        changes.unmatched.removed.append(rows[~was_matched])
        changes.matched.removed.append(rows[was_matched])
        if self._needs_joined_rows:
            changes.joined.removed.append(self._match_left_rows(self._left.masked_rows(removed))[1])

    def _change_right_rows(self, delta: Delta, changes: MatchChanges) -> None:
        """Apply a delta of the right input: pairs won and lost, and left rows that became (un)matched."""
        removed, added = self._right.cancel_and_take(delta)
        lost_pairs, joined = self._match_right_rows(self._right.masked_rows(removed))
        changes.joined.removed.append(joined)
        self._right.add(added)
        won_pairs, joined = self._match_right_rows(added)
        changes.joined.added.append(joined)
        if not lost_pairs.shape[0] and not won_pairs.shape[0]:
            return
        # Each of these lost or won a pair: without a partner after, it had one before, and the other way round.
        left_rows, pair_places = np.unique(np.concatenate((lost_pairs, won_pairs)), return_inverse=True)
        before = self._counts[left_rows].astype(np.int64)
        after = before - np.bincount(pair_places[: lost_pairs.shape[0]], minlength=left_rows.shape[0])
        after += np.bincount(pair_places[lost_pairs.shape[0] :], minlength=left_rows.shape[0])
        self._counts[left_rows] = after
        became_unmatched = self._left.rows(left_rows[after == 0])
        became_matched = self._left.rows(left_rows[before == 0])
        changes.unmatched.added.append(became_unmatched)
        changes.unmatched.removed.append(became_matched)
        changes.matched.added.append(became_matched)
        changes.matched.removed.append(became_unmatched)

    def _add_left_rows(self, added: Ints, changes: MatchChanges) -> None:
        places, joined = self._match_left_rows(added)
        changes.joined.added.append(joined)
        counts = np.bincount(places, minlength=added.shape[0])
        row_ids = self._left.add(added)
        self._grow()
        self._counts[row_ids] = counts
        is_matched = counts > 0
        changes.unmatched.added.append(added[~is_matched, 1:])
        changes.matched.added.append(added[is_matched, 1:])

    def _match_left_rows(self, masked: Ints) -> Pairs:
        """Find the partners of left rows: the place of the left row, for each pair, and joined rows if needed."""
        places, row_ids = self._right.find_partners(masked, self._layout.left_shared)
        if not places.shape[0] or not self._needs_rows:
            return places, self._no_rows
        return self._filter_pairs(places, self._layout.join_pairs(masked[places, 1:], self._right.rows(row_ids)))

    def _match_right_rows(self, masked: Ints) -> Pairs:
        """Find the partners of right rows: the id of the left row, for each pair, and joined rows if needed."""
        places, row_ids = self._left.find_partners(masked, self._layout.right_shared)
        if not places.shape[0] or not self._needs_rows:
            return row_ids, self._no_rows
        return self._filter_pairs(row_ids, self._layout.join_pairs(self._left.rows(row_ids), masked[places, 1:]))

    def _filter_pairs(self, places: Ints, joined: Ints) -> Pairs:
        if self._condition is None:
            return places, joined
        holds = self._condition(joined)
        return places[holds], joined[holds]

    def ids(self) -> tuple[Ints, Ints]:
        """The values of both sides."""
        return self._left.ids(), self._right.ids()

    @property
    def nbytes(self) -> int:
        return self._left.nbytes + self._right.nbytes + self._counts.nbytes
