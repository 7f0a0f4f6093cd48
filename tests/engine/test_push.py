"""Streams that a program sends: `send` from any thread, back-pressure, the end, and what a killed program has sent."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode, Triple

import headwater as hw
from headwater.execution.answers import Answer
from headwater.sources.offsets import ItemOffset, StreamOffset
from headwater.sources.receivers import RunSignals
from headwater.terms.model import Element

SECOND = 1_000_000
COUNT = "SELECT (COUNT(?v) AS ?n) FROM STREAM <s> [RANGE 2s STEP 1s] WHERE { ?x <urn:v> ?v }"


def triple(number: int) -> Triple:
    return Triple(NamedNode("urn:x"), NamedNode("urn:v"), Literal(number))


def elements(count: int) -> list[Element]:
    return [Element(number * SECOND, (triple(number),)) for number in range(count)]


def counts(answers: Iterator[Answer]) -> list[tuple[int, int]]:
    return [(answer.time // SECOND, int(str(answer.rows[0][0].value))) for answer in answers]  # type: ignore[union-attr]


def recorded(count: int) -> list[tuple[int, int]]:
    engine = hw.Engine(in_process=True)
    engine.stream("s", hw.memory(elements(count)))
    return counts(engine.register(COUNT).answers())


@pytest.fixture(params=[True, pytest.param(False, marks=pytest.mark.spark)], ids=["in process", "on Spark"])
def engine(request: pytest.FixtureRequest) -> hw.Engine:
    return hw.Engine(in_process=True) if request.param else hw.Engine(request.getfixturevalue("spark"))


def test_what_is_sent_is_answered_as_a_recording_is_and_the_run_ends_with_the_stream(engine: hw.Engine) -> None:
    source = hw.push()
    engine.stream("s", source)
    answers = engine.register(COUNT).answers()
    source.send_all(elements(3))

    def send_the_rest() -> None:
        for one in elements(6)[3:]:
            source.send(one)
        source.close()

    thread = threading.Thread(target=send_the_rest)
    thread.start()
    assert counts(answers) == recorded(6)
    thread.join()
    assert source.closed
    assert not source.waiting


def test_an_engine_runs_before_its_first_query_and_after_its_last(engine: hw.Engine) -> None:
    source, other = hw.push(), hw.push()
    engine.stream("s", source)
    engine.stream("t", other)
    with engine:
        first = engine.register(COUNT, name="first")
        answers = first.answers()
        source.send_all(elements(4))
        source.close()
        found = [next(answers) for _ in range(5)]
        engine.drop(first)
        assert list(answers) == []
        deadline = time.monotonic() + 60
        while engine.progress.queries:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        second = engine.register(COUNT.replace("<s>", "<t>"), name="second")
        later = second.answers()
        other.send_all(elements(4))
        other.close()
    assert counts(iter(found)) == counts(later) == recorded(4)
    with pytest.raises(hw.RegistrationError, match="no query is registered"):
        hw.Engine(in_process=True).run()


def test_each_way_to_say_what_and_when() -> None:
    source = hw.push()
    engine = hw.Engine(in_process=True)
    engine.stream("s", source)
    query = engine.register("SELECT ?v FROM STREAM <s> [RANGE 1s STEP 1s] WHERE { ?x <urn:v> ?v }", report="nonempty")
    source.send([triple(1)], time=SECOND)
    source.send((triple(2),), time="1970-01-01T00:00:03Z")
    source.send([triple(3)], time=datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC))
    source.send(Element(7 * SECOND, (triple(4),)))
    source.send_all([(9 * SECOND, [triple(5)]), Element(11 * SECOND, (triple(6),), "urn:g")])
    source.close()
    values = [int(str(row[0].value)) for answer in query.answers() for row in answer.rows]  # type: ignore[union-attr]
    assert values == [1, 2, 3, 4, 5, 6]


def test_without_a_time_the_time_of_arrival_counts_and_grows() -> None:
    source = hw.push()
    engine = hw.Engine(in_process=True)
    engine.stream("s", source)
    before = time.time_ns() // 1000
    for number in range(20):
        source.send([triple(number)])
    source.close()
    engine.register("SELECT ?v FROM STREAM <s> [RANGE 1s STEP 1s] WHERE { ?x <urn:v> ?v }")
    summary = engine.run()
    assert summary.elements == 20
    assert summary.late == 0
    newest = summary.watermarks["s"]
    assert newest is not None and newest >= before + 19


def test_what_is_stamped_when_it_is_sent_is_answered_without_a_later_element(engine: hw.Engine) -> None:
    source = hw.push()
    engine.stream("s", source)
    eager = engine.register("SELECT ?v WHERE { STREAM <s> [NOW] { ?x <urn:v> ?v } }")
    sliding = engine.register(COUNT)
    seen: dict[str, list[Answer]] = {eager.name: [], sliding.name: []}
    engine.start(on_answer=lambda answer: seen[answer.query].append(answer))
    source.send([triple(7)])
    deadline = time.monotonic() + 60
    while not (any(one.rows for one in seen[eager.name]) and seen[sliding.name]) and time.monotonic() < deadline:
        time.sleep(0.05)
    before_the_end = {name: list(answers) for name, answers in seen.items()}
    engine.stop()
    engine.wait()
    assert [str(row[0]) for one in before_the_end[eager.name] for row in one.rows] == [str(Literal(7))]
    assert before_the_end[sliding.name], "the clock closes the window"


def test_a_stamp_that_is_not_written_yet_holds_the_mark_back(tmp_path: Path) -> None:
    source = hw.push(buffer=1)
    with source.open_spool(tmp_path, RunSignals(lambda: None, lambda: None), is_durable=False) as spool:
        assert spool.settled_before() is None, "elements may have times of their own"
        source.send([triple(1)])
        first = spool.settled_before()
        assert first is not None
        thread = threading.Thread(target=lambda: source.send([triple(2)], timeout=2), daemon=True)
        thread.start()
        time.sleep(1)
        held = spool.settled_before()
        assert held is not None and held <= time.time_ns() // 1000 - 500_000, "the second element waits for room"
        source.note_read(StreamOffset((ItemOffset(source._unread[0][0], source._unread[0][1]),)))
        thread.join()
        assert spool.settled_before() > held  # type: ignore[operator]
        source.note_read(StreamOffset((ItemOffset(source._unread[0][0], source._unread[0][1]),)))
        source.send([triple(3)], time=5)
        assert spool.settled_before() is None


def test_rows_and_messages_are_decoded_and_bad_ones_are_counted(tmp_path: Path) -> None:
    (tmp_path / "row.template").write_text('@time {ts}\n<urn:{car}> <urn:v> "{speed}" .\n')
    source = hw.push(template=tmp_path / "row.template")
    engine = hw.Engine(in_process=True)
    engine.stream("s", source)
    query = engine.register("SELECT ?x ?v FROM STREAM <s> [RANGE 10s STEP 10s] WHERE { ?x <urn:v> ?v }")
    source.send({"ts": 1000, "car": "a", "speed": 50})
    source.send('{"ts": 2000, "car": "b", "speed": 60}')
    source.send(b"no row")
    source.close()
    summaries: list[hw.RunSummary] = []
    answers: list[Answer] = []
    summaries.append(engine.run(on_answer=answers.append))
    rows = {tuple(str(term.value) for term in row) for answer in answers for row in answer.rows}  # type: ignore[union-attr]
    assert rows == {("urn:a", "50"), ("urn:b", "60")}
    assert summaries[0].bad == 1
    assert query.progress.elements == 2


def test_what_cannot_be_sent_is_refused() -> None:
    source = hw.push(buffer=2)
    for wrong, words in (
        (triple(1), "a triple alone"),
        ([], "no triples"),
        ([1], "triples of pyoxigraph"),
        (5, "triples of pyoxigraph"),
        ("<urn:a> <urn:b> <urn:c> .", "say what they are"),
    ):
        with pytest.raises(hw.SettingError, match=words):
            source.send(wrong)  # type: ignore[arg-type]
    with pytest.raises(hw.SettingError, match="time zone"):
        source.send([triple(1)], time=datetime(2026, 1, 1))
    with pytest.raises(hw.SettingError, match="years 0001 to 9999"):
        source.send([triple(1)], time=1 << 62)
    with pytest.raises(hw.SettingError, match="buffer"):
        hw.push(buffer=0)
    assert not source.waiting


def test_send_waits_while_too_much_is_not_evaluated() -> None:
    source = hw.push(buffer=3)
    engine = hw.Engine(in_process=True)
    engine.stream("s", source)
    engine.register(COUNT)
    gate, is_held = threading.Event(), threading.Event()

    def hold(_: Answer) -> None:
        is_held.set()
        gate.wait(30)

    engine.start(on_answer=hold)
    source.send_all(elements(3))
    assert is_held.wait(30)
    with pytest.raises(hw.StateError, match="still wait to be evaluated, so nothing more was sent"):
        source.send(Element(9 * SECOND, (triple(9),)), timeout=0.1)
    sender = threading.Thread(target=lambda: source.send_all(elements(12)[3:]))
    sender.start()
    sender.join(0.2)
    assert sender.is_alive()
    assert source.waiting == 3
    gate.set()
    sender.join(30)
    assert not sender.is_alive()
    source.close()
    engine.stop()
    assert engine.wait(30).stopped


def test_without_a_run_nothing_waits_for_ever() -> None:
    source = hw.push(buffer=2)
    source.send_all(elements(2))
    with pytest.raises(hw.StateError, match="no run reads this stream"):
        source.send([triple(1)])
    assert source.waiting == 2


def test_a_run_that_ends_leaves_what_it_did_not_read_to_the_next() -> None:
    source = hw.push()
    engine = hw.Engine(in_process=True)
    engine.stream("s", source)
    query = engine.register(COUNT)
    engine.start(on_answer=lambda _: engine.stop(), trigger_seconds=0.01)
    source.send_all(elements(2))
    engine.wait(30)
    source.send_all(elements(6)[2:])
    source.close()
    answers = counts(query.answers())
    assert answers[-3:] == recorded(6)[-3:]


def test_many_threads_send_and_nothing_is_lost() -> None:
    source = hw.push(buffer=30)
    engine = hw.Engine(in_process=True, delay="1d")
    engine.stream("s", source)
    engine.register(COUNT)
    engine.start()

    def send(first: int) -> None:
        for number in range(first, 120, 4):
            source.send([triple(number)], time=number * 1000)

    threads = [threading.Thread(target=send, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    source.close()
    with pytest.raises(hw.StateError, match="running already"):
        engine.run()
    source.wait_until_read(lambda: False)
    engine.stop()
    assert engine.wait(30).elements == 120


SENDER = """
import os, sys
import headwater as hw
from pyoxigraph import Literal, NamedNode, Triple
source = hw.push()
engine = hw.Engine(in_process=True, checkpoint=sys.argv[1])
engine.stream("s", source)
engine.register("SELECT (COUNT(?v) AS ?n) FROM STREAM <s> [RANGE 2s STEP 1s] WHERE { ?x <urn:v> ?v }", name="q")
if sys.argv[2] == "send":
    engine.start()
    for number in range(5):
        source.send([Triple(NamedNode("urn:x"), NamedNode("urn:v"), Literal(number))], time=number * 1_000_000)
    os._exit(9)
