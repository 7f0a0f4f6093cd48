"""GROUP BY with aggregates that forget (OA9): a difference of rows in, a difference of groups out.

    γ(R + ΔR) − γ(R)   comes from the groups of ΔR alone

Each group is a row: its key, then its aggregates. What came is added to the group's accumulators and what went is taken
away; groups that show another row than before give the old row as removed and the new one as added. A group whose rows
are all gone disappears; without keys there is exactly one group, even of nothing. COUNT and SUM work by difference
(`sums` is exact), MIN and MAX (`extremes`) and SAMPLE keep heaps, DISTINCT counts how often each value occurs (`bags`).
What the aggregates mean is said by `headwater.values.aggregates`; every history gives what they say of the multiset.

    keys (?g), COUNT(*)      + (a) (a) (b)   →   + (a 2) (b 1)
                             − (a)           →   + (a 1)   − (a 2)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar, cast

import numpy as np

from headwater.kernel.aggregation.extremes import Extremes
from headwater.kernel.aggregation.sums import Sums
from headwater.kernel.aggregation.value_bags import Bags, Gate
from headwater.kernel.aggregation.value_heaps import Heaps, OrderOf, ascending, by_text, descending
from headwater.kernel.columns.delta import UNBOUND, Delta, no_rows, stacked
from headwater.kernel.columns.relation import NOTHING, Relation
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.row_counts import RowCounts
from headwater.kernel.columns.row_numbers import enlarged
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.operators.operator import Operator
from headwater.terms.compiled_code import compiled
from headwater.terms.ids.inline_layout import INTEGER_BIAS, InlineType, inline_id

_ONE_GROUP = np.zeros(1, dtype=np.int64)
_ZERO = inline_id(InlineType.INTEGER, INTEGER_BIAS)


@dataclass(frozen=True, slots=True)
class AggregateSpec:
    """An aggregate over a column of evaluated arguments, `UNBOUND` where in error; no column for COUNT(*)."""

    function: str
    column: str | None
    distinct: bool = False
    separator: str | None = None


class Accumulator(Protocol):
    """What is kept of the values of all groups."""

    def grow(self, capacity: int) -> None: ...

    def change(self, groups: Ints, ids: Ints, sign: int) -> None: ...

    def ids(self) -> Ints: ...

    @property
    def nbytes(self) -> int: ...


Kept = TypeVar("Kept", bound=Accumulator)


@compiled
def _count(counts, groups, sign):  # type: ignore[no-untyped-def]
    for i in range(groups.shape[0]):
        counts[groups[i]] += sign


@compiled
def _count_bound(counts, groups, ids, sign):  # type: ignore[no-untyped-def]
    for i in range(groups.shape[0]):
        if ids[i] != UNBOUND:
            counts[groups[i]] += sign


class Counts:
    """COUNT: of all rows, or of those in which the column has a value."""

    def __init__(self, *, bound_only: bool) -> None:
        self.table: Ints = np.zeros(0, dtype=np.int64)
        self._bound_only = bound_only

    def grow(self, capacity: int) -> None:
        before = self.table.shape[0]
        self.table = enlarged(self.table, capacity)
        self.table[before:] = 0

    def change(self, groups: Ints, ids: Ints, sign: int) -> None:
        if self._bound_only:
            _count_bound(self.table, groups, ids, sign)
        else:
            _count(self.table, groups, sign)

    def counts(self, groups: Ints) -> Ints:
        """COUNT of some groups, as ids."""
        found: Ints = self.table[groups] + _ZERO
        return found

    def ids(self) -> Ints:
        """Counts hold no ids."""
        return NOTHING

    @property
    def nbytes(self) -> int:
        return self.table.nbytes


@dataclass(slots=True)
class _Feed:
    """Which values of a row go to an accumulator."""

    column: int | None
    gate: Gate | None
    accumulator: Accumulator

    def change(self, groups: Ints, rows: Ints, sign: int) -> None:
        # Compiled code is made for each layout of its arguments, so there is only one.
        values = rows if self.column is None else np.ascontiguousarray(rows[:, self.column])
        if self.gate is not None:
            groups, values = self.gate.pass_on(groups, values, sign)
        self.accumulator.change(groups, values, sign)

    @property
    def nbytes(self) -> int:
        return self.accumulator.nbytes + (0 if self.gate is None else self.gate.nbytes)


class Grouping(Operator):
    """Groups the rows of an operator by some of its variables; each aggregate is a variable of its own."""

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
        self._key_columns = [source.column(key) for key in keys]
        self._all_keys = tuple(range(len(keys)))
        self._groups = Relation(len(keys))
        self._sizes = Counts(bound_only=False)
        self._feeds: dict[tuple[str, str | None, bool], _Feed] = {("rows", None, False): _Feed(None, None, self._sizes)}
        self._results = [self._result(spec) for _, spec in aggregates]
        self._shown: Ints = no_rows(len(self.variables))
        self._is_shown = np.zeros(0, dtype=np.bool_)
        self._begun = bool(keys)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._source,)

    def _result(self, spec: AggregateSpec) -> Callable[[Ints], Ints]:
        """How the values of an aggregate are found, from an accumulator that may serve other aggregates too."""
        vocabulary = self._vocabulary
        match spec.function:
            case "COUNT":
                counted = self._fed(spec, "count", lambda: Counts(bound_only=spec.column is not None))
                return counted.counts
            case "SUM":
                return self._fed(spec, "sum", lambda: Sums(vocabulary)).sums
            case "AVG":
                return self._fed(spec, "sum", lambda: Sums(vocabulary)).averages
            case "PARTIAL_SUM":
                return self._fed(spec, "sum", lambda: Sums(vocabulary)).partial_sums
            case "MIN":
                return self._extreme(spec, ascending(vocabulary), greatest=False)
            case "MAX":
                return self._extreme(spec, descending(vocabulary), greatest=True)
            case "SAMPLE":
                heaps = self._fed(
                    spec, "sample", lambda: Heaps(vocabulary, by_text(vocabulary), passes_over_errors=True), gated=False
                )
                return heaps.first
            case "GROUP_CONCAT":
                bags = self._fed(spec, "bag", lambda: Bags(vocabulary), gated=False)
                return lambda groups: bags.joined(groups, distinct=spec.distinct, separator=spec.separator)
            case unknown:
                raise ValueError(f"{unknown} is not an aggregate")

    def _extreme(self, spec: AggregateSpec, order: OrderOf, *, greatest: bool) -> Callable[[Ints], Ints]:
        make = partial(Extremes, self._vocabulary, order, greatest=greatest)
        return self._fed(spec, spec.function, make, gated=False).first

    def _fed(self, spec: AggregateSpec, family: str, make: Callable[[], Kept], *, gated: bool = True) -> Kept:
        """The accumulator of a family for a column, which all aggregates of that family share."""
        key = (family, spec.column, gated and spec.distinct)
        known = self._feeds.get(key)
        if known is None:
            column = None if spec.column is None else self._source.column(spec.column)
            width = len(self._source.variables) if column is None else 1
            known = self._feeds[key] = _Feed(column, Gate(width) if key[2] else None, make())
        return cast(Kept, known.accumulator)

    def advance(self) -> Delta:
        delta = self._source.advance()
        if delta.is_empty and self._begun:
            return Delta.nothing(len(self.variables))
        added, removed = self._numbers(delta.added), self._numbers(delta.removed)
        for feed in self._feeds.values():
            # What came goes first, so that no count is ever below zero.
            if added.shape[0]:
                feed.change(added, delta.added, 1)
            if removed.shape[0]:
                feed.change(removed, delta.removed, -1)
        self._begun = True
        return self._difference(self._touched(added, removed))

    def _numbers(self, rows: Ints) -> Ints:
        """The number of each row's group; groups that are not there yet are made."""
        n = rows.shape[0]
        if not self._key_columns:
            self._grow(1)
            return np.zeros(n, dtype=np.int64)
        if not n:
            return NOTHING
        keys = np.ascontiguousarray(rows[:, self._key_columns])
        index = self._groups.index(self._all_keys)
        found, counts, total = index.probe(self._groups.rows, keys, index.key)
        if total < n:
            fresh = RowCounts(keys.shape[1])
            fresh.change(keys[counts == 0], 1)
            self._groups.add(fresh.rows[: fresh.top])
            self._grow(self._groups.rows.shape[0])
            found, _, _ = index.probe(self._groups.rows, keys, index.key)
        return found

    def _grow(self, capacity: int) -> None:
        before = self._is_shown.shape[0]
        if capacity <= before:
            return
        for feed in self._feeds.values():
            feed.accumulator.grow(capacity)
        self._shown = enlarged(self._shown, capacity)
        shown = np.zeros(capacity, dtype=np.bool_)
        shown[:before] = self._is_shown
        self._is_shown = shown

    def _touched(self, added: Ints, removed: Ints) -> Ints:
        if not self._key_columns:
            return _ONE_GROUP
        if added.shape[0] + removed.shape[0] == 1:
            return added if added.shape[0] else removed
        touched = np.zeros(self._is_shown.shape[0], dtype=np.bool_)
        touched[added] = True
        touched[removed] = True
        return np.flatnonzero(touched)

    def _difference(self, touched: Ints) -> Delta:
        """What the groups show now in place of what they showed before."""
        living = self._sizes.table[touched] > 0 if self._key_columns else np.ones(1, dtype=np.bool_)
        alive = touched if living.all() else touched[living]
        rows = np.empty((alive.shape[0], len(self.variables)), dtype=np.int64)
        rows[:, : len(self._all_keys)] = self._groups.rows[alive] if self._all_keys else 0
        for place, result in enumerate(self._results, len(self._all_keys)):
            rows[:, place] = result(alive)
        was_shown = self._is_shown[alive]
        before = self._shown[alive]
        changed = ~was_shown | (rows != before).any(axis=1)
        self._shown[alive] = rows
        self._is_shown[alive] = True
        removed = before[changed & was_shown]
        if alive.shape[0] < touched.shape[0]:
            removed = stacked([removed, self._end(touched[~living])], len(self.variables))
        return Delta(rows[changed], removed)

    def _end(self, groups: Ints) -> Ints:
        """Forget groups that have no rows any more; gives what they showed."""
        gone = self._shown[groups[self._is_shown[groups]]]
        self._is_shown[groups] = False
        self._groups.remove(groups)
        return gone

    def ids(self) -> Iterable[Ints]:
        yield self._shown[self._is_shown]
        yield from (feed.accumulator.ids() for feed in self._feeds.values())

    @property
    def nbytes(self) -> int:
        feeds = sum(feed.nbytes for feed in self._feeds.values())
        return self._groups.nbytes + self._shown.nbytes + self._is_shown.nbytes + feeds
