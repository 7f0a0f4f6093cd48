"""The leaves: triples that enter and leave the windows, and the patterns that they match.

A pattern is matched where a triple enters or leaves, on columns of ids, once for all who share it. Which windows a
pattern reads, and what makes a set of them, is said in `leaves`.
"""

from __future__ import annotations

import numpy as np

from headwater.kernel.columns.delta import Delta, no_rows
from headwater.kernel.columns.ring_index import Ints, plain
from headwater.kernel.operators.operator import Operator
from headwater.terms.compiled_code import compiled

TRIPLE = ("s", "p", "o")
TIMED_TRIPLE = (*TRIPLE, "t")
"""With the time in microseconds, where a query asks for it."""
_FEW = 4
"""So many triples are looked at one by one in less time than columns take to set up."""


class TripleSource(Operator):
    """What one window gained and lost at the tick; the evaluator puts it here before it asks the root."""

    def __init__(self, variables: tuple[str, ...] = TRIPLE) -> None:
        self.variables = variables
        self._nothing = Delta.nothing(len(variables))
        self.delta = self._nothing

    def advance(self) -> Delta:
        delta, self.delta = self.delta, self._nothing
        return delta

    def needs(self, source: Operator) -> bool:
        return source is self


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

    def needs(self, source: Operator) -> bool:
        return self._source.needs(source)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._source,)


class TickClock:
    """Counts ticks, so that shared operators know a new one; `now` is the instant of the tick."""

    def __init__(self) -> None:
        self.tick = 0
        self.now = 0


class Renamed(Operator):
    """The same rows under other names."""

    def __init__(self, source: Operator, variables: tuple[str, ...]) -> None:
        self.variables = variables
        self._source = source

    def advance(self) -> Delta:
        return self._source.advance()

    def needs(self, source: Operator) -> bool:
        return self._source.needs(source)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._source,)


@compiled
def _match(triples, places, wanted, equal, columns, found):  # type: ignore[no-untyped-def]
    """Write the bindings of the triples that match; gives how many do."""
    n = 0
    for i in range(triples.shape[0]):
        matches = True
        for k in range(places.shape[0]):
            matches &= triples[i, places[k]] == wanted[k]
        for k in range(equal.shape[0]):
            matches &= triples[i, equal[k, 0]] == triples[i, equal[k, 1]]
        if matches:
            for c in range(columns.shape[0]):
                found[n, c] = triples[i, columns[c]]
            n += 1
    return n


class PatternMatch(Operator):
    """The solutions of one triple pattern: constants must be equal, equal variables must have equal values.

    Columns of the source behind the triple are passed on behind the bindings.
    """

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
        more = source.variables[len(TRIPLE) :]
        self.variables = (*names, *more)
        self._columns = [*names.values(), *range(len(TRIPLE), len(source.variables))]
        self._tables = (
            np.array([place for place, _ in self._constants], dtype=np.int64),
            np.array([wanted for _, wanted in self._constants], dtype=np.int64),
            np.array(self._equal, dtype=np.int64).reshape(len(self._equal), 2),
            np.array(self._columns, dtype=np.int64),
        )
        self._nothing = no_rows(len(self.variables))
        self._no_change = Delta.nothing(len(self.variables))

    def advance(self) -> Delta:
        delta = self._source.advance()
        return self._no_change if delta.is_empty else delta.mapped(self.match)

    def match(self, triples: Ints) -> Ints:
        """The rows of bindings of the triples that match."""
        count = triples.shape[0]
        if not count:
            return self._nothing
        if count <= _FEW:
            return self._match_few(triples)
        found = np.empty((count, len(self._columns)), dtype=np.int64)
        return found[: _match(plain(triples), *self._tables, found)]

    def _match_few(self, triples: Ints) -> Ints:
        found = []
        for triple in triples.tolist():
            for place, wanted in self._constants:
                if triple[place] != wanted:
                    break
            else:
                if not self._equal or all(triple[one] == triple[other] for one, other in self._equal):
                    found.append([triple[column] for column in self._columns])
        return np.array(found, dtype=np.int64).reshape(len(found), len(self._columns)) if found else self._nothing

    def needs(self, source: Operator) -> bool:
        return self._source.needs(source)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._source,)
