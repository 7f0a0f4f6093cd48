"""Handing answers to subscribers: the same to all, from any id on, and no more than a buffer for one that is slow."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from headwater.server.answers.answer_events import Event
from headwater.server.answers.answer_log import QueryLog, Retention
from headwater.server.answers.event_ids import EventId
from headwater.server.answers.fan_out import NotKept, QueryHub, Subscriber
from headwater.server.answers.log_files import LogRecord

PATIENCE = 60.0


def write(log: QueryLog, batch: int, *values: int) -> None:
    lines = [
        json.dumps({"time_us": one, "head": {"vars": ["v"]}, "results": {"bindings": [{"v": {"value": str(one)}}]}})
        for one in values
    ]
    log.append(LogRecord(1, batch, tuple(line.encode() for line in lines)))


def with_hub(folder: Path, work: Callable[[QueryHub, QueryLog], Awaitable[None]]) -> None:
    async def run() -> None:
        log = QueryLog(folder, Retention(bytes=1 << 30))
        write(log, 0, 0)
        hub = QueryHub(folder)
        async with asyncio.timeout(PATIENCE):
            await work(hub, log)
        hub.close("the test is over", again=False)

    asyncio.run(run())


def subscriber(mode: Any = "answers", events: int = 5, slow_seconds: float = 1e6) -> Subscriber:
    return Subscriber(mode, events, 1 << 20, slow_seconds)


async def take(events: AsyncIterator[list[Event]], count: int) -> list[Event]:
    found: list[Event] = []
    while len(found) < count:
        found += await anext(events)
    return found


def values(events: list[Event]) -> list[int]:
    return [json.loads(event.data)["time_us"] for event in events if event.kind == "answer"]


async def join(hub: QueryHub, one: Subscriber, after: EventId | None = None) -> AsyncIterator[list[Event]]:
    """Begin to follow, and return when what comes is handed over."""
    events = hub.follow(one, after, 0.01)
    while await anext(events):
        pass
    return events


def test_a_burst_that_is_larger_than_the_buffer_loses_nothing(tmp_path: Path) -> None:
    async def work(hub: QueryHub, log: QueryLog) -> None:
        one = subscriber()
        events = await join(hub, one)
        write(log, 1, *range(1, 50))
        hub.note_news()
        while not one.has_lapsed:
            await asyncio.sleep(0.001)
        write(log, 2, *range(50, 60))
        hub.note_news()
        assert values(await take(events, 59)) == list(range(1, 60))
        assert hub.count <= 1
        write(log, 3, 60)
        hub.note_news()
        assert values(await take(events, 1)) == [60]

    with_hub(tmp_path, work)


def test_the_first_burst_loses_nothing_either(tmp_path: Path) -> None:
    async def run() -> None:
        log = QueryLog(tmp_path, Retention(bytes=1 << 30))
        hub = QueryHub(tmp_path)
        one = subscriber()
        events = await join(hub, one)
        write(log, 1, *range(50))
        hub.note_news()
        async with asyncio.timeout(PATIENCE):
            assert values(await take(events, 50)) == list(range(50))
        hub.close("", again=False)

    asyncio.run(run())


@pytest.mark.parametrize("mode", ["answers", "changes"])
def test_whoever_does_not_catch_up_in_time_ends_with_a_reason(tmp_path: Path, mode: str) -> None:
    async def work(hub: QueryHub, log: QueryLog) -> None:
        slow, quick = subscriber(mode, slow_seconds=0.0), subscriber(events=1000)
        slow_events, quick_events = await join(hub, slow), await join(hub, quick)
        for batch in range(1, 100):
            write(log, batch, batch)
            hub.note_news()
        assert values(await take(quick_events, 99)) == list(range(1, 100))
        while not slow.has_lapsed:
            await asyncio.sleep(0.001)
        found: list[Event] = []
        async for events in slow_events:
            found += events
        assert found[-1].kind == "end"
        assert "too slowly" in json.loads(found[-1].data)["reason"]
        assert len(found) < 99

    with_hub(tmp_path, work)


def test_a_batch_that_is_logged_again_comes_once(tmp_path: Path) -> None:
    async def work(hub: QueryHub, log: QueryLog) -> None:
        events = await join(hub, subscriber())
        write(log, 1, 1, 2)
        hub.note_news()
        assert values(await take(events, 2)) == [1, 2]
        log.remove_from(1, 1)
        hub.note_news()
        write(log, 1, 1, 2)
        write(log, 2, 3)
        hub.note_news()
        assert values(await take(events, 1)) == [3]

    with_hub(tmp_path, work)


def test_subscribers_that_begin_while_answers_come_get_each_once(tmp_path: Path) -> None:
    async def work(hub: QueryHub, log: QueryLog) -> None:
        async def read(after: EventId | None) -> list[int]:
            found: list[int] = []
            async for events in hub.follow(subscriber(events=3), after, 0.01):
                found += values(events)
                if found and found[-1] == 99:
                    return found
            raise AssertionError("it ended")

        readers = []
        for batch in range(1, 100):
            write(log, batch, batch)
            hub.note_news()
            readers.append((batch, asyncio.create_task(read(EventId(1, 0, 0)))))
            await asyncio.sleep(0)
        for _, reader in readers:
            assert await reader == list(range(1, 100))

    with_hub(tmp_path, work)


def test_what_is_not_kept_cannot_be_gone_on_from(tmp_path: Path) -> None:
    async def work(hub: QueryHub, log: QueryLog) -> None:
        with pytest.raises(NotKept):
            await hub.check_kept("answers", EventId(0, 5, 0))
        with pytest.raises(NotKept):
            await hub.check_kept("changes", EventId(1, 7, 0))
        await hub.check_kept("answers", EventId(1, 0, 0))
        await hub.check_kept("changes", EventId(1, 0, 0, 3))
        await hub.check_kept("answers", None)

    with_hub(tmp_path, work)
