"""How much the in-process runner reads at a time, and reading before it is asked for."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import TypeAlias
from weakref import finalize

from headwater.sources.feed import Chunk, Feed, ReadTask
from headwater.sources.offsets import Offset

_FIRST_BYTES = 1 << 20
_MOST_BYTES = 16 << 20
_TASK_BYTES = 8 << 20
_READERS = 2
_BATCHES = 3
"""So many batches are read ahead."""
_LEAST_AHEAD = 1 << 16
"""What is less is read sooner than a thread begins to."""
_GRACE_SECONDS = 2.0

_UnreadTask: TypeAlias = tuple[Feed, ReadTask, Future[list[Chunk]]]


class BatchSize:
    """About how many bytes the next batch may have.

    The first batch is small, so that the first answers come soon. Each batch costs something besides its elements: as
    long as batches follow each other without a pause, each may have twice as much as the one before.
    """

    def __init__(self, given: int | None) -> None:
        self._given = given
        self.limit = given or _FIRST_BYTES

    @property
    def is_worth_a_thread(self) -> bool:
        """Whether the next batch takes so long to read that it is read ahead."""
        return self.limit >= _LEAST_AHEAD

    def grow(self) -> None:
        """A batch was read: the next one may have more."""
        if self._given is None:
            self.limit = min(2 * self.limit, _MOST_BYTES)

    def shrink(self) -> None:
        """Nothing was there to read: the next batch is small again."""
        if self._given is None:
            self.limit = _FIRST_BYTES


@dataclass(frozen=True, slots=True)
class _PlannedBatch:
    """A batch that is read ahead: its offsets, and the chunks of its read tasks."""

    begin: Offset
    end: Offset
    chunks: list[Future[list[Chunk]]]

    def lies_between(self, begin: Offset, end: Offset) -> bool:
        """Whether it goes from one offset to another, whatever versions of the data these have."""
        return without_version((self.begin, self.end)) == without_version((begin, end))


class ReadAhead:
    """Reads batches in threads of its own, before they are asked for.

    What compiled code reads, several threads read at the same time. The chunks come in the order of the read tasks. The
    threads end when nobody has the object any more.
    """

    def __init__(self) -> None:
        self._planned: deque[_PlannedBatch] = deque()
        self._unread: SimpleQueue[_UnreadTask | None] = SimpleQueue()
        self._thread_count = 0
        finalize(self, _end_readers, self._unread)

    def planned_end_after(self, begin: Offset) -> Offset | None:
        """Where the batch ends that is read ahead and begins here; None where there is none."""
        if self._planned and without_version((self._planned[0].begin,)) == without_version((begin,)):
            return self._planned[0].end
        return None

    def plan(self, feed: Feed, begin: Offset, limit: int) -> None:
        """Begin to read the batches behind an offset, of about so many bytes, until some are read ahead."""
        while len(self._planned) < _BATCHES:
            start = self._planned[-1].end if self._planned else begin
            if not self.start(feed, start, feed.next_offset(start, limit)):
                return

    def start(self, feed: Feed, begin: Offset, end: Offset) -> bool:
        """Begin to read from one offset to another; gives whether there is something."""
        if without_version((begin,)) == without_version((end,)):
            return False
        self._submit_tasks(feed, begin, end, feed.read_tasks(begin, end, _TASK_BYTES))
        return True

    def take(self, feed: Feed, begin: Offset, end: Offset) -> Iterable[Chunk]:
        """The chunks from one offset to another: those that are read ahead, or else as they are read now."""
        if not self._planned or not self._planned[0].lies_between(begin, end):
            self.forget()
            tasks = feed.read_tasks(begin, end, _TASK_BYTES)
            if sum(task.item_range is not None for task in tasks) < _READERS:
                return (chunk for task in tasks for chunk in feed.read(task))
            self._submit_tasks(feed, begin, end, tasks)
        return (chunk for future in self._planned.popleft().chunks for chunk in future.result())

    def _submit_tasks(self, feed: Feed, begin: Offset, end: Offset, tasks: Sequence[ReadTask]) -> None:
        """Give the read tasks of a batch to the threads, which are begun with the first one."""
        batch = _PlannedBatch(begin, end, [Future() for _ in tasks])
        self._planned.append(batch)
        for task, future in zip(tasks, batch.chunks, strict=True):
            self._unread.put((feed, task, future))
        while self._thread_count < _READERS:
            self._thread_count += 1
            name = f"headwater-read-ahead-{self._thread_count}"
            threading.Thread(target=_read_tasks, args=(self._unread,), name=name, daemon=True).start()

    def forget(self) -> None:
        """Give up what is being read; a thread that does not end soon is left alone, and another takes its place."""
        chunks = [future for batch in self._planned for future in batch.chunks]
        self._planned.clear()
        hanging = wait([future for future in chunks if not future.cancel()], _GRACE_SECONDS).not_done
        if hanging:
            _end_readers(self._unread)
            self._unread, self._thread_count = SimpleQueue(), 0
            finalize(self, _end_readers, self._unread)


def without_version(offsets: Sequence[Offset]) -> list[Offset]:
    """Offsets without the versions of the data sets."""
    return [replace(offset, version=()) for offset in offsets]


def _read_tasks(unread: SimpleQueue[_UnreadTask | None]) -> None:
    """Read the tasks of a queue as they come, until it has one that is none."""
    while (one := unread.get()) is not None:
        feed, task, future = one
        if not future.set_running_or_notify_cancel():
            continue
        try:
            future.set_result(list(feed.read(task)))
        except BaseException as error:
            future.set_exception(error)
        # What was read is not kept while there is nothing to do.
        del one, feed, task, future


def _end_readers(unread: SimpleQueue[_UnreadTask | None]) -> None:
    for _ in range(_READERS):
        unread.put(None)
