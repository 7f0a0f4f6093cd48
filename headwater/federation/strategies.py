"""The strategies that get the rows of a SERVICE clause at each tick: local view, nested loop, hash join (VM1, VM2).

    VIEW    the maintainer refreshes as many keys as the goals allow; all other rows come from the view
    LOOP    every key of the window is requested at every tick; older rows are used only if the endpoint fails
    HASH    all rows are fetched once per tick, page by page, and joined here

The nested loop is the maintainer without a goal: it refreshes all keys of the window, the oldest first, and keeps the
old rows, marked, for a failure of the endpoint. A latency goal holds for all three.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

from headwater.federation.endpoint.clock import Clock
from headwater.federation.endpoint.remote import Remote, Rows
from headwater.federation.endpoint.request_queries import RequestQueries
from headwater.federation.policy.maintainer import PLANNED_SHARE, Maintainer
from headwater.federation.view.alert_log import AlertLog
from headwater.federation.view.lifetime import WindowKey
from headwater.federation.view.service_quality import Alert, Goal, Goals, Quality
from headwater.federation.view.view_journal import ViewJournal
from headwater.terms.model import SECOND, Row
from headwater.values.query_guard import current_guard

logger = logging.getLogger(__name__)

_OLD_WEIGHT = 0.7
"""The weight of earlier fetches in the observed changes."""

PAGE = 250_000
"""The rows of a page if all rows are fetched: a table that fits into one page needs no order, which is expensive."""


class ServiceStrategy(Protocol):
    """Gets the rows of a SERVICE pattern by key."""

    def tick(self, window: Sequence[WindowKey], slide: int, spent: float) -> Quality:
        """Get the rows for this window; `spent` are the seconds that the evaluation has taken so far."""

    def rows(self, key: Row) -> Rows | None:
        """The rows of a key; None if they are not known."""

    def record_query_time(self, seconds: float) -> None:
        """Record how long the evaluation took after `tick`."""

    def state(self) -> Any:
        """The state that a restart needs, as plain values."""

    def restore(self, state: Any) -> None:
        """Restore a state."""


class ViewStrategy:
    """VIEW and LOOP: the view of a maintainer.

    `needs_fill`: it is filled before the first tick. `is_window_only`: it keeps only the keys of the last two windows.
    """

    def __init__(self, maintainer: Maintainer, *, needs_fill: bool = False, is_window_only: bool = False) -> None:
        self.maintainer = maintainer
        self._needs_fill = needs_fill
        self._is_window_only = is_window_only
        self._last_window_size = 0
        self._journal = ViewJournal(maintainer.view)

    def tick(self, window: Sequence[WindowKey], slide: int, spent: float) -> Quality:
        if self._needs_fill:
            self._fill()
        if self._is_window_only:
            # The keys of the last window stay, too: only they are known if the endpoint fails now.
            self.maintainer.view.capacity = max(1, self._last_window_size + len(window))
            self._last_window_size = len(window)
        return self.maintainer.tick(window, slide, spent)

    def _fill(self) -> None:
        self._needs_fill = False
        result = self.maintainer.fill(PAGE)
        if result.error is not None:
            name = self.maintainer.remote.name
            logger.warning("%s: the view could not be filled and goes on lazily: %s", name, result.error)

    def rows(self, key: Row) -> Rows | None:
        return self.maintainer.view.rows(key)

    def record_query_time(self, seconds: float) -> None:
        self.maintainer.record_query_time(seconds)

    def state(self) -> Any:
        return {"view": self._journal.records(), "latency": self.maintainer.latency.state()}

    def restore(self, state: Any) -> None:
        self._journal.restore(state["view"])
        self.maintainer.latency.restore(state["latency"])
        self._needs_fill = self._needs_fill and not len(self.maintainer.view)


class HashJoinStrategy:
    """HASH: a table of all rows, fetched again at each tick; an older one if that fails or takes too long.

    The change rate of an old table is estimated from the keys of the window that had other rows at the next fetch.
    """

    def __init__(
        self, remote: Remote, queries: RequestQueries | None, goals: Goals, clock: Clock, ages: Clock | None = None
    ) -> None:
        self._remote = remote
        self._queries = queries
        self._goals = goals
        self._clock = clock
        self._ages = ages or clock
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="headwater-service")
        self._under_way: Future[_Table] | None = None
        self._table: dict[Row, Rows] = {}
        self._rows_without_key: list[Row] = []
        self._fetched_at: int | None = None
        self._changes = 0.0
        self._observed_time = 0.0
        self._reserve = 0.0
        self._window: Sequence[WindowKey] = ()
        self._alert_log = AlertLog(remote.name)

    def tick(self, window: Sequence[WindowKey], slide: int, spent: float) -> Quality:
        begun, now = self._clock.now(), self._ages.now()
        self._window = window
        is_new = self._under_way is None
        if self._under_way is None and not window:
            return Quality(1.0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0)
        if self._under_way is None:
            self._under_way = self._pool.submit(_fetch_table, self._remote, now)
        latency = self._goals.latency
        left = None if latency is None else max(0.0, latency * PLANNED_SHARE - spent - self._reserve)
        current_guard().wait([self._under_way], left)
        table = None
        if self._under_way.done():
            table, self._under_way = self._under_way.result(), None
            if table.error is None:
                self._store_table(table)
        seconds = (self._clock.now() - begun) / SECOND
        return self._measure_quality(now, seconds, slide, spent, table, is_new)

    def _store_table(self, table: _Table) -> None:
        """Replace the table by a newer one and learn from the difference how often keys change."""
        before = [self.rows(key.key) for key in self._window] if self._fetched_at is not None else []
        rows_by_key: dict[Row, list[Row]] = {}
        self._rows_without_key = []
        for key, row in table.pairs:
            if None in key:
                self._rows_without_key.append(row)
            else:
                rows_by_key.setdefault(key, []).append(row)
        self._table = {key: tuple(rows) for key, rows in rows_by_key.items()}
        if self._fetched_at is not None:
            changed = sum(old != self.rows(key.key) for old, key in zip(before, self._window, strict=True))
            self._changes = _OLD_WEIGHT * self._changes + changed
            self._observed_time = _OLD_WEIGHT * self._observed_time + len(before) * max(
                0, table.asked_at - self._fetched_at
            )
        self._fetched_at = table.asked_at

    def _measure_quality(
        self, now: int, seconds: float, slide: int, spent: float, table: _Table | None, is_new: bool
    ) -> Quality:
        """The quality of a tick that began at `now`: the accuracy is estimated from the age of the table."""
        # The prior is half a change in one tick.
        rate = (self._changes + 0.5) / (self._observed_time + slide)
        rows = sum(key.rows * max(1, len(self.rows(key.key) or ())) for key in self._window)
        is_fresh = self._fetched_at is not None and self._fetched_at >= now
        accuracy = 0.0 if self._fetched_at is None else math.exp(-rate * max(0, now - self._fetched_at))
        accuracy = accuracy if rows else 1.0
        has_failed = table is not None and table.error is not None
        alerts: list[Alert] = []
        goals = self._goals
        if goals.accuracy is not None and accuracy < goals.accuracy:
            reason = "the endpoint did not answer" if has_failed or table is None else "it changes too fast"
            alerts.append(Alert(now, Goal.ACCURACY, goals.accuracy, accuracy, reason))
        if goals.latency is not None and spent + seconds > goals.latency:
            alerts.append(Alert(now, Goal.LATENCY, goals.latency, spent + seconds, "the query itself takes longer"))
        self._alert_log.report(alerts)
        return Quality(
            accuracy=accuracy,
            suspects=rows if has_failed or not is_fresh else 0,
            rows=rows,
            missing=sum(key.rows for key in self._window) if self._fetched_at is None else 0,
            refreshes=len(self._window) if is_fresh else 0,
            late=0 if is_new or table is None or has_failed else len(self._window),
            failures=len(self._window) if has_failed else 0,
            under_way=0 if self._under_way is None else len(self._window),
            requests=0 if table is None else table.requests,
            seconds=seconds,
            alerts=tuple(alerts),
        )

    def rows(self, key: Row) -> Rows | None:
        if self._fetched_at is None:
            return None
        rows = self._table.get(key, ())
        if self._rows_without_key and self._queries is not None:
            queries = self._queries
            rows += tuple(
                queries.join_key(row, key) for row in self._rows_without_key if queries.is_compatible(row, key)
            )
        return rows

    def record_query_time(self, seconds: float) -> None:
        self._reserve = max(seconds, 0.8 * self._reserve)

    def state(self) -> Any:
        """The rows of the present window only: the next tick fetches all rows anyway."""
        rows = [(key.key, self.rows(key.key)) for key in self._window] if self._fetched_at is not None else []
        return {"rows": rows, "fetched": self._fetched_at, "seen": (self._changes, self._observed_time)}

    def restore(self, state: Any) -> None:
        self._table = dict(state["rows"])
        self._fetched_at = state["fetched"]
        self._changes, self._observed_time = state["seen"]


class _Table:
    """All rows of a remote at the instant `asked_at`, or the error of the request."""

    def __init__(self, asked_at: int) -> None:
        self.asked_at = asked_at
        self.pairs: list[tuple[Row, Row]] = []
        self.requests = 0
        self.error: str | None = None


def _fetch_table(remote: Remote, asked_at: int) -> _Table:
    table = _Table(asked_at)
    try:
        for page in remote.pages(PAGE):
            table.requests += 1
            table.pairs.extend(page.pairs)
            table.error = page.error
    except Exception as error:
        # A defective remote that raises must not end the query.
        table.error = f"{type(error).__name__}: {error}"
    return table
