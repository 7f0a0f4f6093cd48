"""Answers on their way to many subscribers: read from the log once, made into bytes once, handed to each.

A subscriber that comes back gets what the log has until it has caught up, and then what comes. Each has a bounded
buffer of its own. One whose buffer is full is served from the log again, for some time; one that has not caught up then
is too slow, and ends with a reason. Nobody waits for it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from pathlib import Path

from headwater.server.answers.answer_events import PROGRESS, ChangeMaker, Event, Mode, answer_events, make_event
from headwater.server.answers.event_ids import BEGINNING, EventId
from headwater.server.answers.log_files import LogPlace, LogReader, LogRecord, log_folder

logger = logging.getLogger(__name__)

_PIECE_BYTES = 1 << 18
_PAGE = 16
"""So many records are read for one who catches up before others have their turn."""
TOO_SLOW = "you read too slowly: come back with the id of your last event"


class NotKept(Exception):
    """An id from which nobody can go on, because what follows it is not in the log any more."""


class Subscriber:
    """Who takes the events of one query; `most_events` and `most_bytes` may wait.

    `slow_seconds` is how long it may take to catch up when more were waiting.
    """

    def __init__(self, mode: Mode, most_events: int, most_bytes: int, slow_seconds: float) -> None:
        self.mode = mode
        self.slow_seconds = slow_seconds
        self.taken: EventId | None = None
        """The last event that was taken, or read from the log."""
        self.has_lapsed = False
        """Whether more were waiting than may, so that they are to be read from the log."""
        self.mark: EventId | None = None
        """The last event that was handed over, or read from the log."""
        self._most_events, self._most_bytes = most_events, most_bytes
        self._waiting: deque[Event] = deque()
        self._bytes = 0
        self._arrived = asyncio.Event()
        self.has_ended = False

    def put(self, event: Event) -> None:
        """Hand an event over; one that was read from the log before is passed over."""
        if self.has_ended or self.has_lapsed:
            return
        if event.id is not None and self.mark is not None and event.id <= self.mark:
            return
        if len(self._waiting) >= self._most_events or (
            self._waiting and self._bytes + len(event.data) > self._most_bytes
        ):
            self._waiting.clear()
            self._bytes = 0
            self.has_lapsed = True
            self._arrived.set()
            return
        self._waiting.append(event)
        self._bytes += len(event.data)
        self.mark = event.id or self.mark
        self._arrived.set()

    def end(self, reason: str, *, again: bool = True) -> None:
        """Let no more events come, and say why behind those that wait, and whether to come back."""
        if not self.has_ended:
            self.has_ended = True
            self._waiting.append(make_event("end", reason=reason, again=again))
            self._arrived.set()

    async def take(self, seconds: float) -> list[Event]:
        """All events that wait; none where nothing comes in so many seconds."""
        if not self._waiting:
            if self.has_ended:
                return []
            try:
                async with asyncio.timeout(seconds):
                    await self._arrived.wait()
            except TimeoutError:
                return []
        self._arrived.clear()
        found = list(self._waiting)
        self._waiting.clear()
        self._bytes = 0
        self.taken = next((one.id for one in reversed(found) if one.id is not None), self.taken)
        return found


class QueryHub:
    """The subscribers of one query, and how far its log was read for them."""

    def __init__(self, folder: Path, emit: str = "rstream") -> None:
        self.reader = LogReader(folder)
        self.emit = emit
        self._subscribers: set[Subscriber] = set()
        self._news = asyncio.Event()
        self._place = LogPlace()
        self._last: EventId | None = None
        self._changes: ChangeMaker | None = None
        found = self.reader.last_record()
        if found is not None:
            record, self._place = found
            self._last = record.last
        self._task = asyncio.create_task(self._publish_until_closed())

    @property
    def count(self) -> int:
        """How many subscribers there are."""
        return len(self._subscribers)

    @property
    def last(self) -> EventId | None:
        """The newest answer that subscribers have."""
        return self._last

    def note_news(self) -> None:
        """Something was written to the log."""
        self._news.set()

    async def _publish_until_closed(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            try:
                await self._publish()
            except OSError:
                # The log is being removed, or moved on: the next news come with what is there then.
                logger.warning("the log of answers cannot be read now", exc_info=True)

    async def _publish(self) -> None:
        records = await asyncio.to_thread(lambda: list(self.reader.read_from(self._place)))
        for record, place in records:
            self._place = place
            if self._last is not None and record.last <= self._last:
                continue
            self._publish_record(record)

    def _publish_record(self, record: LogRecord) -> None:
        answers = [one for one in self._subscribers if one.mode == "answers"]
        changes = [one for one in self._subscribers if one.mode == "changes"]
        if not changes:
            self._changes = None
        for event in answer_events(record):
            assert event.id is not None
            if self._last is not None and event.id <= self._last:
                continue
            for one in answers:
                one.put(event)
            if self._changes is not None:
                for change in self._changes.change(event.id, record.lines[event.id.place]):
                    for one in changes:
                        one.put(change)
            self._last = event.id

    async def follow(self, subscriber: Subscriber, after: EventId | None, seconds: float) -> AsyncIterator[list[Event]]:
        """The events of a subscriber, some at a time, until it ends; none at all after so many seconds of silence.

        Begins behind `after`, or with what comes now. A `NotKept` where that is not in the log any more.
        """
        read = self._begin_changes if subscriber.mode == "changes" else self._catch_up
        try:
            async for events in read(subscriber, after):
                yield events
            while True:
                events = await subscriber.take(seconds)
                if subscriber.has_lapsed and not subscriber.has_ended:
                    self._subscribers.discard(subscriber)
                    subscriber.has_lapsed = False
                    end = time.monotonic() + subscriber.slow_seconds
                    try:
                        begin = subscriber.taken
                        if begin is None and subscriber.mode == "answers":
                            begin = BEGINNING
                        async for events in read(subscriber, begin):
                            yield events
                            if time.monotonic() > end:
                                subscriber.end(TOO_SLOW)
                                break
                    except NotKept:
                        subscriber.end(TOO_SLOW)
                    continue
                yield events
                if subscriber.has_ended and (not events or events[-1].kind == "end"):
                    return
        finally:
            self._subscribers.discard(subscriber)

    async def check_kept(self, mode: Mode, after: EventId | None) -> None:
        """Raise `NotKept` where nobody can go on behind an id."""
        if after is not None:
            if not await asyncio.to_thread(self.reader.is_kept, after):
                raise NotKept
            if mode == "changes":
                await self._begin_at(ChangeMaker(self.emit), after)

    async def _catch_up(self, subscriber: Subscriber, after: EventId | None) -> AsyncIterator[list[Event]]:
        """Read the log up to what is handed over to all, then belong to them."""
        subscriber.mark = subscriber.taken = after or self._last
        while after is not None and (self._last is None or subscriber.mark < self._last):  # type: ignore[operator]
            page = await self._read_page(subscriber.mark)
            mark = subscriber.mark
            events = [
                event
                for record in page
                for event in answer_events(record)
                if event.id is not None and (mark is None or event.id > mark)
            ]
            if not events:
                break
            for piece in _cut(events):
                subscriber.mark = subscriber.taken = piece[-1].id
                yield piece
        self._subscribers.add(subscriber)

    async def _read_page(self, mark: EventId | None) -> list[LogRecord]:
        return await asyncio.to_thread(lambda: [one for one, _ in islice(self.reader.read_after(mark), _PAGE)])

    async def _begin_changes(self, subscriber: Subscriber, after: EventId | None) -> AsyncIterator[list[Event]]:
        """A snapshot, or the changes since an id, then belong to those who get changes."""
        maker = ChangeMaker(self.emit)
        if after is None:
            found = await asyncio.to_thread(self.reader.last_record)
            if found is not None:
                record = found[0]
                maker.begin(record.last, record.lines[-1])
            else:
                maker.last = _end_of(BEGINNING)
            yield [maker.snapshot()]
        else:
            await self._begin_at(maker, after)
        subscriber.mark = subscriber.taken = maker.last if after is None else _end_of(after)
        while self._last is not None and (maker.last is None or maker.last.answer < self._last):
            events: list[Event] = []
            for record in await self._read_page(maker.last):
                for index, line in enumerate(record.lines):
                    id = EventId(record.era, record.batch, index)
                    if maker.last is None or id > maker.last:
                        events += maker.change(id, line)
            events = [one for one in events if subscriber.mark is None or (one.id and one.id > subscriber.mark)]
            if not events:
                break
            for piece in _cut(events):
                subscriber.mark = subscriber.taken = piece[-1].id
                yield piece
        if self._changes is None:
            self._changes = maker
        self._subscribers.add(subscriber)

    async def _begin_at(self, maker: ChangeMaker, after: EventId) -> None:
        """Let a maker begin with the answer before the first change that is to come."""
        before = _end_of(after)
        if before.answer == BEGINNING:
            if not await asyncio.to_thread(self.reader.is_kept, BEGINNING):
                raise NotKept
            maker.last = before
            return
        if before.part == PROGRESS:
            line = await asyncio.to_thread(self.reader.find, before.answer)
            if line is None:
                raise NotKept
            maker.begin(before.answer, line)
            return
        found: tuple[EventId, bytes] | None = None
        for record, _ in await asyncio.to_thread(lambda: list(self.reader.read_after(None))):
            for index, line in enumerate(record.lines):
                id = EventId(record.era, record.batch, index)
                if id < before.answer:
                    found = id, line
        if found is None:
            raise NotKept
        maker.begin(*found)

    def close(self, reason: str, *, again: bool) -> None:
        """End all subscriptions, and read the log no more; `again` says whether to come back."""
        for one in list(self._subscribers):
            one.end(reason, again=again)
        self._task.cancel()


def _cut(events: list[Event]) -> Iterator[list[Event]]:
    """Events in pieces that are not too large to be sent at once."""
    piece: list[Event] = []
    size = 0
    for event in events:
        piece.append(event)
        size += len(event.data)
        if size >= _PIECE_BYTES:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


def _end_of(after: EventId) -> EventId:
    """Who has a whole answer has all changes of it."""
    return after if after.part else after._replace(part=PROGRESS)


class FanOut:
    """The hubs of all queries."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._hubs: dict[str, QueryHub] = {}

    def hub(self, query: str, emit: str = "rstream") -> QueryHub:
        """The hub of a query."""
        if query not in self._hubs:
            self._hubs[query] = QueryHub(log_folder(self._folder, query), emit)
        return self._hubs[query]

    def reader(self, query: str) -> LogReader:
        """The reader of the log of a query."""
        return LogReader(log_folder(self._folder, query))

    def note_news(self, queries: list[str]) -> None:
        """Answers of these queries were logged."""
        for query in queries:
            if query in self._hubs:
                self._hubs[query].note_news()

    def note_all_news(self) -> None:
        """Anything may have been logged."""
        for hub in self._hubs.values():
            hub.note_news()

    def keep(self, queries: set[str]) -> None:
        """End the subscriptions of queries that are not there any more."""
        for query in [one for one in self._hubs if one not in queries]:
            self._hubs.pop(query).close("the query was dropped", again=False)

    def renew(self, query: str) -> None:
        """End the subscriptions of a query that is another one now."""
        hub = self._hubs.pop(query, None)
        if hub is not None:
            hub.close("the query was replaced by another one of its name: begin anew", again=False)

    @property
    def counts(self) -> dict[str, int]:
        """How many subscribers each query has."""
        return {query: hub.count for query, hub in self._hubs.items()}

    def close(self, reason: str) -> None:
        """End all subscriptions."""
        for hub in self._hubs.values():
            hub.close(reason, again=True)
        self._hubs = {}
