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

Variables that inputs share must be bound in all rows; `CompatibleJoinOperator` is for those that may be unbound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from copy import copy

import numpy as np

from headwater.kernel.columns.delta import Condition, Delta, stack_rows
from headwater.kernel.columns.delta_run import DeltaRun
from headwater.kernel.columns.prefetching import prefetch
from headwater.kernel.columns.relation import IndexUse, Key, Relation
from headwater.kernel.columns.ring_index import PREFETCH_DISTANCE, Ints, Links, as_contiguous
from headwater.kernel.operators.constant import ConstantOperator
from headwater.kernel.operators.join_candidates import JoinCandidate, group_by_leaf, places_of
from headwater.kernel.operators.join_runs import JoinSource, JoinStep, JoinWay, MergedChanges, RunJoiner
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.self_joins import find_self_joins, symmetry_of
from headwater.terms.compiled_code import compiled

_GOOD_PARTNERS_PER_ROW = 0.5
"""While an input has at most so many partners for each row, no other input is probed."""

_WORTH_SPLITTING = 256
"""A batch is split if that saves so many partners: each part costs as much as some hundred rows."""

_WORTH_LOOKING_AHEAD = 256
"""From so many partners on, the last input is probed before rows are joined; fewer are joined faster."""

_FEW_ROWS = 256
"""Up to so many results are kept for a reset, and so many rows cleared in place; more results are found if needed."""

_STRETCH = 8192
"""For so many changes of a run the probing order stays the same."""

_ENOUGH_PROBES = 32
"""From so many probes on, the number of partners that they found is used."""

_TICKS_BETWEEN_REVIEWS = 64
"""After so many ticks unused indexes are dropped."""

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


