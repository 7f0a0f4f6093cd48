"""A batch that was planned and not committed is run again as it was, and no other batch behind it."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import headwater as hw
from headwater.engine.checkpoint_claims import ModeSwitch
from headwater.running.checkpoints import CheckpointRecord
from headwater.running.delivery import Delivery
from headwater.spark.spark_logs import last_commit, last_planned
from headwater.terms.durable_files import remove_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY = "PREFIX : <http://ex/> SELECT (COUNT(?v) AS ?n) FROM STREAM :s [RANGE 2s STEP 1s] WHERE { ?x :p ?v }"


def lines(first: int, count: int) -> str:
    return "".join(f'{place}000\t<http://ex/x> <http://ex/p> "{place}" .\n' for place in range(first, first + count))


def test_a_planned_batch_is_finished_and_no_other(spark: SparkSession, tmp_path: Path) -> None:
    source, checkpoint = tmp_path / "s.tnq", tmp_path / "checkpoint"
    source.write_text(lines(0, 20))
    engine = hw.Engine(spark, checkpoint=checkpoint, shards=1, batch_bytes=400)
    engine.stream("http://ex/s", hw.files(source))
    engine.register(QUERY)
    answers: list[hw.Answer] = []
    engine.run(drain=False, on_answer=answers.append)
    logs = checkpoint / "spark"
    last = last_commit(logs)
    assert last > 0
    remove_files(logs / "commits" / str(last), logs / "commits" / f".{last}.crc")
    with source.open("a") as more:
        more.write(lines(20, 20))
    repeated: list[hw.Answer] = []

    def make_delivery(run: str) -> Delivery:
        nothing: dict[str, Any] = {"line_numbers": lambda *place: [], "text_at": lambda *place: None}
        return Delivery(on_answer=repeated.append, run=run, **nothing)

    known = CheckpointRecord.read(checkpoint)
    assert known is not None
    with ExitStack() as stack:
        workload = engine._open_workload({}, stack)
        switch = ModeSwitch(checkpoint, lambda: spark, workload, make_delivery, Event())
        assert switch._finish_planned_batch(known)
    assert last_commit(logs) == last_planned(logs) == last
    assert 0 < len(repeated) < len(answers)
    assert [(one.time, one.rows) for one in repeated] == [(one.time, one.rows) for one in answers[-len(repeated) :]]
