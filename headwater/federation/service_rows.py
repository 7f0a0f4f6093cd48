"""The operator of SERVICE: the remote rows for the keys of the left side, as deltas (VM1, VM2).

    left ⋈ SERVICE P   =   left ⋈ R        R = { rows of P for k  |  k a key of left }

A key is a left row projected to the variables that the pattern shares and that all left rows bind; a variable that may
be unbound is left to the join. So every row of R belongs to one key, and the join, OPTIONAL's too, is the same as for
all other inputs. R changes when a key comes or goes, and when a refresh finds other rows.

State: how many left rows each key has, when the newest came, and the rows of R that were emitted.

The number of ticks that a key stays is an upper bound for its newest row: that came at some tick, so it is no younger
than that tick, and it leaves with the first window that drops it. A triple that comes again while a set still has it
makes no new row, and is not counted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headwater.federation.endpoint.clock import EventTimeClock
from headwater.federation.endpoint.contact import Contact
from headwater.federation.endpoint.remote import Rows
from headwater.federation.strategies import ServiceStrategy
from headwater.federation.view.lifetime import WindowKey, remaining_ticks_in
from headwater.federation.view.service_quality import Quality
from headwater.kernel.columns.delta import Delta, stack_rows
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.triple_patterns import TickClock
from headwater.terms.model import SECOND, BlankNode, Row, Variable
from headwater.windows.model import TimeWindow
from headwater.windows.settings import QuerySettings

logger = logging.getLogger(__name__)

_FOR_EVER = 10_000
"""The ticks that a key stays if no window ever drops it."""

Ids = tuple[int, ...]


class TickSchedule:
    """The distance of the ticks of a query, and how many ticks a row stays."""

    def __init__(self, settings: QuerySettings) -> None:
        self._windows = [window for window in settings.windows if isinstance(window, TimeWindow)]
        slides = [window.slide for window in self._windows if window.slide is not None]
        self._period = settings.period or min(slides, default=None)
        self._has_count_windows = len(self._windows) < len(settings.windows)
        self._last: int | None = None
        self._distance: int | None = None

    @property
    def slide(self) -> int:
        """The distance of two ticks: the query's own, or the last one observed, or at first a second."""
        return self._period or self._distance or SECOND

    def record_tick(self, tick: int) -> None:
        """Observe the distance from the last tick."""
        if self._last is not None and tick > self._last:
            self._distance = tick - self._last
        self._last = tick

    def remaining_ticks(self, newest: int, now: int) -> int:
        """The most ticks, this one included, that a row stays whose newest element came at the tick `newest`."""
        ticks_by_window = [
            remaining_ticks_in(window, newest - window.offset, now, self.slide) for window in self._windows
        ]
        bounded = [ticks for ticks in ticks_by_window if ticks is not None]
        if bounded:
            return max(1, min(bounded))
        return 1 if self._has_count_windows else _FOR_EVER


@dataclass(frozen=True)
class ServiceClause:
    """A SERVICE clause: the strategy that gets its rows, their columns, and how failures are handled.

    Ages are measured by `event_time`, which goes with the ticks, or by the machine's clock if that is None.
    If `is_silent`, a key that failed has one solution without bindings; if `is_strict`, an endpoint that has never
    answered is an error.
    """

    strategy: ServiceStrategy
    contact: Contact
    variables: tuple[Variable, ...]
    keys: tuple[Variable, ...]
    is_silent: bool
    is_strict: bool
    event_time: EventTimeClock | None = None