class MultiwayJoinOperator(Operator):
    """Joins any number of inputs and keeps the results that satisfy `condition`.

    `order` fixes the probing order, for comparison: of the inputs that share a variable with those joined so far, the
    first in this order comes next. An index with more than `inserts_per_probe` inserts for each probe is dropped until
    it is needed again (CQ7): a window that moves a lot and is seldom probed does without. None keeps all indexes.
    """

    def __init__(
        self,
        inputs: Sequence[Operator],
        variables: tuple[str, ...],
        *,
        order: tuple[int, ...] | None = None,
        inserts_per_probe: float | None = 100.0,
        condition: Condition | None = None,
    ) -> None:
        self.variables = variables
        self.condition = condition
        self.order = order
        self.steps: Counter[tuple[int, int]] = Counter()
        """How many rows, of so many joined inputs, were joined with which input next."""
        self._inputs = tuple(inputs)
        self._relations = [Relation(len(one.variables)) for one in inputs]
        self._all_joined = (1 << len(self._inputs)) - 1
        self.result_count = 0
        self._few_results: list[Ints] | None = []
        """The values of all results, while they are few and none was removed alone."""
        self._candidates: dict[int, tuple[JoinCandidate, ...]] = {}
        self._static_inputs = [i for i, one in enumerate(inputs) if isinstance(one, ConstantOperator)]
        self._changing_inputs = [i for i, one in enumerate(inputs) if not isinstance(one, ConstantOperator)]
        self._reducers = [
            [self._candidate(1 << i, j) for j in self._static_inputs if i != j] for i in range(len(inputs))
        ]
        # Inputs that static inputs reduce have no longer the same rows.
        self._self_joins = find_self_joins(inputs, [i for i in self._changing_inputs if not any(self._reducers[i])])
        self._symmetry = symmetry_of(inputs, self._self_joins)
        for i, second in self._self_joins.items():
            self._changing_inputs.remove(second)
            self._relations[second] = self._relations[i]
        self._has_static_rows = False
        self._nothing = Delta.empty(len(variables))
        self._inserts_per_probe = inserts_per_probe
        self._ticks_until_review = _TICKS_BETWEEN_REVIEWS
        self._sources = self._find_sources(variables)
        self._joiner: RunJoiner | None = None
        self._joiner_key: tuple[object, ...] = ()
        self._partners_per_probe: dict[JoinStep, float] = {}

    def _inputs_sharing(self, i: int) -> tuple[int, ...]:
        """The inputs that share the relation of one."""
        return (i, self._self_joins[i]) if i in self._self_joins else (i,)

    def _find_sources(self, variables: tuple[str, ...]) -> tuple[tuple[int, Links, Links], ...]:
        """The leaves that hold the values of the results: their columns, and the places of the values."""
        holders = []
        for variable in variables:
            i, one = next((i, one) for i, one in enumerate(self._inputs) if variable in one.variables)
            holders.append((i, one.column_of(variable)))
        return group_by_leaf(holders)

    def advance(self) -> Delta:
        return self.apply([self._inputs[i].advance() for i in self._changing_inputs])

    def apply(self, deltas: Sequence[Delta]) -> Delta:
        """The change of the results, from the deltas of the inputs that can change."""
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

    def advance_run(self) -> DeltaRun:
        return self.apply_run([self._inputs[i].advance_run() for i in self._changing_inputs])

    def apply_run(self, runs: Sequence[DeltaRun]) -> DeltaRun:
        if len(self._inputs) == 1 or not any(map(len, runs)):
            return super().apply_run(runs)
        changes = MergedChanges.of_runs(runs)
        stretches = range(0, len(changes.ticks), _STRETCH)
        joined = [self._choose_joiner().join(changes, low, low + _STRETCH) for low in stretches]
        made_by = np.concatenate([makers for _, makers in joined])
        run = DeltaRun(np.concatenate([rows for rows, _ in joined]), changes.ticks[made_by], changes.signs[made_by])
        if self.condition is not None and len(run):
            run = run.select(self.condition(run.rows))
        self.result_count += int(run.signs.sum())
        self._few_results = None if self.result_count else []
        return run

    def _choose_joiner(self) -> RunJoiner:
        """What joins the next changes: each way probes first where earlier probes found the fewest partners."""
        if self._joiner is not None:
            self._record_steps(self._joiner)
        joiner_sources = tuple(self._join_source(i) for i in self._changing_inputs)
        relations = tuple(map(id, self._relations))
        if self._joiner is None or (joiner_sources, relations) != self._joiner_key:
            outputs = places_of(self._sources, len(self.variables))
            self._joiner = RunJoiner(self._relations, joiner_sources, outputs)
            self._joiner_key = (joiner_sources, relations)
        return self._joiner

    def _record_steps(self, joiner: RunJoiner) -> None:
        """Take over what the last changes found."""
        for place, (depth, step) in enumerate(joiner.steps):
            probes, partners = joiner.measures[place].tolist()
            self.steps[depth, step.input_index] += probes
            if probes >= _ENOUGH_PROBES:
                self._partners_per_probe[step] = partners / probes
        joiner.measures[:] = 0

    def _join_source(self, i: int) -> JoinSource:
        """How rows of an input are joined in a run."""
        screens = tuple(
            JoinStep(one.input_index, one.key, one.places()) for one in self._reducers[i] if one is not None
        )
        second = self._self_joins.get(i)
        ways = [JoinWay(i, -1, self._best_steps(i))]
        if second is not None:
            ways.append(JoinWay(second, i, self._best_steps(second)))
        return JoinSource(i, tuple(ways), screens)

    def _best_steps(self, i: int) -> tuple[JoinStep, ...]:
        """The probes that join a row of an input with all others, those with the fewest partners first."""
        joined, steps = 1 << i, []
        while joined != self._all_joined:
            remaining = [j for j in self.order or range(len(self._inputs)) if not joined >> j & 1]
            candidates = [one for j in remaining if (one := self._candidate(joined, j)) is not None]
            if candidates:
                possible = [JoinStep(one.input_index, one.key, one.places()) for one in candidates]
            else:
                possible = [JoinStep(j, (), ()) for j in remaining]
            best = possible[0] if self.order is not None else min(possible, key=self._expected_partners)
            steps.append(best)
            joined |= 1 << best.input_index
        return tuple(steps)

    def _expected_partners(self, step: JoinStep) -> float:
        """How many partners a probe finds in the mean: as measured, or all rows divided among the keys."""
        measured = self._partners_per_probe.get(step)
        return self._relations[step.input_index].mean_ring(step.key) if measured is None else measured

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

    def _review_indexes(self) -> None:
        """Every so many ticks, drop the indexes that are hardly probed."""
        self._ticks_until_review -= 1
        if not self._ticks_until_review and self._inserts_per_probe is not None:
            self._ticks_until_review = _TICKS_BETWEEN_REVIEWS
            for relation in self._relations:
                relation.review(self._inserts_per_probe)

    def _load_static(self, i: int) -> list[Ints]:
        """Load the rows of a static input, or share the relation if it is a view and streams are joined with it."""
        static = self._inputs[i]
        assert isinstance(static, ConstantOperator)
        view = static.take_relation() if self._changing_inputs else None
        if view is None:
            return self._add_rows(i, static.advance().added, {})
        self._relations[i] = view
        return []

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
                empty = Relation(len(self._inputs[i].variables))
                for input_index in self._inputs_sharing(i):
                    self._relations[input_index] = empty
        return removed

    def _with_relations(self, relations: list[Relation]) -> MultiwayJoinOperator:
        """This join over other relations: as it was before they were exchanged."""
        other = copy(self)
        other._relations, other.steps = relations, Counter()
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
            others = (
                self._join_rows(second, row_ids, probes) if self._symmetry is None else leaf_rows[:, self._symmetry]
            )
            is_given = np.zeros(relation.rows.shape[0], dtype=np.bool_)
            is_given[row_ids] = True
            leaf_rows = np.concatenate((leaf_rows, others[~is_given[others[:, i]]]))
        if not leaf_rows.shape[0]:
            return self._nothing.added
        values = self._fetch_values(leaf_rows)
        return values if self.condition is None else values[self.condition(values)]

    def _join_rows(self, i: int, row_ids: Ints, probes: Probes) -> Ints:
        """Join some rows of an input with the rows of all others."""
        leaf_rows = np.zeros((row_ids.shape[0], len(self._inputs)), dtype=np.int64)
        leaf_rows[:, i] = row_ids
        return stack_rows(self._join_rest(leaf_rows, 1 << i, probes), len(self._inputs))

    def _join_rest(self, leaf_rows: Ints, joined: int, earlier_probes: Probes) -> list[Ints]:
        """Join rows with all remaining inputs, in the order that is best for each row."""
        if joined == self._all_joined:
            return [leaf_rows]
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

    def _join_only_candidate(self, leaf_rows: Ints, to: JoinCandidate, holder: int) -> list[Ints]:
        """Join rows with the only input that may come next."""
        relation = self._relations[to.input_index]
        if not relation.size:
            return []
        self.steps[to.joined.bit_count() - 1, to.input_index] += leaf_rows.shape[0]
        leaves = self._relations[holder].rows
        extended = relation.index(to.key).join_leaf(
            relation.rows, leaves, leaf_rows, holder, to.columns, to.input_index
        )
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

    def _candidate(self, joined: int, input_index: int) -> JoinCandidate | None:
        """An input as the next one to join; None if it shares no variable with those joined so far."""
        shared = [
            (column, holder)
            for column, variable in enumerate(self._inputs[input_index].variables)
            if (holder := self._holder(variable, joined)) is not None
        ]
        if not shared:
            return None
        key = tuple(column for column, _ in shared)
        holders = tuple(holder for _, holder in shared)
        is_single_leaf = len({leaf for leaf, _ in holders}) == 1
        columns = np.array([column for _, column in holders] if is_single_leaf else range(len(key)), dtype=np.int32)
        only = holders[0][0] if is_single_leaf else None
        return JoinCandidate(input_index, key, only, columns, group_by_leaf(holders), joined | 1 << input_index)

    def _holder(self, variable: str, joined: int) -> tuple[int, int] | None:
        """The input and column, among those joined so far, that hold a variable."""
        for i, one in enumerate(self._inputs):
            if joined >> i & 1 and variable in one.variables:
                return i, one.column_of(variable)
        return None

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
        extended = np.repeat(leaf_rows, rows.shape[0], axis=0)
        extended[:, j] = np.tile(rows, leaf_rows.shape[0])
        return self._join_rest(extended, joined | 1 << j, {})

    def _fetch_values(self, leaf_rows: Ints) -> Ints:
        """The values of results, read from the leaves."""
        values = np.empty((leaf_rows.shape[0], len(self.variables)), dtype=np.int64)
        for i, columns, places in self._sources:
            _fetch(self._relations[i].rows, leaf_rows, i, columns, places, values)
        return values

    def index_uses(self) -> dict[int, list[IndexUse]]:
        """What the indexes of each input did since the last review."""
        return {i: relation.index_uses() for i, relation in enumerate(self._relations)}

    @property
    def sizes(self) -> list[int]:
        """The number of rows of each input."""
        return [relation.size for relation in self._relations]

    def needs_rows_of(self, source: Operator) -> bool:
        return any(one.needs_rows_of(source) for one in self._inputs)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return self._inputs

    def ids(self) -> Iterable[Ints]:
        """Without static rows: the vocabulary never forgets the terms of static data."""
        return (self._relations[i].ids() for i in self._changing_inputs)

    @property
    def nbytes(self) -> int:
        results = sum(values.nbytes for values in self._few_results or ())
        return results + sum({id(relation): relation.nbytes for relation in self._relations}.values())


_NO_PARTNERS: ProbeResult = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), 0)


def _select_probes(probes: Probes, places: Ints) -> Probes:
    """The probes of some rows, each as often as the row occurs in `places`."""
    selected: Probes = {}
    for input_index, (key, heads, counts, _) in probes.items():
        some = counts[places]
        selected[input_index] = (key, heads[places], some, int(some.sum()))
    return selected
