"""The workload of a run, which may change between two batches because queries are registered and dropped.

The engine checks a change before it requests it; the runner applies it when a batch is done. In process, a new program
continues with the window log; on Spark, the streaming query is started again from its checkpoint, which holds the log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Event

from headwater.algebra.column_types import column_types
from headwater.execution.typed_cells import ColumnTypes
from headwater.running.counting import initial_progress
from headwater.running.program_description import ProgramDescription, ProgramOutline
from headwater.running.progress import QueryProgress
from headwater.sources.feed import Feed
from headwater.sources.following.stream_watch import StreamWatch
from headwater.sources.source import ArrivalSource, Source

_POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Workload:
    """What a run evaluates, and the sources of its streams."""

    description: ProgramDescription
    outline: ProgramOutline
    sources: Mapping[str, Source]

    def initial_progress(self) -> dict[str, QueryProgress]:
        """The queries with nothing counted yet."""
        cut = self.description.sharding
        return initial_progress(self.description.queries, self.outline.queries, 1 if cut is None else len(cut.keys))

    @property
    def live_streams(self) -> frozenset[str]:
        """The streams that have heartbeats while they are followed: with an idle time, or stamped by arrival."""
        stamped = {stream for stream, source in self.sources.items() if isinstance(source, ArrivalSource)}
        return frozenset(stamped | ({stream for stream, _ in self.description.idle} & self.sources.keys()))

    def column_types(self) -> dict[str, ColumnTypes]:
        """The types of the columns of each query, as far as it says them."""
        return {query.plan.name: column_types(query.plan) for query in self.description.queries}

    def feed(self, *, drain: bool, watch: StreamWatch | None = None) -> Feed:
        """The feed of the sources, limited to the triples that the queries need; with a watch it has heartbeats."""
        return Feed(
            self.sources,
            drain=drain,
            wanted=self.outline.wanted_patterns,
            datasets=self.description.watched,
            live=() if watch is None else self.live_streams,
            watch=watch,
        )


class WorkloadChanges:
    """Changes of the workload that were requested; `renew` makes the new workload, in the runner's thread."""

    def __init__(self, renew: Callable[[], Workload], woken: Event | None = None) -> None:
        """`woken` is set with each request: a run at rest waits for it."""
        self._renew = renew
        self._requested = Event()
        self._woken = woken or Event()
        self._is_renewing = False

    def request(self) -> None:
        """Have the runner apply the change after the current batch."""
        self._requested.set()
        self._woken.set()

    @property
    def is_requested(self) -> bool:
        return self._requested.is_set()

    @property
    def is_pending(self) -> bool:
        """Whether a change was requested that the runner has not taken up."""
        return self._requested.is_set() or self._is_renewing

    def take(self) -> Workload | None:
        """The new workload, once; None where no change was requested."""
        if not self._requested.is_set():
            return None
        self._is_renewing = True
        try:
            self._requested.clear()
            return self._renew()
        finally:
            self._is_renewing = False

    def wait_for_queries(self, workload: Workload, stop: Event) -> Workload | None:
        """Wait while there is no query, and nothing to do; None where the run is to end."""
        while not workload.description.queries:
            if stop.is_set():
                return None
            self._woken.wait(_POLL_SECONDS)
            self._woken.clear()
            workload = self.take() or workload
        return workload
