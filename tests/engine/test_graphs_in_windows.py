"""GRAPH in the clause of a window, through the whole pipeline: files, scanned or parsed, checkpoints, Spark, shards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import headwater as hw
from headwater.terms.model import Element
from headwater.terms.timestamps import format_time

PROV = "PREFIX prov: <http://www.w3.org/ns/prov#> "
HEAD = "PREFIX : <http://ex/> "
WINDOW = "FROM NAMED WINDOW :w ON <readings> [RANGE PT4S STEP PT2S]"
QUERIES = {
    "named": f"{HEAD}SELECT ?g ?s ?v {WINDOW} WHERE {{ WINDOW :w {{ GRAPH ?g {{ ?s :value ?v }} }} }}",
    "constant": f"{HEAD}SELECT ?s ?v {WINDOW} WHERE {{ WINDOW :w {{ GRAPH :n1 {{ ?s :value ?v }} }} }}",
    "names": f"{HEAD}SELECT ?g {WINDOW} WHERE {{ WINDOW :w {{ GRAPH ?g {{}} }} }}",
    "times": f"""{HEAD}{PROV}SELECT ?g ?s ?t {WINDOW}
        WHERE {{ WINDOW :w {{ GRAPH ?g {{ ?s :value ?v }} ?g prov:generatedAtTime ?t }} }}""",
    "merged": f"{HEAD}SELECT ?s (SUM(?v) AS ?sum) {WINDOW} WHERE {{ WINDOW :w {{ ?s :value ?v }} }} GROUP BY ?s",
    "optional": f"""{HEAD}SELECT ?g ?u {WINDOW}
        WHERE {{ WINDOW :w {{ GRAPH ?g {{ OPTIONAL {{ ?s :unit ?u }} }} }} }}""",
}
GRAPHS = ["<http://ex/n0>", "<http://ex/n1>", "_:b", "<http://ex/n3>", ""]


XSD = "http://www.w3.org/2001/XMLSchema#"
GENERATED_AT = "<http://www.w3.org/ns/prov#generatedAtTime>"


def write_tnq(path: Path) -> None:
    """Elements of named graphs, a blank one among them, and some without a name."""
    lines = []
    for i in range(120):
        graph = GRAPHS[i * 7 % len(GRAPHS)]
        lines.append(f'{i * 130}\t<http://ex/s{i % 3}> <http://ex/value> "{i % 5}"^^<{XSD}integer> {graph} .')
        if i % 4 == 0:
            lines.append(f'{i * 130}\t<http://ex/s{i % 3}> <http://ex/unit> "C" {graph} .')
    path.write_text("\n".join(lines) + "\n")


def write_nquads(path: Path, source: Path) -> None:
    """Some of the same elements as graphs that carry their time."""
    lines = [line.split("\t") for line in source.read_text().splitlines() if "<http://ex/n0>" in line]
    out = []
    for time, statement in lines:
        name = f"<http://ex/at{time}>"
        out.append(f'{name} {GENERATED_AT} "{format_time(int(time) * 1000)}"^^<{XSD}dateTime> .')
        out.append(statement.replace("<http://ex/n0>", name))
    path.write_text("\n".join(out) + "\n")


class Collector:
    """Collects answers by query, each as a text of its time and rows."""

    def __init__(self) -> None:
        self.answers: dict[str, list[str]] = {name: [] for name in QUERIES}

    def __call__(self, answer: hw.Answer) -> None:
        self.answers[answer.query].append(f"{answer.time} {sorted(map(str, answer.rows))}")


def run(source: Path, spark: SparkSession | None = None, **options: Any) -> dict[str, list[str]]:
    """By query, each answer as a text of its time and rows."""
    engine = hw.Engine(spark, in_process=spark is None, **options)
    engine.stream("readings", hw.files(source))
    for name, text in QUERIES.items():
        engine.register(text, name=name)
    collected = Collector()
    engine.run(on_answer=collected)
    return collected.answers


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("graphs") / "readings.tnq"
    write_tnq(path)
    return path


@pytest.fixture(scope="module")
def expected(stream: Path) -> dict[str, list[str]]:
    return run(stream, evaluator="reference")


def test_every_query_says_something(expected: dict[str, list[str]]) -> None:
    assert all(any(not answer.endswith("[]") for answer in answers) for answers in expected.values())
    assert any("BlankNode value=b" in answer for answer in expected["named"])


@pytest.mark.parametrize("options", [{}, {"batch_bytes": 700}])
def test_in_process_equals_the_reference(stream: Path, expected: dict[str, list[str]], options: dict[str, Any]) -> None:
    assert run(stream, **options) == expected


def test_a_query_alone_equals_the_reference(stream: Path, expected: dict[str, list[str]]) -> None:
    """Alone, a query gets only the triples that it wants."""
    for name, text in QUERIES.items():
        engine = hw.Engine(in_process=True)
        engine.stream("readings", hw.files(stream))
        engine.register(text, name=name)
        collected = Collector()
        engine.run(on_answer=collected)
        assert collected.answers[name] == expected[name]


def test_a_run_goes_on_from_a_checkpoint(tmp_path: Path, stream: Path, expected: dict[str, list[str]]) -> None:
    lines = stream.read_text().splitlines(keepends=True)
    folder = tmp_path / "in"
    folder.mkdir()
    collected = Collector()
    for number, part in enumerate((lines[:50], lines[50:])):
        (folder / f"{number}.tnq").write_text("".join(part))
        engine = hw.Engine(in_process=True, checkpoint=tmp_path / "checkpoint")
        engine.stream("readings", hw.files(folder))
        for name, text in QUERIES.items():
            engine.register(text, name=name)
        engine.run(on_answer=collected, drain=number == 1)
    assert collected.answers == expected


def test_on_spark(stream: Path, expected: dict[str, list[str]], spark: SparkSession) -> None:
    assert run(stream, spark, batch_bytes=3000) == expected


def test_graphs_that_carry_their_time(tmp_path: Path, stream: Path) -> None:
    write_nquads(tmp_path / "readings.nq", stream)
    found = run(tmp_path / "readings.nq")
    assert found == run(tmp_path / "readings.nq", evaluator="reference")
    assert any("1970-01-01T00:00:" in answer and "http://ex/at" in answer for answer in found["times"])


@pytest.mark.parametrize("name", ["north", 5])
def test_a_graph_name_that_is_none_is_refused(name: Any) -> None:
    with pytest.raises(
        hw.SettingError, match=r"graph name of an element must be the text of an IRI, or _:label, and it is"
    ):
        hw.memory([Element(0, (), name)])
