"""The life of an engine's runs: one at a time, in the caller's thread or in one of its own.

engine.run()                    in this thread, to the end
engine.start(); …; engine.stop(); engine.wait()
with engine: …                  the same; what was sent before the end is answered
async with engine: …
"""

from __future__ import annotations

import asyncio
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from headwater.engine.registering import input_streams
from headwater.engine.stream_sources import AnySource
from headwater.errors import StateError
from headwater.running.delivery import OnAnswer, OnBatch, OnProgress
from headwater.running.progress import RunSummary
from headwater.running.signal_events import SignalEvent
from headwater.running.subscriptions import Answers, AsyncAnswers, Subscription, Taken
from headwater.sinks.sink import Sink
from headwater.sources.live_streams import has_ended, note_read
from headwater.sources.offsets import Offset
from headwater.sources.push import PushSource
from headwater.terms.arguments import check_callback, check_each, check_flag, check_number
from headwater.terms.scratch_folders import sweep_scratch_folders

if TYPE_CHECKING:
    from headwater.engine.query_handle import Query

_POLL_SECONDS = 0.01


@dataclass(frozen=True)
class Takers:
    """Who takes the answers of a run, besides iterators; `stays`: it goes on when nobody does.

    `realtime` asks for real-time mode.
    """

    on_answer: OnAnswer | None
    on_batch: OnBatch | None
    on_progress: OnProgress | None
    sinks: Sequence[Sink]
    stays: bool = False
    realtime: bool = False

    @classmethod
    def check(
        cls,
        on_answer: OnAnswer | None,
        on_batch: OnBatch | None,
        on_progress: OnProgress | None,
        sinks: Sequence[Sink],
        *,
        stays: bool = False,
        realtime: bool = False,
    ) -> Takers:
        """The takers, if they can take answers; a `SettingError` where they cannot."""
        wanted = "FileSink(…), KafkaSink(…) or others with open and write"
        sinks = check_each("sinks", sinks, lambda one: hasattr(one, "open") and hasattr(one, "write"), wanted)
        for name, callback in (("on_answer", on_answer), ("on_batch", on_batch), ("on_progress", on_progress)):
            check_callback(name, callback)
        return cls(on_answer, on_batch, on_progress, sinks, stays, check_flag("realtime", realtime))

    @property
    def is_taken(self) -> bool:
        """Whether the run has a purpose when all iterators are closed."""
        return self.stays or bool(self.sinks) or self.on_answer is not None or self.on_batch is not None


class BackgroundRun:
    """A run in a thread of its own, and how it ended."""

    def __init__(self, run: Callable[[Callable[[], None]], RunSummary]) -> None:
        """`run` is given what it calls when it has opened everything."""
        self._run = run
        self._is_open = threading.Event()
        self._summary: RunSummary | None = None
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run_to_end, name="headwater-run", daemon=True)
        self._thread.start()

    def _run_to_end(self) -> None:
        try:
            self._summary = self._run(self._is_open.set)
        except BaseException as error:
            self._failure = error
        finally:
            self._is_open.set()

    @property
    def is_over(self) -> bool:
        """Whether the run has ended."""
        return not self._thread.is_alive()

    def wait_until_open(self) -> None:
        """Wait until the run is at work; what kept it from that is raised."""
        self._is_open.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure

    def wait(self, timeout: float | None) -> RunSummary:
        """Wait for the end of the run; its failure is raised."""
        self._thread.join(timeout)
        if not self.is_over:
            raise StateError(f"the run has not ended after {timeout} seconds: stop() ends it after the batch at work")
        if self._failure is not None:
            raise self._failure
        assert self._summary is not None
        return self._summary


def check_trigger(seconds: float | None) -> None:
    """Check the setting `trigger_seconds`; None where it is not given."""
    if seconds is not None:
        check_number("trigger_seconds", seconds)