source.close()
engine.run(sinks=[hw.FileSink(sys.argv[3], format="json")])
"""


def test_what_was_sent_before_a_kill_is_answered_by_the_next_run(tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", SENDER, str(tmp_path / "checkpoint")]
    killed = subprocess.run([*arguments, "send"], capture_output=True, text=True)
    assert killed.returncode == 9, killed.stderr
    run = subprocess.run([*arguments, "end", str(tmp_path / "answers")], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    # The first run had no sink: what it answered is not repeated, and the rest follows without a gap.
    text = "".join(path.read_text() for path in sorted((tmp_path / "answers").rglob("*.json*")))
    assert '"time": "1970-01-01T00:00:05Z"' in text or '"1970-01-01T00:00:05Z"' in text


def test_async_programs_send_and_take() -> None:
    async def main() -> list[tuple[int, int]]:
        source = hw.push()
        engine = hw.Engine(in_process=True)
        engine.stream("s", source)
        query = engine.register(COUNT)
        found: list[Answer] = []
        async with engine:

            async def feed() -> None:
                for one in elements(5):
                    await source.send_async(one)
                    await asyncio.sleep(0)
                source.close()

            feeding = asyncio.create_task(feed())
            async for answer in query.answers_async():
                found.append(answer)
                if len(found) == 6:
                    break
            await feeding
        return counts(iter(found))

    assert asyncio.run(main()) == recorded(5)


def test_an_async_iterator_runs_the_engine_ends_with_it_and_raises_its_failure() -> None:
    async def take(query: hw.Query) -> list[Answer]:
        return [answer async for answer in query.answers_async()]

    engine = hw.Engine(in_process=True)
    engine.stream("s", hw.memory(elements(5)))
    assert counts(iter(asyncio.run(take(engine.register(COUNT))))) == recorded(5)
    broken = hw.Engine(in_process=True)
    broken.stream("s", hw.files("/nowhere/*.tnq"))
    with pytest.raises(hw.SourceError, match="nowhere"):
        asyncio.run(take(broken.register(COUNT)))


def test_an_async_iterator_can_be_given_up_while_it_waits() -> None:
    async def main() -> None:
        source = hw.push()
        engine = hw.Engine(in_process=True)
        engine.stream("s", source)
        query = engine.register(COUNT)
        async with engine:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(query.answers_async()), 0.2)

    asyncio.run(main())


def test_failures_of_a_started_run_are_raised_where_it_is_waited_for() -> None:
    engine = hw.Engine(in_process=True)
    engine.stream("s", hw.push())
    engine.register(COUNT)
    engine.register(COUNT.replace("<s>", "<elsewhere>"), name="lost")
    with pytest.raises(hw.RegistrationError, match="no source"):
        engine.start()
    engine.drop("lost")

    def fail(_: Answer) -> None:
        raise ZeroDivisionError("mine")

    source = engine._sources[next(iter(engine._sources.bound))]
    engine.start(on_answer=fail)
    source.send_all(elements(4))  # type: ignore[union-attr]
    with pytest.raises(ZeroDivisionError, match="mine"):
        engine.wait(30)


def test_an_error_in_the_block_goes_before_what_was_not_answered() -> None:
    engine = hw.Engine(in_process=True)
    source = hw.push()
    engine.stream("s", source)
    engine.register(COUNT)
    with pytest.raises(ZeroDivisionError), engine:
        raise ZeroDivisionError
    with engine:
        with pytest.raises(hw.StateError, match="running already"):
            engine.start()
        with pytest.raises(hw.StateError, match="another run reads"):
            other = hw.Engine(in_process=True)
            other.stream("s", source)
            other.register(COUNT)
            other.run()
        with pytest.raises(hw.StateError, match="has not ended"):
            engine.wait(0.01)


def test_blank_nodes_keep_their_labels() -> None:
    source = hw.push()
    engine = hw.Engine(in_process=True)
    engine.stream("s", source)
    query = engine.register(
        "SELECT (COUNT(DISTINCT ?x) AS ?n) FROM STREAM <s> [RANGE 10s STEP 10s] WHERE { ?x <urn:v> ?v }"
    )
    for number in range(3):
        source.send([Triple(BlankNode("b"), NamedNode("urn:v"), Literal(number))], time=number * SECOND)
    source.close()
    assert {count for _, count in counts(query.answers())} <= {0, 1}


def test_a_query_explains_itself() -> None:
    engine = hw.Engine(in_process=True)
    query = engine.register(COUNT, name="busy")
    assert "query busy: SELECT in C-SPARQL" in query.explain()
    assert "kernel (incremental)" in query.explain()
    assert "flowchart" in query.explain(format="mermaid")
    assert query.explain(graph="denotational", format="dot").startswith("digraph")
    assert query.explain(stage="written") != ""
    with pytest.raises(hw.SettingError, match="stage 'later' is not known"):
        query.explain(stage="later")  # type: ignore[arg-type]


def test_iterators_of_a_run_that_goes_on_end_when_all_streams_of_their_query_are_closed() -> None:
    one, other = hw.push(), hw.push()
    engine = hw.Engine(in_process=True)
    engine.stream("s", one)
    engine.stream("t", other)
    counting = engine.register(COUNT, name="counting")
    both = engine.register(
        COUNT.replace(
            "FROM STREAM <s> [RANGE 2s STEP 1s]",
            "FROM STREAM <s> [RANGE 2s STEP 1s] FROM STREAM <t> [RANGE 2s STEP 1s]",
        ),
        name="both",
    )
    engine.start(trigger_seconds=0.05)
    answers, of_both = counting.answers(), both.answers()
    one.send_all(elements(4))
    other.send_all(elements(2))
    one.close()
    assert counts(answers) == recorded(4)
    found: list[Answer] = []
    taker = threading.Thread(target=lambda: found.extend(of_both))
    taker.start()
    taker.join(0.5)
    assert taker.is_alive(), "the other stream is open"
    other.close()
    taker.join(30)
    assert not taker.is_alive()
    over_both = hw.Engine(in_process=True)
    over_both.stream("s", hw.memory(elements(4)))
    over_both.stream("t", hw.memory(elements(2)))
    assert counts(iter(found)) == counts(over_both.register(both.text).answers())
    assert not engine._background.is_over  # type: ignore[union-attr]
    engine.stop()
    engine.wait(30)


def test_async_iterators_end_when_the_stream_is_closed_and_the_engine_goes_on() -> None:
    async def take() -> list[tuple[int, int]]:
        source, engine = hw.push(), hw.Engine(in_process=True)
        engine.stream("s", source)
        engine.register(
            "REGISTER STREAM <made> AS CONSTRUCT { ?x <urn:v> ?v } "
            "FROM STREAM <s> [RANGE 1s STEP 1s] WHERE { ?x <urn:v> ?v }"
        )
        query = engine.register(COUNT.replace("<s>", "<made>"), name="reader")
        async with engine:
            answers = query.answers_async()
            for element in elements(3):
                await source.send_async(element)
            source.close()
            return counts(iter([answer async for answer in answers]))

    found = asyncio.run(asyncio.wait_for(take(), 60))
    assert [time for time, count in found if count] == [0, 1, 2, 3]


def test_times_in_seconds_are_told(caplog: pytest.LogCaptureFixture) -> None:
    source = hw.push()
    source.send([triple(1)], time=1_764_000_000)
    source.send([triple(1)], time=1_764_000_001)
    (message,) = caplog.messages
    assert "would be 2025-11-24T16:00:00Z if its number meant seconds" in message
    engine = hw.Engine(in_process=True)
    engine.stream("s", hw.memory([(1_764_000_000, [triple(1)])]))
    engine.register(COUNT)
    assert any("would be 2025-11-24T16:00:00Z if its number meant seconds" in one for one in engine.run().warnings)
