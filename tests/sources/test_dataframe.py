"""Any streaming DataFrame as a stream, with a template."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import headwater as hw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

S = "http://ex/s"
QUERY = """
PREFIX : <http://ex/>
REGISTER QUERY speeds AS
SELECT ?car ?speed FROM STREAM <http://ex/s> [RANGE 10s STEP 10s] WHERE { ?seen :of ?car ; :speed ?speed }
"""
TEMPLATE = """
@where {ok} = true
[] <http://ex/of> <http://ex/{car.id}> ; <http://ex/speed> "{speed}"^^<http://www.w3.org/2001/XMLSchema#integer> .
"""
SCHEMA = "at timestamp, car struct<id: string>, speed int, ok boolean"


def rows(*given: tuple[str | None, str, int | None, bool]) -> str:
    return "".join(
        json.dumps({"at": at, "car": {"id": car}, "speed": speed, "ok": ok}) + "\n" for at, car, speed, ok in given
    )


def test_rows_become_answers(spark: SparkSession, tmp_path: Path) -> None:
    """Two files, read as two batches; the rows of each are out of order."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "1.json").write_text(
        rows(
            ("1970-01-01T00:00:07Z", "a", 50, True),
            ("1970-01-01T00:00:03Z", "b", 60, True),
            (None, "c", 70, True),
            ("1970-01-01T00:00:04Z", "d", 70, False),
        )
    )
    (folder / "2.json").write_text(
        rows(("1970-01-01T00:00:08Z", "a", 50, True), ("1970-01-01T00:00:02Z", "late", 1, True))
    )
    frame = (
        spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).option("latestFirst", "false").json(str(folder))
    )
    engine = hw.Engine(spark, dead_letters=tmp_path / "dead")
    engine.stream(S, hw.dataframe(frame, template=TEMPLATE, time="at"))
    engine.register(QUERY)
    answers: list[hw.Answer] = []
    summary = engine.run(on_answer=answers.append)
    assert (summary.elements, summary.bad) == (4, 1)
    (letter, *others) = [
        json.loads(line) for path in sorted((tmp_path / "dead").iterdir()) for line in path.read_text().splitlines()
    ]
    assert "no time" in letter["reason"]
    assert [other["kind"] for other in others] == ["late"]
    found = {one.time: sorted((car.value[-1], speed.value) for car, speed in one.rows) for one in answers}  # type: ignore[union-attr]
    assert found == {10_000_000: [("a", "50"), ("a", "50"), ("b", "60")]}, "equal rows of two batches are two"


def test_what_does_not_fit_says_so(spark: SparkSession) -> None:
    frame = spark.readStream.format("rate").load()
    with pytest.raises(hw.SettingError, match="has no column 'when'"):
        hw.dataframe(frame, template=TEMPLATE, time="when")
    with pytest.raises(hw.SettingError, match="the rows have no time"):
        hw.dataframe(frame, template='<http://ex/s> <http://ex/p> "{value}" .\n')
    with pytest.raises(hw.SourceError, match="is not a streaming one"):
        hw.dataframe(spark.range(3), template='@time {id}\n<http://ex/s> <http://ex/p> "{id}" .\n').check()
    source = hw.dataframe(frame, template='<http://ex/s> <http://ex/p> "{absent}" .\n', time="timestamp")
    with pytest.raises(hw.SourceError, match="'absent', which the DataFrame does not have"):
        source.records(spark)
