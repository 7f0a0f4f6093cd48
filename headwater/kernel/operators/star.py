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
from headwater.kernel.columns.larger_arrays import enlarge_rows
from headwater.kernel.columns.ring_index import Ints, as_contiguous
from headwater.kernel.operators.operator import Operator
from headwater.terms.compiled_code import compiled

StarPattern = tuple[int, int | None]
"""Predicate and object of a pattern; None where the object is a variable."""

_MOST_BITS = 63
"""So many patterns are found in the bits of a number."""


@compiled
def _find_runs(triples, ends, predicates, objects, is_open, lows, highs):  # type: ignore[no-untyped-def]
    """Find the runs that may have solutions or copies of triples: where they begin and end.

    Most runs lack a pattern, which takes a fraction of the time to find out that a look at each match takes. Gives how
    many runs there are, and the length of the longest.
    """
    count = predicates.shape[0]
    runs = longest = low = 0
    while low < triples.shape[0]:
        subject, high = triples[low, 0], low
        found = np.int64(0)
        matches = 0
        is_behind = False
        while not is_behind:
            predicate, value = triples[high, 1], triples[high, 2]
            for k in range(count):
                is_match = (predicates[k] == predicate) & (is_open[k] | (objects[k] == value))
                found |= np.int64(is_match) << k
                matches += is_match
            high += 1
            is_behind = high == triples.shape[0] or triples[high, 0] != subject
            is_behind |= ends.shape[0] > 0 and ends[high - 1]
        different = np.int64(0)
        for k in range(count):
            different += (found >> k) & 1
        if different == count or matches > different or count > _MOST_BITS:
            lows[runs], highs[runs] = low, high
            runs += 1
            longest = max(longest, high - low)
        low = high
    return runs, longest


@compiled
def _write_solutions(  # type: ignore[no-untyped-def]
    triples, lows, highs, run, patterns, as_set, signs, collapsed, values, sizes, choice, copies, rows, n
):  # fmt: skip
    """Write the solutions of runs, from one of them on, behind `n` rows; ends before a run for which there is no room.

    Gives the run where it ends, the number of rows, and the number of solutions of that run. Room is made outside:
    compiled code that makes arrays counts references to all it has, again and again.
    """
    predicates, objects, is_open = patterns
    count = predicates.shape[0]
    width = rows.shape[1] - 1
    solutions = 0
    while run < lows.shape[0]:
        for k in range(count):
            sizes[k] = choice[k] = copies[k] = 0
        for row in range(lows[run], highs[run]):
            predicate, value = triples[row, 1], triples[row, 2]
            for k in range(count):
                if predicates[k] == predicate and (is_open[k] or objects[k] == value):
                    is_known = False
                    if as_set:
                        for i in range(sizes[k]):
                            is_known |= values[k, i] == value
                    if not is_known:
                        values[k, sizes[k]] = value
                        sizes[k] += 1
                    elif signs.shape[0] == 0 or signs[row] > 0:
                        copies[k] += 1
        solutions = 1
        for k in range(count):
            solutions *= sizes[k]
        if n + solutions > rows.shape[0]:
            break
        for k in range(count):
            collapsed[k] += copies[k]
        for _ in range(solutions):
            rows[n, 0] = triples[lows[run], 0]
            column = 1
            for k in range(count):
                if is_open[k]:
                    rows[n, column] = values[k, choice[k]]
                    column += 1
            rows[n, width] = lows[run]
            n += 1
            k = 0
            while k < count:
                choice[k] += 1
                if choice[k] < sizes[k]:
                    break
                choice[k] = 0
                k += 1
        run += 1
    return run, n, solutions


@compiled(makes_arrays=True)
def _match_runs(triples, ends, predicates, objects, is_open, as_set, signs, collapsed):  # type: ignore[no-untyped-def]
    """The solutions of each run of a subject: the subject, the objects of open patterns, and the row of the run.

    `ends` has for each triple whether another run must begin behind it, or is empty. `collapsed` counts for
    each pattern the triples that are copies of one before, if `signs` says that they enter, or is empty.
    """
    count = predicates.shape[0]
    width = 1
    for k in range(count):
        width += is_open[k]
    lows, highs = np.empty(triples.shape[0], np.int64), np.empty(triples.shape[0], np.int64)
    runs, longest = _find_runs(triples, ends, predicates, objects, is_open, lows, highs)
    lows, highs = lows[:runs], highs[:runs]
    values = np.empty((count, longest), np.int64)
    sizes, choice, copies = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    rows = np.empty((max(16, runs), width + 1), np.int64)
    patterns = (predicates, objects, is_open)
    run, n, solutions = 0, 0, 0
    while True:
        run, n, solutions = _write_solutions(
            triples, lows, highs, run, patterns, as_set, signs, collapsed, values, sizes, choice, copies, rows, n
        )
        if run == runs:
            return rows[:n]
        while n + solutions > rows.shape[0]:
            rows = enlarge_rows(rows, n)


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
