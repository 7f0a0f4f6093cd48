"""The time of a triple beside its bindings, for `timestamp()` (CS6).

For queries with `timestamp()`, triples carry their time as a fourth column, in microseconds, and patterns pass it on.
In a set, a triple that arrived several times has its newest time, so another arrival may replace the time:

    + (a 1000) (a 3000)    →    + (a 3000)
    − (a 3000)             →    + (a 1000)   − (a 3000)

Above the patterns, times are terms: milliseconds, as `timestamp()` returns them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

import numpy as np

from headwater.kernel.columns.delta import UNBOUND, Delta
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.operators.operator import Operator
from headwater.values.time_literals import time_literal

_Row = tuple[int, ...]


class NewestTimeOperator(Operator):
    """Each row of the first `width` columns once, with the highest value of each column behind them.

    State: for each row, how often it is there with which times, and the times in the output.
    """

    def __init__(self, source: Operator, width: int) -> None:
        self.variables = source.variables
        self._source = source
        self._width = width
        self._times: dict[_Row, dict[_Row, int]] = {}
        self._newest: dict[_Row, _Row] = {}
        self.collapsed = 0
        """How many rows came while an equal one was there, of whatever time."""

    def apply(self, deltas: Sequence[Delta]) -> Delta:
        (delta,) = deltas
        if delta.is_empty:
            return delta
        changed: dict[_Row, None] = {}
        for rows, difference in ((delta.removed, -1), (delta.added, 1)):
            for row in rows.tolist():
                key, times = tuple(row[: self._width]), tuple(row[self._width :])
                changed[key] = None
                counts = self._times.setdefault(key, {})
                if difference > 0 and any(count > 0 for count in counts.values()):
                    self.collapsed += 1
                counts[times] = counts.get(times, 0) + difference
        return self._update_newest(changed)

    def _update_newest(self, changed: dict[_Row, None]) -> Delta:
        """Compute the newest times of changed rows again; the delta of those that differ."""
        added: list[_Row] = []
        removed: list[_Row] = []
        for key in changed:
            counts = self._times[key] = {times: n for times, n in self._times[key].items() if n}
            before = self._newest.pop(key, None)
            # `UNBOUND`, the time of a triple that has none, is lower than all times.
            after = tuple(map(max, zip(*counts, strict=True))) if counts else None
            if after is None:
                del self._times[key]
            else:
                self._newest[key] = after
            if before != after:
                if before is not None:
                    removed.append(key + before)
                if after is not None:
                    added.append(key + after)
        return Delta(self._rows(added), self._rows(removed))

    def _rows(self, rows: list[_Row]) -> Ints:
        return np.array(rows, dtype=np.int64).reshape(len(rows), len(self.variables))

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._source,)

    def ids(self) -> Iterable[Ints]:
        yield np.array([term_id for key in self._times for term_id in key], dtype=np.int64)

    @property
    def nbytes(self) -> int:
        each = 2 * (56 + 8 * len(self.variables))
        return sys.getsizeof(self._times) + sys.getsizeof(self._newest) + each * len(self._times)


class TimeTermsOperator(Operator):
    """Turns the columns from `width` on from microseconds into terms. No state."""

    def __init__(self, source: Operator, width: int, vocabulary: Vocabulary) -> None:
        self.variables = source.variables
        self._source = source
        self._places = range(width, len(source.variables))
        self._vocabulary = vocabulary

    def apply(self, deltas: Sequence[Delta]) -> Delta:
        (delta,) = deltas
        return delta if delta.is_empty else Delta(self._convert_times(delta.added), self._convert_times(delta.removed))

    def _convert_times(self, rows: Ints) -> Ints:
        if not rows.shape[0]:
            return rows
        converted = rows.copy()
        for place in self._places:
            converted[:, place] = self._time_ids(rows[:, place].tolist())
        return converted

    def _time_ids(self, times: Sequence[int]) -> list[int]:
        """The ids of the literals that `timestamp()` returns for some times."""
        term_ids = {t: UNBOUND if t == UNBOUND else self._vocabulary.id_of(time_literal(t)) for t in set(times)}
        return [term_ids[time] for time in times]

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._source,)
