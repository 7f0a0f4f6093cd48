"""Both runners, all scenarios: the engine in process and on Spark gives the answers that the files expect."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headwater.pipeline.engine import Engine
from headwater.pipeline.sources import memory
from headwater.reference import Answer
from headwater.terms.exact import original_triple
from headwater.terms.model import Quad
from tests.scenario_files import Scenario, compare, read_scenario, scenario_paths

RUNNING = [path for path in scenario_paths() if read_scenario(path).error is None]


def engine(scenario: Scenario, spark: SparkSession | None) -> Engine:
    made = Engine(spark, in_process=spark is None, delay=scenario.delay if scenario.delay != "0" else 0)
    for stream, elements in scenario.streams.items():
        made.stream(stream, memory(elements))
    quads = []
    for quad in scenario.data:
        triple = original_triple(quad.triple)
        quads.append(Quad(triple.subject, triple.predicate, triple.object, quad.graph_name))
    made.dataset(quads)
    for query in scenario.queries:
        made.register(query.text, name=query.name, **query.options)
    return made


def check(scenario: Scenario, spark: SparkSession | None) -> None:
    answers: list[Answer] = []
    summary = engine(scenario, spark).run(on_answer=answers.append)
    for name in scenario.answers:
        compare(scenario, name, answers)
    assert (summary.late, summary.bad) == (scenario.late, scenario.bad)


@pytest.mark.parametrize("path", RUNNING, ids=lambda path: path.stem)
def test_in_process(path: Path) -> None:
    check(read_scenario(path), None)


@pytest.mark.parametrize("path", RUNNING, ids=lambda path: path.stem)
def test_on_spark(path: Path, spark: SparkSession) -> None:
    check(read_scenario(path), spark)
