"""Both runners, all scenarios: the engine in process and on Spark gives the answers that the files expect."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headwater.engine.engine import Engine
from headwater.execution.answers import Answer
from headwater.running.progress import RunSummary
from headwater.sources.files import memory
from headwater.terms.model import Quad
from headwater.terms.stored_forms import restore_triple
from tests.scenario_files import Scenario, compare, read_scenario, scenario_paths

RUNNING = [path for path in scenario_paths() if read_scenario(path).error is None]


def engine(scenario: Scenario, spark: SparkSession | None) -> Engine:
    made = Engine(spark, in_process=spark is None, delay=scenario.delay if scenario.delay != "0" else 0)
    for stream, elements in scenario.streams.items():
        made.stream(stream, memory(elements))
    quads = []
    for quad in scenario.data:
        triple = restore_triple(quad.triple)
        quads.append(Quad(triple.subject, triple.predicate, triple.object, quad.graph_name))
    made.dataset(quads)
    for query in scenario.queries:
        options: dict[str, Any] = dict(query.options)
        made.register(query.text, name=query.name, **options)
    return made


def run(scenario: Scenario, spark: SparkSession | None) -> tuple[list[Answer], RunSummary]:
    answers: list[Answer] = []
    return answers, engine(scenario, spark).run(on_answer=answers.append)


def check(scenario: Scenario, answers: list[Answer], summary: RunSummary) -> None:
    for name in scenario.answers:
        compare(scenario, name, answers)
    assert (summary.late, summary.bad) == (scenario.late, scenario.bad)


@pytest.mark.parametrize("path", RUNNING, ids=lambda path: path.stem)
def test_in_process(path: Path) -> None:
    scenario = read_scenario(path)
    check(scenario, *run(scenario, None))


@pytest.fixture(scope="module")
def runs_on_spark(spark: SparkSession) -> Iterator[dict[Path, Future[tuple[list[Answer], RunSummary]]]]:
    """All scenarios, several at a time: a small run on Spark spends most of its time waiting."""
    with ThreadPoolExecutor(3) as pool:
        yield {path: pool.submit(run, read_scenario(path), spark) for path in RUNNING}


@pytest.mark.parametrize("path", RUNNING, ids=lambda path: path.stem)
def test_on_spark(path: Path, runs_on_spark: dict[Path, Future[tuple[list[Answer], RunSummary]]]) -> None:
    check(read_scenario(path), *runs_on_spark[path].result())
