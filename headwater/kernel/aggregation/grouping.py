"""GROUP BY with aggregates from which values can be removed (OA9).

    γ(R + ΔR) − γ(R)   depends only on the groups of the rows in ΔR

    keys (?g), COUNT(*)      + (a) (a) (b)   →   + (a 2) (b 1)
                             − (a)           →   + (a 1)   − (a 2)

Each group is an output row: its key, then its aggregates. Added rows are added to the accumulators of their group and
removed rows are subtracted. A group whose output row changed gives the old row as removed and the new one as added. A
group without rows disappears; without keys there is exactly one group, even of no rows.
State: the accumulators of all groups, and the output rows. COUNT and SUM keep one number for each group (`sums` is
exact), MIN and MAX (`extremes`) and SAMPLE keep heaps, DISTINCT counts how often each value occurs (`value_bags`).
The aggregates mean what `headwater.values.aggregates` says, whatever the history of the bag was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar, cast, runtime_checkable

import numpy as np

from headwater.kernel.aggregation.extremes import ExtremeAccumulator
from headwater.kernel.aggregation.group_runs import GroupChanges
from headwater.kernel.aggregation.sums import SumAccumulator
from headwater.kernel.aggregation.value_bags import BagAccumulator, DistinctGate
from headwater.kernel.aggregation.value_heaps import (
    HeapAccumulator,
    OrderOf,
    order_for_max,
    order_for_min,
    order_for_sample,
)
from headwater.kernel.columns.delta import UNBOUND, Delta, Mask, no_rows, stack_rows
from headwater.kernel.columns.delta_run import DeltaRun, Signs
from headwater.kernel.columns.relation import NO_ROW_IDS, Relation
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.row_counts import RowCounts
from headwater.kernel.columns.row_ids import enlarge
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.operators.operator import Operator
from headwater.terms.compiled_code import compiled
from headwater.terms.ids.inline_layout import INTEGER_ZERO
from headwater.terms.own_functions import own_aggregate

_FEW_ROWS = 64
"""Up to so many rows, equal ones are found sooner in Python than in tables that are made for them."""

_ONE_GROUP = np.zeros(1, dtype=np.int64)
ArgumentKey = tuple[str, str | None, bool]
"""The kind of an accumulator, the column of its values, and whether each value counts once."""
_SIZES: ArgumentKey = ("rows", None, False)


@dataclass(frozen=True, slots=True)
class AggregateSpec:
    """An aggregate over a column of evaluated arguments, `UNBOUND` for an error; no column for COUNT(*)."""

    function: str
    column: str | None
    distinct: bool = False
    separator: str | None = None


class Accumulator(Protocol):
    """What an aggregate keeps of the values of all groups."""

    def grow(self, capacity: int) -> None: ...

    def change(self, groups: Ints, ids: Ints, sign: int) -> None: ...

    def ids(self) -> Ints: ...

    @property
    def nbytes(self) -> int: ...


@runtime_checkable
class RunAccumulator(Accumulator, Protocol):
    """An accumulator that gives results within a run of changes."""

    def can_change_in_turn(self, ids: Ints) -> bool:
        """Whether it can follow changes of these values one by one."""
        ...

    def change_in_turn(
        self, groups: Ints, ids: Ints, signs: Signs, is_end: Mask, functions: Collection[str]
    ) -> Mapping[str, Ints]:
        """Change groups, one value after the other; gives the results of some functions where `is_end` is set."""
        ...


AccumulatorType = TypeVar("AccumulatorType", bound=Accumulator)


@compiled
def _count(counts, groups, sign):  # type: ignore[no-untyped-def]
    for i in range(groups.shape[0]):
        counts[groups[i]] += sign


@compiled
def _count_bound(counts, groups, ids, sign):  # type: ignore[no-untyped-def]
    for i in range(groups.shape[0]):
        if ids[i] != UNBOUND:
            counts[groups[i]] += sign


@compiled
def _count_in_turn(counts, groups, ids, signs, needs_value, is_end, results):  # type: ignore[no-untyped-def]
    n = 0
    for i in range(groups.shape[0]):
        if not needs_value or ids[i] != UNBOUND:
            counts[groups[i]] += signs[i]
        if is_end[i]:
            results[n] = counts[groups[i]]
            n += 1


@compiled
def _exchange_shown(groups, rows, shown, is_shown, before):  # type: ignore[no-untyped-def]
    """Have groups show new rows. Moves those that differ to the front, and writes those that they replace (`before`).

    Gives how many there are of each.
    """
    added, removed = 0, 0
    for i in range(groups.shape[0]):
        group = groups[i]
        is_same = is_shown[group]
        for c in range(rows.shape[1]):
            is_same &= rows[i, c] == shown[group, c]
        if is_same:
            continue
        for c in range(rows.shape[1]):
            if is_shown[group]:
                before[removed, c] = shown[group, c]
            shown[group, c] = rows[i, c]
            rows[added, c] = rows[i, c]
        removed += is_shown[group]
        is_shown[group] = True
        added += 1
    return added, removed


def _distinct_rows(rows: Ints) -> Ints:
    """Each of some rows once."""
    if rows.shape[0] == 1:
        return rows
    if rows.shape[0] <= _FEW_ROWS:
        distinct = list(dict.fromkeys(map(tuple, rows.tolist())))
        return np.array(distinct, dtype=np.int64).reshape(len(distinct), rows.shape[1])
    counts = RowCounts(rows.shape[1])
    counts.change(rows, 1)
    return counts.rows[: counts.top]


class CountAccumulator:
    """COUNT of all rows, or of those in which the column has a value."""

    def __init__(self, *, needs_value: bool) -> None:
        self.table: Ints = np.zeros(0, dtype=np.int64)
        self._needs_value = needs_value

    def grow(self, capacity: int) -> None:
        before = self.table.shape[0]
        self.table = enlarge(self.table, capacity)
        self.table[before:] = 0

    def change(self, groups: Ints, ids: Ints, sign: int) -> None:
        if self._needs_value:
            _count_bound(self.table, groups, ids, sign)
        else:
            _count(self.table, groups, sign)

    def can_change_in_turn(self, ids: Ints) -> bool:
        return True

    def change_in_turn(
        self, groups: Ints, ids: Ints, signs: Signs, is_end: Mask, functions: Collection[str]
    ) -> Mapping[str, Ints]:
        results = np.empty(int(is_end.sum()), dtype=np.int64)
        _count_in_turn(
            self.table, groups, ids if self._needs_value else groups, signs, self._needs_value, is_end, results
        )
        return {"COUNT": results + INTEGER_ZERO}

    def counts(self, groups: Ints) -> Ints:
        """COUNT of some groups, as ids."""
        counts: Ints = self.table[groups] + INTEGER_ZERO
        return counts

    def ids(self) -> Ints:
        """Counts hold no ids."""
        return NO_ROW_IDS

    @property
    def nbytes(self) -> int:
        return self.table.nbytes


@dataclass(slots=True)
class _Argument:
    """Which values of a row go to an accumulator: a column, or the whole row; each one once behind a gate."""

    column: int | None
    gate: DistinctGate | None
    accumulator: Accumulator
    in_turn: RunAccumulator | None = None
    """The same accumulator, if it gives results within a run. To ask for a protocol takes longer than a small tick."""

    def __post_init__(self) -> None:
        self.in_turn = self.accumulator if isinstance(self.accumulator, RunAccumulator) else None

    def change(self, groups: Ints, rows: Ints, sign: int) -> None:
        # A function is compiled for each layout of its arguments: contiguous is the only one.
        values = rows if self.column is None else np.ascontiguousarray(rows[:, self.column])
        if self.gate is not None:
            groups, values = self.gate.filter_changes(groups, values, sign)
        self.accumulator.change(groups, values, sign)

    def can_change_in_turn(self, rows: Ints) -> bool:
        """Whether the accumulator can follow changes of these rows one by one."""
        if self.in_turn is None:
            return False
        return self.in_turn.can_change_in_turn(rows if self.column is None else rows[:, self.column])

    def change_in_turn(
        self, groups: Ints, rows: Ints, signs: Signs, is_end: Mask, functions: Collection[str]
    ) -> Mapping[str, Ints]:
        """Change groups, one row after the other; gives the results of some functions where `is_end` is set."""
        values = rows if self.column is None else np.ascontiguousarray(rows[:, self.column])
        if self.gate is not None:
            signs = self.gate.filter_signs(groups, values, signs)
        assert self.in_turn is not None
        return self.in_turn.change_in_turn(groups, values, signs, is_end, functions)

    @property
    def nbytes(self) -> int:
        return self.accumulator.nbytes + (0 if self.gate is None else self.gate.nbytes)


class GroupOperator(Operator):
    """Groups the rows of an operator by some of its variables; each aggregate is a new variable."""

    def __init__(
        self,
        source: Operator,
        keys: tuple[str, ...],
        aggregates: tuple[tuple[str, AggregateSpec], ...],
        vocabulary: Vocabulary,
    ) -> None:
        self.variables = (*keys, *(variable for variable, _ in aggregates))
        self._source = source
        self._vocabulary = vocabulary
        self._key_columns = [source.column_of(key) for key in keys]
        self._all_keys = tuple(range(len(keys)))
        self._groups = Relation(len(keys))
        self._sizes = CountAccumulator(needs_value=False)
        self._arguments: dict[ArgumentKey, _Argument] = {_SIZES: _Argument(None, None, self._sizes)}
        self._result_specs: list[tuple[ArgumentKey, AggregateSpec]] = []
        self._results = [self._result_function(spec) for _, spec in aggregates]
        self._has_partial_sums = any(spec.function == "PARTIAL_SUM" for _, spec in aggregates)
        self._shown: Ints = no_rows(len(self.variables))
        self._is_shown = np.zeros(0, dtype=np.bool_)
        self._has_begun = bool(keys)
        self._nothing = Delta.empty(len(self.variables))

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._source,)

    def _result_function(self, spec: AggregateSpec) -> Callable[[Ints], Ints]:
        """The function that gives the values of an aggregate, from an accumulator that other aggregates may share."""
        vocabulary = self._vocabulary
        make_sums = partial(SumAccumulator, vocabulary)
        match spec.function:
            case "COUNT":
                make_counts = partial(CountAccumulator, needs_value=spec.column is not None)
                return self._accumulator_for(spec, "count", make_counts).counts
            case "SUM":
                return self._accumulator_for(spec, "sum", make_sums).sums
            case "AVG":
                return self._accumulator_for(spec, "sum", make_sums).averages
            case "PARTIAL_SUM":
                return self._accumulator_for(spec, "sum", make_sums).partial_sums
            case "MIN":
                return self._extreme_function(spec, order_for_min(vocabulary), is_max=False)
            case "MAX":
                return self._extreme_function(spec, order_for_max(vocabulary), is_max=True)
            case "SAMPLE":
                make_heaps = partial(HeapAccumulator, vocabulary, order_for_sample(vocabulary), ignores_errors=True)
                return self._accumulator_for(spec, "sample", make_heaps, has_gate=False).first_values
            case "GROUP_CONCAT":
                bags = self._accumulator_for(spec, "bag", partial(BagAccumulator, vocabulary), has_gate=False)
                return lambda groups: bags.concatenate(groups, distinct=spec.distinct, separator=spec.separator)
            case own if own_aggregate(own) is not None:
                bags = self._accumulator_for(spec, "bag", partial(BagAccumulator, vocabulary), has_gate=False)
                return lambda groups: bags.aggregate(groups, own, distinct=spec.distinct)
            case unknown:
                raise ValueError(f"{unknown} is not an aggregate")

    def _extreme_function(self, spec: AggregateSpec, order: OrderOf, *, is_max: bool) -> Callable[[Ints], Ints]:
        make = partial(ExtremeAccumulator, self._vocabulary, order, is_max=is_max)
        return self._accumulator_for(spec, spec.function, make, has_gate=False).first_values

    def _accumulator_for(
        self, spec: AggregateSpec, kind: str, make: Callable[[], AccumulatorType], *, has_gate: bool = True
    ) -> AccumulatorType:
        """The accumulator of a kind for a column, which all aggregates of that kind share."""
        key = (kind, spec.column, has_gate and spec.distinct)
        self._result_specs.append((key, spec))
        argument = self._arguments.get(key)
        if argument is None:
            column = None if spec.column is None else self._source.column_of(spec.column)
            width = len(self._source.variables) if column is None else 1
            argument = self._arguments[key] = _Argument(column, DistinctGate(width) if key[2] else None, make())
        return cast(AccumulatorType, argument.accumulator)

    def apply(self, deltas: Sequence[Delta]) -> Delta:
        (delta,) = deltas
        if delta.is_empty and self._has_begun:
            return self._nothing
        added, removed = self._find_groups(delta.added), self._find_groups(delta.removed)
        for argument in self._arguments.values():
            # Rows are added first, so that no count is ever negative.
            if added.shape[0]:
                argument.change(added, delta.added, 1)
            if removed.shape[0]:
                argument.change(removed, delta.removed, -1)
        self._has_begun = True
        return self._compare_with_shown(self._changed_groups(added, removed))

    def apply_run(self, runs: Sequence[DeltaRun]) -> DeltaRun:
        (run,) = runs
        if not len(run):
            return DeltaRun.empty(len(self.variables))
        if self._has_partial_sums or not all(one.can_change_in_turn(run.rows) for one in self._arguments.values()):
            return super().apply_run(runs)
        groups = self._find_groups(run.rows)
        changes = GroupChanges.of_run(groups, run.ticks, self._is_shown.shape[0])
        results: dict[tuple[ArgumentKey, str], Ints] = {}
        for key, argument in self._arguments.items():
            functions = {spec.function for one, spec in self._result_specs if one == key} or {"COUNT"}
            found = argument.change_in_turn(groups, run.rows, run.signs, changes.is_end, functions)
            results |= {(key, function): values for function, values in found.items()}
        sizes = results[_SIZES, "COUNT"] - INTEGER_ZERO
        is_alive = sizes > 0 if self._key_columns else np.ones(sizes.shape[0], dtype=np.bool_)
        rows = np.empty((sizes.shape[0], len(self.variables)), dtype=np.int64)
        rows[:, : len(self._all_keys)] = self._groups.rows[changes.groups] if self._all_keys else 0
        for place, (key, spec) in enumerate(self._result_specs, len(self._all_keys)):
            rows[:, place] = results[key, spec.function]
        compared = changes.compare(rows, is_alive, self._shown, self._is_shown)
        if self._key_columns:
            were_empty = np.unique(changes.groups[~is_alive])
            self._remove_groups(were_empty[self._sizes.table[were_empty] == 0])
        return compared

    def _find_groups(self, rows: Ints) -> Ints:
        """The group of each row; groups that are not there yet are added."""
        n = rows.shape[0]
        if not self._key_columns:
            self._grow(1)
            return np.zeros(n, dtype=np.int64)
        if not n:
            return NO_ROW_IDS
        keys = np.ascontiguousarray(rows[:, self._key_columns])
        index = self._groups.index(self._all_keys)
        group_ids, counts, total = index.probe(self._groups.rows, keys, index.key)
        if total < n:
            self._groups.add(_distinct_rows(keys[counts == 0]))
            self._grow(self._groups.rows.shape[0])
            group_ids, _, _ = index.probe(self._groups.rows, keys, index.key)
        return group_ids

    def _grow(self, capacity: int) -> None:
        before = self._is_shown.shape[0]
        if capacity <= before:
            return
        for argument in self._arguments.values():
            argument.accumulator.grow(capacity)
        self._shown = enlarge(self._shown, capacity)
        shown = np.zeros(capacity, dtype=np.bool_)
        shown[:before] = self._is_shown
        self._is_shown = shown

    def _changed_groups(self, added: Ints, removed: Ints) -> Ints:
        if not self._key_columns:
            return _ONE_GROUP
        if added.shape[0] + removed.shape[0] == 1:
            return added if added.shape[0] else removed
        changed_groups = np.zeros(self._is_shown.shape[0], dtype=np.bool_)
        changed_groups[added] = True
        changed_groups[removed] = True
        return np.flatnonzero(changed_groups)

    def _compare_with_shown(self, changed_groups: Ints) -> Delta:
        """The delta between the rows that the groups show now and those that they showed before."""
        is_alive = self._sizes.table[changed_groups] > 0 if self._key_columns else np.ones(1, dtype=np.bool_)
        alive = changed_groups if is_alive.all() else changed_groups[is_alive]
        rows = np.empty((alive.shape[0], len(self.variables)), dtype=np.int64)
        rows[:, : len(self._all_keys)] = self._groups.rows[alive] if self._all_keys else 0
        for place, result in enumerate(self._results, len(self._all_keys)):
            rows[:, place] = result(alive)
        before = np.empty_like(rows)
        added_count, removed_count = _exchange_shown(alive, rows, self._shown, self._is_shown, before)
        removed = before[:removed_count]
        if alive.shape[0] < changed_groups.shape[0]:
            removed = stack_rows([removed, self._remove_groups(changed_groups[~is_alive])], len(self.variables))
        return Delta(rows[:added_count], removed)

    def _remove_groups(self, groups: Ints) -> Ints:
        """Remove groups without rows; gives the rows that they showed."""
        removed = self._shown[groups[self._is_shown[groups]]]
        self._is_shown[groups] = False
        self._groups.remove(groups)
        return removed

    def ids(self) -> Iterable[Ints]:
        yield self._shown[self._is_shown]
        yield from (argument.accumulator.ids() for argument in self._arguments.values())

    @property
    def nbytes(self) -> int:
        arguments = sum(argument.nbytes for argument in self._arguments.values())
        return self._groups.nbytes + self._shown.nbytes + self._is_shown.nbytes + arguments
