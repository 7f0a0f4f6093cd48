"""The leaves: triples that enter and leave the windows, and the patterns that they match.

A pattern is matched where a triple enters or leaves, on columns of ids, once for all who share the source. In a set a
triple counts once however often it came (`Distinct` over the source); in the default graph of C-SPARQL the windows
are merged with each other and with the static data, whose triples are always there.
"""

from __future__ import annotations

import numpy as np

from headwater.kernel.delta import Delta, no_rows
from headwater.kernel.index import Ints
from headwater.kernel.operator import Operator

TRIPLE = ("s", "p", "o")
_FEW = 4
"""So many triples are looked at one by one in less time than columns take to set up."""


class TripleSource(Operator):
    """What one window gained and lost at the tick; the evaluator puts it here before it asks the root."""

    variables = TRIPLE

    def __init__(self) -> None:
        self.delta = Delta.nothing(3)

    def advance(self) -> Delta:
        delta, self.delta = self.delta, Delta.nothing(3)
        return delta


class Shared(Operator):
    """An operator with several readers: it is advanced once per tick and remembers what it said."""

    def __init__(self, source: Operator, clock: TickClock) -> None:
        self._source = source
        self._clock = clock
        self._asked_at = -1
        self._delta = Delta.nothing(len(source.variables))
        self.variables = source.variables

    def advance(self) -> Delta:
        if self._asked_at != self._clock.tick:
            self._asked_at = self._clock.tick
            self._delta = self._source.advance()
        return self._delta

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._source,)


class TickClock:
    """Counts ticks, so that shared operators know a new one."""

    def __init__(self) -> None:
        self.tick = 0


class NotStatic(Operator):
    """Triples of windows that the static default graph does not hold anyway."""

    variables = TRIPLE

    def __init__(self, source: Operator, static: frozenset[tuple[int, int, int]]) -> None:
        self._source = source
        self._static = static

    def advance(self) -> Delta:
        delta = self._source.advance()
        return Delta(self._new(delta.added), self._new(delta.removed)) if self._static else delta

    def _new(self, rows: Ints) -> Ints:
        if not rows.shape[0]:
            return rows
        return rows[[tuple(row) not in self._static for row in rows.tolist()]]

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._source,)


class PatternMatch(Operator):
    """The solutions of one triple pattern: constants must be equal, equal variables must have equal values."""

    def __init__(self, source: Operator, pattern: tuple[int | str, int | str, int | str]) -> None:
        self._source = source
        self._constants = [(i, part) for i, part in enumerate(pattern) if not isinstance(part, str)]
        names: dict[str, int] = {}
        self._equal: list[tuple[int, int]] = []
        for place, part in enumerate(pattern):
            if isinstance(part, str):
                if part in names:
                    self._equal.append((names[part], place))
                else:
                    names[part] = place
        self.variables = tuple(names)
        self._columns = list(names.values())
        self._nothing = no_rows(len(names))

    def advance(self) -> Delta:
        delta = self._source.advance()
        return Delta(self.match(delta.added), self.match(delta.removed))

    def match(self, triples: Ints) -> Ints:
        """The rows of bindings of the triples that match."""
        count = triples.shape[0]
        if not count:
            return self._nothing
        if count <= _FEW:
            return self._match_few(triples)
        mask = np.ones(count, dtype=np.bool_)
        for place, wanted in self._constants:
            mask &= triples[:, place] == wanted
        for one, other in self._equal:
            mask &= triples[:, one] == triples[:, other]
        return np.ascontiguousarray(triples[mask][:, self._columns])

    def _match_few(self, triples: Ints) -> Ints:
        found = [
            [triple[column] for column in self._columns]
            for triple in triples.tolist()
            if all(triple[place] == wanted for place, wanted in self._constants)
            and all(triple[one] == triple[other] for one, other in self._equal)
        ]
        return np.array(found, dtype=np.int64).reshape(len(found), len(self._columns)) if found else self._nothing

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._source,)
