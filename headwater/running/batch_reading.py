"""How much the in-process runner reads at a time, and reading before it is asked for."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import TypeAlias

from headwater.sources.feed import Chunk, Feed, ReadTask
from headwater.sources.offsets import Offset

_FIRST_BYTES = 1 << 20
_MOST_BYTES = 16 << 20
_TASK_BYTES = 4 << 20
_READERS = 2
_LEAST_AHEAD = 1 << 16
"""What is less is read sooner than a thread begins to."""
_GRACE_SECONDS = 2.0

_UnreadTask: TypeAlias = tuple[ReadTask, Future[list[Chunk]]]


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


class ReadAhead:
    """Reads a batch in threads of its own, before it is asked for.

    What compiled code reads, several threads read at the same time. The chunks come in the order of the read tasks.
    """

    def __init__(self) -> None:
        self._range: tuple[Offset, Offset] | None = None
        self._chunks: list[Future[list[Chunk]]] = []

    def start(self, feed: Feed, begin: Offset, end: Offset) -> None:
        """Begin to read from one offset to another, where there is something."""
        if without_version((begin,)) == without_version((end,)):
            return
        tasks = feed.read_tasks(begin, end, _TASK_BYTES)
        unread: SimpleQueue[_UnreadTask] = SimpleQueue()
        self._range, self._chunks = (begin, end), [Future() for _ in tasks]
        for one in zip(tasks, self._chunks, strict=True):
            unread.put(one)
        for _ in range(min(_READERS, len(tasks))):
            threading.Thread(target=_read_tasks, args=(feed, unread), name="headwater-read-ahead", daemon=True).start()

    def take(self, feed: Feed, begin: Offset, end: Offset) -> Iterable[Chunk]:
        """The chunks from one offset to another: those that are read ahead, or else as they are read now."""
        if self._range is not None and without_version(self._range) == without_version((begin, end)):
            chunks, self._range, self._chunks = self._chunks, None, []
            return (chunk for future in chunks for chunk in future.result())
        self.forget()
        return (chunk for task in feed.read_tasks(begin, end) for chunk in feed.read(task))

    def forget(self) -> None:
        """Give up what is being read; a thread that does not end soon is left alone."""
        chunks, self._range, self._chunks = self._chunks, None, []
        wait([future for future in chunks if not future.cancel()], _GRACE_SECONDS)


def without_version(offsets: Sequence[Offset]) -> list[Offset]:
    """Offsets without the versions of the data sets."""
    return [replace(offset, version=()) for offset in offsets]


def _read_tasks(feed: Feed, unread: SimpleQueue[_UnreadTask]) -> None:
    """Read the tasks of a queue until none is left."""
    with suppress(Empty):
        while True:
            task, future = unread.get_nowait()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(list(feed.read(task)))
            except BaseException as error:
                future.set_exception(error)
