"""How the rows of a SERVICE clause are had, tick by tick: local view, nested loop, hash join.

    VIEW    the maintainer refreshes what the goals allow; all other rows come from the view
    LOOP    every key of the window is asked for at every tick; nothing older is used unless the endpoint fails
    HASH    everything is fetched once per tick, page by page, and joined here

The nested loop is the maintainer without a goal: it then refreshes all keys of the window, the oldest first, and has
what it needs when the endpoint fails, old rows that are marked. A latency holds for all three.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Protocol

from headwater.federation.endpoint.clock import Clock
from headwater.federation.endpoint.remote import Remote, Rows
from headwater.federation.endpoint.request_queries import Questions
from headwater.federation.policy.maintainer import ROOM, Maintainer
from headwater.federation.view.alert_log import AlertLog
from headwater.federation.view.lifetime import WindowKey
from headwater.federation.view.service_quality import Alert, Goal, Goals, Quality
from headwater.federation.view.view_journal import ViewJournal
from headwater.terms.model import SECOND, Row

logger = logging.getLogger(__name__)

_MEMORY = 0.7
"""How much of what was seen of changes counts at the next fetch."""

PAGE = 250_000
"""How many rows a page has where everything is fetched: a table that fits into one needs no order, which is dear."""


class RowsOfKeys(Protocol):
    """Keeps the rows of a SERVICE pattern by key, as fresh as it is told to."""

    def tick(self, window: Sequence[WindowKey], slide: int, spent: float) -> Quality:
        """Get what this window needs; `spent` is what the evaluation has taken already, in seconds."""

    def rows(self, key: Row) -> Rows | None:
        """The rows of a key; None where nothing is known of it."""

    def evaluated(self, seconds: float) -> None:
        """How long the evaluation took after the tick."""

    def state(self) -> Any:
        """What a restart needs, as plain values."""

    def restore(self, state: Any) -> None:
        """Be what a state says."""


class Maintained:
    """VIEW and LOOP: a maintainer's view. `fill` takes everything in first; `window_only` forgets what has left."""

    def __init__(self, maintainer: Maintainer, *, fill: bool = False, window_only: bool = False) -> None:
        self.maintainer = maintainer
        self._must_fill = fill
        self._window_only = window_only
        self._before = 0
        self._journal = ViewJournal(maintainer.view)

    def tick(self, window: Sequence[WindowKey], slide: int, spent: float) -> Quality:
        if self._must_fill:
            self._fill()
        if self._window_only:
            # What the tick before used stays, too: it is all there is if the endpoint fails now.
            self.maintainer.view.capacity = max(1, self._before + len(window))
            self._before = len(window)
        return self.maintainer.tick(window, slide, spent)

    def _fill(self) -> None:
        self._must_fill = False
        filling = self.maintainer.fill(PAGE)
        if filling.error is not None:
            name = self.maintainer.remote.name
            logger.warning("%s: the view could not be filled and goes on lazily: %s", name, filling.error)

    def rows(self, key: Row) -> Rows | None:
        return self.maintainer.view.rows(key)

    def evaluated(self, seconds: float) -> None:
        self.maintainer.evaluated(seconds)

    def state(self) -> Any:
        return {"view": self._journal.pieces(), "latency": self.maintainer.latency.state()}

    def restore(self, state: Any) -> None:
        self._journal.restore(state["view"])
        self.maintainer.latency.restore(state["latency"])
        self._must_fill = self._must_fill and not len(self.maintainer.view)


