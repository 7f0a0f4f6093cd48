"""What happens to an iterator whose buffer is full: it ends, it loses its oldest answers, or the run waits for it."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import headwater as hw
from tests.security.test_hanging_calls import MOST_SECONDS, Run, wait_until
from tests.security.test_query_limits import GOOD, engine_over, write_stream

TICKS = 30


def make_engine(folder: Path) -> hw.Engine:
    """An engine whose query answers every second, ten rows each, a few of them in one batch."""
    return engine_over(folder, GOOD, count=10 * TICKS, batch_bytes=1000)


def test_a_run_waits_for_an_iterator_that_asks_for_it(tmp_path: Path) -> None:
    engine = make_engine(tmp_path)
    slow = engine.queries[0].answers(buffer=3, when_full="block")
    run = Run(engine)
    wait_until(lambda: run.answers)
    time.sleep(1.0)
    assert run.is_alive and len(run.answers) <= 4
    taken = [next(slow).time]
    for answer in slow:
        time.sleep(0.005)
        taken.append(answer.time)
    run.seconds_until(lambda: None)
    assert taken == [one.time for one in run.answers] and len(taken) >= TICKS and slow.dropped == 0


@pytest.mark.parametrize("ends", ["stop", "close", "drop"])
def test_a_run_does_not_wait_for_ever(tmp_path: Path, ends: str) -> None:
    engine = make_engine(tmp_path)
    # The last query of a run cannot be dropped.
    engine.register(GOOD.replace("good", "other"))
    slow = engine.queries[0].answers(buffer=3, when_full="block")
    run = Run(engine)
    wait_until(lambda: run.answers)
    call = {"stop": engine.stop, "close": slow.close, "drop": lambda: engine.drop("good")}[ends]
    assert run.seconds_until(call) < MOST_SECONDS
    assert run.failure is None
    counts = Counter(one.query for one in run.answers)
    assert (counts["good"] >= TICKS) == (ends == "close")
    assert (counts["other"] >= TICKS) == (ends != "stop")


def test_the_oldest_are_lost_where_that_was_chosen(tmp_path: Path) -> None:
    engine = make_engine(tmp_path)
    newest = engine.queries[0].answers(buffer=4, when_full="drop")
    answers: list[hw.Answer] = []
    engine.run(on_answer=answers.append)
    assert [one.time for one in newest] == [one.time for one in answers[-4:]]
    assert newest.dropped == len(answers) - 4


def test_an_iterator_ends_with_an_error_and_hurts_nobody(tmp_path: Path) -> None:
    engine = make_engine(tmp_path)
    slow, quick = engine.queries[0].answers(buffer=4), engine.queries[0].answers(buffer=1000)
    answers: list[hw.Answer] = []
    engine.run(on_answer=answers.append)
    assert [one.time for one in quick] == [one.time for one in answers]
    taken = [next(slow).time for _ in range(4)]
    with pytest.raises(hw.SlowConsumerError, match=r"'good' was too slow: 4 answers were waiting.*when_full='drop'"):
        next(slow)
    assert taken == [one.time for one in answers[:4]]
    # It has ended.
    assert list(slow) == []


def test_more_than_10000_answers_that_nobody_takes_stop_nothing(tmp_path: Path) -> None:
    engine = hw.Engine(in_process=True)
    engine.stream("s", write_stream(tmp_path, 10_100, step=10))
    query = engine.register(GOOD.replace("1s TUMBLING", "10ms TUMBLING"))
    slow = query.answers()
    assert engine.run().ticks >= 10_099
    assert sum(1 for _ in zip(range(10_000), slow, strict=False)) == 10_000
    with pytest.raises(hw.SlowConsumerError, match="10,000 answers were waiting"):
        next(slow)


def test_batches_have_the_same_choice(tmp_path: Path) -> None:
    engine = make_engine(tmp_path)
    slow = engine.queries[0].batches(buffer=1)
    newest = engine.queries[0].batches(buffer=1, when_full="drop")
    engine.run()
    assert len(list(newest)) == 1 and newest.dropped > 1
    next(slow)
    with pytest.raises(hw.SlowConsumerError, match="1 batches were waiting"):
        next(slow)
    with pytest.raises(hw.SettingError, match="'wait' is no when_full: use one of end, drop, block"):
        engine.queries[0].answers(when_full="wait")  # type: ignore[arg-type]


def test_policies_on_spark(tmp_path: Path, spark: SparkSession) -> None:
    engine = hw.Engine(spark, batch_bytes=4000)
    engine.stream("s", write_stream(tmp_path, 10 * TICKS))
    query = engine.register(GOOD)
    ending, newest = query.answers(buffer=4), query.answers(buffer=4, when_full="drop")
    waiting = query.answers(buffer=4, when_full="block")
    run = Run(engine)
    times = [one.time for one in waiting]
    run.seconds_until(lambda: None)
    assert run.failure is None and times == [one.time for one in run.answers] and len(times) >= TICKS
    assert [one.time for one in newest] == times[-4:]
    assert [next(ending).time for _ in range(4)] == times[:4]
    with pytest.raises(hw.SlowConsumerError):
        next(ending)
