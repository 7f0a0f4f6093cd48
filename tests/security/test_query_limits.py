"""One query cannot hurt another: limits, suspension, resumption, slow consumers, and runs that can be stopped."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import headwater as hw
from headwater.execution.suspension import QuerySuspended
from headwater.kernel.compiling.compiler import Compiler
from headwater.running.subscriptions import SlowConsumerError
from headwater.values.query_guard import QueryDropped
from headwater.values.query_limits import LimitError

GOOD = "REGISTER QUERY good AS SELECT ?s ?o FROM STREAM <s> [RANGE 1s TUMBLING] WHERE { ?s <urn:p> ?o }"
DEAD = """REGISTER QUERY bad AS SELECT ?s ?x FROM STREAM <s> [RANGE 1s TUMBLING]
    WHERE { ?s <urn:p> ?o SERVICE <http://127.0.0.1:1/sparql> { ?s <urn:q> ?x } }"""
PRODUCT = """REGISTER QUERY bad AS SELECT * FROM STREAM <s> [RANGE 1s TUMBLING]
    WHERE { ?a <urn:p> ?x . ?b <urn:p> ?y . ?c <urn:p> ?z . ?d <urn:p> ?w }"""
DOUBLING = "BIND(CONCAT(?o, ?o) AS ?a0) " + " ".join(f"BIND(CONCAT(?a{n}, ?a{n}) AS ?a{n + 1})" for n in range(40))
LONG = f"REGISTER QUERY bad AS SELECT ?a40 FROM STREAM <s> [RANGE 1s TUMBLING] WHERE {{ ?s <urn:p> ?o {DOUBLING} }}"
REPLACING = '"aaaaaaaaaa"'
for _ in range(12):
    REPLACING = f'REPLACE({REPLACING}, "a", "aaaaaaaaaa")'
FOLDED = f"""REGISTER QUERY bad AS SELECT ?s FROM STREAM <s> [RANGE 1s TUMBLING]
    WHERE {{ ?s <urn:p> ?o FILTER(STRLEN({REPLACING}) > 3) }}"""


def write_stream(folder: Path, count: int, step: int = 100) -> Path:
    path = folder / "s.tnq"
    path.write_text("".join(f'{step * n}\t<urn:s{n}> <urn:p> "{n}" .\n' for n in range(count)))
    return path


def engine_over(folder: Path, *texts: str, count: int = 60, step: int = 100, **options: object) -> hw.Engine:
    engine = hw.Engine(in_process=True, **options)  # type: ignore[arg-type]
    engine.stream("s", write_stream(folder, count, step))
    for text in texts:
        engine.register(text)
    return engine


def rows_of(answers: list[hw.Answer], query: str) -> list[int]:
    return [len(one.rows) for one in answers if one.query == query and one.suspended is None]


@pytest.mark.parametrize("evaluator", ["auto", "reference"])
@pytest.mark.parametrize(
    ("bad", "words"),
    [(DEAD, "127.0.0.1:1"), (LONG, "literal"), (FOLDED, "literal"), (PRODUCT, "rows|bytes")],
    ids=["dead endpoint", "doubling", "folded", "product"],
)
def test_a_query_that_fails_is_suspended_and_the_others_go_on(
    tmp_path: Path, bad: str, words: str, evaluator: str
) -> None:
    answers: list[hw.Answer] = []
    limits = {"bytes": 1 << 22, "rows": 100_000}
    engine = engine_over(tmp_path, GOOD, bad, limits=limits, evaluator=evaluator, count=240, step=25)
    summary = engine.run(on_answer=answers.append)
    assert sum(rows_of(answers, "good")) == 240
    (notice,) = [one for one in answers if one.suspended is not None]
    assert notice.query == "bad" and not notice.rows
    assert list(summary.suspended) == ["bad"] and summary.suspended["bad"] == notice.suspended
    assert any(word in summary.suspended["bad"] for word in words.split("|"))
    assert json.loads(summary.to_json())["queries"]["bad"]["suspended"] == notice.suspended


def test_a_run_whose_only_query_is_suspended_ends_with_its_error(tmp_path: Path) -> None:
    with pytest.raises(LimitError, match="literal"):
        engine_over(tmp_path, LONG).run()


FINE = "REGISTER QUERY bad AS SELECT ?s FROM STREAM <s> [RANGE 1ms TUMBLING] WHERE { ?s <urn:p> ?o }"


def test_a_gap_in_time_does_not_fill_the_memory(tmp_path: Path) -> None:
    """A window that slides by a millisecond, and an element that comes long after the others."""
    path, answers = write_stream(tmp_path, 12), list[hw.Answer]()
    path.write_text(path.read_text() + "200000\t<urn:s> <urn:p> 'far' .\n".replace("'", '"'))
    engine = hw.Engine(in_process=True, limits={"ticks": 100_000})
    engine.stream("s", path)
    engine.register(GOOD)
    engine.register(FINE)
    assert "limit `ticks`" in engine.run(on_answer=answers.append).suspended["bad"]
    assert sum(rows_of(answers, "good")) == 13


@pytest.mark.parametrize("error", [RecursionError, OverflowError, QueryDropped], ids=lambda one: one.__name__)
def test_a_query_whose_evaluator_cannot_be_made_is_suspended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    compile_all = Compiler.compile

    def compile_some(compiler: Compiler) -> object:
        if compiler._plan.name == "bad":
            raise error("it went wrong")
        return compile_all(compiler)

    monkeypatch.setattr(Compiler, "compile", compile_some)
    answers: list[hw.Answer] = []
    engine = engine_over(tmp_path, GOOD, FINE)
    summary = engine.run(on_answer=answers.append)
    assert sum(rows_of(answers, "good")) == 60 and list(summary.suspended) == ["bad"]
    assert "RecursionError" not in summary.suspended["bad"]


def test_limits_hold_per_query(tmp_path: Path) -> None:
    engine = engine_over(tmp_path, GOOD)
    engine.register(GOOD.replace("good", "narrow"), limits={"rows": 3})
    assert "rows" in engine.run().suspended["narrow"]
    with pytest.raises(hw.SettingError, match="no limit speed"):
        hw.Engine(limits={"speed": 1})


def test_an_iterator_is_told(tmp_path: Path) -> None:
    engine = engine_over(tmp_path, GOOD)
    narrow = engine.register(GOOD.replace("good", "narrow"), limits={"rows": 3})
    with pytest.raises(QuerySuspended, match="rows"):
        list(narrow.answers())


def test_a_bad_member_of_a_family_does_not_hurt_the_others(tmp_path: Path) -> None:
    text = """REGISTER QUERY {name} AS SELECT ?s ?o FROM STREAM <s> [RANGE 1s TUMBLING]
        WHERE {{ ?s <urn:p> ?o FILTER(STRLEN(?o) = {length}) }}"""
    texts = [text.format(name=name, length=length) for name, length in (("a", 1), ("b", 2), ("c", 3))]
    alone: list[hw.Answer] = []
    together: list[hw.Answer] = []
    for one in texts:
        engine_over(tmp_path, one, count=104).run(on_answer=alone.append)
    engine = engine_over(tmp_path, *texts, count=104, limits={"rows": 9})
    assert list(engine.run(on_answer=together.append).suspended) == ["b"]
    for name in ("a", "c"):
        assert [one for one in together if one.query == name] == [one for one in alone if one.query == name]


def test_suspension_survives_a_restart_and_the_query_can_be_resumed(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"

    def engine_with(rows: int, count: int) -> hw.Engine:
        engine = hw.Engine(in_process=True, checkpoint=checkpoint)
        engine.stream("s", write_stream(tmp_path, count))
        engine.register(GOOD)
        engine.register(GOOD.replace("good", "narrow"), limits={"rows": rows})
        return engine

    assert "narrow" in engine_with(3, 60).run(drain=False).suspended
    answers: list[hw.Answer] = []
    assert "narrow" in engine_with(100, 90).run(on_answer=answers.append, drain=False).suspended
    assert not rows_of(answers, "narrow") and rows_of(answers, "good")
    engine = engine_with(100, 120)
    engine.queries[1].resume()
    answers.clear()
    assert not engine.run(on_answer=answers.append).suspended
    assert rows_of(answers, "narrow")[-2:] == rows_of(answers, "good")[-2:]


def test_readers_of_a_suspended_stream_go_on_and_are_incomplete(tmp_path: Path) -> None:
    producer = """REGISTER STREAM made AS CONSTRUCT { ?s <urn:r> ?o } FROM STREAM <s> [RANGE 1s TUMBLING]
        WHERE { ?s <urn:p> ?o }"""
    reader = """REGISTER QUERY reader AS SELECT ?s
        FROM STREAM <s> [RANGE 1s TUMBLING] FROM STREAM <made> [RANGE 1s TUMBLING]
        WHERE { ?s <urn:p> ?o OPTIONAL { ?s <urn:r> ?x } }"""
    engine = engine_over(tmp_path, GOOD)
    engine.register(producer, limits={"rows": 3})
    engine.register(reader)
    answers: list[hw.Answer] = []
    assert list(engine.run(on_answer=answers.append).suspended) == ["made"]
    assert sum(rows_of(answers, "reader")) >= 50
    assert any(not one.complete for one in answers if one.query == "reader")


@pytest.mark.parametrize(("policy", "taken"), [("end", 5), ("drop", 5)])
def test_a_slow_consumer_does_not_stop_the_run(tmp_path: Path, policy: str, taken: int) -> None:
    engine = engine_over(tmp_path, GOOD, count=300)
    slow = engine.queries[0].answers(buffer=5, when_full=policy)  # type: ignore[arg-type]
    assert engine.run().ticks >= 30
    found = [next(slow) for _ in range(taken)]
    assert len(found) == 5
    if policy == "end":
        with pytest.raises(SlowConsumerError, match="too slow"):
            next(slow)
    else:
        assert slow.dropped >= 25 and found[-1].time > 25_000_000 // 1000
        assert not list(slow)


def test_a_run_stops_while_a_native_call_hangs(tmp_path: Path) -> None:
    text = """REGISTER QUERY slow AS SELECT (COUNT(*) AS ?n) FROM STREAM <s> [RANGE 100s TUMBLING]
        WHERE { ?a <urn:p> ?x . ?b <urn:p> ?y . ?c <urn:p> ?z . ?d <urn:p> ?w }"""
    # The call that is given up goes on for some seconds.
    engine = engine_over(tmp_path, text, count=130, evaluator="reference")
    thread = threading.Thread(target=engine.run, daemon=True)
    thread.start()
    time.sleep(1.0)
    assert thread.is_alive()
    begin = time.monotonic()
    engine.stop()
    thread.join(6)
    assert not thread.is_alive() and time.monotonic() - begin < 5


def test_a_suspended_query_on_spark(tmp_path: Path, spark: SparkSession) -> None:
    answers: list[hw.Answer] = []
    engine = hw.Engine(spark, shards=2, checkpoint=tmp_path / "checkpoint")
    engine.stream("s", write_stream(tmp_path, 60))
    engine.register(GOOD)
    narrow = engine.register(GOOD.replace("good", "narrow"), limits={"rows": 3})
    assert list(engine.run(on_answer=answers.append, drain=False).suspended) == ["narrow"]
    assert sum(rows_of(answers, "good")) >= 50 and not rows_of(answers, "narrow")
    assert [one.query for one in answers if one.suspended is not None] == ["narrow"]
    write_stream(tmp_path, 90)
    assert list(engine.run(on_answer=answers.append, drain=False).suspended) == ["narrow"]
    engine.drop(narrow)
    narrow = engine.register(GOOD.replace("good", "narrow"))
    narrow.resume()
    write_stream(tmp_path, 120)
    answers.clear()
    assert not engine.run(on_answer=answers.append).suspended
    assert rows_of(answers, "narrow")[-2:] == rows_of(answers, "good")[-2:]
