"""A star: triple patterns with one subject, matched without any state.

    ?o a :Rainfall ; :procedure ?sensor ; :value ?v        for each run of a subject, every choice of its triples

That is exact while no subject has two runs (`columns.subject_runs`): all solutions of a subject come and go with its
run, and a set of triples is a set within each run. The evaluator watches the windows, and compiles its plan without
stars once a subject has a second run.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headwater.kernel.columns.delta import Delta, Mask, no_rows
from headwater.kernel.columns.delta_run import DeltaRun, Signs
from headwater.kernel.columns.ring_index import Ints, as_contiguous
from headwater.kernel.columns.row_counts import enlarge_rows
from headwater.kernel.operators.operator import Operator
from headwater.terms.compiled_code import compiled

StarPattern = tuple[int, int | None]
"""Predicate and object of a pattern; None where the object is a variable."""


@compiled
def _match_runs(triples, ends, predicates, objects, is_open, as_set, signs, collapsed):  # type: ignore[no-untyped-def]
    """The solutions of each run of a subject: the subject, the objects of open patterns, and the row of the run.

    `ends` has for each triple whether another run must begin behind it, or is empty. `collapsed` counts for
    each pattern the triples that are copies of one before, if `signs` says that they enter, or is empty.
    """
    count = predicates.shape[0]
    width = 1
    for k in range(count):
        width += is_open[k]
    rows = np.empty((max(16, triples.shape[0] // count), width + 1), np.int64)
    values = np.empty((count, 16), np.int64)
    sizes = np.zeros(count, np.int64)
    choice = np.zeros(count, np.int64)
    n, low = 0, 0
    while low < triples.shape[0]:
        subject, high = triples[low, 0], low
        sizes[:] = 0
        is_behind = False
        while not is_behind:
            predicate, value = triples[high, 1], triples[high, 2]
            for k in range(count):
                if predicates[k] == predicate and (is_open[k] or objects[k] == value):
                    is_known = False
                    if as_set:
                        for i in range(sizes[k]):
                            is_known |= values[k, i] == value
                    if not is_known:
                        if sizes[k] == values.shape[1]:
                            more = np.empty((count, 2 * values.shape[1]), np.int64)
                            more[:, : values.shape[1]] = values
                            values = more
                        values[k, sizes[k]] = value
                        sizes[k] += 1
                    elif signs.shape[0] == 0 or signs[high] > 0:
                        collapsed[k] += 1
            high += 1
            is_behind = high == triples.shape[0] or triples[high, 0] != subject
            is_behind |= ends.shape[0] > 0 and ends[high - 1]
        solutions = 1
        for k in range(count):
            solutions *= sizes[k]
        choice[:] = 0
        for _ in range(solutions):
            if n == rows.shape[0]:
                rows = enlarge_rows(rows, n)
            rows[n, 0] = subject
            column = 1
            for k in range(count):
                if is_open[k]:
                    rows[n, column] = values[k, choice[k]]
                    column += 1
            rows[n, width] = low
            n += 1
            k = 0
            while k < count:
                choice[k] += 1
                if choice[k] < sizes[k]:
                    break
                choice[k] = 0
                k += 1
        low = high
    return rows[:n]


class StarOperator(Operator):
    """The solutions of triple patterns with one subject variable and different object variables.

    With `as_set`, a triple that occurs twice is one.
    """

    def __init__(
        self, source: Operator, patterns: Sequence[StarPattern], variables: tuple[str, ...], *, as_set: bool
    ) -> None:
        self.variables = variables
        self._source = source
        self._tables = (
            np.array([predicate for predicate, _ in patterns], dtype=np.int64),
            np.array([value or 0 for _, value in patterns], dtype=np.int64),
            np.array([value is None for _, value in patterns], dtype=np.bool_),
            as_set,
        )
        self._no_change = Delta.empty(len(variables))
        self.collapsed: Ints = np.zeros(len(patterns), dtype=np.int64)
        """For each pattern how many triples came while an equal one was there."""
        self._left: Ints = np.zeros(len(patterns), dtype=np.int64)
        """The same of those that left, which nobody asks for."""

    def apply(self, deltas: Sequence[Delta]) -> Delta:
        (delta,) = deltas
        if delta.is_empty:
            return self._no_change
        added = self._match(delta.added, self.collapsed)
        if delta.is_reset:
            return Delta(added, lambda: self._match(delta.removed, self._left), is_reset=True)
        return Delta(added, self._match(delta.removed, self._left))

    def _match(self, triples: Ints, collapsed: Ints) -> Ints:
        if not triples.shape[0]:
            return no_rows(len(self.variables))
        return self._match_runs(triples, _NO_ENDS, _NO_SIGNS, collapsed)[:, :-1]

    def _match_runs(self, triples: Ints, ends: Mask, signs: Signs, collapsed: Ints) -> Ints:
        rows: Ints = _match_runs(as_contiguous(triples), ends, *self._tables, signs, collapsed)
        return rows

    def apply_run(self, runs: Sequence[DeltaRun]) -> DeltaRun:
        (run,) = runs
        if not len(run):
            return DeltaRun.empty(len(self.variables))
        # What leaves at a tick may be followed by what comes.
        ends = np.append((run.ticks[1:] != run.ticks[:-1]) | (run.signs[1:] != run.signs[:-1]), True)
        rows = self._match_runs(run.rows, ends, run.signs, self.collapsed)
        first = rows[:, -1]
        return DeltaRun(rows[:, :-1], run.ticks[first], run.signs[first])

    def count_collapsed(self, place: int) -> int:
        """How many triples of one of the patterns came while an equal one was there."""
        return int(self.collapsed[place])

    def needs_rows_of(self, source: Operator) -> bool:
        return self._source.needs_rows_of(source)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._source,)


_NO_ENDS: Mask = np.zeros(0, dtype=np.bool_)
_NO_SIGNS: Signs = np.zeros(0, dtype=np.int8)
