"""NOW() as a relation of one row that is another one at each tick.

    Δ = { (now) } − { (the tick before) }

An expression that asks for NOW() reads it as a column of its input joined with this relation, so everything above
follows by the usual differences: what has to be evaluated again at a tick is exactly what depends on the time.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from headwater.kernel.columns.delta import UNBOUND, Delta, no_rows
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.recomputed import difference
from headwater.kernel.operators.triple_patterns import TickClock
from headwater.terms.model import XSD, Literal, NamedNode
from headwater.terms.timestamps import format_time

_DATE_TIME = NamedNode(XSD + "dateTime")


class Now(Operator):
    """The instant of the tick. State: what was said last."""

    def __init__(self, variable: str, clock: TickClock, vocabulary: Vocabulary) -> None:
        self.variables = (variable,)
        self._clock = clock
        self._vocabulary = vocabulary
        self._said = UNBOUND

    def advance(self) -> Delta:
        before, self._said = (
            self._said,
            self._vocabulary.id_of(Literal(format_time(self._clock.now), datatype=_DATE_TIME)),
        )
        if before == self._said:
            return Delta.nothing(1)
        return Delta(np.array([[self._said]]), no_rows(1) if before == UNBOUND else np.array([[before]]))

    def ids(self) -> Iterable[Ints]:
        yield np.array([self._said])


class Netted(Operator):
    """The source without the rows that both come and go in one difference. No state.

    Rows that were evaluated again and came out the same need not trouble anybody above.
    """

    def __init__(self, source: Operator) -> None:
        self.variables = source.variables
        self._source = source

    def advance(self) -> Delta:
        delta = self._source.advance()
        if not delta.added.shape[0] or not delta.removed.shape[0]:
            return delta
        return difference(delta.added, delta.removed)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._source,)
