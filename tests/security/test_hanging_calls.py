"""Whatever hangs, a run can be stopped and a query dropped within five seconds; nothing is lost or doubled by it."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import Literal, NamedNode, Quad, Store
from pyspark.sql import SparkSession

import headwater as hw
from tests.federation.servers import Exchange, Served, serving, sparql
from tests.security.test_query_limits import DEAD, GOOD, LONG, PRODUCT, rows_of, write_stream

MOST_SECONDS = 5.0
REMOTE = """REGISTER QUERY remote AS SELECT ?s ?x FROM STREAM <s> [RANGE 1s TUMBLING]
    WHERE {{ ?s <urn:p> ?o SERVICE <{url}> {{ ?s <urn:q> ?x }} }}"""
NATIVE = """REGISTER QUERY native AS SELECT (COUNT(*) AS ?n) FROM STREAM <s> [RANGE 100s TUMBLING]
    WHERE { ?a <urn:p> ?x . ?b <urn:p> ?y . ?c <urn:p> ?z . ?d <urn:p> ?w }"""
COUNT = 130


@pytest.fixture
def hanging() -> Iterator[Served]:
    """An endpoint that answers nobody as long as `over` is not set, and well afterwards."""
    store = Store()
    store.extend(Quad(NamedNode(f"urn:s{n}"), NamedNode("urn:q"), Literal(n)) for n in range(COUNT))
    well = sparql(store)

    def behave(exchange: Exchange) -> None:
        served.over.wait(200)
        well(exchange)

    with serving(behave) as served:
        yield served


class Run:
    """A run in a thread of its own."""

    def __init__(self, engine: hw.Engine, **options: Any) -> None:
        self.answers: list[hw.Answer] = []
        self.failure: BaseException | None = None
        self._engine = engine
        self._options = {"on_answer": self.answers.append, **options}
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._engine.run(**self._options)
        except BaseException as error:
            self.failure = error

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def seconds_until(self, call: Callable[[], object]) -> float:
        """How long a call and the end of the run take."""
        begin = time.monotonic()
        call()
        self._thread.join(180)
        assert not self._thread.is_alive()
        return time.monotonic() - begin


def wait_until(condition: Callable[[], object], seconds: float = 180.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def engine_over(folder: Path, *texts: str, **settings: Any) -> hw.Engine:
    engine = hw.Engine(**settings)
    engine.stream("s", write_stream(folder, COUNT))
    for text in texts:
        engine.register(text)
    return engine


def has_native_call() -> bool:
    return any(one.name == "headwater-native-call" for one in threading.enumerate())


def test_stop_while_an_endpoint_hangs(tmp_path: Path, hanging: Served) -> None:
    engine = engine_over(tmp_path, GOOD, REMOTE.format(url=hanging.url), in_process=True)
    engine.endpoint(hanging.url, timeout=300)
    run = Run(engine)
    wait_until(lambda: hanging.heard)
    assert run.seconds_until(engine.stop) < MOST_SECONDS
    assert run.failure is None


def test_stop_while_a_sink_hangs(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(180)
        sink = hw.WebhookSink(f"http://127.0.0.1:{silent.getsockname()[1]}/")
        run = Run(engine := engine_over(tmp_path, GOOD, in_process=True), sinks=[sink])
        with silent.accept()[0]:
            assert run.seconds_until(engine.stop) < MOST_SECONDS
    assert run.failure is None and not run.answers


def test_drop_while_an_endpoint_hangs(tmp_path: Path, hanging: Served) -> None:
    engine = engine_over(tmp_path, GOOD, REMOTE.format(url=hanging.url), in_process=True)
    engine.endpoint(hanging.url, timeout=300)
    run = Run(engine)
    wait_until(lambda: hanging.heard)
    # The others have all their answers, and the run ends by itself.
    assert run.seconds_until(lambda: engine.drop("remote")) < MOST_SECONDS
    assert run.failure is None and sum(rows_of(run.answers, "good")) == COUNT
    assert not [one for one in run.answers if one.query == "remote"]


def test_drop_while_a_native_call_runs(tmp_path: Path) -> None:
    engine = engine_over(tmp_path, GOOD, NATIVE, in_process=True, evaluator="reference")
    run = Run(engine)
    wait_until(has_native_call)
    time.sleep(0.5)
    assert run.is_alive
    assert run.seconds_until(lambda: engine.drop("native")) < MOST_SECONDS
    assert run.failure is None and sum(rows_of(run.answers, "good")) == COUNT


@pytest.mark.parametrize("evaluator", ["auto", "reference"])
def test_a_tick_that_takes_too_long(tmp_path: Path, evaluator: str) -> None:
    engine = engine_over(tmp_path, GOOD, in_process=True, evaluator=evaluator)
    engine.register(NATIVE.replace(". ?d <urn:p> ?w", ""), limits={"seconds": 0.002})
    answers: list[hw.Answer] = []
    begin = time.monotonic()
    summary = engine.run(on_answer=answers.append)
    assert "takes longer than it may, and its limit is 0.002" in summary.suspended["native"]
    assert sum(rows_of(answers, "good")) == COUNT and time.monotonic() - begin < 30


def test_a_query_that_holds_too_much(tmp_path: Path) -> None:
    engine = engine_over(tmp_path, GOOD, in_process=True)
    engine.register(GOOD.replace("good", "large").replace("1s TUMBLING", "100s STEP 1s"), limits={"state_bytes": 5000})
    answers: list[hw.Answer] = []
    summary = engine.run(on_answer=answers.append)
    assert "state_bytes" in summary.suspended["large"] and "its limit is 5,000" in summary.suspended["large"]
    assert sum(rows_of(answers, "good")) == COUNT


def test_one_element_with_many_partners_follows_the_limits_of_the_query(tmp_path: Path) -> None:
    """Its results are more than compiled code makes in one call, and they come in the middle of one change."""
    lines = [f'{n}\t<urn:a> <urn:{"pq"[n % 2]}> "{n}" .' for n in range(2100)] + ['5000\t<urn:a> <urn:r> "1" .']
    (tmp_path / "s.tnq").write_text("\n".join([*lines, '30000\t<urn:a> <urn:none> "1" .']) + "\n")
    text = """REGISTER QUERY {name} AS SELECT (COUNT(*) AS ?n) FROM STREAM <s> [RANGE 10s STEP 1s]
        WHERE {{ ?a <urn:p> ?x . ?b <urn:q> ?y . ?c <urn:r> ?z }}"""
    engine = hw.Engine(in_process=True)
    engine.stream("s", tmp_path / "s.tnq")
    engine.register(text.format(name="wide"), limits={"bytes": 1 << 22})
    engine.register(text.format(name="enough"), limits={"bytes": 1 << 28})
    answers: list[hw.Answer] = []
    summary = engine.run(on_answer=answers.append)
    assert list(summary.suspended) == ["wide"] and "rows" in summary.suspended["wide"]
    counts = [int(str(one.to_pandas()["n"][0])) for one in answers if one.query == "enough"]
    assert max(counts) == 1050 * 1050 and counts[-1] == 0


class SlowSink(hw.FileSink):
    """Writes files, and takes its time with the first batch."""

    def __init__(self, folder: Path, seconds: float) -> None:
        super().__init__(folder)
        self._seconds = seconds
        self.has_begun = threading.Event()

    def rewrite(self, run: str, batch: int, answers: hw.AnswerBatch) -> None:
        # The first batch of a run may be a repetition.
        self.has_begun.set()
        seconds, self._seconds = self._seconds, 0.0
        time.sleep(seconds)
        super().rewrite(run, batch, answers)


def answers_in(folder: Path) -> list[tuple[str, int, list[str]]]:
    """The answers in the files of a sink: query, time, rows."""
    found = []
    for path in folder.rglob("*.jsonl"):
        for one in map(json.loads, path.read_text().splitlines()):
            rows = sorted(json.dumps(row, sort_keys=True) for row in one["results"]["bindings"])
            found.append((path.parent.name, one["time_us"], rows))
    return sorted(found)


def test_bad_queries_on_spark_hurt_nobody(tmp_path: Path, spark: SparkSession) -> None:
    bad = {"dead": DEAD, "long": LONG, "product": PRODUCT}
    texts = [text.replace("QUERY bad", f"QUERY {name}") for name, text in bad.items()]
    engine = engine_over(tmp_path, GOOD, *texts, spark=spark, limits={"bytes": 1 << 17, "rows": 5000})
    answers: list[hw.Answer] = []
    summary = engine.run(on_answer=answers.append)
    assert sum(rows_of(answers, "good")) == COUNT
    assert set(summary.suspended) == set(bad)
    assert "127.0.0.1:1" in summary.suspended["dead"] and "literal" in summary.suspended["long"]
    assert sorted(one.query for one in answers if one.suspended is not None) == sorted(bad)


def test_a_run_on_spark_that_is_stopped_while_an_endpoint_hangs_loses_nothing(
    tmp_path: Path, spark: SparkSession, hanging: Served
) -> None:
    def make(folder: Path, **settings: Any) -> hw.Engine:
        engine = engine_over(folder, GOOD, REMOTE.format(url=hanging.url), **settings)
        engine.endpoint(hanging.url, timeout=300)
        return engine

    on_spark = {"spark": spark, "checkpoint": tmp_path / "checkpoint", "batch_bytes": 1500, "shards": 1}
    engine = make(tmp_path, **on_spark)
    run = Run(engine, sinks=[hw.FileSink(tmp_path / "out")])
    wait_until(lambda: hanging.heard)
    assert run.seconds_until(engine.stop) < MOST_SECONDS
    assert run.failure is None
    hanging.over.set()
    make(tmp_path, **on_spark).run(sinks=[hw.FileSink(tmp_path / "out")])
    make(tmp_path, in_process=True, batch_bytes=1500).run(sinks=[hw.FileSink(tmp_path / "expected")])
    assert answers_in(tmp_path / "out") == answers_in(tmp_path / "expected")


def test_drop_on_spark_while_an_endpoint_hangs(tmp_path: Path, spark: SparkSession, hanging: Served) -> None:
    engine = engine_over(tmp_path, GOOD, REMOTE.format(url=hanging.url), spark=spark, shards=1)
    engine.endpoint(hanging.url, timeout=300)
    run = Run(engine)
    wait_until(lambda: hanging.heard)
    begin = time.monotonic()
    engine.drop("remote")
    assert time.monotonic() - begin < MOST_SECONDS
    wait_until(lambda: rows_of(run.answers, "good"))
    run.seconds_until(lambda: None)
    assert run.failure is None and sum(rows_of(run.answers, "good")) == COUNT


@pytest.mark.parametrize("seconds", [0.5, 4.0])
def test_a_run_on_spark_that_is_stopped_while_a_sink_writes_doubles_nothing(
    tmp_path: Path, spark: SparkSession, seconds: float
) -> None:
    """The last batch is waited for, for two seconds; one that takes longer is repeated under its number."""

    def run(sink: SlowSink) -> tuple[Run, hw.Engine]:
        on_spark = {"spark": spark, "checkpoint": tmp_path / "checkpoint", "batch_bytes": 1500}
        engine = engine_over(tmp_path, GOOD, **on_spark)
        return Run(engine, sinks=[sink]), engine

    slow = SlowSink(tmp_path / "out", seconds)
    stopped, engine = run(slow)
    wait_until(lambda: slow.has_begun.is_set() or not stopped.is_alive)
    assert slow.has_begun.is_set(), stopped.failure
    assert stopped.seconds_until(engine.stop) < MOST_SECONDS + seconds
    assert stopped.failure is None
    rest, _ = run(SlowSink(tmp_path / "out", 0.0))
    rest.seconds_until(lambda: None)
    assert rest.failure is None
    engine_over(tmp_path, GOOD, in_process=True).run(sinks=[hw.FileSink(tmp_path / "expected")])
    assert answers_in(tmp_path / "out") == answers_in(tmp_path / "expected")