class ServiceRows(Operator):
    """The rows of one SERVICE clause for the keys of its left side."""

    def __init__(
        self,
        left: Operator,
        clause: ServiceClause,
        schedule: TickSchedule,
        clock: TickClock,
        vocabulary: Vocabulary,
        seconds_spent: Callable[[], float],
    ) -> None:
        self.variables = tuple(variable.value for variable in clause.variables)
        self.name = clause.contact.name
        self.quality: Quality | None = None
        self.ended_after = 0.0
        """The seconds of the evaluation of the present tick when it had its rows."""
        self.is_restoring = False
        """Whether to emit the same rows as before, without a request."""
        self._left = left
        self._seconds_spent = seconds_spent
        self._clause = clause
        self.strategy = clause.strategy
        self._schedule = schedule
        self._clock = clock
        self._vocabulary = vocabulary
        self._key_columns = [left.column_of(variable.value) for variable in clause.keys]
        self._counts: dict[Ids, int] = {}
        self._newest: dict[Ids, int] = {}
        self._terms: dict[Ids, Row] = {}
        self._emitted: dict[Ids, tuple[Rows, Ints]] = {}
        self._restored_newest: dict[Row, int] = {}

    def apply(self, deltas: Sequence[Delta]) -> Delta:
        self._count_keys(deltas[0])
        if not self.is_restoring:
            self._schedule.record_tick(self._clock.now)
            if self._clause.event_time is not None:
                self._clause.event_time.move_to(self._clock.now)
            self.quality = self.strategy.tick(self._window_keys(), self._schedule.slide, self._seconds_spent())
            self.ended_after = self._seconds_spent()
            if self._clause.is_strict:
                self._clause.contact.raise_if_never_answered()
        return self._emit_changes()

    def _count_keys(self, delta: Delta) -> None:
        for key in self._keys(delta.added):
            if key not in self._counts:
                self._counts[key] = 0
                self._terms[key] = self._vocabulary.terms_of_rows(np.array([key], dtype=np.int64).reshape(1, len(key)))[
                    0
                ]
            self._counts[key] += 1
            now = self._clock.now
            self._newest[key] = self._restored_newest.get(self._terms[key], now) if self.is_restoring else now
        for key in self._keys(delta.removed):
            self._counts[key] -= 1
            if not self._counts[key]:
                del self._counts[key], self._newest[key], self._terms[key]

    def _keys(self, rows: Ints) -> Iterable[Ids]:
        return map(tuple, rows[:, self._key_columns].tolist()) if rows.shape[0] else ()

    def _window_keys(self) -> list[WindowKey]:
        """The keys to request. A blank node of a stream is not a node of the endpoint: it needs no request."""
        now = self._clock.now
        return [
            WindowKey(terms, self._schedule.remaining_ticks(self._newest[key], now), self._counts[key])
            for key, terms in self._terms.items()
            if not _has_blank_node(terms)
        ]

    def _emit_changes(self) -> Delta:
        """The delta between the rows of all keys now and those emitted before."""
        added: list[Ints] = []
        removed: list[Ints] = []
        for key in [key for key in self._emitted if key not in self._counts]:
            removed.append(self._emitted.pop(key)[1])
        for key, terms in self._terms.items():
            rows = self._rows(terms)
            known = self._emitted.get(key)
            if known is not None and (known[0] is rows or known[0] == rows):
                continue
            ids, collisions = self._vocabulary.ids_of_remote_rows(rows, len(self.variables))
            for collision in collisions:
                logger.warning("a solution of the endpoint %s is left out: %s", self._clause.contact.name, collision)
            self._emitted[key] = (rows, ids)
            added.append(ids)
            if known is not None:
                removed.append(known[1])
        return Delta(stack_rows(added, len(self.variables)), stack_rows(removed, len(self.variables)))

    def _rows(self, key: Row) -> Rows:
        rows = () if _has_blank_node(key) else self.strategy.rows(key)
        if rows is not None:
            return rows
        if not self._clause.is_silent:
            return ()
        # SPARQL 1.1 Federated Query, 2.2: under SILENT a failure is one solution without bindings.
        bound = dict(zip(self._clause.keys, key, strict=True))
        return (tuple(bound.get(variable) for variable in self._clause.variables),)

    def record_query_time(self, seconds: float) -> None:
        """Record how long the evaluation of the tick took after this operator."""
        self.strategy.record_query_time(seconds)

    def state(self) -> Any:
        """The state that cannot be derived from the windows: the rows of the endpoint, and the age of keys."""
        newest = {self._terms[key]: tick for key, tick in self._newest.items()}
        return {"kind": type(self.strategy).__name__, "source": self.strategy.state(), "newest": newest}

    def restore(self, state: Any) -> None:
        """Restore a state; the rows of another strategy, from before the options were changed, are ignored."""
        if state["kind"] == type(self.strategy).__name__:
            self.strategy.restore(state["source"])
        self._clause.contact.has_answered = True
        self._restored_newest = dict(state["newest"])

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._left,)

    def ids(self) -> Iterable[Ints]:
        yield np.array([id_ for key in self._counts for id_ in key], dtype=np.int64)
        for _, ids in self._emitted.values():
            yield ids

    @property
    def nbytes(self) -> int:
        return sum(ids.nbytes for _, ids in self._emitted.values()) + 64 * len(self._counts)


def _has_blank_node(key: Sequence[object]) -> bool:
    return any(isinstance(term, BlankNode) for term in key)
