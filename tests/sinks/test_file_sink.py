"""Answers in files: a batch that is run again replaces what it wrote."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headwater as hw
from headwater.algebra.plan import QueryKind
from headwater.sinks.file_sink import file_name
from headwater.sinks.kafka_sink import KafkaSink
from headwater.sinks.written_parts import WrittenPart
from headwater.terms.model import Literal, NamedNode, Triple
from tests.engine.programs import ANY, HOT, SENSORS, SLIDING, TUMBLING, sensor_lines, write

S, P = NamedNode("http://ex/s"), NamedNode("http://ex/p")


def answer(time: int, *values: str, query: str = "q", part: int = 0) -> hw.Answer:
    rows = tuple((S, Literal(value)) for value in values)
    return hw.Answer(query, time, QueryKind.SELECT, variables=("s", "time"), rows=rows, part=part)


def test_a_batch_that_is_written_again_replaces_itself(tmp_path: Path) -> None:
    sink = hw.FileSink(tmp_path)
    sink.open(None)
    sink.write("run", 1, hw.AnswerBatch([[answer(0, "torn")]]))
    sink.write("run", 1, hw.AnswerBatch([[answer(0, "a"), answer(1, "b", query="http://ex/other")]]))
    sink.write("run", 2, hw.AnswerBatch([[answer(2, "c")]]))
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    other = file_name("http://ex/other")
    assert files == {"q/run-00000001.jsonl", "q/run-00000002.jsonl", f"{other}/run-00000001.jsonl"}
    (line,) = (tmp_path / "q/run-00000001.jsonl").read_text().splitlines()
    assert json.loads(line)["results"]["bindings"][0]["time"]["value"] == "a"


def test_a_query_may_have_any_name(tmp_path: Path) -> None:
    names = ["." * 500, "पन्ह/" * 100, "पन्ह/" * 99 + "पन्ह.", "a" * 200, "a" * 201, "\ud800" * 90, ""]
    sink = hw.FileSink(tmp_path)
    sink.open(None)
    sink.write("run", 1, hw.AnswerBatch([[answer(0, "a", query=name) for name in names]]))
    folders = [one.name for one in tmp_path.iterdir() if one.is_dir()]
    assert len(folders) == len(names)
    assert all(len(name) <= 200 for name in folders)


def test_parquet_has_a_row_for_each_row(tmp_path: Path) -> None:
    for terms in (False, True):
        sink = hw.FileSink(tmp_path / str(terms), format="parquet", terms=terms)
        sink.open(None)
        sink.write(
            "run", 0, hw.AnswerBatch([[answer(1_000_000, "a", "b"), answer(2_000_000), answer(3_000_000, "c", part=1)]])
        )
        table = pq.read_table(tmp_path / str(terms) / "q/run-00000000.parquet").to_pydict()
        assert [moment.timestamp() for moment in table["time"]] == [1.0, 1.0, 3.0]
        assert table["part"] == [0, 0, 1]
        assert table["s"] == ["<http://ex/s>" if terms else "http://ex/s"] * 3
        assert table["time_"] == (['"a"', '"b"', '"c"'] if terms else ["a", "b", "c"])


@pytest.mark.parametrize("format", ["json", "csv", "nquads", "parquet"])
def test_a_run_writes_all_its_answers(format: str, tmp_path: Path) -> None:
    write(tmp_path / "in.tnq", sensor_lines(60))
    engine = hw.Engine(in_process=True, batch_bytes=500)
    engine.stream(SENSORS, tmp_path / "in.tnq")
    for text in (SLIDING, TUMBLING, HOT, ANY):
        engine.register(text)
    heard: list[hw.Answer] = []
    engine.run(on_answer=heard.append, sinks=[hw.FileSink(tmp_path / "out", format=format)])
    for query in ("sliding", "tumbling", "hot", "any"):
        files = sorted((tmp_path / "out" / query).iterdir())
        answers = [one for one in heard if one.query == query]
        rows = sum(len(one.table()[1]) for one in answers)
        assert len(files) > 1
        if format == "json":
            written = [json.loads(line) for path in files for line in path.read_text().splitlines()]
            assert [one["time_us"] for one in written] == [one.time for one in answers]
        elif format == "csv":
            tables = [list(csv.reader(path.read_text().splitlines())) for path in files]
            assert {tuple(table[0]) for table in tables} == {("time", *answers[0].table()[0])}
            assert sum(len(table) - 1 for table in tables) == rows
        elif format == "parquet":
            assert sum(pq.read_metadata(path).num_rows for path in files) == rows
        else:
            text = "".join(path.read_text() for path in files)
            assert text.count("generatedAtTime") == len(answers)


def test_a_sink_that_fails_ends_the_run_and_the_batch_is_written_by_the_next(tmp_path: Path) -> None:
    class Full(hw.FileSink):
        left = 3

        def write(self, run: str, batch: int, answers: object) -> None:
            self.left -= 1
            if self.left < 0:
                raise OSError(28, "No space left on device")
            super().write(run, batch, answers)  # type: ignore[arg-type]

    write(tmp_path / "in.tnq", sensor_lines(60))

    def engine(name: str) -> hw.Engine:
        made = hw.Engine(in_process=True, batch_bytes=500, checkpoint=tmp_path / name)
        made.stream(SENSORS, tmp_path / "in.tnq")
        made.register(SLIDING)
        return made

    with pytest.raises(OSError, match="No space left"):
        engine("a").run(sinks=[Full(tmp_path / "out")])
    engine("a").run(sinks=[hw.FileSink(tmp_path / "out")])
    engine("b").run(sinks=[hw.FileSink(tmp_path / "whole")])

    def lines(folder: Path) -> list[str]:
        return sorted(line for path in folder.rglob("*.jsonl") for line in path.read_text().splitlines())

    assert lines(tmp_path / "out") == lines(tmp_path / "whole")


def test_wrong_sinks_say_what_to_write() -> None:
    with pytest.raises(ValueError, match="json, csv, nquads, parquet"):
        hw.FileSink("x", format="xml")
    with pytest.raises(ValueError, match="json, csv, nquads"):
        KafkaSink("h:1", "t", format="parquet")
    with pytest.raises(ValueError, match="'answer' or 'row'"):
        KafkaSink("h:1", "t", per="word")
    with pytest.raises(ValueError, match="leave out per"):
        KafkaSink("h:1", "t", per="row", format="nquads")
    with pytest.raises(hw.SettingError, match="leave out in_process"):
        KafkaSink("h:1", "t").open(None)


@given(st.permutations(["a", "b", "b", "c"]))
def test_the_keys_of_rows_do_not_depend_on_their_order(values: list[str]) -> None:
    sink = KafkaSink("h:1", "t", per="row")

    def keyed(one: hw.Answer) -> dict[bytes, bytes]:
        return {key: value for key, value, _ in sink.records.of(one, 3)}

    found = keyed(answer(7, *values))
    assert found == keyed(answer(7, "a", "b", "b", "c"))
    assert list(found) == [b"q|7|0|0", b"q|7|0|1", b"q|7|0|2", b"q|7|0|3"]


def test_an_answer_of_each_kind_has_records() -> None:
    triples = (Triple(S, P, Literal("b")), Triple(S, P, Literal("a")))
    graph = hw.Answer("q", 7, QueryKind.CONSTRUCT, triples=triples, watermark=9)
    verdict = hw.Answer("q", 7, QueryKind.ASK, boolean=True, part=2)
    by_row, whole = KafkaSink("h:1", "t", per="row"), KafkaSink("h:1", "t", format="nquads")
    assert [json.loads(value)["graph"] for _, value, _ in by_row.records.of(graph, 0)] == [
        '<http://ex/s> <http://ex/p> "a" .\n',
        '<http://ex/s> <http://ex/p> "b" .\n',
    ]
    assert [key for key, _, _ in by_row.records.of(verdict, 0)] == [b"q|7|2|0"]
    ((key, value, headers),) = whole.records.of(graph, 5)
    assert key == b"q|7|0"
    assert value.count(b"\n") == 3
    assert {str(one["key"]): one["value"] for one in headers} == {
        "query": b"q",
        "tick": b"1970-01-01T00:00:00.000007Z",
        "watermark": b"1970-01-01T00:00:00.000009Z",
        "batch": b"5",
    }


def placed(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_parts_have_a_name_when_they_are_committed(tmp_path: Path) -> None:
    sink = hw.FileSink(tmp_path, parts=True)
    sink.open(None)
    files: dict[WrittenPart, str | None] = {}
    for shard, value in enumerate("ab"):
        answers = hw.AnswerBatch([[answer(0, value, part=shard)]])
        files[WrittenPart.of("q", shard, answers, ())] = sink.write_part("run", answers).file
    assert all(name.startswith("q/.run-") for name in placed(tmp_path))
    sink.commit_parts("run", 3, files)
    assert placed(tmp_path) == {"q/run-00000003-0.jsonl", "q/run-00000003-1.jsonl"}
    assert '"b"' in (tmp_path / "q/run-00000003-1.jsonl").read_text()


def test_a_repeated_batch_removes_what_attempts_left_in_any_form(tmp_path: Path) -> None:
    sink = hw.FileSink(tmp_path)
    sink.open(None)
    whole, other = hw.AnswerBatch([[answer(0, "whole")]]), hw.AnswerBatch([[answer(0, "x", query="other")]])
    sink.write("run", 3, whole)
    sink.write("run", 4, whole)
    sink.write_part("run", whole)
    sink.write_part("another", whole)
    part = WrittenPart.of("q", 0, whole, ())
    sink.commit_parts("run", 3, {part: sink.write_part("run", whole).file})
    sink.rewrite("run", 3, other)
    found = placed(tmp_path)
    (unnamed,) = (name for name in found if name.startswith("q/.another-"))
    assert found - {unnamed} == {"q/run-00000003-0.jsonl", "q/run-00000004.jsonl", "other/run-00000003.jsonl"}
    # And back: the same batch comes through the driver again.
    sink.commit_parts("run", 3, {})
    sink.rewrite("run", 3, whole)
    assert placed(tmp_path) - {unnamed} == {"q/run-00000003.jsonl", "q/run-00000004.jsonl"}


def test_a_sink_that_writes_its_own_way_is_written_by_the_driver(tmp_path: Path) -> None:
    class Loud(hw.FileSink):
        def write(self, run: str, batch: int, answers: hw.AnswerBatch) -> None:
            super().write(run, batch, answers)

    assert Loud(tmp_path, parts=True).part_writer() is None
    assert hw.FileSink(tmp_path).part_writer() is not None
