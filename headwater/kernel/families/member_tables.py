"""Inputs of a family's plan whose rows come and go with the queries, not with the streams.

    Δ = the rows of `give` and `take` since the last tick

`TableOperator` is the table of the members itself. A `FamilyViewOperator` is a static part with parameters in it:

    ?paper dc:creator ?auth . ?auth foaf:name ?p0         for each value of ?p0 that a member has

It is evaluated over the static data for all new values at once, with VALUES, and indexed on its parameters by the join
that reads it. The rows of values that no member has any more are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from headwater.kernel.columns.delta import Delta, stack_rows
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.row_counts import bag_difference
from headwater.kernel.operators.operator import Operator

Key = tuple[int, ...]
"""Values of some of the parameters of a family."""
Values = Sequence[int]
"""The values of all of them: what a member is."""
LookUp = Callable[[Sequence[Key]], Ints]
"""The rows of a view for some combinations of values of its parameters."""


class MemberFollower(Protocol):
    """An operator that is given the members that come and go, before the tick from which on they count."""

    def enter(self, members: Sequence[Values]) -> None: ...

    def leave(self, member: Values) -> None: ...


class TableOperator(Operator):
    """Rows that are added and removed from outside. State: the changes since the last tick."""

    def __init__(self, variables: tuple[str, ...]) -> None:
        self.variables = variables
        self._given: list[Ints] = []
        self._taken: list[Ints] = []
        self._nothing = Delta.empty(len(variables))

    def give(self, rows: Ints) -> None:
        self._given.append(rows)

    def take(self, rows: Ints) -> None:
        """Take rows that were given before."""
        self._taken.append(rows)

    def apply(self, deltas: Sequence[Delta]) -> Delta:
        if not self._given and not self._taken:
            return self._nothing
        width = len(self.variables)
        given, taken = stack_rows(self._given, width), stack_rows(self._taken, width)
        is_both = bool(self._given) and bool(self._taken)
        self._given, self._taken = [], []
        return bag_difference(given, taken) if is_both else Delta(given, taken)

    def ids(self) -> Iterable[Ints]:
        yield from self._given
        yield from self._taken


@dataclass(slots=True)
class _Wanted:
    """The rows for one combination of values, and how many members have it."""

    rows: Ints
    members: int = 0


class FamilyViewOperator(TableOperator):
    """The rows of a static part for the values that members give to its parameters, which stand at `places`.

    State: the rows, by the values of the parameters.
    """

    def __init__(self, variables: tuple[str, ...], columns: Sequence[int], places: Sequence[int], ask: LookUp) -> None:
        super().__init__(variables)
        self._columns = list(columns)
        self._places = places
        self._ask = ask
        self._wanted: dict[Key, _Wanted] = {}

    def _key(self, member: Values) -> Key:
        return tuple(member[place] for place in self._places)

    def enter(self, members: Sequence[Values]) -> None:
        """Add the rows that new members ask for; a member is the values of all parameters of the family."""
        keys = [self._key(member) for member in members]
        fresh = list(dict.fromkeys(key for key in keys if key not in self._wanted))
        if fresh:
            rows = self._ask(fresh)
            self._wanted |= {key: _Wanted(rows[:0]) for key in fresh}
            for key, mine in self._by_key(rows):
                self._wanted[key].rows = mine
            self.give(rows)
        for key in keys:
            self._wanted[key].members += 1

    def leave(self, member: Values) -> None:
        """Remove the rows that only this member asked for."""
        key = self._key(member)
        wanted = self._wanted[key]
        wanted.members -= 1
        if not wanted.members:
            del self._wanted[key]
            self.take(wanted.rows)

    def _by_key(self, rows: Ints) -> Iterable[tuple[Key, Ints]]:
        if not rows.shape[0]:
            return
        order = np.lexsort(rows[:, self._columns].T)
        ordered = rows[order]
        keys = ordered[:, self._columns]
        changes = np.flatnonzero((keys[1:] != keys[:-1]).any(axis=1)) + 1
        for low, high in zip([0, *changes.tolist()], [*changes.tolist(), rows.shape[0]], strict=True):
            # Each combination has rows of its own, so that forgetting one frees its memory.
            yield tuple(keys[low].tolist()), ordered[low:high].copy()

    def ids(self) -> Iterable[Ints]:
        yield from super().ids()
        yield from (wanted.rows for wanted in self._wanted.values())

    @property
    def nbytes(self) -> int:
        return sum(wanted.rows.nbytes for wanted in self._wanted.values())
