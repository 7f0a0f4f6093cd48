"""The stateful step without a JVM: the store's snapshot is the truth, the live copy only saves time."""

from __future__ import annotations

import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql.streaming.tws_tester import TwsTester

import headwater as hw
from headwater.running.evaluation import BatchOutcome
from headwater.running.shipping import Shipped
from headwater.sources.feed import Feed
from headwater.sources.offsets import Offset
from headwater.sources.receivers import ReceivedSource
from headwater.spark import stateful_step as stateful
from headwater.spark.chunk_bytes import pack_chunk
from headwater.spark.stateful_step import EvaluationProcessor, rows_to_outcome
from tests.engine.programs import by_query, with_city, with_queries, write_city


class Step:
    """Runs the stateful step of the city's queries on one batch after the other."""

    def __init__(self, folder: Path) -> None:
        # Its data lives as long as the engine does.
        self.engine = engine = with_queries(with_city(hw.Engine(in_process=True), folder))
        description = engine._description()
        sources = {
            s: found
            for s in description.outline().inputs
            if not isinstance(found := engine._sources[s], ReceivedSource)
        }
        self.feed = Feed(sources, datasets=[one.path for one in engine._data.folders])
        self.feed.finish()
        self.ends = [Offset()]
        while (end := self.feed.next_offset(self.ends[-1], 1500)) != self.ends[-1]:
            self.ends.append(end)
        self.processor = EvaluationProcessor(Shipped(pickle.dumps(description)))
        self.tester = TwsTester(self.processor)
        self.expected: list[hw.Answer] = []
        engine.run(on_answer=self.expected.append)

    def batch(self, number: int) -> BatchOutcome:
        start, end = list(pairwise(self.ends))[number]
        chunks = [pack_chunk(c) for task in self.feed.read_tasks(start, end, 400) for c in self.feed.read(task)]
        frame = pd.DataFrame({"shard": 0, "chunk": chunks})
        result: Any = self.tester.testInPandas(0, frame)
        return rows_to_outcome(result.to_dict("records"))

    def state(self) -> tuple[list[tuple[Any, ...] | None], dict[Any, Any]]:
        values = [self.tester.peekValueState(name, 0) for name in ("token", "summary")]
        return values, dict(self.tester.peekMapState("segments", 0))

    def set_state(self, state: tuple[list[tuple[Any, ...] | None], dict[Any, Any]]) -> None:
        values, segments = state
        for name, value in zip(("token", "summary"), values, strict=True):
            assert isinstance(value, tuple)
            self.tester.updateValueState(name, 0, value)
        self.tester.updateMapState("segments", 0, segments)


@pytest.fixture
def step(tmp_path: Path) -> Step:
    return Step(write_city(tmp_path))


def test_the_step_gives_the_answers_of_the_runner_in_process(step: Step) -> None:
    answers = [answer for number in range(len(step.ends) - 1) for answer in step.batch(number).answers]
    assert len(step.ends) > 4
    assert by_query(answers) == by_query(step.expected)


def test_a_worker_without_the_live_copy_goes_on_from_the_snapshot(step: Step) -> None:
    answers: list[hw.Answer] = []
    for number in range(len(step.ends) - 1):
        answers.extend(step.batch(number).answers)
        stateful._LIVE_EVALUATIONS.clear()
    assert by_query(answers) == by_query(step.expected)


def test_an_attempt_that_was_not_committed_leaves_no_trace(step: Step) -> None:
    answers = list(step.batch(0).answers)
    committed = step.state()
    first = step.batch(1)
    step.set_state(committed)
    second = step.batch(1)
    assert by_query(second.answers) == by_query(first.answers)
    assert (second.dead_letters, second.elements) == (first.dead_letters, first.elements)
    answers.extend(second.answers)
    for number in range(2, len(step.ends) - 1):
        answers.extend(step.batch(number).answers)
    assert by_query(answers) == by_query(step.expected)


def test_the_log_holds_what_the_windows_can_still_show_and_no_more(step: Step) -> None:
    sizes: list[int] = []
    for number in range(len(step.ends) - 1):
        step.batch(number)
        sizes.append(len(step.state()[1]))
    written = 2 * len(sizes)
    assert 0 < sizes[-1] < written // 2


def test_two_runs_in_one_worker_do_not_take_each_others_state(step: Step, tmp_path: Path) -> None:
    other = Step(write_city(tmp_path / "other"))
    first, second = list(step.batch(0).answers), list(other.batch(0).answers)
    for number in range(1, len(step.ends) - 1):
        first.extend(step.batch(number).answers)
        second.extend(other.batch(number).answers)
    assert by_query(first) == by_query(second) == by_query(step.expected)


def test_a_damaged_state_is_said(step: Step) -> None:
    step.batch(0)
    step.tester.updateValueState("token", 0, ("unknown",))
    step.tester.deleteState("summary", 0)
    with pytest.raises(RuntimeError, match="damaged"):
        step.batch(1)
