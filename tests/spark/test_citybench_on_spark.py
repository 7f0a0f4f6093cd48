"""All 24 CityBench query files over their CSV streams: the same answers in process and on Spark."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headwater.engine.engine import Engine
from headwater.execution.answers import Answer
from headwater.sources.files import files, memory
from headwater.terms.timestamps import HOUR
from tests.conformance.citybench import CityQuery, citybench_programs
from tests.shared_data import shared_data


@dataclass(frozen=True)
class Group:
    """Queries that can share one run: they read the same slices of the same streams."""

    queries: tuple[CityQuery, ...]

    def answers(self, spark: SparkSession | None) -> list[Answer]:
        engine = Engine(spark, in_process=spark is None)
        for stream in {stream.iri: stream for query in self.queries for stream in query.streams}.values():
            source = memory([]) if stream.file is None else files(stream.file, template=stream.template)
            engine.stream(stream.iri, source)
        for path, graph in {dataset: None for query in self.queries for dataset in query.datasets}:
            engine.dataset(path, graph)
        for query in self.queries:
            engine.register(query.text, name=query.name)
        found: list[Answer] = []
        summary = engine.run(on_answer=found.append)
        assert (summary.late, summary.bad) == (0, 0)
        return found


def groups(queries: list[CityQuery]) -> list[Group]:
    """As few groups as possible: a stream may be cut in one way only within a group."""
    made: list[list[CityQuery]] = []
    for query in queries:
        for group in made:
            cuts = {stream.iri: _rows(stream.file) for other in group for stream in other.streams}
            mine = {stream.iri: _rows(stream.file) for stream in query.streams}
            if set(mine) <= set(cuts) and all(cuts[iri] == rows for iri, rows in mine.items()):
                group.append(query)
                break
        else:
            made.append([query])
    return [Group(tuple(group)) for group in made]


def _rows(file: Path | None) -> bytes | None:
    return None if file is None else file.read_bytes()


def test_all_queries_answer_alike_in_process_and_on_spark(
    tmp_path_factory: pytest.TempPathFactory, spark: SparkSession
) -> None:
    folder = tmp_path_factory.mktemp("citybench")
    queries = citybench_programs(shared_data("citybench"), folder, rows=6, longest=HOUR // 2)
    assert len(queries) == 24
    spoken: set[str] = set()
    together = groups(queries)
    with ThreadPoolExecutor(2) as pool:
        on_spark = [pool.submit(group.answers, spark) for group in together]
        for group, there in zip(together, on_spark, strict=True):
            here = group.answers(None)
            assert here == there.result()
            spoken.update(answer.query for answer in here)
    assert len(spoken) >= 20
