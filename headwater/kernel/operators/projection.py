"""Projection: some columns, in a given order; duplicates stay.

    Δπ(R) = π(ΔR)

No state.
"""

from __future__ import annotations

import numpy as np

from headwater.kernel.columns.delta import UNBOUND, Delta, no_rows
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.operators.operator import Operator


class Columns:
    """Brings rows from one layout of variables to another; a variable that they lack is unbound."""

    def __init__(self, given: tuple[str, ...], wanted: tuple[str, ...]) -> None:
        self._is_same = given == wanted
        self._width = len(wanted)
        known = [(place, given.index(variable)) for place, variable in enumerate(wanted) if variable in given]
        self._places = [place for place, _ in known]
        self._columns = [column for _, column in known]
        self._is_complete = len(known) == len(wanted)
        self._nothing = no_rows(len(wanted))

    def of_rows(self, rows: Ints) -> Ints:
        if self._is_same:
            return rows
        if not rows.shape[0]:
            return self._nothing
        if self._is_complete:
            chosen: Ints = rows[:, self._columns]
            return chosen
        padded = np.full((rows.shape[0], self._width), UNBOUND, dtype=np.int64)
        padded[:, self._places] = rows[:, self._columns]
        return padded

    def of(self, delta: Delta) -> Delta:
        return delta if self._is_same else delta.mapped(self.of_rows)


class Projection(Operator):
    """The columns `variables` of the source."""

    def __init__(self, source: Operator, variables: tuple[str, ...]) -> None:
        self.variables = variables
        self._source = source
        self._columns = Columns(source.variables, variables)

    def advance(self) -> Delta:
        return self._columns.of(self._source.advance())

    def needs(self, source: Operator) -> bool:
        return self._source.needs(source)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._source,)
