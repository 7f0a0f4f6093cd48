"""What the in-process runner reads at a time, and what it reads before it is asked for."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import headwater as hw
from headwater.running import batch_reading
from headwater.running.batch_reading import BatchSize, ReadAhead, without_version
from headwater.sources.feed import Chunk, Feed, ReadTask
from headwater.sources.files import files
from headwater.sources.offsets import Offset

STREAM = "http://ex/s"


def test_batches_grow_as_long_as_they_follow_each_other() -> None:
    size = BatchSize(None)
    first = size.limit
    for _ in range(10):
        size.grow()
    assert size.limit == 16 * first and size.is_worth_a_thread
    size.shrink()
    assert size.limit == first


def test_a_given_size_stays() -> None:
    size = BatchSize(100)
    size.grow()
    assert size.limit == 100 and not size.is_worth_a_thread
    size.shrink()
    assert size.limit == 100


def write_elements(folder: Path, count: int = 200) -> Path:
    path = folder / "s.tnq"
    path.write_text("".join(f'{1000 * n}\t<urn:s{n}> <urn:p> "{n}" .\n' for n in range(count)))
    return path


def feed_and_end(path: Path) -> tuple[Feed, Offset]:
    feed = Feed({STREAM: files(path)})
    feed.finish()
    return feed, feed.next_offset(Offset())


def times_of(chunks: list[Chunk]) -> list[int]:
    return [time for chunk in chunks for time in getattr(chunk.elements, "times", ())]


def test_chunks_come_in_the_order_of_the_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second of two threads is done first, and its chunks come second."""
    monkeypatch.setattr(batch_reading, "_TASK_BYTES", 300)
    feed, end = feed_and_end(write_elements(tmp_path))
    expected = times_of([chunk for task in feed.read_tasks(Offset(), end) for chunk in feed.read(task)])
    second_is_done, read = threading.Event(), feed.read

    def read_late(task: ReadTask) -> list[Chunk]:
        if task.item_range is not None:
            if task.item_range.start == 0:
                assert second_is_done.wait(60)
            else:
                second_is_done.set()
        return list(read(task))

    monkeypatch.setattr(feed, "read", read_late)
    ahead = ReadAhead()
    ahead.start(feed, Offset(), end)
    chunks = list(ahead.take(feed, Offset(), end))
    assert len(chunks) > 10 and times_of(chunks) == expected == [1_000_000 * n for n in range(200)]


def test_a_fault_of_reading_is_raised_where_the_chunks_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed, end = feed_and_end(write_elements(tmp_path))

    def fail(task: ReadTask) -> list[Chunk]:
        raise hw.SourceError("the disk is gone")

    monkeypatch.setattr(feed, "read", fail)
    ahead = ReadAhead()
    ahead.start(feed, Offset(), end)
    with pytest.raises(hw.SourceError, match="the disk is gone"):
        list(ahead.take(feed, Offset(), end))


def test_another_range_is_read_when_it_is_taken(tmp_path: Path) -> None:
    feed, end = feed_and_end(write_elements(tmp_path))
    middle = feed.next_offset(Offset(), 1000)
    ahead = ReadAhead()
    ahead.start(feed, middle, end)
    assert times_of(list(ahead.take(feed, Offset(), end))) == [1_000_000 * n for n in range(200)]


def test_a_reader_that_hangs_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_reading, "_GRACE_SECONDS", 0.01)
    feed, end = feed_and_end(write_elements(tmp_path))
    is_over = threading.Event()
    monkeypatch.setattr(feed, "read", lambda task: [is_over.wait(60)])
    ahead = ReadAhead()
    ahead.start(feed, Offset(), end)
    ahead.forget()
    is_over.set()


def test_several_batches_are_read_ahead_and_come_as_they_were_planned(tmp_path: Path) -> None:
    feed, end = feed_and_end(write_elements(tmp_path))
    ahead, offset, taken = ReadAhead(), Offset(), 0
    times: list[int] = []
    while without_version((offset,)) != without_version((end,)):
        ahead.plan(feed, offset, 1000)
        next_one = ahead.planned_end_after(offset)
        assert next_one is not None
        times += times_of(list(ahead.take(feed, offset, next_one)))
        # What was planned before keeps its size.
        ahead.plan(feed, next_one, 3000)
        offset, taken = next_one, taken + 1
    assert times == [1_000_000 * n for n in range(200)]
    assert taken > 3
    assert ahead.planned_end_after(offset) is None


def test_a_large_batch_that_was_not_read_ahead_is_read_by_several_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_reading, "_TASK_BYTES", 300)
    feed, end = feed_and_end(write_elements(tmp_path))
    read, threads = feed.read, set()

    def note(task: ReadTask) -> list[Chunk]:
        threads.add(threading.current_thread().name)
        return list(read(task))

    monkeypatch.setattr(feed, "read", note)
    assert times_of(list(ReadAhead().take(feed, Offset(), end))) == [1_000_000 * n for n in range(200)]
    assert threads <= {"headwater-read-ahead-1", "headwater-read-ahead-2"}


def test_threads_end_when_nobody_reads_any_more(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    feed, end = feed_and_end(write_elements(tmp_path))
    ahead = ReadAhead()
    ahead.start(feed, Offset(), end)
    readers = set(threading.enumerate()) - before
    assert len(readers) == 2
    del ahead
    for thread in readers:
        thread.join(30)
        assert not thread.is_alive()
