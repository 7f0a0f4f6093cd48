"""The answer log: ids that stay the same when batches are run again, resuming behind an id, and what is not kept."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from headwater.algebra.plan import QueryKind
from headwater.execution.answer_batch import AnswerBatch
from headwater.execution.answers import Answer
from headwater.server.answers.answer_log import AnswerLogSink, QueryLog, Retention
from headwater.server.answers.event_ids import EventId
from headwater.server.answers.log_files import LogPlace, LogReader, LogRecord, list_segments, log_folder, read_floor
from headwater.terms.model import Literal

MANY = Retention(bytes=1 << 30)


def record(batch: int, *texts: str, era: int = 1) -> LogRecord:
    return LogRecord(era, batch, tuple(text.encode() for text in texts))


def ids_after(reader: LogReader, after: str | None) -> list[str]:
    mark = None if after is None else EventId.parse(after)
    found = [
        EventId(one.era, one.batch, index) for one, _ in reader.read_after(mark) for index in range(len(one.lines))
    ]
    return [str(one) for one in found if mark is None or one > mark]


def answer(query: str, tick: int, value: int) -> Answer:
    return Answer(query, tick, QueryKind.SELECT, variables=("n",), rows=((Literal(value),),), watermark=tick + 5)


def test_ids_are_ordered_and_survive_being_written() -> None:
    one, changed = EventId(3, 4, 5), EventId(3, 4, 5, 2)
    assert EventId.parse(str(one)) == one
    assert EventId.parse(str(changed)) == changed
    assert one < changed < EventId(3, 4, 6) < EventId(3, 10, 0) < EventId(4, 0, 0)
    assert changed.answer == one


@pytest.mark.parametrize("text", ["", "1-2", "1-2-3-4", "a-b-c", "1-2--3", "1-2-3.", "9" * 40 + "-1-1", "\u0661-2-3"])
def test_what_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no id"):
        EventId.parse(text)


def test_a_reader_goes_on_behind_any_id(tmp_path: Path) -> None:
    log = QueryLog(tmp_path, Retention(bytes=400))
    for batch in range(3, 9):
        log.append(record(batch, f"a{batch}", f"b{batch}"))
    reader = LogReader(tmp_path)
    everything = ids_after(reader, None)
    assert everything == [f"1-{batch}-{index}" for batch in range(3, 9) for index in (0, 1)]
    for place, one in enumerate(everything):
        assert ids_after(reader, one) == everything[place + 1 :]
    found = reader.find(EventId(1, 5, 1))
    assert found == b"b5"
    assert reader.find(EventId(1, 5, 2)) is None
    assert reader.find(EventId(1, 1, 0)) is None


def test_a_batch_that_is_written_again_replaces_itself_and_those_behind_it(tmp_path: Path) -> None:
    for size in (30, 1 << 20):
        folder = tmp_path / str(size)
        log = QueryLog(folder, Retention(bytes=8 * size))
        for batch in range(5):
            log.append(record(batch, f"old {batch}"))
        log = QueryLog(folder, Retention(bytes=1 << 20))
        log.append(record(3, "new 3"))
        kept = [line for one, _ in LogReader(folder).read_after(None) for line in one.lines]
        assert kept[-1] == b"new 3"
        assert b"old 3" not in kept
        assert b"old 4" not in kept
        assert log.last == EventId(1, 3, 0)


def test_a_batch_that_comes_again_with_the_same_answers_changes_nothing_on_disk(tmp_path: Path) -> None:
    log = QueryLog(tmp_path, MANY)
    for batch in range(3):
        log.append(record(batch, f"answer {batch}"))
    [path] = [tmp_path / name for name in list_segments(tmp_path)]
    before = path.read_bytes(), path.stat().st_mtime_ns
    again = QueryLog(tmp_path, MANY)
    for batch in range(3):
        again.append(record(batch, f"answer {batch}"))
        assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_what_a_killed_writer_left_is_no_record(tmp_path: Path) -> None:
    log = QueryLog(tmp_path, MANY)
    log.append(record(0, "first"))
    path = tmp_path / list_segments(tmp_path)[0]
    whole = path.read_bytes()
    second = record(1, "second", "third").to_bytes()
    for cut in range(len(second)):
        path.write_bytes(whole + second[:cut])
        assert ids_after(LogReader(tmp_path), None) == ["1-0-0"]
    path.write_bytes(whole + second[:-3])
    QueryLog(tmp_path, MANY).append(record(1, "again"))
    assert [one.lines for one, _ in LogReader(tmp_path).read_after(None)] == [(b"first",), (b"again",)]


def test_a_place_is_gone_on_from_and_one_that_was_cut_off_is_read_anew(tmp_path: Path) -> None:
    log = QueryLog(tmp_path, MANY)
    log.append(record(0, "a"))
    reader = LogReader(tmp_path)
    [(_, place)] = reader.read_from(LogPlace())
    assert list(reader.read_from(place)) == []
    log.append(record(1, "b"))
    [(found, place)] = reader.read_from(place)
    assert found.lines == (b"b",)
    log.remove_from(1, 1)
    assert [one.batch for one, _ in reader.read_from(place)] == [0]


def test_what_is_older_than_the_retention_goes_and_readers_know_it(tmp_path: Path) -> None:
    log = QueryLog(tmp_path, Retention(bytes=1000))
    for batch in range(100):
        log.append(record(batch, "x" * 50))
    reader = LogReader(tmp_path)
    kept = ids_after(reader, None)
    assert sum((tmp_path / name).stat().st_size for name in list_segments(tmp_path)) <= 1000 + 125 + 100
    assert 5 < len(kept) < 30
    floor = read_floor(tmp_path)
    assert floor is not None
    assert kept[0] == str(EventId(1, floor.batch + 1, 0)), "nothing is missing between the floor and what is kept"
    assert reader.is_kept(floor)
    assert not reader.is_kept(EventId(1, floor.batch - 1, 0))


def test_age_counts_too(tmp_path: Path) -> None:
    now = [1_000_000.0]
    log = QueryLog(tmp_path, Retention(seconds=80), clock=lambda: now[0])
    for batch in range(4):
        log.append(record(batch, "x"))
        os.utime(tmp_path / list_segments(tmp_path)[-1], (now[0], now[0]))
        now[0] += 30
    assert ids_after(LogReader(tmp_path), None) == ["1-1-0", "1-2-0", "1-3-0"]


def test_the_sink_logs_each_query_and_says_so(tmp_path: Path) -> None:
    told: list[list[str]] = []
    sink = AnswerLogSink(tmp_path, MANY, is_logged=lambda query: query != "dropped", on_write=told.append)
    sink.open(None)
    sink.write("run", 0, AnswerBatch([[answer("q/1", 10, 1), answer("r", 10, 2), answer("dropped", 10, 3)]]))
    sink.write("run", 1, AnswerBatch([[answer("r", 20, 4), answer("r", 30, 5)]]))
    assert told == [["q/1", "r"], ["r"]]
    lines = [line for one, _ in LogReader(log_folder(tmp_path, "r")).read_after(None) for line in one.lines]
    assert [json.loads(line)["time_us"] for line in lines] == [10, 20, 30]
    assert json.loads(lines[0])["watermark_us"] == 15
    assert not log_folder(tmp_path, "dropped").exists()


def test_a_repeated_batch_has_the_same_ids_and_one_without_answers_removes_them(tmp_path: Path) -> None:
    sink = AnswerLogSink(tmp_path, MANY)
    sink.open(None)
    for batch in range(3):
        sink.write("run", batch, AnswerBatch([[answer("q", batch, batch), answer("r", batch, batch)]]))
    before = ids_after(LogReader(log_folder(tmp_path, "q")), None)
    again = AnswerLogSink(tmp_path, MANY)
    again.open(None)
    again.rewrite("run", 1, AnswerBatch([[answer("q", 1, 1)]]))
    assert ids_after(LogReader(log_folder(tmp_path, "r")), None) == before[:1]
    again.rewrite("run", 2, AnswerBatch([[answer("q", 2, 2)]]))
    assert ids_after(LogReader(log_folder(tmp_path, "q")), None) == before


def test_a_new_run_begins_an_era_and_ids_of_a_lost_log_are_not_kept(tmp_path: Path) -> None:
    sink = AnswerLogSink(tmp_path, MANY)
    sink.open(None)
    sink.write("one", 7, AnswerBatch([[answer("q", 1, 1)]]))
    sink.write("two", 0, AnswerBatch([[answer("q", 2, 2)]]))
    reader = LogReader(log_folder(tmp_path, "q"))
    first, second = (EventId.parse(one) for one in ids_after(reader, None))
    assert first < second
    assert reader.is_kept(first)
    assert not reader.is_kept(EventId(first.era - 1, 500, 0))
    assert not reader.is_kept(EventId(first.era, 6, 0)), "a query of that name that was there before"
    sink.forget("q")
    assert ids_after(reader, None) == []
