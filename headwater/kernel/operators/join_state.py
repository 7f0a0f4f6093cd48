"""What a multiway join keeps and measures: the relations of its inputs, their order keys, and which probe is best.

Two inputs that are one pattern under two names share a relation (`self_joins`). While ordered indexes are kept
(`joins.range_choice`), the rows of compared inputs have their order keys as further columns; when that begins or ends,
the relations are exchanged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf

from headwater.kernel.columns.delta import Condition, Delta
from headwater.kernel.columns.delta_run import DeltaRun
from headwater.kernel.columns.relation import IndexUse, Relation
from headwater.kernel.columns.ring_index import Ints, Links
from headwater.kernel.joins.join_runs import JoinSource, JoinStep, JoinWay, MergedChanges, RunJoiner
from headwater.kernel.joins.range_choice import RangeChoice
from headwater.kernel.joins.range_conditions import JoinRanges, RangeCondition
from headwater.kernel.operators.constant import ConstantOperator
from headwater.kernel.operators.join_candidates import (
    JoinCandidate,
    are_connected,
    find_candidate,
    group_by_leaf,
    places_of,
)
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.self_joins import find_self_joins, symmetry_of
from headwater.kernel.operators.tick_joiner import TickJoiner

_LARGEST_COPY = 1 << 20
"""A static input of more rows gets no order keys: they would be columns of a copy."""

_SHARE_WITHIN_BOUNDS = 0.3
"""The share of rows that is expected between bounds before anything was measured."""

ENOUGH_PROBES = 32
"""From so many probes on, the number of partners that they found is used."""

_LEAST_ROOM = 64
"""A `TickJoiner` has room for so many changes at first, and for twice as many each time that it had no more."""

_MOST_KEPT_STEPS = 4096
_TICKS_BETWEEN_REVIEWS = 64
"""After so many ticks unused indexes are dropped."""


class JoinState(Operator):
    """The inputs of a join, its relations and its choices; `MultiwayJoinOperator` says what the arguments mean."""

    def __init__(
        self,
        inputs: Sequence[Operator],
        variables: tuple[str, ...],
        *,
        order: tuple[int, ...] | None = None,
        inserts_per_probe: float | None = 100.0,
        condition: Condition | None = None,
        ranges: Sequence[RangeCondition] = (),
    ) -> None:
        self.variables = variables
        self.condition = condition
        self.order = order
        self.steps: Counter[tuple[int, int]] = Counter()
        """How many rows, of so many joined inputs, were joined with which input next."""
        self._inputs = tuple(inputs)
        self._all_relations = [Relation(len(one.variables)) for one in inputs]
        self._tick_joiner: TickJoiner | None = None
        """What joins the changes of small ticks. It is closed before anything else changes a relation."""
        self._small_ticks = 0
        self._tick_room = _LEAST_ROOM
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
        large = {i for i in self._static_inputs if self._static_size(i) > _LARGEST_COPY}
        few = [one for one in ranges if not large & {one.order.input_index, one.bound.input_index}]
        self.ranges = JoinRanges(few, [len(one.variables) for one in inputs], self._self_joins)
        has_order = bool(few) and not are_connected(inputs)
        self.range_choice = RangeChoice(has_order, inf if has_order and len(inputs) > 2 else 1.0)
        if self.range_choice.is_ordered:
            self._exchange_relations()
        self._range_steps: dict[int, JoinStep] = {}
        """The step that is best after some inputs were joined, while ordered indexes are kept."""
        self._has_static_rows = False
        self._nothing = Delta.empty(len(variables))
        self._inserts_per_probe = inserts_per_probe
        self._ticks_until_review = _TICKS_BETWEEN_REVIEWS
        self._sources = self._find_sources(variables)
        self._joiner: RunJoiner | None = None
        self._joiner_key: tuple[object, ...] = ()
        self._partners_per_probe: dict[JoinStep, float] = {}
        self._equal_steps: dict[tuple[int, int], JoinStep] = {}
        """The probes on equal values alone, by the inputs that were joined before and the input that is probed."""

    @property
    def _relations(self) -> list[Relation]:
        """The relations of the inputs, which the caller may change."""
        if self._tick_joiner is not None:
            self._close_tick_joiner()
        return self._all_relations

    def _stored_relations(self) -> list[Relation]:
        """The relations of the inputs, to read how many rows they have and how their indexes were used."""
        if self._tick_joiner is not None:
            self._tick_joiner.store()
        return self._all_relations

    @property
    def is_symmetric(self) -> bool:
        """Whether each result is found with its leaves exchanged, too; ordered indexes may find only one of the two."""
        return self._symmetry is not None and not self.range_choice.is_ordered

    def fix_order(self, order: tuple[int, ...]) -> None:
        """Probe in this order from now on."""
        self._close_tick_joiner()
        self.order = order

    def _open_tick_joiner(self) -> None:
        """Have the next small ticks joined in compiled code, if no index that it needs was dropped."""
        self._small_ticks = 0
        joiner = self._choose_joiner()
        if not joiner.needs_scan():
            self._tick_joiner = TickJoiner(joiner, self.changing_inputs, self._tick_room)

    def _close_tick_joiner(self) -> None:
        joiner, self._tick_joiner = self._tick_joiner, None
        if joiner is not None:
            joiner.store()
            self._record_steps(joiner.joiner)

    def _static_size(self, i: int) -> int:
        static = self._inputs[i]
        assert isinstance(static, ConstantOperator)
        return static.size

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

    def _merge_runs(self, runs: Sequence[DeltaRun]) -> MergedChanges:
        if self.range_choice.is_ordered:
            runs = [
                run.with_rows(self.ranges.widen(i, run.rows))
                for i, run in zip(self._changing_inputs, runs, strict=True)
            ]
        return MergedChanges.of_runs(runs)

    def _widen_delta(self, i: int, delta: Delta) -> Delta:
        """A delta of an input with the order keys of its rows."""
        added = self.ranges.widen(i, delta.added)
        if delta.is_reset:
            return Delta(added, added[:0], is_reset=True)
        return Delta(added, self.ranges.widen(i, delta.removed))

    def _review_ranges(self) -> bool:
        """Begin or cease to keep ordered indexes, if that is better by what was measured; gives whether it changed."""
        if not self.ranges.conditions or not self.range_choice.is_due:
            return False
        self._range_steps.clear()
        if not self.range_choice.should_switch(sum(self.sizes)):
            return False
        self.switch_order()
        return True

    def switch_order(self) -> None:
        """Begin to keep ordered indexes, or cease to."""
        self.range_choice.switch()
        self._range_steps.clear()
        self._exchange_relations()

    def _record_pairs(self, changed: dict[int, int], pairs: int, kept: int) -> None:
        """Count pairs, and the changes of each input that made them."""
        total = sum(self.sizes)
        others = sum(n * (total - self._relations[i].size) for i, n in changed.items())
        self.range_choice.record(sum(changed.values()), others, pairs, kept)

    def _exchange_relations(self) -> None:
        """Have relations whose rows have order keys, or have none, as is chosen."""
        for i, one in enumerate(self._inputs):
            relation, width = self._relations[i], len(one.variables)
            if i in self._self_joins.values() or self.ranges.width_of(i) == width:
                continue
            rows = relation.in_order_of_arrival()[:, :width]
            exchanged = self._empty_relation(i)
            exchanged.add(self.ranges.widen(i, rows) if self.range_choice.is_ordered else rows)
            for input_index in self._inputs_sharing(i):
                self._relations[input_index] = exchanged

    def _empty_relation(self, i: int) -> Relation:
        is_ordered = self.range_choice.is_ordered
        return Relation(self.ranges.width_of(i) if is_ordered else len(self._inputs[i].variables))

    def _choose_joiner(self) -> RunJoiner:
        """What joins the next changes: each way probes first where earlier probes found the fewest partners."""
        if self._joiner is not None:
            self._record_steps(self._joiner)
        joiner_sources = tuple(self._join_source(i) for i in self._changing_inputs)
        relations = tuple(map(id, self._relations))
        if self._joiner is None or (joiner_sources, relations) != self._joiner_key:
            outputs = places_of(self._sources, len(self.variables))
            leaves = range(len(self._inputs)) if self._symmetry is None else self._symmetry.tolist()
            mirrored = [(leaves[leaf], column) for leaf, column in outputs]
            self._joiner = RunJoiner(self._relations, joiner_sources, outputs, mirrored)
            self._joiner_key = (joiner_sources, relations)
        return self._joiner

    def _record_steps(self, joiner: RunJoiner) -> None:
        """Take over what the last changes found."""
        for place, (depth, step) in enumerate(joiner.steps):
            probes, partners = joiner.measures[place].tolist()
            self.steps[depth, step.input_index] += probes
            self._relations[step.input_index].record_probes(step.index_key, probes)
            if probes >= ENOUGH_PROBES:
                self._partners_per_probe[step] = partners / probes
        joiner.measures[:] = 0

    def _join_source(self, i: int) -> JoinSource:
        """How rows of an input are joined in a run."""
        screens = tuple(
            JoinStep(one.input_index, one.key, one.places()) for one in self._reducers[i] if one is not None
        )
        second, steps = self._self_joins.get(i), self._best_steps(i)
        if second is None:
            return JoinSource(i, (JoinWay(i, steps),), screens)
        if self.is_symmetric:
            return JoinSource(i, (JoinWay(i, steps, mirror=second),), screens)
        return JoinSource(i, (JoinWay(i, steps), JoinWay(second, self._best_steps(second), twin=i)), screens)

    def _best_steps(self, i: int) -> tuple[JoinStep, ...]:
        """The probes that join a row of an input with all others, those with the fewest partners first."""
        joined, steps = 1 << i, []
        while joined != self._all_joined:
            steps.append(self._best_step(joined))
            joined |= 1 << steps[-1].input_index
        return tuple(steps)

    def _best_step(self, joined: int) -> JoinStep:
        """The probe with the fewest partners after some inputs were joined."""
        possible: list[JoinStep] = []
        unrelated: list[JoinStep] = []
        for j in self.order or range(len(self._inputs)):
            if joined >> j & 1:
                continue
            step = self._equal_steps.get((joined, j)) or self._equal_step(joined, j)
            if self.range_choice.is_ordered:
                step = replace(step, bounds=self.ranges.bounds_of(joined, j))
            (possible if step.key or step.bounds else unrelated).append(step)
        listed = possible or unrelated
        return listed[0] if self.order is not None else min(listed, key=self._expected_partners)

    def _equal_step(self, joined: int, j: int) -> JoinStep:
        """The probe of an input on the values that it shares with some inputs. It is kept for the next choices."""
        if len(self._equal_steps) == _MOST_KEPT_STEPS:
            self._equal_steps.clear()
        candidate = self._candidate(joined, j)
        key, places = ((), ()) if candidate is None else (candidate.key, candidate.places())
        step = self._equal_steps[joined, j] = JoinStep(j, key, places)
        return step

    def _expected_partners(self, step: JoinStep) -> float:
        """How many partners a probe finds in the mean: as measured, or all rows divided among the keys."""
        measured = self._partners_per_probe.get(step)
        if measured is not None:
            return measured
        partners = self._relations[step.input_index].mean_ring(step.key)
        return partners if step.bounds is None else _SHARE_WITHIN_BOUNDS * partners

    def _review_indexes(self) -> None:
        """Every so many ticks, drop the indexes that are hardly probed."""
        self._ticks_until_review -= 1
        if not self._ticks_until_review:
            self._ticks_until_review = _TICKS_BETWEEN_REVIEWS
            self._drop_unused_indexes()

    def _drop_unused_indexes(self) -> None:
        if self._inserts_per_probe is not None:
            for relation in self._relations:
                relation.review(self._inserts_per_probe)

    def _candidate(self, joined: int, input_index: int) -> JoinCandidate | None:
        """An input as the next one to join; None if it shares no variable with those joined so far."""
        return find_candidate(self._inputs, joined, input_index)

    def index_uses(self) -> dict[int, list[IndexUse]]:
        """What the indexes of each input did since the last review."""
        return {i: relation.index_uses() for i, relation in enumerate(self._stored_relations())}

    @property
    def sizes(self) -> list[int]:
        """The number of rows of each input."""
        return [relation.size for relation in self._stored_relations()]

    def needs_rows_of(self, source: Operator) -> bool:
        return any(one.needs_rows_of(source) for one in self._inputs)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return self._inputs

    @property
    def changing_inputs(self) -> Sequence[Operator]:
        """Without static inputs, and without the second of two that share a relation."""
        return [self._inputs[i] for i in self._changing_inputs]

    def ids(self) -> Iterable[Ints]:
        """Without static rows: the vocabulary never forgets the terms of static data."""
        relations = self._stored_relations()
        return (relations[i].ids()[:, : len(self._inputs[i].variables)] for i in self._changing_inputs)

    @property
    def nbytes(self) -> int:
        results = sum(values.nbytes for values in self._few_results or ())
        return results + sum({id(relation): relation.nbytes for relation in self._all_relations}.values())
