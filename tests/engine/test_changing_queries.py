"""Queries come and go while a pipeline is at work: nothing that the windows hold is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import headwater as hw
from headwater.execution.answers import Answer
from headwater.execution.registered import RegistrationError

SECOND = 1_000_000


def text(name: str, width: int, function: str = "SUM") -> str:
    return f"""REGISTER QUERY {name} AS
               SELECT ?s ({function}(?v) AS ?n) FROM NAMED WINDOW <w> ON <numbers> [RANGE PT{width}S STEP PT1S]
               WHERE {{ WINDOW <w> {{ ?s <urn:value> ?v }} }} GROUP BY ?s"""


def write(folder: Path, seconds: range) -> None:
    kind = "<http://www.w3.org/2001/XMLSchema#integer>"
    lines = "".join(f'{s * 1000}\t<urn:x{s % 3}> <urn:value> "{s}"^^{kind} .\n' for s in seconds)
    (folder / f"{seconds.start:04}.part").write_text(lines)
    (folder / f"{seconds.start:04}.part").rename(folder / f"{seconds.start:04}.tnq")


class Running:
    """An engine that follows a folder, in a thread of its own."""

    def __init__(self, folder: Path, engine: hw.Engine) -> None:
        self.folder = folder
        self.engine = engine
        self.answers: list[Answer] = []
        self.failures: list[BaseException] = []
        engine.stream("numbers", hw.files(str(folder / "*.tnq")))

    def of(self, name: str) -> dict[int, Answer]:
        return {answer.time // SECOND: answer for answer in tuple(self.answers) if answer.query == name}

    def wait(self, condition: Callable[[], bool], seconds: float = 120.0) -> None:
        end = time.monotonic() + seconds
        while not condition():
            if self.failures:
                raise self.failures[0]
            assert time.monotonic() < end, [(answer.query, answer.time) for answer in self.answers]
            time.sleep(0.02)

    def _run(self) -> None:
        try:
            self.engine.run(follow=True, on_answer=self.answers.append, trigger_seconds=0.05)
        except BaseException as error:
            self.failures.append(error)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield
        finally:
            self.engine.stop()
            thread.join(120)
        if self.failures:
            raise self.failures[0]


def from_the_beginning(folder: Path, query: str) -> dict[int, Answer]:
    engine = hw.Engine(in_process=True)
    engine.stream("numbers", hw.files(str(folder / "*.tnq")))
    engine.register(query)
    answers: list[Answer] = []
    engine.run(on_answer=answers.append, drain=False)
    return {answer.time // SECOND: answer for answer in answers}


@pytest.fixture(params=[True, False], ids=["in process", "on Spark"])
def running(request: pytest.FixtureRequest, tmp_path: Path) -> Running:
    folder = tmp_path / "numbers"
    folder.mkdir()
    engine = (
        hw.Engine(in_process=True)
        if request.param
        else hw.Engine(request.getfixturevalue("spark"), checkpoint=tmp_path / "checkpoint")
    )
    return Running(folder, engine)


def test_a_query_that_comes_later_is_filled_from_the_windows_and_one_that_goes_is_silent(running: Running) -> None:
    engine, folder = running.engine, running.folder
    engine.register(text("first", 6))
    write(folder, range(4))
    with running.at_work():
        running.wait(lambda: 2 in running.of("first"))
        write(folder, range(4, 8))
        running.wait(lambda: 6 in running.of("first"))
        write(folder, range(8, 12))
        running.wait(lambda: 10 in running.of("first"))
        fitting = engine.register(text("fitting", 4, "MAX"))
        longer = engine.register(text("longer", 12, "COUNT"))
        running.wait(lambda: "longer" in engine.progress.queries)
        write(folder, range(12, 16))
        running.wait(lambda: 14 in running.of("first") and 14 in running.of("longer"))
        # Answers are handed on before the progress is.
        running.wait(lambda: longer.progress.complete_from is not None)
        assert longer.progress.complete_from is not None
        assert fitting.progress.is_complete
        engine.drop("first")
        running.wait(lambda: "first" not in engine.progress.queries)
        write(folder, range(16, 30))
        running.wait(lambda: 28 in running.of("fitting") and 28 in running.of("longer"))
    assert max(running.of("first")) < 16
    for name, query in (("first", text("first", 6)), ("fitting", text("fitting", 4, "MAX"))):
        expected = from_the_beginning(folder, query)
        for tick, answer in running.of(name).items():
            assert answer == expected[tick]
            assert answer.complete
    expected = from_the_beginning(folder, text("longer", 12, "COUNT"))
    said = {tick: answer.complete for tick, answer in running.of("longer").items()}
    assert False in said.values()
    assert said[28]
    for tick, answer in running.of("longer").items():
        assert answer == expected[tick] or not answer.complete


def test_what_cannot_join_changes_nothing(tmp_path: Path) -> None:
    running = Running(tmp_path, hw.Engine(in_process=True))
    engine = running.engine
    engine.register(text("first", 3))
    write(running.folder, range(5))
    with running.at_work():
        running.wait(lambda: 3 in running.of("first"))
        with pytest.raises(RegistrationError, match="no source"):
            engine.register(text("lost", 3).replace("<numbers>", "<elsewhere>"))
        with pytest.raises(RegistrationError, match="two queries"):
            engine.register(text("first", 3))
        with pytest.raises(RegistrationError, match="no query is named"):
            engine.drop("nobody")
        write(running.folder, range(5, 9))
        running.wait(lambda: 7 in running.of("first"))
    assert [query.name for query in engine.queries] == ["first"]


def test_an_iterator_over_a_later_query_takes_its_answers_and_ends_when_it_is_dropped(tmp_path: Path) -> None:
    running = Running(tmp_path, hw.Engine(in_process=True))
    running.engine.register(text("first", 3))
    write(tmp_path, range(5))
    with running.at_work():
        running.wait(lambda: 3 in running.of("first"))
        answers = running.engine.register(text("second", 2)).answers()
        write(tmp_path, range(5, 9))
        assert next(answers).time // SECOND >= 4
        running.wait(lambda: 7 in running.of("second"))
        running.engine.drop("second")
        assert [answer.time // SECOND for answer in answers][-1] == 7


def test_queries_that_differ_in_constants_are_evaluated_as_one(tmp_path: Path) -> None:
    queries = [
        f"""REGISTER QUERY x{n} AS SELECT ?v FROM NAMED WINDOW <w> ON <numbers> [RANGE PT4S STEP PT1S]
            WHERE {{ WINDOW <w> {{ <urn:x{n}> <urn:value> ?v }} }}"""
        for n in range(3)
    ]
    running = Running(tmp_path, hw.Engine(in_process=True))
    for query in queries[:2]:
        running.engine.register(query)
    write(tmp_path, range(8))
    with running.at_work():
        running.wait(lambda: 6 in running.of("x0"))
        running.engine.register(queries[2])
        write(tmp_path, range(8, 14))
        running.wait(lambda: 12 in running.of("x2"))
        assert running.engine._workload is not None
        assert len(set(running.engine._workload.description.program().evaluators.values())) == 1
    for n, query in enumerate(queries):
        expected = from_the_beginning(tmp_path, query)
        # Nobody had asked for the triples of the last one before it came, so the windows do not hold them.
        complete = {tick: answer for tick, answer in running.of(f"x{n}").items() if answer.complete}
        assert len(complete) > 1
        assert complete == {tick: expected[tick] for tick in complete}


def test_a_query_that_is_registered_while_a_run_opens_its_sources_is_taken_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = hw.Engine(in_process=True)
    engine.stream("numbers", hw.push())
    refresh = engine._data.refresh_while_running

    def register_meanwhile() -> object:
        engine.register("SELECT ?v FROM STREAM <numbers> [RANGE 1s STEP 1s] WHERE { ?x <urn:value> ?v }", name="late")
        return refresh()

    monkeypatch.setattr(engine._data, "refresh_while_running", register_meanwhile)
    engine.start()
    try:
        deadline = time.monotonic() + 60
        while "late" not in engine.progress.queries:
            assert time.monotonic() < deadline, "the run has not taken it up"
            time.sleep(0.01)
    finally:
        engine.stop()
        engine.wait()
