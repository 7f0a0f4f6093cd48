"""NOW() as a relation of one row, which is replaced at each tick.

    Δ = { (the instant of this tick) } − { (the instant of the tick before) }

An expression with NOW() reads it as a column, from the join of its input with this relation. The operators above need
nothing special: what is evaluated again at a tick is what depends on the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from headwater.kernel.columns.delta import UNBOUND, Delta, no_rows
from headwater.kernel.columns.delta_run import DeltaRun
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.row_counts import bag_difference
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.triple_patterns import TickClock
from headwater.terms.model import XSD, Literal, NamedNode
from headwater.terms.timestamps import format_time

_DATE_TIME = NamedNode(XSD + "dateTime")


class NowOperator(Operator):
    """The instant of the tick. State: the id of the last one."""

    def __init__(self, variable: str, clock: TickClock, vocabulary: Vocabulary) -> None:
        self.variables = (variable,)
        self._clock = clock
        self._vocabulary = vocabulary
        self._last_id = UNBOUND

    def apply(self, deltas: Sequence[Delta]) -> Delta:
        previous = self._last_id
        self._last_id = self._vocabulary.id_of(Literal(format_time(self._clock.now), datatype=_DATE_TIME))
        if previous == self._last_id:
            return Delta.empty(1)
        return Delta(np.array([[self._last_id]]), no_rows(1) if previous == UNBOUND else np.array([[previous]]))

    def apply_run(self, runs: Sequence[DeltaRun]) -> DeltaRun:
        deltas: list[tuple[int, Delta]] = []
        for tick, instant in enumerate(self._clock.run):
            self._clock.now = instant
            deltas.append((tick, self.apply(())))
        return DeltaRun.of_deltas(deltas, 1)

    def ids(self) -> Iterable[Ints]:
        yield np.array([self._last_id])


class NetChangeOperator(Operator):
    """The source without the rows that one delta both adds and removes. No state.

    Rows that were evaluated again with the same outcome need no work in the operators above.
    """

    def __init__(self, source: Operator) -> None:
        self.variables = source.variables
        self._source = source

    def apply(self, deltas: Sequence[Delta]) -> Delta:
        (delta,) = deltas
        if not delta.added.shape[0] or not delta.removed.shape[0]:
            return delta
        return bag_difference(delta.added, delta.removed)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._source,)
