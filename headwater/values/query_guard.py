"""Holds a query to its limits while it is evaluated, and lets others end its evaluation.

The guard of the query that a thread evaluates is found by `current_guard`, so that operators need not hand it on. Rows
are checked before there is memory for them, and only where they are many: below `MANY_ROWS` a check compares two
integers. Time is looked at once a tick, and wherever many rows are made.

A call into a library cannot be interrupted. `QueryGuard.call` makes it in a thread of its own, and leaves it there when
the time is up: the call ends some day, and nobody waits for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent import futures
from math import inf
from traceback import clear_frames
from typing import Any, TypeVar

from headwater.errors import HeadwaterError
from headwater.values.query_limits import QueryLimits, limit_error

MANY_ROWS = 1 << 16
"""From so many rows on they are checked before they are made."""

_POLL_SECONDS = 0.05
_GRACE_SECONDS = 2.0
"""How long the batch at work has to end by itself when a run is stopped, or a query of it dropped."""

Result = TypeVar("Result")


class RunStopped(HeadwaterError, RuntimeError):
    """The run was stopped, and its batch took too long to wait for it; a run from its checkpoint repeats the batch."""


class QueryDropped(HeadwaterError, RuntimeError):
    """The query was dropped while it was evaluated."""


class Interruption:
    """What other threads ask of an evaluation: to end, or to leave a query out."""

    def __init__(self) -> None:
        self._stop_at = inf
        self._drop_at: dict[str, float] = {}

    def stop(self) -> None:
        """End the evaluation if it takes longer than a moment from now on."""
        self._stop_at = min(self._stop_at, time.monotonic() + _GRACE_SECONDS)

    def clear(self) -> None:
        """A run begins."""
        self._stop_at = inf
        self._drop_at = {}

    def drop(self, query: str) -> None:
        """End the evaluation of one query if it takes longer than a moment from now on."""
        self._drop_at[query] = time.monotonic() + _GRACE_SECONDS

    def keep(self, query: str) -> None:
        """Take back a `drop`, because a query of that name was registered again."""
        self._drop_at.pop(query, None)

    def check(self, names: Collection[str], now: float) -> None:
        """Raise the error of a `stop` or a `drop` whose time of grace has passed."""
        if now > self._stop_at:
            raise RunStopped("the run was stopped before its batch was evaluated")
        if names and self._drop_at and all(now > self._drop_at.get(name, inf) for name in names):
            raise QueryDropped("the query was dropped")


class QueryGuard:
    """The limits of the queries that one evaluator answers, and who may end their evaluation."""

    def __init__(
        self, limits: QueryLimits | None = None, names: Collection[str] = (), interruption: Interruption | None = None
    ) -> None:
        self.limits = QueryLimits() if limits is None else limits
        self._names = names
        self._interruption = interruption
        self._deadline = inf
        self._outer: list[QueryGuard] = []

    def __enter__(self) -> None:
        """Make it the guard of what this thread evaluates, until the guard before it is that again."""
        self._outer.append(_ACTIVE.guard)
        _ACTIVE.guard = self
        self.begin_tick()

    def __exit__(self, *_: object) -> None:
        _ACTIVE.guard = self._outer.pop()

    def begin_tick(self) -> None:
        """The time of a tick begins."""
        self._deadline = time.monotonic() + self.limits.seconds

    def check_time(self) -> None:
        """Raise a `LimitError` when the time of the tick is over, or what others asked for."""
        now = time.monotonic()
        if now > self._deadline and now - self._compile_seconds() > self._deadline:
            raise limit_error("seconds", self.limits.seconds, "a tick of the query takes longer than it may")
        if self._interruption is not None:
            self._interruption.check(self._names, now)

    def _compile_seconds(self) -> float:
        """How long functions were compiled since the tick began: that is at their first use, and does not count."""
        from headwater.terms.compiled_code import COMPILATIONS

        return COMPILATIONS.seconds_since(self._deadline - self.limits.seconds)

    def check_rows(self, count: int, width: int) -> None:
        """Check rows of so many ids, before they are made."""
        size = 8 * count * max(1, width)
        if size > self.limits.bytes:
            raise limit_error("bytes", self.limits.bytes, f"the query makes {count:,} rows ({size:,} bytes) at a tick")
        self.check_time()

    def check_ticks(self, count: int) -> None:
        """Check the number of ticks of a batch, before any is evaluated."""
        if count > self.limits.ticks:
            raise limit_error("ticks", self.limits.ticks, f"the query is due at {count:,} ticks of one batch")

    def check_answer(self, count: int) -> None:
        """Check the number of rows of an answer."""
        if count > self.limits.rows:
            raise limit_error("rows", self.limits.rows, f"an answer has {count:,} rows")

    def check_answer_bytes(self, size: int) -> None:
        """Check the size of an answer."""
        if size > self.limits.bytes:
            raise limit_error("bytes", self.limits.bytes, f"an answer has {size:,} bytes")

    def check_state(self, size: int) -> None:
        """Check how much windows and operators hold."""
        if size > self.limits.state_bytes:
            raise limit_error("state_bytes", self.limits.state_bytes, f"the query holds {size:,} bytes")

    def check_literal(self, length: int) -> None:
        """Check the length of a literal, before it is computed."""
        if length > self.limits.literal:
            what = f"an expression computes a literal of {length:,} characters"
            raise limit_error("literal", self.limits.literal, what)

    def call(self, work: Callable[[], Result]) -> Result:
        """The result of a call that may hang: it is left alone when the time of the tick is over."""
        done: futures.Future[Result] = futures.Future()

        def run() -> None:
            _ACTIVE.guard = self
            try:
                done.set_result(work())
            except BaseException as error:
                # What pyoxigraph made in this thread must not be freed in another one.
                clear_frames(error.__traceback__)
                done.set_exception(error)

        threading.Thread(target=run, name="headwater-native-call", daemon=True).start()
        self.wait((done,), None)
        return done.result()

    def wait(self, pending: Sequence[futures.Future[Any]], timeout: float | None) -> None:
        """Wait for calls, at most for `timeout` seconds, and for no longer than the query may take."""
        end = inf if timeout is None else time.monotonic() + timeout
        while True:
            left = end - time.monotonic()
            if not futures.wait(pending, timeout=max(0.0, min(_POLL_SECONDS, left))).not_done or left <= 0:
                return
            self.check_time()


class _Active(threading.local):
    """The guard of each thread."""

    def __init__(self) -> None:
        self.guard = _UNLIMITED_TIME


_UNLIMITED_TIME = QueryGuard()
"""The guard of what is no query: an update, a plan."""

_ACTIVE = _Active()


def current_guard() -> QueryGuard:
    """The guard of the query that this thread evaluates; the default limits where it evaluates none."""
    return _ACTIVE.guard


def check_rows(count: int, width: int) -> None:
    """Check rows of so many ids against the limits of the query, before they are made."""
    if count > MANY_ROWS:
        _ACTIVE.guard.check_rows(count, width)
