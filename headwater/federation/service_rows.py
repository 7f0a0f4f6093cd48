"""The operator of SERVICE: the remote rows of the keys that the left side has, as differences.

    left ⋈ SERVICE P   =   left ⋈ R        R = { rows of P for k  |  k a key of left }

A key is what a left row binds of the variables that it shares with the pattern and that are bound in all left rows; a
variable that may be unbound is left to the join. So every row of R belongs to one key, and the join, OPTIONAL's too, is
the one that all other inputs have. R changes when a key comes or goes, and when a refresh finds other rows.

State: how many left rows each key has and since when, and the rows of R that were given.

How many ticks a key stays is bounded from above: its newest row came at some tick, so it was no younger than that tick,
and it leaves with the window that lets go first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headwater.federation.endpoint.contact import Contact
from headwater.federation.endpoint.remote import Rows
from headwater.federation.strategies import RowsOfKeys
from headwater.federation.view.lifetime import WindowKey, ticks_in
from headwater.federation.view.service_quality import Quality
from headwater.kernel.columns.delta import Delta, stack_rows
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.triple_patterns import TickClock
from headwater.terms.model import SECOND, BlankNode, Row, Variable
from headwater.windows.model import TimeWindow
from headwater.windows.settings import QuerySettings

_FOR_EVER = 10_000
"""Ticks that a key stays whose window never lets go."""

Ids = tuple[int, ...]


class Rhythm:
    """When the ticks of a query come, and how many of them a row sees."""

    def __init__(self, settings: QuerySettings) -> None:
        self._windows = [window for window in settings.windows if isinstance(window, TimeWindow)]
        slides = [window.slide for window in self._windows if window.slide is not None]
        self._period = settings.period or min(slides, default=None)
        self._counted = len(self._windows) < len(settings.windows)
        self._last: int | None = None
        self._distance: int | None = None

    @property
    def slide(self) -> int:
        """The distance of two ticks: the query's own, or as it was seen last; a second before any was."""
        return self._period or self._distance or SECOND

    def at(self, tick: int) -> None:
        """A tick has come."""
        if self._last is not None and tick > self._last:
            self._distance = tick - self._last
        self._last = tick

    def ticks(self, newest: int, now: int) -> int:
        """The most ticks, this one included, that see a row whose newest part came at a tick."""
        found = [ticks_in(window, newest - window.offset, now, self.slide) for window in self._windows]
        bounded = [ticks for ticks in found if ticks is not None]
        if bounded:
            return max(1, min(bounded))
        return 1 if self._counted else _FOR_EVER


@dataclass(frozen=True)
class Clause:
    """What a SERVICE clause needs to run: where its rows come from, their columns, and how failures are taken."""

    source: RowsOfKeys
    contact: Contact
    variables: tuple[Variable, ...]
    keys: tuple[Variable, ...]
    silent: bool
    strict: bool


