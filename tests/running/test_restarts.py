"""A checkpoint taken over by other queries than made it: who goes on, who begins with what, and what is said of it."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headwater as hw
from headwater.execution.answers import Answer
from headwater.running.checkpoints import Continued
from headwater.terms.model import SECOND
from tests.engine.programs import (
    HOT,
    SENSORS,
    SLIDING,
    TUMBLING,
    by_query,
    comparable,
    sensor_lines,
    with_queries,
    write,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LONGER = SLIDING.replace("RANGE 20s", "RANGE 60s")
UNITS = """
PREFIX : <http://ex/>
REGISTER QUERY units AS
SELECT ?sensor ?unit FROM STREAM <http://ex/sensors> [RANGE 20s STEP 5s] WHERE { ?sensor :unit ?unit }
"""
LINES = sensor_lines(120, late_every=0)
HALF = len(LINES) // 2


def always(folder: Path, texts: tuple[str, ...]) -> dict[str, list[Answer]]:
    """What queries say that are there from the beginning."""
    engine = hw.Engine(in_process=True)
    engine.stream(SENSORS, write(folder / "all.tnq", LINES))
    return said(with_queries(engine, texts))


def said(engine: hw.Engine, *, drain: bool = True) -> dict[str, list[Answer]]:
    found: dict[str, list[Answer]] = {query.name: [] for query in engine.queries}
    engine.run(drain=drain, on_answer=lambda answer: found[answer.query].append(answer))
    return found


def engine_of(folder: Path, texts: tuple[str, ...], spark: SparkSession | None, **options: Any) -> hw.Engine:
    engine = hw.Engine(
        spark, in_process=spark is None, checkpoint=folder / "checkpoint", **{"batch_bytes": 2000, **options}
    )
    engine.stream(SENSORS, folder / "parts")
    return with_queries(engine, texts)


def check_restart(folder: Path, caplog: pytest.LogCaptureFixture, spark: SparkSession | None, **options: Any) -> None:
    expected = always(folder, (TUMBLING, LONGER, UNITS))
    write(folder / "parts" / "1.tnq", LINES[:HALF])
    first = said(engine_of(folder, (SLIDING, TUMBLING, HOT), spark, **options), drain=False)

    write(folder / "parts" / "2.tnq", LINES[HALF:])
    engine = engine_of(folder, (TUMBLING, LONGER, UNITS), spark, **options)
    with caplog.at_level(logging.WARNING):
        second = said(engine)
    assert engine.continued == Continued(("tumbling",), ("sliding",), ("units",), ("hot",))
    words = "\n".join(caplog.messages)
    for sentence in ("tumbling goes on", "sliding has another text", "units is new", "hot is no longer there"):
        assert sentence in words

    assert comparable(first["tumbling"] + second["tumbling"]) == comparable(expected["tumbling"])
    for name, width in (("sliding", 60), ("units", 20)):
        complete = [answer for answer in second[name] if answer.complete]
        begun = first["sliding"][-1].time
        assert complete and not second[name][0].complete
        assert complete[0].time <= begun + (width + 5) * SECOND
        assert comparable(complete) == comparable(a for a in expected[name] if a.time >= complete[0].time)
        assert f"{name}: its answers are complete from" in words


def test_a_restart_with_other_queries(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    check_restart(tmp_path, caplog, None)


def test_a_restart_with_other_queries_on_spark(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, spark: SparkSession
) -> None:
    check_restart(tmp_path, caplog, spark, shards=2)


def test_nothing_is_said_where_everything_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path / "parts" / "1.tnq", LINES[:HALF])
    expected = always(tmp_path, (SLIDING,))
    answers = said(engine_of(tmp_path, (SLIDING,), None), drain=False)["sliding"]
    write(tmp_path / "parts" / "2.tnq", LINES[HALF:])
    engine = engine_of(tmp_path, (SLIDING,), None)
    answers += said(engine)["sliding"]
    assert by_query(answers) == by_query(expected["sliding"])
    assert engine.continued == Continued(("sliding",))
    # Warnings about the data are another matter.
    assert not [one.getMessage() for one in caplog.records if one.name != "headwater.engine.query_warnings"]


def test_shards_stay_as_they_were_cut(tmp_path: Path, spark: SparkSession) -> None:
    write(tmp_path / "parts" / "1.tnq", LINES[:HALF])
    said(engine_of(tmp_path, (SLIDING,), spark, shards=2), drain=False)
    with pytest.raises(hw.CheckpointError, match="2 shards, and this run asks for 3"):
        engine_of(tmp_path, (SLIDING,), spark, shards=3).run()
    whole = SLIDING.replace("?sensor (COUNT(", "(COUNT(DISTINCT ").replace("GROUP BY ?sensor", "")
    assert "DISTINCT" in whole
    with pytest.raises(hw.CheckpointError, match="these queries cannot be cut so"):
        engine_of(tmp_path, (whole,), spark).run()
    assert json.loads((tmp_path / "checkpoint" / "headwater.json").read_text())["shards"]


def test_a_damaged_record_is_said(tmp_path: Path) -> None:
    write(tmp_path / "parts" / "1.tnq", LINES[:HALF])
    said(engine_of(tmp_path, (SLIDING,), None))
    (tmp_path / "checkpoint" / "headwater.json").write_text("{")
    with pytest.raises(hw.CheckpointError, match="use another folder"):
        engine_of(tmp_path, (SLIDING,), None).run()


def test_a_checkpoint_of_another_version_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "parts" / "1.tnq", LINES[:HALF])
    said(engine_of(tmp_path, (SLIDING,), None))
    record = tmp_path / "checkpoint" / "headwater.json"
    known = json.loads(record.read_text())
    for field in ("ids", "format"):
        without = {key: value for key, value in known.items() if key != field}
        for others in ({**known, field: known[field] + 1}, without):
            record.write_text(json.dumps(others))
            with pytest.raises(hw.CheckpointError, match="another version of Headwater"):
                engine_of(tmp_path, (SLIDING,), None).run()