class Hashed:
    """HASH: a table of everything, fetched anew at each tick; an older one where that fails or takes too long.

    How fast an old table becomes wrong is taken from how many keys of the window had other rows from fetch to fetch.
    """

    def __init__(self, remote: Remote, questions: Questions | None, goals: Goals, clock: Clock) -> None:
        self._remote = remote
        self._questions = questions
        self._goals = goals
        self._clock = clock
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="headwater-service")
        self._under_way: Future[_Table] | None = None
        self._table: dict[Row, Rows] = {}
        self._open: list[Row] = []
        self._fetched: int | None = None
        self._changes = 0.0
        self._watched = 0.0
        self._reserve = 0.0
        self._window: Sequence[WindowKey] = ()
        self._alert_log = AlertLog(remote.name)

    def tick(self, window: Sequence[WindowKey], slide: int, spent: float) -> Quality:
        begun = self._clock.now()
        self._window = window
        is_new = self._under_way is None
        if self._under_way is None and not window:
            return Quality(1.0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0)
        if self._under_way is None:
            self._under_way = self._pool.submit(_fetched, self._remote, begun)
        latency = self._goals.latency
        wait([self._under_way], None if latency is None else max(0.0, latency * ROOM - spent - self._reserve))
        table = None
        if self._under_way.done():
            table, self._under_way = self._under_way.result(), None
            if table.error is None:
                self._take_in(table)
        return self._quality(begun, slide, spent, table, is_new)

    def _take_in(self, table: _Table) -> None:
        before = [self.rows(key.key) for key in self._window] if self._fetched is not None else []
        found: dict[Row, list[Row]] = {}
        self._open = []
        for key, row in table.pairs:
            if None in key:
                self._open.append(row)
            else:
                found.setdefault(key, []).append(row)
        self._table = {key: tuple(rows) for key, rows in found.items()}
        if self._fetched is not None:
            changed = sum(old != self.rows(key.key) for old, key in zip(before, self._window, strict=True))
            self._changes = _MEMORY * self._changes + changed
            self._watched = _MEMORY * self._watched + len(before) * max(0, table.asked - self._fetched)
        self._fetched = table.asked

    def _quality(self, begun: int, slide: int, spent: float, table: _Table | None, is_new: bool) -> Quality:
        now = self._clock.now()
        # Half a change in one tick is what is believed before anything was seen.
        rate = (self._changes + 0.5) / (self._watched + slide)
        rows = sum(key.rows * max(1, len(self.rows(key.key) or ())) for key in self._window)
        is_fresh = self._fetched is not None and self._fetched >= begun
        accuracy = 0.0 if self._fetched is None else math.exp(-rate * max(0, begun - self._fetched))
        accuracy = accuracy if rows else 1.0
        failed = table is not None and table.error is not None
        seconds = (now - begun) / SECOND
        alerts: list[Alert] = []
        goals = self._goals
        if goals.accuracy is not None and accuracy < goals.accuracy:
            reason = "the endpoint did not answer" if failed or table is None else "it changes too fast"
            alerts.append(Alert(now, Goal.ACCURACY, goals.accuracy, accuracy, reason))
        if goals.latency is not None and spent + seconds > goals.latency:
            alerts.append(Alert(now, Goal.LATENCY, goals.latency, spent + seconds, "the query itself takes longer"))
        self._alert_log.report(alerts)
        return Quality(
            accuracy=accuracy,
            suspects=rows if failed or not is_fresh else 0,
            rows=rows,
            missing=sum(key.rows for key in self._window) if self._fetched is None else 0,
            refreshes=len(self._window) if is_fresh else 0,
            late=0 if is_new or table is None or failed else len(self._window),
            failures=len(self._window) if failed else 0,
            under_way=0 if self._under_way is None else len(self._window),
            requests=0 if table is None else table.requests,
            seconds=seconds,
            alerts=tuple(alerts),
        )

    def rows(self, key: Row) -> Rows | None:
        if self._fetched is None:
            return None
        rows = self._table.get(key, ())
        if self._open and self._questions is not None:
            asked = self._questions
            rows += tuple(asked.filled(row, key) for row in self._open if asked.fits(row, key))
        return rows

    def evaluated(self, seconds: float) -> None:
        self._reserve = max(seconds, 0.8 * self._reserve)

    def state(self) -> Any:
        """The rows of the window: what was answered with; the next tick fetches everything anyway."""
        rows = [(key.key, self.rows(key.key)) for key in self._window] if self._fetched is not None else []
        return {"rows": rows, "fetched": self._fetched, "seen": (self._changes, self._watched)}

    def restore(self, state: Any) -> None:
        self._table = dict(state["rows"])
        self._fetched = state["fetched"]
        self._changes, self._watched = state["seen"]


class _Table:
    """Everything that a remote had when it was asked, or why it is not known."""

    def __init__(self, asked: int) -> None:
        self.asked = asked
        self.pairs: list[tuple[Row, Row]] = []
        self.requests = 0
        self.error: str | None = None


def _fetched(remote: Remote, asked: int) -> _Table:
    table = _Table(asked)
    try:
        for page in remote.pages(PAGE):
            table.requests += 1
            table.pairs.extend(page.pairs)
            table.error = page.error
    except Exception as error:
        # A remote that breaks its promise not to raise must not take the query with it.
        table.error = f"{type(error).__name__}: {error}"
    return table