class RunsInBackground(ABC):
    """What an engine does beside `run`: begin a run, wait for its end, hand out iterators over its answers."""

    def __init__(self) -> None:
        self._background: BackgroundRun | None = None
        self._running = threading.Lock()
        """Held by the run that is at work."""
        self._ending = threading.Lock()
        """Held while a run lets go of its iterators and of `_running`."""
        self._stop: threading.Event = SignalEvent()
        self._woken: threading.Event = SignalEvent()
        """Something happened that a run at rest should look at."""
        self._subscriptions: list[Subscription[Any]] = []
        self._follows = False
        """Whether the last run goes on, or went on, until `stop` is called."""

    @abstractmethod
    def run(self) -> RunSummary:
        """Run in this thread, to the end."""

    @abstractmethod
    def stop(self) -> None:
        """End the run after the current batch."""

    @abstractmethod
    def _run_claimed(
        self,
        takers: Takers,
        trigger_seconds: float | None,
        *,
        follow: bool,
        drain: bool = True,
        on_open: Callable[[], None] = lambda: None,
    ) -> RunSummary:
        """Run; the lock is held and is released at the end. `on_open` is called when the sources are open."""

    @abstractmethod
    def _sources_at_work(self) -> dict[str, AnySource]:
        """The sources that the queries of the run read."""

    @abstractmethod
    def _is_changing(self) -> bool:
        """Whether a query was registered or dropped, and the run has not taken that up yet."""

    @property
    @abstractmethod
    def queries(self) -> tuple[Query, ...]:
        """The registered queries."""

    def _note_read(self, offset: Offset) -> None:
        """A batch was delivered: tell the sources, and end the iterators of queries that have no more answers."""
        sources = self._sources_at_work()
        note_read(sources, offset)
        if not self._follows or not any(isinstance(one, PushSource) for one in sources.values()):
            return
        for subscription in tuple(self._subscriptions):
            streams = input_streams(subscription.query, self.queries)
            if streams and all(has_ended(sources.get(stream)) for stream in streams):
                self._subscriptions.remove(subscription)
                subscription.end(None)

    def _claim_run(self) -> None:
        if not self._running.acquire(blocking=False):
            raise StateError("this engine is running already: stop it, or wait for its end")
        # A process that was killed may have left folders, and this run may need none.
        sweep_scratch_folders()

    def _end_run(self, failure: BaseException | None) -> None:
        """Let another run begin, and end the iterators of this one."""
        with self._ending:
            subscriptions, self._subscriptions = self._subscriptions, []
            self._running.release()
        for subscription in subscriptions:
            subscription.end(failure)

    def start(
        self,
        *,
        on_answer: OnAnswer | None = None,
        on_batch: OnBatch | None = None,
        on_progress: OnProgress | None = None,
        sinks: Sequence[Sink] = (),
        trigger_seconds: float | None = None,
    ) -> None:
        """Begin a run in a thread of its own, which follows its sources until `stop` is called.

        It may begin without a query, and go on after the last was dropped: `register` adds one at any time. When this
        returns, the sources are open; what is wrong with them is raised here, and later failures in `wait`. The
        arguments are those of `run`.
        """
        takers = Takers.check(on_answer, on_batch, on_progress, sinks, stays=True)
        check_trigger(trigger_seconds)
        self._claim_run()
        self._background = BackgroundRun(
            lambda on_open: self._run_claimed(takers, trigger_seconds, follow=True, on_open=on_open)
        )
        self._background.wait_until_open()

    def wait(self, timeout: float | None = None) -> RunSummary:
        """Wait until the run that `start` began has ended, and say how much it was; its failure is raised."""
        if self._background is None:
            raise StateError("no run was begun: start() begins one")
        return self._background.wait(timeout)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the run. Without an error, what was sent through `push` sources is answered before."""
        background = self._background
        if background is None:
            return
        if error is None:
            while self._is_changing() and not background.is_over:
                time.sleep(_POLL_SECONDS)
            for source in self._sources_at_work().values():
                if isinstance(source, PushSource):
                    source.wait_until_read(lambda: background.is_over)
        self.stop()
        if error is None:
            background.wait(None)
            return
        # The error of the block goes before that of the run.
        with suppress(BaseException):
            background.wait(None)

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.__exit__, kind, error, trace)

    def subscribe(self, subscription: Subscription[Taken]) -> Answers[Taken]:
        """What `Query.answers` and `Query.batches` give."""
        return Answers(self._add_subscription(subscription), self._start_for_iterator)

    def subscribe_async(self, subscription: Subscription[Taken]) -> AsyncAnswers[Taken]:
        """What `Query.answers_async` gives."""
        return AsyncAnswers(self._add_subscription(subscription), self._start_for_iterator)

    def _add_subscription(self, subscription: Subscription[Taken]) -> Subscription[Taken]:
        subscription.is_stopped = self._stop.is_set
        self._subscriptions.append(subscription)
        return subscription

    def _start_for_iterator(self) -> None:
        """Run in the background, unless a run is at work; the failure is raised where the answers are taken."""
        with self._ending:
            # A run that has not taken the iterators yet will end this one, too.
            if self._running.locked():
                return
        if len(self._subscriptions) == 1 and self._subscriptions[0].when_full is None:
            # The run is for this iterator alone.
            self._subscriptions[0].when_full = "block"

        def run() -> None:
            with suppress(BaseException):
                self.run()

        threading.Thread(target=run, name="headwater-run", daemon=True).start()