class ServiceRows(Operator):
    """The rows of one SERVICE clause for the keys of its left side."""

    def __init__(
        self,
        left: Operator,
        clause: Clause,
        rhythm: Rhythm,
        clock: TickClock,
        vocabulary: Vocabulary,
        seconds_spent: Callable[[], float],
    ) -> None:
        self.variables = tuple(variable.value for variable in clause.variables)
        self.name = clause.contact.name
        self.quality: Quality | None = None
        self.ended = 0.0
        """After how many seconds of the evaluation of the present tick it had its rows."""
        self.is_recalling = False
        """Whether to give what was given before, without asking anybody."""
        self._left = left
        self._seconds_spent = seconds_spent
        self._clause = clause
        self.source = clause.source
        self._rhythm = rhythm
        self._clock = clock
        self._vocabulary = vocabulary
        self._places = [left.column_of(variable.value) for variable in clause.keys]
        self._counts: dict[Ids, int] = {}
        self._newest: dict[Ids, int] = {}
        self._terms: dict[Ids, Row] = {}
        self._given: dict[Ids, tuple[Rows, Ints]] = {}
        self._remembered: dict[Row, int] = {}

    def advance(self) -> Delta:
        self._count(self._left.advance())
        if not self.is_recalling:
            self._rhythm.at(self._clock.now)
            self.quality = self.source.tick(self._window(), self._rhythm.slide, self._seconds_spent())
            self.ended = self._seconds_spent()
            if self._clause.strict:
                self._clause.contact.demand()
        return self._difference()

    def _count(self, delta: Delta) -> None:
        for key in self._keys(delta.added):
            if key not in self._counts:
                self._counts[key] = 0
                self._terms[key] = self._vocabulary.terms_of_rows(np.array([key], dtype=np.int64).reshape(1, len(key)))[
                    0
                ]
            self._counts[key] += 1
            now = self._clock.now
            self._newest[key] = self._remembered.get(self._terms[key], now) if self.is_recalling else now
        for key in self._keys(delta.removed):
            self._counts[key] -= 1
            if not self._counts[key]:
                del self._counts[key], self._newest[key], self._terms[key]

    def _keys(self, rows: Ints) -> Iterable[Ids]:
        return map(tuple, rows[:, self._places].tolist()) if rows.shape[0] else ()

    def _window(self) -> list[WindowKey]:
        """What to ask for. A blank node of a stream is no node of the endpoint: nobody needs to ask."""
        now = self._clock.now
        return [
            WindowKey(terms, self._rhythm.ticks(self._newest[key], now), self._counts[key])
            for key, terms in self._terms.items()
            if not _is_local(terms)
        ]

    def _difference(self) -> Delta:
        added: list[Ints] = []
        removed: list[Ints] = []
        for key in [key for key in self._given if key not in self._counts]:
            removed.append(self._given.pop(key)[1])
        for key, terms in self._terms.items():
            rows = self._rows(terms)
            known = self._given.get(key)
            if known is not None and (known[0] is rows or known[0] == rows):
                continue
            ids = self._vocabulary.ids_of_rows(rows, len(self.variables))
            self._given[key] = (rows, ids)
            added.append(ids)
            if known is not None:
                removed.append(known[1])
        return Delta(stack_rows(added, len(self.variables)), stack_rows(removed, len(self.variables)))

    def _rows(self, key: Row) -> Rows:
        rows = () if _is_local(key) else self.source.rows(key)
        if rows is not None:
            return rows
        if not self._clause.silent:
            return ()
        # SPARQL 1.1 Federated Query, 2.2: under SILENT what failed is one solution without bindings.
        bound = dict(zip(self._clause.keys, key, strict=True))
        return (tuple(bound.get(variable) for variable in self._clause.variables),)

    def evaluated(self, seconds: float) -> None:
        """How long the evaluation took after the tick was here."""
        self.source.evaluated(seconds)

    def state(self) -> Any:
        """What cannot be derived from the windows: the rows of the endpoint, and since when keys are there."""
        newest = {self._terms[key]: tick for key, tick in self._newest.items()}
        return {"kind": type(self.source).__name__, "source": self.source.state(), "newest": newest}

    def restore(self, state: Any) -> None:
        """Be what a state says; one of another strategy, from before the options were changed, says nothing."""
        if state["kind"] == type(self.source).__name__:
            self.source.restore(state["source"])
        self._clause.contact.answered = True
        self._remembered = dict(state["newest"])

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._left,)

    def ids(self) -> Iterable[Ints]:
        yield np.array([number for key in self._counts for number in key], dtype=np.int64)
        for _, ids in self._given.values():
            yield ids

    @property
    def nbytes(self) -> int:
        return sum(ids.nbytes for _, ids in self._given.values()) + 64 * len(self._counts)


def _is_local(key: Sequence[object]) -> bool:
    return any(isinstance(term, BlankNode) for term in key)
