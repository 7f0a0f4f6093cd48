"""Projection to some variables, in a given order; duplicates stay.

    Δπ(R) = π(ΔR)

No state.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headwater.kernel.columns.delta import UNBOUND, Delta, no_rows
from headwater.kernel.columns.delta_run import DeltaRun
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.operators.operator import Operator


class ColumnMapping:
    """Maps rows with the variables `given` to rows with those `wanted`; what is not given is unbound."""

    def __init__(self, given: tuple[str, ...], wanted: tuple[str, ...]) -> None:
        self._is_same = given == wanted
        self._width = len(wanted)
        pairs = [(place, given.index(variable)) for place, variable in enumerate(wanted) if variable in given]
        self._places = [place for place, _ in pairs]
        self._columns = [column for _, column in pairs]
        self._is_complete = len(pairs) == len(wanted)
        self._nothing = no_rows(len(wanted))
        self._no_change = Delta.empty(len(wanted))

    def map_rows(self, rows: Ints) -> Ints:
        if self._is_same:
            return rows
        if not rows.shape[0]:
            return self._nothing
        if self._is_complete:
            projected: Ints = rows[:, self._columns]
            return projected
        padded = np.full((rows.shape[0], self._width), UNBOUND, dtype=np.int64)
        padded[:, self._places] = rows[:, self._columns]
        return padded

    def map_delta(self, delta: Delta) -> Delta:
        if self._is_same:
            return delta
        return self._no_change if delta.is_empty else delta.map_rows(self.map_rows)


class ProjectionOperator(Operator):
    """The columns `variables` of the source."""

    def __init__(self, source: Operator, variables: tuple[str, ...]) -> None:
        self.variables = variables
        self._source = source
        self._columns = ColumnMapping(source.variables, variables)

    def apply(self, deltas: Sequence[Delta]) -> Delta:
        return self._columns.map_delta(deltas[0])

    def apply_run(self, runs: Sequence[DeltaRun]) -> DeltaRun:
        return runs[0].with_rows(self._columns.map_rows(runs[0].rows))

    def needs_rows_of(self, source: Operator) -> bool:
        return self._source.needs_rows_of(source)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._source,)
