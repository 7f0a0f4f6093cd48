"""FILTER: the rows that satisfy a condition.

    Δσ(R) = σ(ΔR)

No state: the condition depends on its row only, so a row that goes is judged as it was when it came.

    σ(ε(R)) = ε(σ(R))

Of a window that is a set, what does not pass need not be told apart, and a join need not remember it.
"""

from __future__ import annotations

from headwater.kernel.columns.delta import Condition, Delta
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.operators.distinct import Distinct
from headwater.kernel.operators.multiway_join import MultiwayJoin
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.triple_patterns import PatternMatch, Renamed, Shared


class Selection(Operator):
    """The rows of the source that satisfy a condition."""

    def __init__(self, source: Operator, condition: Condition) -> None:
        self.variables = source.variables
        self._source = source
        self._condition = condition

    def advance(self) -> Delta:
        return self._source.advance().mapped(self._kept)

    def _kept(self, rows: Ints) -> Ints:
        return rows[self._condition(rows)] if rows.shape[0] else rows

    def needs(self, source: Operator) -> bool:
        return self._source.needs(source)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._source,)


def selected(source: Operator, condition: Condition) -> Operator:
    """The rows that satisfy a condition; those of a triple pattern are tried before equal ones are counted, and a join
    keeps no others."""
    if isinstance(source, MultiwayJoin) and source.condition is None:
        return MultiwayJoin(source.inputs, source.variables, condition=condition)
    match = _matches_counted_by(source)
    if match is None:
        return Selection(source, condition)
    return Renamed(Distinct(Selection(match, condition)), source.variables)


def _matches_counted_by(source: Operator) -> PatternMatch | None:
    """The matches of a pattern in a window that is a set, where others may read the triples, too."""
    if not isinstance(source, Renamed):
        return None
    (shared,) = source.inputs
    counted = shared.inputs[0] if isinstance(shared, Shared) else None
    match = counted.inputs[0] if isinstance(counted, Distinct) else None
    return match if isinstance(match, PatternMatch) and isinstance(match.inputs[0], Shared) else None
