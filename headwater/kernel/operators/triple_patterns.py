"""The leaves: triples that enter and leave the windows, and the triple patterns that match them.

    Δ(matches of p in W) = matches of p in ΔW

A pattern is matched on columns of ids when a triple enters or leaves, once for all operators that share the pattern.
No state but the delta of the current tick. `compiling.pattern_inputs` says which windows a pattern reads, and what
makes a set of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TypeVar

import numpy as np

from headwater.kernel.columns.delta import UNBOUND, Delta, no_rows
from headwater.kernel.columns.delta_run import DeltaRun
from headwater.kernel.columns.relation import NO_ROW_IDS
from headwater.kernel.columns.ring_index import Ints, as_contiguous
from headwater.kernel.operators.operator import Operator
from headwater.terms.compiled_code import compiled
from headwater.values.query_guard import QueryGuard

Changes = TypeVar("Changes", Delta, DeltaRun)

TRIPLE = ("s", "p", "o")
TIMED_TRIPLE = (*TRIPLE, "t")
"""With the time in microseconds, for queries with `timestamp()`."""
GRAPH_NAME = "g"
"""The column behind the triple that has the name of its graph, for queries with GRAPH in the clause of a window."""
_FEW_TRIPLES = 4
"""Up to so many triples, a loop in Python is faster than a call of compiled code."""


class TripleSourceOperator(Operator):
    """The triples that enter and leave one window. The evaluator sets `delta` or `run` before it advances the root.

    The delta stays until the next tick, so that readers may take it from here (`find_window_pattern`).
    """

    def __init__(self, variables: tuple[str, ...] = TRIPLE) -> None:
        self.variables = variables
        self._nothing = Delta.empty(len(variables))
        self.delta = self._nothing
        self.run = DeltaRun.empty(len(variables))

    def advance(self) -> Delta:
        return self.delta

    def apply(self, deltas: Sequence[Delta]) -> Delta:
        return self.delta

    def clear(self) -> None:
        """Have no change at the next tick."""
        self.delta = self._nothing

    def apply_run(self, runs: Sequence[DeltaRun]) -> DeltaRun:
        run, self.run = self.run, DeltaRun.empty(len(self.variables))
        return run

    def needs_rows_of(self, source: Operator) -> bool:
        return source is self


class SharedOperator(Operator):
    """An operator with several readers: it is advanced once per tick, and every reader gets the same delta.

    Where it fails, every reader gets the error, now and later: what it holds may be wrong.
    """

    def __init__(self, source: Operator, clock: TickClock) -> None:
        self._source = source
        self._clock = clock
        self._advanced_at = -1
        self._failure: Exception | None = None
        self._traceback: TracebackType | None = None
        self._delta = Delta.empty(len(source.variables))
        self._run = DeltaRun.empty(len(source.variables))
        self.variables = source.variables

    def advance(self) -> Delta:
        if self._advanced_at != self._clock.tick:
            self._delta = self._once(super().advance)
        return self._delta

    def _once(self, advance: Callable[[], Changes]) -> Changes:
        """Advance, for all readers, under the guard of all."""
        if self._failure is not None:
            raise self._failure.with_traceback(self._traceback)
        try:
            if self._clock.guard is None:
                changes = advance()
            else:
                with self._clock.guard:
                    changes = advance()
        except Exception as error:
            self._failure, self._traceback = error, error.__traceback__
            raise
        self._advanced_at = self._clock.tick
        return changes

    def apply(self, deltas: Sequence[Delta]) -> Delta:
        return deltas[0]

    def advance_run(self) -> DeltaRun:
        if self._advanced_at != self._clock.tick:
            self._run = self._once(super().advance_run)
        return self._run

    def apply_run(self, runs: Sequence[DeltaRun]) -> DeltaRun:
        return runs[0]

    def needs_rows_of(self, source: Operator) -> bool:
        return self._source.needs_rows_of(source)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._source,)


class TickClock:
    """Counts ticks or runs, so that shared operators notice a new one; `now` is the instant of the tick.

    `run` has the instants of the ticks of a run. `guard` is what shared operators are evaluated under; None where that
    is the guard of their one query.
    """

    def __init__(self, guard: QueryGuard | None = None) -> None:
        self.guard = guard
        self.tick = 0
        self.now = 0
        self.run: Sequence[int] = ()


class RenameOperator(Operator):
    """The same rows with other variable names."""

    def __init__(self, source: Operator, variables: tuple[str, ...]) -> None:
        self.variables = variables
        self._source = source

    def apply(self, deltas: Sequence[Delta]) -> Delta:
        return deltas[0]

    def apply_run(self, runs: Sequence[DeltaRun]) -> DeltaRun:
        return runs[0]

    def needs_rows_of(self, source: Operator) -> bool:
        return self._source.needs_rows_of(source)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._source,)


@compiled
def _match(triples, places, expected_ids, equal_places, columns, bindings, matched):  # type: ignore[no-untyped-def]
    """Write the bindings of the triples that match, and the places of those if there is room; gives their number."""
    n = 0
    for i in range(triples.shape[0]):
        matches = True
        for k in range(places.shape[0]):
            matches &= triples[i, places[k]] == expected_ids[k]
        for k in range(equal_places.shape[0]):
            matches &= triples[i, equal_places[k, 0]] == triples[i, equal_places[k, 1]]
        if matches:
            for c in range(columns.shape[0]):
                bindings[n, c] = triples[i, columns[c]]
            if matched.shape[0]:
                matched[n] = i
            n += 1
    return n


class PatternOperator(Operator):
    """The solutions of one triple pattern: constants must match, and a variable used twice must have one value.

    Further columns of the source, behind the triple, follow the bindings.
    """

    def __init__(self, source: Operator, pattern: tuple[int | str, int | str, int | str]) -> None:
        self._source = source
        self._constants = [(i, term) for i, term in enumerate(pattern) if not isinstance(term, str)]
        first_places: dict[str, int] = {}
        self._equal_places: list[tuple[int, int]] = []
        for place, term in enumerate(pattern):
            if isinstance(term, str):
                if term in first_places:
                    self._equal_places.append((first_places[term], place))
                else:
                    first_places[term] = place
        further = source.variables[len(TRIPLE) :]
        self.variables = (*first_places, *further)
        self._columns = [*first_places.values(), *range(len(TRIPLE), len(source.variables))]
        self._tables = (
            np.array([place for place, _ in self._constants], dtype=np.int64),
            np.array([expected_id for _, expected_id in self._constants], dtype=np.int64),
            np.array(self._equal_places, dtype=np.int64).reshape(len(self._equal_places), 2),
            np.array(self._columns, dtype=np.int64),
        )
        self._nothing = no_rows(len(self.variables))
        self._no_change = Delta.empty(len(self.variables))

    def apply(self, deltas: Sequence[Delta]) -> Delta:
        (delta,) = deltas
        return self._no_change if delta.is_empty else delta.map_rows(self.match)

    def match(self, triples: Ints) -> Ints:
        """The bindings of the triples that match, one row for each."""
        count = triples.shape[0]
        if not count:
            return self._nothing
        if count <= _FEW_TRIPLES:
            return self._match_few(triples)
        bindings = np.empty((count, len(self._columns)), dtype=np.int64)
        return bindings[: _match(as_contiguous(triples), *self._tables, bindings, NO_ROW_IDS)]

    def apply_run(self, runs: Sequence[DeltaRun]) -> DeltaRun:
        (run,) = runs
        bindings = np.empty((len(run), len(self._columns)), dtype=np.int64)
        matched = np.empty(len(run), dtype=np.int64)
        n = _match(as_contiguous(run.rows), *self._tables, bindings, matched)
        return DeltaRun(bindings[:n], run.ticks[matched[:n]], run.signs[matched[:n]])

    @property
    def fields(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]], list[int]]:
        """The places with their constants, the pairs of equal places, and the places of the bindings."""
        return self._constants, self._equal_places, self._columns

    def _match_few(self, triples: Ints) -> Ints:
        bindings = []
        for triple in triples.tolist():
            for place, expected_id in self._constants:
                if triple[place] != expected_id:
                    break
            else:
                if not self._equal_places or all(triple[one] == triple[other] for one, other in self._equal_places):
                    bindings.append([triple[column] for column in self._columns])
        return (
            np.array(bindings, dtype=np.int64).reshape(len(bindings), len(self._columns)) if bindings else self._nothing
        )

    def needs_rows_of(self, source: Operator) -> bool:
        return self._source.needs_rows_of(source)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._source,)


class NamedGraphOperator(Operator):
    """The rows of triples whose graph has a name; with a `name_id`, that name. No state."""

    def __init__(self, source: Operator, *, name_id: int | None = None) -> None:
        self.variables = source.variables
        self._source = source
        self._column = source.column_of(GRAPH_NAME)
        self._name_id = name_id

    def apply(self, deltas: Sequence[Delta]) -> Delta:
        (delta,) = deltas
        return delta if delta.is_empty else delta.map_rows(self._select)

    def _select(self, rows: Ints) -> Ints:
        chosen: Ints = rows[self._is_chosen(rows)]
        return chosen

    def _is_chosen(self, rows: Ints) -> Ints:
        names = rows[:, self._column]
        chosen: Ints = names != UNBOUND if self._name_id is None else names == self._name_id
        return chosen

    def apply_run(self, runs: Sequence[DeltaRun]) -> DeltaRun:
        (run,) = runs
        chosen = self._is_chosen(run.rows)
        return DeltaRun(run.rows[chosen], run.ticks[chosen], run.signs[chosen])

    def needs_rows_of(self, source: Operator) -> bool:
        return self._source.needs_rows_of(source)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._source,)


def find_window_pattern(operator: Operator) -> tuple[TripleSourceOperator, PatternOperator] | None:
    """The window and the pattern, if an operator gives the matches of a pattern in a window and nothing else."""
    while isinstance(operator, RenameOperator | SharedOperator):
        (operator,) = operator.inputs
    if not isinstance(operator, PatternOperator):
        return None
    (source,) = operator.inputs
    if isinstance(source, SharedOperator):
        (source,) = source.inputs
    if isinstance(source, TripleSourceOperator) and source.variables == TRIPLE:
        return source, operator
    return None
