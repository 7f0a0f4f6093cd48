"""Answers on their way to an iterator: a buffer, and what happens when nobody empties it.

    query.answers(buffer=100, when_full="drop")      the newest hundred

A run evaluates the queries of many people, so one iterator that is slow must not hold it up. When its buffer is full it
ends with an error that says so (`end`), or loses its oldest answers (`drop`); only if it is asked for does the run wait
(`block`). A run that an iterator itself has begun, and which has no other taker, waits for it: nobody is hurt.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from typing import Generic, Literal, TypeAlias, TypeVar, get_args

from headwater.errors import HeadwaterError, SettingError
from headwater.execution.answer_batch import AnswerBatch
from headwater.execution.answers import Answer
from headwater.execution.suspension import QuerySuspended
from headwater.terms.arguments import check_whole

_WAITING_ANSWERS = 10_000
_WAITING_BATCHES = 256
_POLL_SECONDS = 0.2

WhenFull: TypeAlias = Literal["end", "drop", "block"]
"""What happens to an iterator whose buffer is full: it ends, it loses its oldest answers, or the run waits for it."""

Taken = TypeVar("Taken", bound=Answer | AnswerBatch)
"""What an iterator takes: answers one by one, or those of one batch together."""


class SlowConsumerError(HeadwaterError, RuntimeError):
    """An iterator that was too slow for its query, and has missed answers."""


class Subscription(Generic[Taken]):
    """The answers of one query on their way to an iterator.

    `is_stopped` says that the run is to end: then nobody is waited for any more.
    """

    def __init__(
        self,
        query: str,
        *,
        takes_batches: bool = False,
        buffer: int | None = None,
        when_full: WhenFull | None = None,
    ) -> None:
        if when_full is not None and when_full not in get_args(WhenFull):
            raise SettingError(f"{when_full!r} is no when_full: use one of {', '.join(get_args(WhenFull))}")
        usual = _WAITING_BATCHES if takes_batches else _WAITING_ANSWERS
        self.query = query
        self.takes_batches = takes_batches
        self.when_full = when_full
        self.dropped = 0
        """How many answers, or batches, were lost because the buffer was full."""
        self._most = usual if buffer is None else check_whole("buffer", buffer, 1)
        self._waiting: deque[Taken | QuerySuspended] = deque()
        self._changed = threading.Condition()
        self.is_stopped: Callable[[], bool] = lambda: False
        self._has_ended = False
        self._failure: BaseException | None = None
        self._is_closed = False
        self._tell: Callable[[], None] | None = None
        """Called at each change while `take_async` waits."""

    @property
    def closed(self) -> bool:
        """Whether the iterator takes no more answers."""
        return self._is_closed

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._notify()

    def put(self, answer: Taken) -> None:
        """Hand an answer over; what happens when the buffer is full is the choice of who takes them."""
        with self._changed:
            if self._is_over():
                return
            if len(self._waiting) >= self._most and not self._make_room():
                return
            self._waiting.append(answer)
            self._notify()

    def _is_over(self) -> bool:
        """Whether no more answers are taken."""
        return self._is_closed or self._has_ended

    def _make_room(self) -> bool:
        """Whether there is room for one more, after what was chosen for a full buffer has happened."""
        if self.when_full == "drop":
            self._waiting.popleft()
            self.dropped += 1
            return True
        if self.when_full == "block":
            # It may end meanwhile, when its query is dropped.
            while len(self._waiting) >= self._most and not self._is_over() and not self.is_stopped():
                self._changed.wait(_POLL_SECONDS)
            return len(self._waiting) < self._most and not self._is_over()
        what = "batches" if self.takes_batches else "answers"
        self._end(
            SlowConsumerError(
                f"the iterator over the answers of {self.query!r} was too slow: {self._most:,} {what} were waiting, "
                "and those after them are lost. Take them faster, give it a larger buffer, or choose "
                "when_full='drop' or 'block'"
            )
        )
        return False

    def suspend(self, reason: str) -> None:
        """The query is suspended, which is raised where the answers are taken; it may be resumed."""
        with self._changed:
            self._waiting.append(QuerySuspended(self.query, reason))
            self._notify()

    def end(self, failure: BaseException | None) -> None:
        """The run is over; its failure is raised where the answers are taken."""
        with self._changed:
            self._end(failure)

    def _end(self, failure: BaseException | None) -> None:
        if not self._has_ended:
            self._has_ended, self._failure = True, failure
        self._notify()

    def take(self) -> Taken | None:
        """The next answer; None when there are no more."""
        with self._changed:
            while self._must_wait:
                self._changed.wait()
            return self._take_next()

    async def take_async(self) -> Taken | None:
        """The same as `take`, while the event loop goes on."""
        loop, arrived = asyncio.get_running_loop(), asyncio.Event()

        def tell() -> None:
            # A loop that was closed meanwhile waits for nothing.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(arrived.set)

        while True:
            with self._changed:
                if not self._must_wait:
                    self._tell = None
                    return self._take_next()
                arrived.clear()
                self._tell = tell
            await arrived.wait()

    @property
    def _must_wait(self) -> bool:
        return not self._waiting and not self._has_ended and not self._is_closed

    def _notify(self) -> None:
        """Wake up whoever waits for a change."""
        self._changed.notify_all()
        if self._tell is not None:
            self._tell()

    def _take_next(self) -> Taken | None:
        """What waits, or how the run ended; called when one of them is there, with the lock held."""
        if self._waiting and not self._is_closed:
            answer = self._waiting.popleft()
            self._notify()
            if isinstance(answer, QuerySuspended):
                raise answer
            return answer
        self._is_closed = True
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        return None


class Answers(Iterator[Taken]):
    """The answers of a query as they come, one by one or batch by batch.

    The run begins when the first is asked for, if it has not begun before. Where the query is suspended,
    `QuerySuspended` is raised; the iterator can be asked again, for the answers after it was resumed.

    An iterator that is dropped, as by `break`, is no longer waited for.
    """

    def __init__(self, subscription: Subscription[Taken], start: Callable[[], None]) -> None:
        self._subscription = subscription
        self._start: Callable[[], None] | None = start

    @property
    def dropped(self) -> int:
        """How many answers, or batches, were lost because the buffer was full (`when_full="drop"`)."""
        return self._subscription.dropped

    def __next__(self) -> Taken:
        if self._subscription.closed:
            raise StopIteration
        if self._start is not None:
            start, self._start = self._start, None
            start()
        answer = self._subscription.take()
        if answer is None:
            raise StopIteration
        return answer

    def close(self) -> None:
        """Take no more answers."""
        self._subscription.close()

    def __del__(self) -> None:
        self.close()


class AsyncAnswers(AsyncIterator[Taken]):
    """The answers of a query as they come, for `async for`; the same as `Answers` besides."""

    def __init__(self, subscription: Subscription[Taken], start: Callable[[], None]) -> None:
        self._subscription = subscription
        self._start: Callable[[], None] | None = start

    @property
    def dropped(self) -> int:
        """How many answers were lost because the buffer was full (`when_full="drop"`)."""
        return self._subscription.dropped

    async def __anext__(self) -> Taken:
        if self._subscription.closed:
            raise StopAsyncIteration
        if self._start is not None:
            start, self._start = self._start, None
            start()
        answer = await self._subscription.take_async()
        if answer is None:
            raise StopAsyncIteration
        return answer

    def close(self) -> None:
        """Take no more answers."""
        self._subscription.close()

    def __del__(self) -> None:
        self.close()
