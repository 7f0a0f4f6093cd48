"""The engine in process: registering, running, stopping, going on."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest
from pyoxigraph import Store

import headwater as hw
from headwater.execution.answers import Answer
from headwater.running.subscriptions import Subscription
from headwater.sinks.answer_text import format_answer_nquads
from headwater.terms.model import Literal, NamedNode, Quad, Triple
from tests.engine.programs import (
    HOT,
    HOT_COUNT,
    SENSORS,
    SLIDING,
    by_query,
    comparable,
    integer,
    sensor_lines,
    with_city,
    with_queries,
    write,
    write_city,
)

TRIPLE = Triple(NamedNode("http://ex/s"), NamedNode("http://ex/value"), Literal(7))
COUNT = """
SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW <w> ON <numbers> [RANGE PT2S STEP PT1S] WHERE { WINDOW <w> { ?s ?p ?o } }
"""


def engine_of_numbers(**options: object) -> hw.Engine:
    engine = hw.Engine(in_process=True, **options)  # type: ignore[arg-type]
    engine.stream("numbers", hw.memory([(second * 1_000_000, [TRIPLE]) for second in range(5)]))
    return engine


def run_city(folder: Path, **options: object) -> tuple[list[Answer], hw.RunSummary]:
    engine = with_queries(with_city(hw.Engine(in_process=True, **options), folder))  # type: ignore[arg-type]
    answers: list[Answer] = []
    return answers, engine.run(on_answer=answers.append)


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_city(tmp_path_factory.mktemp("city"))


def test_answers_and_counts_do_not_depend_on_the_cut(city: Path) -> None:
    answers, summary = run_city(city)
    assert {answer.query for answer in answers} == {
        "hot-count", "sliding", "tumbling", "joined", "hot", "query", "any",
    }  # fmt: skip
    assert (summary.bad, summary.late) == (12, 7)
    assert summary.elements == 108 + 24
    assert summary.ticks == len(answers)
    for size in (13, 97, 1000):
        cut, counts = run_city(city, batch_bytes=size)
        assert by_query(cut) == by_query(answers)
        assert (counts.elements, counts.late, counts.bad) == (summary.elements, summary.late, summary.bad)


def test_an_allowed_delay_takes_late_elements_in(city: Path) -> None:
    _, summary = run_city(city, delay="8s")
    assert summary.late == 0


def test_broken_lines_are_counted_exactly_and_the_rest_answers(tmp_path: Path) -> None:
    good = sensor_lines(200, late_every=0, bad_every=0)
    broken = [line for i, text in enumerate(good) for line in ([text, "oops"] if i % 9 == 8 else [text])]
    write(tmp_path / "good" / "a.tnq", good)
    write(tmp_path / "broken" / "a.tnq", broken)
    results = []
    for name in ("good", "broken"):
        engine = hw.Engine(in_process=True, dead_letters=tmp_path / "letters")
        engine.stream(SENSORS, tmp_path / name)
        engine.register(SLIDING)
        answers: list[Answer] = []
        results.append((engine.run(on_answer=answers.append), comparable(answers)))
    assert results[0][1] == results[1][1]
    assert results[1][0].bad == broken.count("oops") > 20
    (file,) = (tmp_path / "letters").iterdir()
    letters = [json.loads(line) for line in file.read_text().splitlines()]
    lines = [number for number, line in enumerate(broken, 1) if line == "oops"]
    assert [(letter["text"], letter["line"], letter["kind"]) for letter in letters] == [
        ("oops", line, "bad") for line in lines
    ]
    assert {letter["source"] for letter in letters} == {str(tmp_path / "broken" / "a.tnq")}


def test_late_elements_are_kept_with_their_place(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.tnq",
        [f"{ms}\t<http://ex/s> <http://ex/value> {integer(ms)} ." for ms in (5000, 9000, 4000, 9500)],
    )
    engine = hw.Engine(in_process=True, dead_letters=tmp_path / "letters", batch_bytes=30)
    engine.stream(SENSORS, path)
    engine.register(SLIDING)
    assert engine.run().late == 1
    (file,) = (tmp_path / "letters").iterdir()
    letter = json.loads(file.read_text())
    assert (letter["kind"], letter["reason"], letter["time"]) == ("late", "late", "1970-01-01T00:00:04Z")
    assert (letter["source"], letter["line"], letter["stream"]) == (str(path), 3, SENSORS)
    assert letter["text"] == f"<http://ex/s> <http://ex/value> {integer(4000)} ."


@pytest.mark.parametrize(
    ("third", "words"),
    [
        ("oops", r"a\.tnq, line 3: no tab"),
        (f"4000\t<http://ex/s> <http://ex/value> {integer(1)} .", r"a\.tnq, line 3: .*late"),
    ],
)
def test_strict_stops_at_the_first_bad_or_late_element(tmp_path: Path, third: str, words: str) -> None:
    lines = [f"{ms}\t<http://ex/s> <http://ex/value> {integer(ms)} ." for ms in (5000, 9000)]
    engine = hw.Engine(in_process=True, strict=True)
    engine.stream(SENSORS, write(tmp_path / "a.tnq", [*lines, third, *lines]))
    engine.register(SLIDING)
    with pytest.raises(hw.StrictError, match=words):
        engine.run()


def test_undrained_windows_stay_open_for_the_next_run(tmp_path: Path) -> None:
    lines = sensor_lines(60, late_every=0)
    whole = hw.Engine(in_process=True)
    whole.stream(SENSORS, write(tmp_path / "all" / "a.tnq", lines))
    whole.register(SLIDING)
    expected: list[Answer] = []
    whole.run(on_answer=expected.append)

    answers: list[Answer] = []
    for part, drain in ((lines[:25], False), (lines[25:50], False), (lines[50:], True)):
        write(tmp_path / "parts" / f"{len(answers)}.tnq", part)
        engine = hw.Engine(in_process=True, checkpoint=tmp_path / "checkpoint", batch_bytes=700)
        engine.stream(SENSORS, tmp_path / "parts")
        engine.register(SLIDING)
        engine.run(drain=drain, on_answer=answers.append)
    assert comparable(answers) == comparable(expected)


def test_a_batch_that_failed_is_repeated_by_the_next_run(city: Path, tmp_path: Path) -> None:
    expected, _ = run_city(city)
    answers: list[Answer] = []
    failed: list[Answer] = []

    def fail_halfway(answer: Answer) -> None:
        failed.append(answer)
        if len(failed) == 30:
            raise OSError("the disk is full")

    options = {"checkpoint": tmp_path, "batch_bytes": 900}
    engine = with_queries(with_city(hw.Engine(in_process=True, **options), city))  # type: ignore[arg-type]
    with pytest.raises(OSError, match="disk is full"):
        engine.run(on_answer=fail_halfway)
    engine = with_queries(with_city(hw.Engine(in_process=True, **options), city))  # type: ignore[arg-type]
    engine.run(on_answer=answers.append)
    repeated = [answer for answer in failed if comparable([answer])[0] in comparable(answers)]
    assert len(failed) + len(answers) - len(repeated) == len(expected)
    assert repeated == failed[-len(repeated) :]
    union = [*failed[: len(failed) - len(repeated)], *answers]
    assert by_query(union) == by_query(expected)


def test_following_a_growing_folder_until_stopped(tmp_path: Path) -> None:
    lines = [f"{ms}\t<http://ex/s> <http://ex/value> {integer(ms)} ." for ms in range(0, 60_000, 1000)]
    write(tmp_path / "a.tnq", lines[:20])
    engine = hw.Engine(in_process=True)
    engine.stream(SENSORS, tmp_path)
    engine.register(SLIDING)
    answers: list[Answer] = []
    summaries: list[hw.RunSummary] = []
    thread = threading.Thread(
        target=lambda: summaries.append(engine.run(follow=True, on_answer=answers.append, trigger_seconds=0.01))
    )
    thread.start()
    try:
        wait_for(lambda: engine.progress.elements == 20)
        write(tmp_path / "a.tnq", lines[20:40], append=True)
        write(tmp_path / "b.tnq", lines[40:])
        wait_for(lambda: engine.progress.elements == 60)
    finally:
        engine.stop()
        thread.join(10)
    assert summaries[0].stopped
    whole: list[Answer] = []
    engine.run(on_answer=whole.append)
    # The windows that were open when it was stopped are those that only the end of the stream closes.
    assert 0 < len(answers) < len(whole)
    assert comparable(answers) == comparable(whole)[: len(answers)]


def wait_for(condition: object, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)


def test_iterating_over_answers_runs_the_engine() -> None:
    engine = engine_of_numbers()
    query = engine.register(COUNT)
    counts = [[str(term) for term in answer.rows[0]] for answer in query.answers()]
    assert len(counts) == 6
    assert query.name == "query"


def test_two_queries_can_be_iterated_in_one_run() -> None:
    engine = engine_of_numbers()
    first, second = engine.register(COUNT), engine.register(COUNT)
    assert (first.name, second.name) == ("query", "query-2")
    pairs = list(zip(first.answers(), second.answers(), strict=True))
    assert len(pairs) == 6
    assert all(a.rows == b.rows and a.query != b.query for a, b in pairs)


def test_an_iterator_that_begins_while_a_run_ends_begins_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_of_numbers()
    query = engine.register(COUNT)
    found: list[int] = []
    second = threading.Thread(target=lambda: found.append(len(list(query.answers()))), daemon=True)
    end = Subscription.end

    def end_slowly(self: Subscription[Answer], failure: BaseException | None) -> None:
        end(self, failure)
        if second.ident is None:
            second.start()
            second.join(1)

    monkeypatch.setattr(Subscription, "end", end_slowly)
    first = len(list(query.answers()))
    while second.ident is None:
        time.sleep(0.01)
    second.join(30)
    assert found == [first]


def test_a_query_that_was_dropped_is_not_explained() -> None:
    engine = engine_of_numbers()
    query = engine.register(COUNT)
    engine.drop(query)
    for ask in (query.explain, lambda: query.why(0)):
        with pytest.raises(hw.HeadwaterError, match="no query is named 'query'; registered: none"):
            ask()


def test_an_iterator_that_is_dropped_does_not_hold_up_the_run() -> None:
    engine = hw.Engine(in_process=True, batch_bytes=2000)
    engine.stream("numbers", hw.memory([(second * 1_000_000, [TRIPLE]) for second in range(30_000)]))
    query = engine.register(COUNT)
    for _ in query.answers():
        break
    wait_for(lambda: not engine._running.locked())
    assert len(list(zip(range(3), query.answers(), strict=False))) == 3


def test_a_failure_reaches_whoever_takes_the_answers(tmp_path: Path) -> None:
    engine = hw.Engine(in_process=True)
    engine.stream("numbers", tmp_path / "absent.tnq")
    query = engine.register(COUNT)
    with pytest.raises(hw.SourceError, match="no file or folder"):
        next(query.answers())


def test_a_wrong_query_registers_nothing() -> None:
    engine = engine_of_numbers()
    with pytest.raises(hw.QueryError):
        engine.register("SELECT ?x FROM STREAM <numbers> [RANGE 10s STEP 5s] WHERE { ?x ?y }")
    assert engine.queries == ()
    with pytest.raises(hw.RegistrationError, match="no query"):
        engine.run()


def test_switches_are_given_as_words() -> None:
    engine = engine_of_numbers()
    query = engine.register(
        COUNT, bounds="[)", report="nonempty", emit="istream", content="bag", t0="1970-01-01T00:00:00Z"
    )
    settings = query.settings
    assert [settings.bounds.value, settings.report.value, settings.emit.value, settings.content.value] == [
        "[)", "nonempty", "istream", "bag",
    ]  # fmt: skip
    assert settings.t0 == 0
    with pytest.raises(ValueError, match="close, change, nonempty, periodic, eager"):
        engine.register(COUNT, report="sometimes")
    assert len(engine.queries) == 1


def test_equal_names_are_refused_at_registration() -> None:
    engine = engine_of_numbers()
    engine.register(COUNT, name="counts")
    with pytest.raises(hw.RegistrationError, match="counts"):
        engine.register(COUNT, name="counts")
    assert len(engine.queries) == 1


def test_a_stream_without_a_source_is_named_together_with_the_known_ones() -> None:
    engine = engine_of_numbers()
    engine.register(COUNT.replace("<numbers>", "<cars>"))
    engine.register(HOT)
    with pytest.raises(hw.RegistrationError, match=r"reads the stream cars.*hot, numbers.*--stream cars=") as raised:
        engine.run()
    assert "query" in str(raised.value)


def test_a_stream_has_one_source() -> None:
    engine = engine_of_numbers()
    with pytest.raises(hw.RegistrationError, match="has a source already"):
        engine.stream("numbers", hw.memory([]))
    engine.stream("hot", hw.memory([]))
    engine.register(HOT)
    with pytest.raises(hw.RegistrationError, match="has a source, and"):
        engine.run()


def test_a_registered_stream_feeds_its_reader_whatever_the_order(city: Path) -> None:
    results = []
    for texts in ((HOT, HOT_COUNT), (HOT_COUNT, HOT)):
        engine = with_queries(with_city(hw.Engine(in_process=True), city), texts)
        answers: list[Answer] = []
        engine.run(on_answer=answers.append)
        results.append(by_query(answers))
    assert results[0] == results[1]
    assert len(results[0]["hot-count"]) > 5


def test_static_data_comes_from_files_stores_and_quads(tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_text("<http://ex/s> <http://ex/p> [] .")
    store = Store()
    store.add(Quad(TRIPLE.subject, TRIPLE.predicate, TRIPLE.object))
    engine = engine_of_numbers()
    assert engine.dataset(tmp_path / "*.ttl").statements == 1
    assert engine.dataset(store, graph="named").statements == 2
    assert engine.dataset([TRIPLE]).statements == 3
    query = engine.register("SELECT ?g ?o WHERE { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }")
    (answer,) = query.answers()
    assert len(answer.rows) == 3
    with pytest.raises(hw.SourceError, match="no file matches"):
        engine.dataset(tmp_path / "*.nt")
    with pytest.raises(hw.SourceError, match="no file"):
        engine.dataset(tmp_path / "absent.nt")
    (tmp_path / "broken.ttl").write_text("<http://ex/s> <http://ex/p> ")
    with pytest.raises(hw.RdfSyntaxError, match=r"broken\.ttl"):
        engine.dataset(tmp_path / "broken.ttl")


def test_static_literals_stay_as_they_were_written(tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_text('<http://ex/s> <http://ex/p> "01"^^<http://www.w3.org/2001/XMLSchema#integer> .')
    engine = engine_of_numbers()
    engine.dataset(tmp_path / "a.ttl")
    (answer,) = engine.register("SELECT ?o WHERE { ?s ?p ?o FILTER(?o = 1) }").answers()
    assert [str(term) for term in answer.rows[0]] == ['"01"^^<http://www.w3.org/2001/XMLSchema#integer>']


def test_answers_written_as_n_quads_are_a_stream_again(city: Path, tmp_path: Path) -> None:
    """HOT is run once inside one engine, and once through a file between two."""
    engine = with_queries(with_city(hw.Engine(in_process=True), city), (HOT, HOT_COUNT))
    answers: list[Answer] = []
    engine.run(on_answer=answers.append)
    path = tmp_path / "hot.nq"
    # An empty answer is an empty graph, which is an element of a file; queries produce no empty elements.
    hot = [answer for answer in answers if answer.query == "hot" and not answer.is_empty]
    path.write_text("".join(map(format_answer_nquads, hot)))
    reader = hw.Engine(in_process=True)
    reader.stream("hot", path)
    reader.register(HOT_COUNT)
    again: list[Answer] = []
    assert reader.run(on_answer=again.append).bad == 0
    assert comparable(again) == [key for key in comparable(answers) if key[0] == "hot-count"]  # type: ignore[index]


def test_an_engine_runs_once_at_a_time() -> None:
    engine = engine_of_numbers()
    engine.register(COUNT)
    with pytest.raises(RuntimeError, match="running already"):
        engine.run(on_answer=lambda _: engine.run())
    assert engine.run().ticks == 6


def test_streams_nobody_reads_are_not_opened(tmp_path: Path) -> None:
    engine = engine_of_numbers()
    engine.stream("unused", tmp_path / "absent.tnq")
    engine.register(COUNT)
    assert engine.run().elements == 5


@pytest.mark.parametrize("options", [{"delay": -1}, {"batch_bytes": 0}, {"delay": "soon"}])
def test_options_that_make_no_sense_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        hw.Engine(in_process=True, **options)  # type: ignore[arg-type]


def test_a_dataframe_needs_spark() -> None:
    engine = engine_of_numbers()
    with pytest.raises(RuntimeError, match="needs Spark"):
        engine.register(COUNT).to_dataframe()
