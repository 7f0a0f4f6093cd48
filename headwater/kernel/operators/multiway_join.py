"""The multiway join with an adaptive probing order (OA1, OA5, OA6; algorithms 3, 4, 5 of the paper).

    (R₁ + ΔR₁) ⋈ … ⋈ (Rₙ + ΔRₙ)  −  R₁ ⋈ … ⋈ Rₙ   =   Σᵢ  R'₁ ⋈ … ⋈ R'ᵢ₋₁ ⋈ ΔRᵢ ⋈ Rᵢ₊₁ ⋈ … ⋈ Rₙ

State: the rows of each input with their ring indexes. Results are not kept. When a row is removed, the probes that
found its results when it was added find them again: that takes less time than to keep each result in a list of each of
its rows (algorithm 3 of the paper), and no memory.

A new row of one input is joined with the other inputs, one after the other. Before each step the ring indexes give the
number of partners in each remaining input without reading a row, and each row is joined with the input where that
number is smallest: rows of one batch may take different orders (`steps` counts them). The count for an input that was
not chosen stays valid until one more of its variables is bound, so no index is probed twice for the same key. The input
that was best last time is probed first; if it has few partners, the others are not probed. An input that shares no
variable with the others comes last. The sum holds for any order of the inputs; the largest come first.

Static inputs reduce the others as semi-joins do: a row without a partner in a static input can never lead to a result,
so it is not kept. The counts that this gives for the other rows are those that their first step needs.

An input that lost all its rows at once (`Delta.is_reset`) removes all results. Where NOW or [TRIPLES 1] is joined, that
happens at every tick: a few results are kept until then, so that nothing is probed.

Two inputs that are one pattern under two names (`self_joins`) share one relation. New rows are joined from the first of
the two and from the second, or, where the join is symmetric, the second results are the first with the two leaves
exchanged. Results in which both rows are new are found twice and counted once.

Comparisons between inputs (`range_conditions`) are part of the condition. Where it pays (`range_choice`), rows have
their order keys as further columns, and ordered indexes give only the partners that a comparison can hold for.

Variables that inputs share must be bound in all rows; `CompatibleJoinOperator` is for those that may be unbound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from copy import copy

import numpy as np

from headwater.kernel.columns.delta import Delta, stack_rows
from headwater.kernel.columns.delta_run import DeltaRun
from headwater.kernel.columns.relation import Key, Relation
from headwater.kernel.columns.ring_index import PREFETCH_DISTANCE, Ints, as_contiguous
from headwater.kernel.joins.join_runs import JoinStep
from headwater.kernel.operators.constant import ConstantOperator
from headwater.kernel.operators.join_candidates import JoinCandidate, group_by_leaf
from headwater.kernel.operators.join_state import ENOUGH_PROBES, JoinState
from headwater.terms.compiled_code import compiled
from headwater.terms.ids.prefetching import prefetch
from headwater.values.query_guard import check_rows

_GOOD_PARTNERS_PER_ROW = 0.5
"""While an input has at most so many partners for each row, no other input is probed."""

_WORTH_SPLITTING = 256
"""A batch is split if that saves so many partners: each part costs as much as some hundred rows."""

_WORTH_LOOKING_AHEAD = 256
"""From so many partners on, the last input is probed before rows are joined; fewer are joined faster."""

_FEW_ROWS = 256
"""Up to so many results are kept for a reset, and so many rows cleared in place; more results are found if needed."""

_FEW_CHANGES = 32
"""Up to so many changes of a tick are joined row by row, in one call (`tick_joiner`)."""

_WORTH_TABLES = 8
"""After so many small ticks, one after the other, tables are made for the next ones."""

_MOST_ROOM = 4096
"""The probing order of small ticks stays the same for at most so many changes."""

_STRETCH = 8192
"""For so many changes of a run the probing order stays the same."""

_SHORT_STRETCH = 1024
"""The same where comparisons may make many more pairs than results."""

ProbeResult = tuple[Ints, Ints, int]
"""What an index knows of some keys: the head of each ring, the number of rows in each, and their sum."""
Probes = dict[int, tuple[Key, Ints, Ints, int]]
"""For each remaining input that was probed: on which columns, and the result."""


@compiled
def _fetch(rows, leaf_rows, leaf, columns, places, values):  # type: ignore[no-untyped-def]
    """Read some columns of the rows of one leaf."""
    for n in range(leaf_rows.shape[0]):
        if n + PREFETCH_DISTANCE < leaf_rows.shape[0]:
            prefetch(rows, leaf_rows[n + PREFETCH_DISTANCE, leaf])
        row = leaf_rows[n, leaf]
        for k in range(columns.shape[0]):
            values[n, places[k]] = rows[row, columns[k]]


class MultiwayJoinOperator(JoinState):
    """Joins any number of inputs and keeps the results that satisfy `condition`.

    `order` fixes the probing order, for comparison: of the inputs that share a variable with those joined so far, the
    first in this order comes next. An index with more than `inserts_per_probe` inserts for each probe is dropped until
    it pays again (CQ7): a window that moves a lot and is seldom probed is scanned instead. None keeps all indexes.
    `ranges` are comparisons between inputs that hold where the condition does.
    """

    def advance(self) -> Delta:
        joiner = self._tick_joiner
        if joiner is not None:
            deltas = [reader.advance() for reader in joiner.readers]
            if all([delta.is_empty for delta in deltas]):
                return self._nothing
            results = joiner.join(deltas) if self._are_few(deltas) else None
            if results is not None:
                return self._apply_results(*results, is_reset=any([delta.is_reset for delta in deltas]))
            self._tick_room = min(2 * self._tick_room, _MOST_ROOM)
            deltas = [
                one.advance() if is_window else delta
                for one, is_window, delta in zip(self.changing_inputs, joiner.reads_windows, deltas, strict=True)
            ]
            self._close_tick_joiner()
            self._drop_unused_indexes()
        else:
            deltas = [one.advance() for one in self.changing_inputs]
        self._small_ticks = self._small_ticks + 1 if self._are_few(deltas) else 0
        delta = self.apply(deltas)
        if self._small_ticks >= _WORTH_TABLES and not self.ranges.conditions and len(self._inputs) > 1:
            self._open_tick_joiner()
        return delta

    def _are_few(self, deltas: Sequence[Delta]) -> bool:
        """Whether a tick changes so few rows that it is joined row by row."""
        changes = 0
        for place, delta in enumerate(deltas):
            changes += delta.added.shape[0]
            if not delta.is_computed_later:
                changes += delta.removed.shape[0]
            elif self._tick_joiner is not None:
                changes += self._tick_joiner.size_of(place)
            else:
                changes += self._all_relations[self._changing_inputs[place]].size
        return changes <= _FEW_CHANGES

    def _apply_results(self, removed: Ints, added: Ints, *, is_reset: bool) -> Delta:
        """The change of the results, where those that are removed and added are known.

        With `is_reset`, an input lost all its rows. So did the join: rows that come back are news to those who read it.
        """
        if self.condition is not None:
            removed = removed[self.condition(removed)] if removed.shape[0] else removed
            added = added[self.condition(added)] if added.shape[0] else added
        if not removed.shape[0] and not added.shape[0]:
            return self._nothing
        self.result_count += added.shape[0] - removed.shape[0]
        self._few_results = None if self.result_count else []
        return Delta(added, removed, is_reset=is_reset)

    def apply(self, deltas: Sequence[Delta]) -> Delta:
        """The change of the results, from the deltas of the inputs that can change."""
        if self.ranges.conditions:
            self._review_ranges()
            if self.range_choice.is_ordered:
                deltas = [self._widen_delta(i, delta) for i, delta in zip(self._changing_inputs, deltas, strict=True)]
        removed: list[Ints] = []
        added: list[Ints] = []
        if not self._has_static_rows:
            self._has_static_rows = True
            for i in self._static_inputs:
                added.extend(self._load_static(i))
        changes = list(zip(self._changing_inputs, deltas, strict=True))
        reset = [i for i, delta in changes if delta.is_reset]
        before = self._reset_inputs(reset) if reset else None
        arrivals: list[tuple[int, Ints, Probes]] = []
        for i, delta in changes:
            rows = delta.added if delta.is_reset else self._apply_removals(i, delta, removed)
            if rows.shape[0]:
                rows, probes = self._reduce_by_static_inputs(i, rows)
                if rows.shape[0]:
                    arrivals.append((i, rows, probes))
        # While an input is empty, rows added to the others give no results: the smallest input is last.
        if len(arrivals) > 1:
            arrivals.sort(key=lambda arrival: -self._relations[arrival[0]].size)
        for i, rows, probes in arrivals:
            added.extend(self._add_rows(i, rows, probes))
        self._review_indexes()
        width = len(self.variables)
        if before is not None and before is not self._nothing.removed:
            return Delta(stack_rows(added, width), before, is_reset=True)
        if not added and not removed:
            return self._nothing
        return Delta(stack_rows(added, width), stack_rows(removed, width))

    def apply_run(self, runs: Sequence[DeltaRun]) -> DeltaRun:
        if len(self._inputs) == 1 or not any(map(len, runs)):
            return super().apply_run(runs)
        changes = self._merge_runs(runs)
        rows: list[Ints] = []
        makers: list[Ints] = []
        low = count = 0
        while low < len(changes.ticks):
            if self._review_ranges():
                changes = self._merge_runs(runs)
            stretch = _SHORT_STRETCH if self.ranges.conditions else _STRETCH
            some, their_makers, after = self._choose_joiner().join(changes, low, low + stretch)
            pairs = some.shape[0]
            if self.condition is not None:
                kept = self.condition(some)
                some, their_makers = some[kept], their_makers[kept]
            if self.ranges.conditions:
                counts = np.bincount(changes.sources[low:after], minlength=len(runs)).tolist()
                self._record_pairs(dict(zip(self._changing_inputs, counts, strict=True)), pairs, some.shape[0])
            rows.append(some)
            makers.append(their_makers)
            count += some.shape[0]
            check_rows(count, len(self.variables) + 1)
            low = after
        made_by = np.concatenate(makers)
        run = DeltaRun(stack_rows(rows, len(self.variables)), changes.ticks[made_by], changes.signs[made_by])
        self.result_count += int(run.signs.sum())
        self._few_results = None if self.result_count else []
        assert self._joiner is not None
        self._record_steps(self._joiner)
        self._drop_unused_indexes()
        return run

    def _apply_removals(self, i: int, delta: Delta, removed: list[Ints]) -> Ints:
        """Remove rows from an input and append the results they made to `removed`; gives the rows still to add."""
        rows, relation = delta.added, self._relations[i]
        # An empty relation that gets no rows never kept the rows that are removed.
        if not delta.removed.shape[0] or not (rows.shape[0] or relation.size):
            return rows
        row_ids, rows = self._locate_rows(i, rows, delta.removed)
        if row_ids.shape[0]:
            results = self._results_of(i, row_ids, {})
            relation.discard(row_ids)
            if results.shape[0]:
                self.result_count -= results.shape[0]
                self._few_results = None
                removed.append(results)
        return rows

    def _load_static(self, i: int) -> list[Ints]:
        """Load the rows of a static input, or share the relation if it is a view and streams are joined with it."""
        static = self._inputs[i]
        assert isinstance(static, ConstantOperator)
        view = static.take_relation() if self._changing_inputs else None
        if view is None:
            rows = static.advance().added
        elif self._relations[i].width > view.width:
            rows = view.in_order_of_arrival()
        else:
            self._relations[i] = view
            return []
        return self._add_rows(i, self.ranges.widen(i, rows) if self.range_choice.is_ordered else rows, {})

    def _reset_inputs(self, reset: list[int]) -> Ints | Callable[[], Ints]:
        """Empty some inputs, and with them the results; gives the results that there were."""
        relations, few = list(self._relations), self._few_results
        smallest = min(reset, key=lambda i: relations[i].size)
        rows = sum(relations[i].size for i in reset)
        had_results, self.result_count, self._few_results = self.result_count > 0, 0, []
        if not had_results:
            removed: Ints | Callable[[], Ints] = self._nothing.removed
        elif few is not None:
            removed = stack_rows(few, len(self.variables))
        elif rows <= _FEW_ROWS or len(reset) < len(self._changing_inputs):
            # The other inputs will change, and then they have other results.
            removed = self._results_of(smallest, relations[smallest].live(), {})
        else:
            before = self._with_relations(relations)
            removed = lambda: before._results_of(smallest, relations[smallest].live(), {})  # noqa: E731
        for i in reset:
            if rows <= _FEW_ROWS:
                relations[i].clear()
            else:
                empty = self._empty_relation(i)
                for input_index in self._inputs_sharing(i):
                    self._relations[input_index] = empty
        return removed

    def _with_relations(self, relations: list[Relation]) -> MultiwayJoinOperator:
        """This join over other relations: as it was before they were exchanged."""
        other = copy(self)
        other._all_relations, other.steps = relations, Counter()
        return other

    def _locate_rows(self, i: int, added: Ints, removed: Ints) -> tuple[Ints, Ints]:
        """Find rows that are to be removed; gives their row ids, and the added rows that removed ones do not cancel."""
        relation = self._relations[i]
        row_ids = relation.locate_oldest(removed)
        if row_ids is not None:
            return row_ids, added
        removed, _ = self._reduce_by_static_inputs(i, removed)
        return relation.cancel_and_locate(added, removed)

    def _reduce_by_static_inputs(self, i: int, rows: Ints) -> tuple[Ints, Probes]:
        """The rows of an input that have a partner in every static input, and the probes that found it."""
        probes: Probes = {}
        for reducer in self._reducers[i]:
            if reducer is None:
                continue
            heads, counts, total = self._probe_rows(reducer, rows)
            probes[reducer.input_index] = (reducer.key, heads, counts, total)
            if total == 0:
                return rows[:0], {}
            if rows.shape[0] == 1:
                continue
            matched = np.flatnonzero(counts)
            if matched.shape[0] < rows.shape[0]:
                rows, probes = rows[matched], _select_probes(probes, matched)
        return rows, probes

    def _probe_rows(self, reducer: JoinCandidate, rows: Ints) -> ProbeResult:
        """Probe a static input for rows that are in no relation yet."""
        relation = self._relations[reducer.input_index]
        if not relation.size:
            return _NO_PARTNERS
        return relation.index(reducer.key).probe(relation.rows, as_contiguous(rows), reducer.columns)

    def _add_rows(self, i: int, rows: Ints, probes: Probes) -> list[Ints]:
        """Add rows to an input; gives the values of the results that they make."""
        results = self._results_of(i, self._relations[i].add(rows), probes)
        if not results.shape[0]:
            return []
        self.result_count += results.shape[0]
        if self._few_results is not None:
            self._few_results.append(results)
            if self.result_count > _FEW_ROWS:
                self._few_results = None
        return [results]

    def _results_of(self, i: int, row_ids: Ints, probes: Probes) -> Ints:
        """The values of the results that some rows of an input make, in which the condition holds."""
        if not all(one.size for one in self._relations):
            return self._nothing.added
        relation, second = self._relations[i], self._self_joins.get(i)
        leaf_rows = self._join_rows(i, row_ids, probes)
        if second is not None and row_ids.shape[0] < relation.size:
            others = leaf_rows[:, self._symmetry] if self.is_symmetric else self._join_rows(second, row_ids, probes)
            is_given = np.zeros(relation.rows.shape[0], dtype=np.bool_)
            is_given[row_ids] = True
            leaf_rows = np.concatenate((leaf_rows, others[~is_given[others[:, i]]]))
        values = self._fetch_values(leaf_rows) if leaf_rows.shape[0] else self._nothing.added
        kept = values if self.condition is None or not leaf_rows.shape[0] else values[self.condition(values)]
        if self.ranges.conditions:
            self._record_pairs({i: row_ids.shape[0]}, values.shape[0], kept.shape[0])
        return kept

    def _join_rows(self, i: int, row_ids: Ints, probes: Probes) -> Ints:
        """Join some rows of an input with the rows of all others."""
        leaf_rows = np.zeros((row_ids.shape[0], len(self._inputs)), dtype=np.int64)
        leaf_rows[:, i] = row_ids
        return stack_rows(self._join_rest(leaf_rows, 1 << i, probes), len(self._inputs))

    def _join_rest(self, leaf_rows: Ints, joined: int, earlier_probes: Probes) -> list[Ints]:
        """Join rows with all remaining inputs, in the order that is best for each row."""
        if joined == self._all_joined:
            return [leaf_rows]
        if self.range_choice.is_ordered:
            if joined not in self._range_steps:
                self._range_steps[joined] = self._best_step(joined)
            step = self._range_steps[joined]
            if step.bounds is not None:
                return self._join_between_bounds(leaf_rows, joined, step)
        candidates = self._candidates_after(joined)
        if not candidates:
            return self._cross_product(leaf_rows, joined)
        if len(candidates) == 1 and not earlier_probes and candidates[0].holder is not None:
            return self._join_only_candidate(leaf_rows, candidates[0], candidates[0].holder)
        probes: Probes = {}
        best, fewest = candidates[0], 0
        for one in candidates:
            probe = earlier_probes.get(one.input_index)
            if probe is None or probe[0] != one.key:
                if probes and fewest <= _GOOD_PARTNERS_PER_ROW * leaf_rows.shape[0]:
                    continue
                probe = (one.key, *self._probe(leaf_rows, one))
            _, _, _, total = probe
            if not probes or total < fewest:
                best, fewest = one, total
            probes[one.input_index] = probe
            if not total:
                break
        if best is not candidates[0]:
            self._candidates[joined] = (best, *(one for one in candidates if one is not best))
        if not fewest:
            return []
        if len(probes) == 1 or leaf_rows.shape[0] == 1:
            return self._join_next(leaf_rows, best, probes)
        return self._join_in_parts(leaf_rows, [one for one in candidates if one.input_index in probes], best, probes)

    def _join_between_bounds(self, leaf_rows: Ints, joined: int, step: JoinStep) -> list[Ints]:
        """Join rows with those of one input that comparisons can hold for, then with the remaining inputs."""
        relation, n = self._relations[step.input_index], leaf_rows.shape[0]
        if not relation.size:
            return []
        self.steps[joined.bit_count(), step.input_index] += n
        probes = np.empty((n, len(step.probe_sources)), dtype=np.int64)
        for i, columns, places in group_by_leaf(step.probe_sources):
            _fetch(self._relations[i].rows, leaf_rows, i, columns, places, probes)
        index = relation.ordered_index(step.index_key)
        extended = index.expand(relation.rows, probes, step.bound_counts, leaf_rows, step.input_index)
        partners = self._partners_per_probe.get(step, extended.shape[0] / n)
        weight = min(1.0, n / ENOUGH_PROBES)
        self._partners_per_probe[step] = partners + weight * (extended.shape[0] / n - partners)
        return self._join_rest(extended, joined | 1 << step.input_index, {}) if extended.shape[0] else []

    def _join_only_candidate(self, leaf_rows: Ints, to: JoinCandidate, holder: int) -> list[Ints]:
        """Join rows with the only input that may come next."""
        relation = self._relations[to.input_index]
        if not relation.size:
            return []
        self.steps[to.joined.bit_count() - 1, to.input_index] += leaf_rows.shape[0]
        leaves = self._relations[holder].rows
        index = relation.index_for(to.key, lambda: leaves[leaf_rows[:, holder]][:, to.columns])
        extended = index.join_leaf(relation.rows, leaves, leaf_rows, holder, to.columns, to.input_index)
        return self._join_rest(extended, to.joined, {}) if extended.shape[0] else []

    def _join_in_parts(
        self, leaf_rows: Ints, candidates: Sequence[JoinCandidate], best: JoinCandidate, probes: Probes
    ) -> list[Ints]:
        """Join each row with the input where it has the fewest partners, or all with the best input."""
        _, _, fewest, _ = probes[candidates[0].input_index]
        choices = np.zeros(fewest.shape[0], dtype=np.int8)
        for place, one in enumerate(candidates[1:], 1):
            _, _, counts, _ = probes[one.input_index]
            choices[counts < fewest] = place
            fewest = np.minimum(fewest, counts)
        _, _, _, best_total = probes[best.input_index]
        if best_total - int(fewest.sum()) < _WORTH_SPLITTING:
            return self._join_next(leaf_rows, best, probes)
        choices[fewest == 0] = -1
        results: list[Ints] = []
        for place, one in enumerate(candidates):
            chosen = np.flatnonzero(choices == place)
            if chosen.shape[0] == leaf_rows.shape[0]:
                return self._join_next(leaf_rows, one, probes)
            if chosen.shape[0]:
                results.extend(self._join_next(leaf_rows[chosen], one, _select_probes(probes, chosen)))
        return results

    def _candidates_after(self, joined: int) -> tuple[JoinCandidate, ...]:
        """The inputs that may come next; the one that was best last time is first."""
        candidates = self._candidates.get(joined)
        if candidates is None:
            candidates = self._candidates[joined] = self._list_candidates(joined)
        return candidates

    def _list_candidates(self, joined: int) -> tuple[JoinCandidate, ...]:
        """The remaining inputs that share a variable with those joined so far."""
        order = range(len(self._inputs)) if self.order is None else self.order
        remaining = (j for j in order if not joined >> j & 1)
        candidates = [candidate for j in remaining if (candidate := self._candidate(joined, j)) is not None]
        return tuple(candidates if self.order is None else candidates[:1])

    def _probe(self, leaf_rows: Ints, to: JoinCandidate) -> ProbeResult:
        relation = self._relations[to.input_index]
        if not relation.size:
            return _NO_PARTNERS
        index = relation.index(to.key)
        if to.holder is not None:
            leaves = self._relations[to.holder].rows
            return index.probe_leaf(relation.rows, leaves, leaf_rows, to.holder, to.columns)
        keys = np.empty((leaf_rows.shape[0], len(to.key)), dtype=np.int64)
        for i, columns, places in to.key_sources:
            _fetch(self._relations[i].rows, leaf_rows, i, columns, places, keys)
        return index.probe(relation.rows, keys, to.columns)

    def _join_next(self, leaf_rows: Ints, to: JoinCandidate, probes: Probes) -> list[Ints]:
        """Join rows with their partners in one input, then with the remaining inputs."""
        _, heads, counts, total = probes.pop(to.input_index)
        self.steps[to.joined.bit_count() - 1, to.input_index] += leaf_rows.shape[0]
        if total == 1 and leaf_rows.shape[0] == 1:
            extended = leaf_rows.copy()
            extended[0, to.input_index] = heads[0]
            return self._join_rest(extended, to.joined, probes)
        index = self._relations[to.input_index].index(to.key)
        last = self._last_candidate(to.joined) if total >= _WORTH_LOOKING_AHEAD else None
        if last is not None and (last.input_index not in probes or probes[last.input_index][0] != last.key):
            return self._join_last_two(leaf_rows, to, last, (heads, counts, total))
        places, extended = index.expand_leaf_rows(leaf_rows, to.input_index, heads, counts, total)
        return self._join_rest(extended, to.joined, _select_probes(probes, places) if probes else probes)

    def _last_candidate(self, joined: int) -> JoinCandidate | None:
        """The last input, if only one remains and several leaves hold the values of its key."""
        if (self._all_joined & ~joined).bit_count() != 1:
            return None
        candidates = self._candidates_after(joined)
        return candidates[0] if candidates and candidates[0].holder is None else None

    def _join_last_two(self, leaf_rows: Ints, to: JoinCandidate, last: JoinCandidate, probe: ProbeResult) -> list[Ints]:
        """Join rows with one input and with the last at once: pairs without a partner in the last are never written."""
        relation, other = self._relations[to.input_index], self._relations[last.input_index]
        known_values = np.empty((leaf_rows.shape[0], len(last.key)), dtype=np.int64)
        columns = np.full(len(last.key), -1, dtype=np.int32)
        for i, of_leaf, key_places in last.key_sources:
            if i == to.input_index:
                columns[key_places] = of_leaf
            else:
                _fetch(self._relations[i].rows, leaf_rows, i, of_leaf, key_places, known_values)
        heads, counts, total = probe
        places, rows = relation.index(to.key).expand_matching(
            relation.rows, heads, counts, total, other.index(last.key), other.rows, (known_values, columns)
        )
        self.steps[last.joined.bit_count() - 1, last.input_index] += total - places.shape[0]
        extended = leaf_rows[places]
        extended[:, to.input_index] = rows
        return self._join_rest(extended, to.joined, {}) if places.shape[0] else []

    def _cross_product(self, leaf_rows: Ints, joined: int) -> list[Ints]:
        """Pair rows with every row of the smallest remaining input, with which they share no variable."""
        remaining = [j for j in self.order or range(len(self._inputs)) if not joined >> j & 1]
        if self.order is None:
            remaining.sort(key=lambda j: self._relations[j].size)
        j = remaining[0]
        rows = self._relations[j].live()
        self.steps[joined.bit_count(), j] += leaf_rows.shape[0]
        check_rows(leaf_rows.shape[0] * rows.shape[0], leaf_rows.shape[1])
        extended = np.repeat(leaf_rows, rows.shape[0], axis=0)
        extended[:, j] = np.tile(rows, leaf_rows.shape[0])
        return self._join_rest(extended, joined | 1 << j, {})

    def _fetch_values(self, leaf_rows: Ints) -> Ints:
        """The values of results, read from the leaves."""
        check_rows(leaf_rows.shape[0], len(self.variables))
        values = np.empty((leaf_rows.shape[0], len(self.variables)), dtype=np.int64)
        for i, columns, places in self._sources:
            _fetch(self._relations[i].rows, leaf_rows, i, columns, places, values)
        return values


_NO_PARTNERS: ProbeResult = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), 0)


def _select_probes(probes: Probes, places: Ints) -> Probes:
    """The probes of some rows, each as often as the row occurs in `places`."""
    selected: Probes = {}
    for input_index, (key, heads, counts, _) in probes.items():
        some = counts[places]
        selected[input_index] = (key, heads[places], some, int(some.sum()))
    return selected
