"""Live sources with pauses: what comes is answered when it is due, once, and as the recorded run answers it."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from queue import Queue
from typing import TYPE_CHECKING

import pytest

import headwater as hw
from headwater.execution.answers import Answer
from headwater.sources.source import ItemRange, SourceItem
from headwater.terms.model import BadElement, Element, Literal, NamedNode, Triple
from tests.running.live import TRIGGER, LiveRuns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

A, B = "http://ex/a", "http://ex/b"
PREFIX = "PREFIX : <http://ex/>\n"
NOW = PREFIX + "REGISTER QUERY now AS SELECT ?v WHERE { STREAM :a [NOW] { ?x :p ?v } }"
SUMS = PREFIX + "REGISTER QUERY sums AS SELECT (COUNT(?v) AS ?n) FROM STREAM :a [RANGE 4s STEP 2s] WHERE { ?x :p ?v }"
BOTH = PREFIX + (
    "REGISTER QUERY both AS SELECT ?v ?w "
    "WHERE { STREAM :a [RANGE 30s] { ?x :p ?v } OPTIONAL { STREAM :b [RANGE 30s] { ?x :q ?w } } }"
)
IDLE = 2.0
PAUSES = [1.0, 1.2, 4.0, 13.0, 13.1, 40.0, 41.9, 47.0]


def line(value: int, predicate: str = "p") -> str:
    return f'{{now}}\t<http://ex/x> <http://ex/{predicate}> "{value}" .'


def make_engine(folder: Path, *queries: str, **settings: object) -> hw.Engine:
    engine = hw.Engine(in_process=True, dead_letters=folder / "dead", **{"idle": "2s", **settings})  # type: ignore[arg-type]
    for name in ("a", "b"):
        (folder / f"{name}.tnq").touch()
        engine.stream(f"http://ex/{name}", folder / f"{name}.tnq")
    for query in queries:
        engine.register(query)
    return engine


def recorded(folder: Path, *queries: str) -> list[tuple[str, int, int, tuple[str, ...]]]:
    """The answers of a run that reads the files as they are now, by the definition."""
    found: list[Answer] = []
    make_engine(folder, *queries, evaluator="reference").run(on_answer=found.append)
    return [(one.query, one.time, one.part, tuple(sorted(" ".join(map(str, r)) for r in one.rows))) for one in found]


@pytest.mark.parametrize("restarts", [(), (2.0, 14.0, 15.5, 43.0)])
def test_followed_files_are_answered_in_time_and_as_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restarts: tuple[float, ...]
) -> None:
    checkpoint = tmp_path / "checkpoint"
    runs = LiveRuns(monkeypatch, lambda: make_engine(tmp_path, NOW, SUMS, checkpoint=checkpoint))
    for value, at in enumerate(PAUSES):
        runs.write(at, tmp_path / "a.tnq", line(value))
    for until in (*restarts, 60.0):
        runs.run(until)
    assert len(runs.keys) == len(set(runs.keys)), "nothing is answered twice"
    expected = recorded(tmp_path, NOW, SUMS)
    end = max(time for query, time, _, _ in expected if query == "sums")
    assert sorted(key for key in runs.keys if key[1] <= end) == sorted(expected)
    assert all(key[3] == ('"0"^^<http://www.w3.org/2001/XMLSchema#integer>',) for key in runs.keys if key[1] > end)
    for value, at in enumerate(PAUSES):
        (seen,) = [one for one in runs.seen if one.rows == [f'"{value}"']]
        begin = at
        for until in restarts:
            # A run that is stopped in between begins to wait anew.
            begin = until if begin <= until <= begin + IDLE else begin
        assert seen.at <= begin + IDLE + 1, value
    assert sum(summary.late for summary in runs.summaries) == 0


def test_what_comes_below_the_moved_watermark_is_late_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = LiveRuns(monkeypatch, lambda: make_engine(tmp_path, NOW, SUMS, checkpoint=tmp_path / "checkpoint"))
    runs.write(1.0, tmp_path / "a.tnq", line(1))
    begin = int(runs.clock.begin * 1000)
    runs.write(10.0, tmp_path / "a.tnq", f'{begin + 5_000}\t<http://ex/x> <http://ex/p> "late" .')
    runs.write(12.0, tmp_path / "a.tnq", line(2))
    runs.run(11.0)
    runs.run(20.0)
    assert [one.rows for one in runs.seen if one.answer.query == "now"] == [['"1"'], ['"2"']]
    assert [summary.late for summary in runs.summaries] == [1, 0]
    (warning,) = runs.summaries[0].warnings
    assert "came late and is in no answer" in warning
    assert "because the stream was silent" in warning and "a longer --idle" in warning and "--delay" not in warning
    (letters,) = (tmp_path / "dead").glob("**/*.jsonl")
    assert json.loads(letters.read_text())["kind"] == "late"


def test_a_batch_of_heartbeats_that_failed_is_repeated_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = LiveRuns(monkeypatch, lambda: make_engine(tmp_path, NOW, checkpoint=tmp_path / "checkpoint"))
    runs.write(1.0, tmp_path / "a.tnq", line(1))
    with pytest.raises(RuntimeError, match="not taken"):
        runs.run(20.0, fails=True)
    (failed,) = runs.seen
    # It is older than what the heartbeat has closed, and comes before the batch is repeated.
    closed = failed.answer.watermark
    assert closed is not None
    runs.write(runs.clock.elapsed, tmp_path / "a.tnq", f'{closed // 1000 - 1}\t<http://ex/x> <http://ex/p> "late" .')
    runs.clock.move(3_600)
    runs.run(runs.clock.elapsed + 20)
    assert runs.keys == [failed.key, failed.key]
    assert runs.seen[1].answer.watermark == closed
    assert runs.summaries[0].late == 1


def test_without_idle_the_newest_element_waits_and_progress_says_for_what(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = LiveRuns(monkeypatch, lambda: make_engine(tmp_path, BOTH, idle="off"))
    runs.write(1.0, tmp_path / "a.tnq", line(1))
    runs.run(30.0)
    assert not runs.seen
    assert list(runs.summaries[0].queries["both"].waits_for) == [B]
    assert json.loads(runs.summaries[0].to_json())["queries"]["both"]["waits_for"][B] > 0


def test_one_silent_stream_does_not_hold_up_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = LiveRuns(monkeypatch, lambda: make_engine(tmp_path, BOTH))
    for value, at in enumerate([5.0, 6.0, 7.0, 12.0]):
        runs.write(at, tmp_path / "a.tnq", line(value))
    runs.write(14.0, tmp_path / "b.tnq", line(9, "q"))
    runs.run(30.0)
    assert len(runs.keys) == len(set(runs.keys))
    assert sorted(runs.keys) == sorted(key for key in recorded(tmp_path, BOTH) if key[1] < max(runs.keys)[1] + 1)
    for at, value in [(5.0, 0), (6.0, 1), (7.0, 2), (12.0, 3)]:
        assert min(one.at for one in runs.seen if any(f'"{value}"' in row for row in one.rows)) <= at + IDLE + 1
    assert runs.summaries[0].late == 0


def test_an_hour_of_silence_writes_no_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hourly = SUMS.replace("RANGE 4s STEP 2s", "RANGE 1h STEP 1h")
    runs = LiveRuns(monkeypatch, lambda: make_engine(tmp_path, hourly, checkpoint=tmp_path / "checkpoint"))
    runs.write(1.0, tmp_path / "a.tnq", line(1))
    runs.run(100 * TRIGGER)
    assert runs.summaries[0].batches <= 3


def ask_one_by_one(engine: hw.Engine, send: Callable[[int], None], count: int) -> list[Answer]:
    """Send an element, wait for its answer, and only then send the next."""
    answers: Queue[Answer] = Queue()
    run = threading.Thread(
        target=lambda: engine.run(follow=True, trigger_seconds=0.2, on_answer=answers.put), daemon=True
    )
    run.start()
    try:
        found = []
        for value in range(count):
            send(value)
            found.append(answers.get(timeout=120))
        time.sleep(1)
        assert answers.empty(), "nothing is answered twice"
    finally:
        engine.stop()
        run.join(60)
    return found


def values_of(answers: list[Answer]) -> list[str]:
    return [str(term).strip('"') for answer in answers for row in answer.rows for term in row]


def test_a_source_that_stamps_by_arrival_is_answered_at_once() -> None:
    engine = hw.Engine(in_process=True)
    engine.register(NOW)
    with socket.create_server(("127.0.0.1", 0)) as server:
        engine.stream(A, hw.tcp("127.0.0.1", server.getsockname()[1], format="turtle"))
        connections: list[socket.socket] = []

        def send(value: int) -> None:
            if not connections:
                connections.append(server.accept()[0])
            connections[0].sendall(f'<http://ex/x> <http://ex/p> "{value}" .\n'.encode())

        answers = ask_one_by_one(engine, send, 3)
        connections[0].close()
    assert values_of(answers) == ["0", "1", "2"]
    assert engine.progress.late == 0


def test_on_spark_too_a_pause_is_no_reason_to_wait(tmp_path: Path, spark: SparkSession) -> None:
    engine = hw.Engine(spark, idle="500ms", checkpoint=tmp_path / "checkpoint", shards=1)
    path = tmp_path / "a.tnq"
    path.touch()
    engine.stream(A, path)
    engine.register(NOW)

    def send(value: int) -> None:
        with path.open("a") as stream:
            stream.write(line(value).replace("{now}", str(int(time.time() * 1000))) + "\n")

    answers = ask_one_by_one(engine, send, 2)
    assert values_of(answers) == ["0", "1"]
    again = hw.Engine(spark, idle="500ms", checkpoint=tmp_path / "checkpoint", shards=1)
    again.stream(A, path)
    again.register(NOW)
    assert values_of(ask_one_by_one(again, lambda value: send(value + 2), 1)) == ["2"]


class PushedSource:
    """A source that stamps what a thread pushes into it."""

    def __init__(self) -> None:
        self._elements: list[Element] = []
        self._pushing = threading.Lock()
        self._settled = 0

    def push(self, value: int) -> None:
        with self._pushing:
            self._settled = max(time.time_ns() // 1000, self._settled + 1)
            triple = Triple(NamedNode("http://ex/x"), NamedNode("http://ex/p"), Literal(str(value)))
            self._elements.append(Element(self._settled, (triple,), position=(len(self._elements),)))

    def settled_before(self) -> int:
        with self._pushing:
            self._settled = max(time.time_ns() // 1000, self._settled + 1)
            return self._settled

    def check(self) -> None:
        return

    def list_items(self) -> list[SourceItem]:
        return [SourceItem("pushed", len(self._elements))]

    def items_beside(self, name: str) -> list[SourceItem]:
        return []

    def needs_whole_read(self, item: SourceItem) -> bool:
        return False

    def complete_size(self, item: SourceItem) -> int:
        return item.size

    def find_batch_end(self, item: SourceItem, wanted: int, end: int) -> int:
        return wanted

    def read(self, item_range: ItemRange) -> Iterator[Element | BadElement]:
        return iter(self._elements[item_range.start : item_range.end])

    def scan(self, item_range: ItemRange, patterns: object) -> None:
        return None

    def text_at(self, name: str, position: tuple[int, ...]) -> str | None:
        return None

    def line_numbers(self, name: str, positions: Sequence[tuple[int, ...]]) -> list[int | None]:
        return [None] * len(positions)


def test_what_a_thread_pushes_is_answered_at_once() -> None:
    source = PushedSource()
    engine = hw.Engine(in_process=True)
    engine.stream(A, source)
    engine.register(NOW)
    pushed = ask_one_by_one(engine, lambda value: threading.Thread(target=source.push, args=(value,)).start(), 5)
    assert values_of(pushed) == ["0", "1", "2", "3", "4"]
    assert engine.progress.late == 0


def test_a_query_over_one_stream_waits_for_no_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = LiveRuns(monkeypatch, lambda: make_engine(tmp_path, NOW, idle="off"))
    runs.write(1.0, tmp_path / "a.tnq", line(1))
    runs.run(30.0)
    (counts,) = runs.summaries[0].queries.values()
    assert counts.waits_for == {}
